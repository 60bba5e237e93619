"""MMA atoms: one multiply-accumulate instruction of one or more threads.

An operation describes itself by `MmaTraits`; `MmaAtom` adds what a kernel asks of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.ir import atom_text
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Float16, Float32, Float64, Numeric, as_numeric
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout


@dataclass(frozen=True)
class MmaTraits:
    """Extents of the product, its threads, and which element each (thread, value) holds.

    `a`, `b`, `c` map (thread, value) to the column-major index in the (M,K), (N,K), (M,N) tile. `packed`: A holds
    one of so many elements along K.
    """

    shape_mnk: tuple[int, int, int]
    thr_id: Layout
    a: Layout
    b: Layout
    c: Layout
    a_dtype: type[Numeric]
    b_dtype: type[Numeric]
    c_dtype: type[Numeric]
    packed: int = 1


class MmaOp(ABC):
    """A way to multiply and accumulate. Immutable; equal when it means the same."""

    @abstractmethod
    def traits(self) -> MmaTraits:
        """Extents, threads and fragments."""

    @abstractmethod
    def text(self) -> str:
        """The atom of the `cute.gemm` operation, as `ir.atom_text` writes it."""


class AsyncMmaOp(MmaOp):
    """A product that runs on while its threads do, and reads operands where they lie."""

    @abstractmethod
    def in_memory(self, operand: str) -> bool:
        """Whether operand `A` or `B` is read from shared memory: its fragment is the tensor there."""

    @abstractmethod
    def issue(self, atom: MmaAtom, d: Tensor, a: Any, b: Tensor, c: Tensor) -> None:
        """Begin the products of `cute.gemm`. A may come with the words that say which of its elements there are."""


@dataclass(frozen=True)
class MmaUniversalOp(MmaOp):
    """A fused multiply-add of one thread, of one element: D = A * B + C in `abacc_dtype`.

    Raises:
        CompileError: a type other than Float16, Float32, Float64.
    """

    abacc_dtype: type[Numeric]

    def __post_init__(self) -> None:
        if self.abacc_dtype not in (Float16, Float32, Float64):
            raise CompileError(
                f"MmaUniversalOp of {self.abacc_dtype}", location=user_location(), hint="Float16, Float32 or Float64"
            )

    def traits(self) -> MmaTraits:
        one, dtype = Layout((1, 1), (0, 0)), self.abacc_dtype
        return MmaTraits((1, 1, 1), Layout(1, 0), one, one, one, dtype, dtype, dtype)

    def text(self) -> str:
        return atom_text.write("universal")


class MmaAtom:
    """An MMA operation and its traits. Layouts map (thread, value) to an index in the instruction's tile.

    `accumulate` says whether asynchronous products add to D; `set` changes it, also in runtime branches and loops.
    """

    __tw_mutable__ = True

    def __init__(self, op: MmaOp) -> None:
        self.op = op
        self.traits = op.traits()
        self.accumulate: Any = True

    def set(self, field: Any, value: Any, *, loc: object = None, ip: object = None) -> None:
        """Give a field of the atom a value: `Field.ACCUMULATE` a Boolean.

        Raises:
            CompileError: the operation has no such field.
        """
        self._check_field(field)
        self.accumulate = value if isinstance(value, bool) else Boolean(as_numeric(value))

    def get(self, field: Any, *, loc: object = None, ip: object = None) -> Any:
        """The value of a field."""
        self._check_field(field)
        return self.accumulate

    def _check_field(self, field: Any) -> None:
        if not isinstance(self.op, AsyncMmaOp) or getattr(field, "name", "") != "ACCUMULATE":
            raise CompileError(
                f"{type(self.op).__name__} has no field {getattr(field, 'name', field)}",
                location=user_location(3),
                hint="products of a warpgroup have cute.nvgpu.warpgroup.Field.ACCUMULATE",
            )

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return self.traits.shape_mnk

    @property
    def thr_id(self) -> Layout:
        return self.traits.thr_id

    @property
    def tv_layout_A(self) -> Layout:
        return self.traits.a

    @property
    def tv_layout_B(self) -> Layout:
        return self.traits.b

    @property
    def tv_layout_C(self) -> Layout:
        return self.traits.c

    @property
    def text(self) -> str:
        """The atom as attribute text."""
        return self.op.text()

    def values(self, operand: str) -> int:
        """Values of one thread of operand `A`, `B` or `C`."""
        return int(algebra.size(getattr(self, f"tv_layout_{operand}"), mode=[1]))

    def dtype(self, operand: str) -> type[Numeric]:
        """The element type of operand `A`, `B` or `C`."""
        found: type[Numeric] = getattr(self.traits, f"{operand.lower()}_dtype")
        return found

    def key(self) -> tuple[Any, ...]:
        return (self.op,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MmaAtom) and type(other) is type(self) and other.key() == self.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __str__(self) -> str:
        return (
            f"MMA Atom\n  ThrID:       {self.thr_id}\n  Shape MNK:   {self.shape_mnk}\n"
            f"  TV Layout A: {self.tv_layout_A}\n  TV Layout B: {self.tv_layout_B}\n  TV Layout C: {self.tv_layout_C}"
        )


def make_mma_atom(op: Any, *, loc: object = None, ip: object = None) -> MmaAtom:
    """The MMA atom of `op`.

    Raises:
        CompileError: `op` is no MMA operation.
    """
    if not isinstance(op, MmaOp):
        raise CompileError(
            f"{op!r} is no MMA operation", location=user_location(), hint="such as cute.nvgpu.MmaUniversalOp(Float32)"
        )
    return MmaAtom(op)
