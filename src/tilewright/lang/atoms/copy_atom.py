"""Copy atoms: one instruction that moves values of one or more threads.

An operation describes itself by `CopyTraits`, in bits; `CopyAtom` binds it to a value type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.ir import atom_text
from tilewright.lang.atoms.copy_hints import NAMES, CopyHints
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, number_type
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout

VECTOR_BITS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class CopyTraits:
    """Threads of one copy instruction, and what bit each (thread, bit) names of the source and the destination.

    `ref` is the side by which a tiled copy deals values to threads.
    """

    thr_id: Layout
    src: Layout
    dst: Layout
    ref: Layout


class CopyOp(ABC):
    """A way to copy. Immutable; equal when it means the same."""

    @abstractmethod
    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        """Which thread moves which bits; `num_bits` is 0 where the user gave no width."""

    @abstractmethod
    def text(self, num_bits: int) -> str:
        """The atom of the `cute.copy` operation, as `ir.atom_text` writes it."""

    def atom(self, value_type: type[Numeric], num_bits: int, hints: CopyHints) -> CopyAtom:
        """The atom of this operation for values of `value_type`."""
        return CopyAtom(self, value_type, num_bits, hints)

    def check(self, src: Tensor, dst: Tensor) -> None:
        """Refuse tensors that the instruction cannot take."""
        for name, tensor in (("source", src), ("destination", dst)):
            if tensor.is_coordinates:
                raise CompileError(
                    f"the copy's {name} is a tensor of coordinates, which has no memory",
                    location=user_location(),
                    values={name: tensor},
                )


@dataclass(frozen=True)
class CopyUniversalOp(CopyOp):
    """Loads and stores of one thread, of any width."""

    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        return one_thread(num_bits or dtype.width)

    def text(self, num_bits: int) -> str:
        return atom_text.write("universal", bits=num_bits) if num_bits else atom_text.write("universal")


def one_thread(bits: int) -> CopyTraits:
    """Traits of a copy of `bits` bits by each thread alone."""
    layout = Layout((1, bits), (0, 1))
    return CopyTraits(Layout(1, 0), layout, layout, layout)


class CopyAtom:
    """A copy operation on values of `value_type`, `num_bits` at a time.

    `num_bits` 0 leaves the width to layouts and alignments. Layouts of the atom count values.

    Raises:
        CompileError: the operation does not move whole values of that type.
    """

    def __init__(
        self, op: CopyOp, value_type: type[Numeric], num_bits: int = 0, hints: CopyHints | None = None
    ) -> None:
        self.op = op
        self.value_type = value_type
        self.num_bits = num_bits
        self.hints = hints or CopyHints()
        if num_bits and (num_bits not in VECTOR_BITS or num_bits % value_type.width):
            raise CompileError(
                f"a copy of {num_bits} bits of {value_type}",
                location=user_location(),
                values={"num_bits_per_copy": num_bits, "value type": f"{value_type}, {value_type.width} bits"},
                hint=f"use a multiple of {value_type.width} among {', '.join(map(str, VECTOR_BITS))}",
            )
        traits = op.traits(value_type, num_bits)
        self.thr_id = traits.thr_id
        self.layout_src_tv, self.layout_dst_tv, self.layout_ref_tv = (
            self._in_values(side) for side in (traits.src, traits.dst, traits.ref)
        )

    def _in_values(self, bits: Layout) -> Layout:
        layout: Layout = algebra.recast_layout(self.value_type.width, 1, bits)
        return layout

    @property
    def threads(self) -> int:
        """Threads that take part in one instruction."""
        return int(algebra.size(self.layout_ref_tv, mode=[0]))

    @property
    def values(self) -> int:
        """Values of one thread in one instruction, on the side by which they are dealt."""
        return int(algebra.size(self.layout_ref_tv, mode=[1]))

    @property
    def text(self) -> str:
        """The atom as attribute text."""
        return self.op.text(self.num_bits)

    def key(self) -> tuple[Any, ...]:
        return self.op, self.value_type, self.num_bits, self.hints

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CopyAtom) and type(other) is type(self) and other.key() == self.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __str__(self) -> str:
        return (
            f"Copy Atom\n  ThrID:         {self.thr_id}\n  TV Layout Src: {self.layout_src_tv}\n"
            f"  TV Layout Dst: {self.layout_dst_tv}\n  Value type:    {self.value_type.facts.name}"
        )


class BulkAtom(CopyAtom):
    """An atom whose copies are operations of their own, which take more than two tensors."""

    @abstractmethod
    def issue(self, src: Tensor, dst: Tensor, pred: Tensor | None, options: dict[str, Any]) -> None:
        """Start the copies of `cute.copy`; `options` are what it was given by name."""


def make_copy_atom(
    op: Any, copy_internal_type: type[Numeric], *, num_bits_per_copy: int = 0, **others: Any
) -> CopyAtom:
    """The copy atom of `op` for values of `copy_internal_type`, `num_bits_per_copy` bits at a time.

    Hints for its loads and stores in global memory are `l1c_evict_priority` (`CacheEvictionPriority`),
    `l2_prefetch_size` (`L2PrefetchSize`, loads only) and `invariant` (loads only: nobody writes the source while the
    kernel runs).

    Raises:
        CompileError: `op` is no copy operation, it does not move values of that type, or a hint cannot be.
    """
    op = op() if isinstance(op, type) else op
    if not isinstance(op, CopyOp):
        raise CompileError(
            f"{op!r} is no copy operation", location=user_location(), hint="such as cute.nvgpu.CopyUniversalOp()"
        )
    unknown = [name for name, value in others.items() if name not in (*NAMES, "loc", "ip") and value is not None]
    if unknown:
        raise CompileError(f"make_copy_atom has no option {unknown[0]!r}", location=user_location())
    value_type = number_type(copy_internal_type)
    return op.atom(value_type, int(num_bits_per_copy), CopyHints.of(others))
