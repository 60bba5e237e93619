"""Copies between tensors.

A copy stays one operation over whole tensors; the lowering picks the widest vectors that both layouts, both alignments
and the atom allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.locations import user_location
from tilewright.lang.numeric import Numeric
from tilewright.lang.tensor import Tensor
from tilewright.layout import size


@dataclass(frozen=True)
class CopyUniversalOp:
    """Loads and stores of any width."""


@dataclass(frozen=True)
class CopyAtom:
    """A copy operation on values of `dtype`, `num_bits` at a time; 0 leaves the width to layouts and alignment."""

    op: Any
    dtype: type[Numeric]
    num_bits: int = 0

    @property
    def value_type(self) -> type[Numeric]:
        return self.dtype


def make_copy_atom(op: Any, dtype: type[Numeric], *, num_bits_per_copy: int = 0, **_: object) -> CopyAtom:
    """The copy atom of `op`."""
    return CopyAtom(op() if isinstance(op, type) else op, dtype, num_bits_per_copy)


def copy(atom: Any, src: Tensor, dst: Tensor, *, pred: Tensor | None = None, **_: object) -> None:
    """Copy `src` to `dst` with an atom or tiled copy; elements whose predicate is false are left alone."""
    bits = getattr(atom, "num_bits", 0) or getattr(getattr(atom, "atom", None), "num_bits", 0)
    _copy(src, dst, bits, pred)


def autovec_copy(src: Tensor, dst: Tensor, *, loc: object = None, ip: object = None, **_: object) -> None:
    """Copy `src` to `dst` with the widest vectors possible."""
    _copy(src, dst, 0, None)


def basic_copy(src: Tensor, dst: Tensor, *, loc: object = None, ip: object = None) -> None:
    """Copy `src` to `dst` element by element."""
    _copy(src, dst, src.element_type.width, None)


def _copy(src: Tensor, dst: Tensor, bits: int, pred: Tensor | None) -> None:
    counts = [size(tensor.layout) for tensor in (src, dst)]
    if not all(isinstance(count, int) for count in counts) or counts[0] != counts[1]:
        raise CompileError(
            "copy source and destination disagree on the number of elements",
            location=user_location(3),
            values={
                "source": f"{src.layout}   {counts[0]} elements",
                "destination": f"{dst.layout}   {counts[1]} elements",
            },
            hint="partition both sides with the same thr_copy",
        )
    if src.element_type.width != dst.element_type.width:
        raise CompileError(
            f"copy from {src.element_type} to {dst.element_type}",
            location=user_location(3),
            hint="load, convert with .to(), and store",
        )
    groups = ((src.value,), (dst.value,), (pred.value,) if pred is not None else ())
    build.cute("copy", (), groups, atom=build.string(str(bits) if bits else "auto"))
