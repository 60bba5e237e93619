"""Bulk copies of consecutive bytes, without a tensor map (PTX `cp.async.bulk`, sm_90 and up).

One thread starts a copy, and the engine of the multiprocessor does it: addresses and sizes are multiples of 16 bytes.
Loads count their bytes at an mbarrier; stores, reductions into global memory among them, belong to the thread's bulk
group (`cp_async_bulk_commit_group`, `cp_async_bulk_wait_group`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.atoms.copy_atom import BulkAtom, CopyOp, CopyTraits, one_thread
from tilewright.lang.atoms.copy_hints import CopyHints
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int16, Int32, Int64, Numeric, as_numeric
from tilewright.lang.nvgpu.cpasync import expect_space
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.nvgpu.tma_ops import barrier_of, no_more, policy
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import Layout, coalesce, product, size

if TYPE_CHECKING:
    from mlir import ir

GRANULE = 16
"""Bytes of which addresses and sizes are multiples."""
BULK_REDUCTIONS: dict[str, frozenset[str]] = {
    "add": frozenset(("u32", "s32", "u64", "f16", "bf16", "f32", "f64")),
    "min": frozenset(("u32", "s32", "u64", "s64", "f16", "bf16")),
    "max": frozenset(("u32", "s32", "u64", "s64", "f16", "bf16")),
    "inc": frozenset(("u32",)), "dec": frozenset(("u32",)),
    **dict.fromkeys(("and", "or", "xor"), frozenset(("b32", "b64"))),
}  # fmt: skip
"""The types that each reduction into global memory has (PTX ISA 9.0, `cp.reduce.async.bulk`)."""


def bulk_load(
    dst: Any, src: Any, count: Any, mbar: Any, *, mask: Any = None, cache: Any = None, what: str = "a bulk copy"
) -> None:
    """Copy `count` bytes from global to shared memory, of this block or another of its cluster.

    The bytes count at `mbar`, in the same block. With `mask` the copy goes to the same place in all those blocks.
    """
    to, barrier = (place(pointer, what, AddressSpace.smem, AddressSpace.dsmem) for pointer in (dst, mbar))
    given = [to, place(src, what, AddressSpace.gmem, AddressSpace.generic), _bytes(count, what), barrier]
    marks, rest = _hints(len(given), mask, cache)
    text = f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{marks} [$0], [$1], $2, [$3]"
    given += [value for value, _ in rest]
    instruction(text + "".join(name for _, name in rest) + ";", given, feature="cp.async.bulk")


def bulk_store(dst: Any, src: Any, count: Any, *, cache: Any = None, what: str = "a bulk copy") -> None:
    """Copy `count` bytes from shared to global memory."""
    given = _stored(dst, src, count, what)
    marks, rest = _hints(len(given), None, cache)
    given += [value for value, _ in rest]
    text = f"cp.async.bulk.global.shared::cta.bulk_group{marks} [$0], [$1], $2"
    instruction(text + "".join(name for _, name in rest) + ";", given, feature="cp.async.bulk")


def bulk_reduce(dst: Any, src: Any, count: Any, op: str, kind: str, *, cache: Any = None, what: str) -> None:
    """Fold numbers in shared memory into global memory, `count` bytes of type `kind` (PTX's name), each atomically.

    Raises:
        CompileError: the reduction does not have the type.
    """
    if kind not in BULK_REDUCTIONS[op]:
        raise CompileError(
            f"{what} has no {op} of {kind}",
            location=user_location(),
            hint=f"{op} takes {', '.join(sorted(BULK_REDUCTIONS[op]))}",
        )
    given = _stored(dst, src, count, what)
    marks, rest = _hints(len(given), None, cache)
    given += [value for value, _ in rest]
    rounding = ".noftz" if op == "add" and kind in ("f16", "bf16") else ""
    text = f"cp.reduce.async.bulk.global.shared::cta.bulk_group{marks}.{op}{rounding}.{kind} [$0], [$1], $2"
    instruction(text + "".join(name for _, name in rest) + ";", given, feature="cp.reduce.async.bulk")


def bulk_prefetch(src: Any, count: Any, *, cache: Any = None, what: str = "a bulk prefetch") -> None:
    """Ask for `count` bytes of global memory to be brought to the L2 cache."""
    given = [place(src, what, AddressSpace.gmem, AddressSpace.generic), _bytes(count, what)]
    marks, rest = _hints(len(given), None, cache)
    given += [value for value, _ in rest]
    text = f"cp.async.bulk.prefetch.L2.global{marks} [$0], $1"
    instruction(text + "".join(name for _, name in rest) + ";", given, feature="cp.async.bulk.prefetch")


def _stored(dst: Any, src: Any, count: Any, what: str) -> list[Any]:
    to = place(dst, what, AddressSpace.gmem, AddressSpace.generic)
    return [to, place(src, what, AddressSpace.smem), _bytes(count, what)]


def place(pointer: Any, what: str, *spaces: AddressSpace) -> Numeric:
    """The address of a Pointer or tensor, which lies in one of `spaces`.

    Raises:
        CompileError: it lies elsewhere, or is no pointer.
    """
    pointer = getattr(pointer, "iterator", pointer)
    if not isinstance(pointer, Pointer) or pointer.memspace not in spaces:
        raise CompileError(
            f"{what} takes a pointer to {' or '.join(map(str, spaces))}",
            location=user_location(),
            values={"got": pointer},
        )
    address: Numeric = pointer.toint()
    return address


def _bytes(count: Any, what: str) -> Int32:
    known = getattr(count, "value", count)
    if isinstance(known, int) and (known % GRANULE or known <= 0):
        raise CompileError(
            f"{what} of {known} bytes", location=user_location(), hint=f"it moves a multiple of {GRANULE} bytes"
        )
    return Int32(as_numeric(count))


def _hints(first: int, mask: Any, cache: Any) -> tuple[str, list[tuple[Numeric, str]]]:
    """The marks of an instruction, and the operands that go with them, with their places in the text."""
    marks = ""
    operands: list[tuple[Numeric, str]] = []
    if mask is not None:
        marks += ".multicast::cluster"
        operands.append((Int16(as_numeric(mask)), f", ${first}"))
    if cache is not None:
        marks += ".L2::cache_hint"
        number = cache if isinstance(cache, Numeric) else getattr(cache, "value", cache)
        operands.append((Int64(as_numeric(number)), f", ${first + len(operands)}"))
    return marks, operands


@dataclass(frozen=True)
class BulkOp(CopyOp):
    """Base of the operations that copy consecutive bytes. `cute.copy` is for one thread: `with elect_one():`."""

    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        return one_thread(num_bits or dtype.width)

    def text(self, num_bits: int) -> str:
        raise CompileError(f"{type(self).__name__} copies by cute.copy alone", location=user_location())

    def atom(self, value_type: type[Numeric], num_bits: int, hints: CopyHints) -> BulkAtom:
        return PlainBulkAtom(self, value_type, 0, hints)

    @abstractmethod
    def issue(self, src: Tensor, dst: Tensor, options: dict[str, Any]) -> None:
        """Start the copy; `options` are those of `cute.copy`, of which it takes its own."""


class PlainBulkAtom(BulkAtom):
    """A copy of as many consecutive bytes as the tensors have."""

    op: BulkOp

    def issue(self, src: Tensor, dst: Tensor, pred: Tensor | None, options: dict[str, Any]) -> None:
        """Start the copy of `cute.copy`."""
        counts = [consecutive_bytes(name, tensor) for name, tensor in (("source", src), ("destination", dst))]
        if counts[0] != counts[1]:
            raise CompileError(
                "a bulk copy takes as many bytes on both sides",
                location=user_location(3),
                values={"source": f"{src}, {counts[0]} bytes", "destination": f"{dst}, {counts[1]} bytes"},
            )
        _bytes(counts[0], "a bulk copy")
        given = dict(options)
        self.op.issue(_aligned(src), _aligned(dst), given)
        no_more(given, pred)


def _aligned(tensor: Tensor) -> Tensor:
    """The tensor, at a multiple of 16 bytes: the engine takes no other, and the emulator refuses it."""
    pointer = tensor.iterator
    return tensor if pointer.alignment % GRANULE == 0 else make_tensor(pointer.with_alignment(GRANULE), tensor.layout)


def consecutive_bytes(side: str, tensor: Tensor) -> int:
    """The bytes of a tensor whose elements lie one after the other.

    Raises:
        CompileError: they do not, or their number is known only at run time.
    """
    layout = coalesce(tensor.layout) if isinstance(tensor.layout, Layout) else None
    count = product(tensor.shape)
    together = layout is not None and (layout.stride == 1 or (isinstance(count, int) and size(layout) == 1))
    if not together or not isinstance(count, int):
        raise CompileError(
            f"a bulk copy takes consecutive elements, and the {side} has none",
            location=user_location(4),
            values={side: tensor},
            hint="it takes compile-time extents whose layout coalesces to stride 1; make_tiled_tma_atom copies boxes",
        )
    return count * tensor.element_type.width // 8


@dataclass(frozen=True)
class CopyBulkG2SOp(BulkOp):
    """Copy consecutive bytes from global to shared memory. `cute.copy` takes `mbar_ptr=`, which counts the bytes."""

    def issue(self, src: Tensor, dst: Tensor, options: dict[str, Any]) -> None:
        expect_space("a bulk copy", "source", src, AddressSpace.gmem)
        expect_space("a bulk copy", "destination", dst, AddressSpace.smem)
        barrier = barrier_of(options, "mbar_ptr", "tma_bar_ptr")
        build.cute("bulk_load", (), ((src.value,), (dst.value,), (barrier,), self._mask(options), policy(options)))

    def _mask(self, options: dict[str, Any]) -> list[ir.Value]:
        return []


@dataclass(frozen=True)
class CopyBulkG2SMulticastOp(CopyBulkG2SOp):
    """`CopyBulkG2SOp` to the blocks of the cluster in `mcast_mask=`: to the same place in each, with its barrier."""

    def _mask(self, options: dict[str, Any]) -> list[ir.Value]:
        mask = options.pop("mcast_mask", None)
        if mask is None:
            raise CompileError(
                "a multicast bulk copy needs mcast_mask=, the blocks that it goes to", location=user_location()
            )
        return [Int16(as_numeric(mask)).ir_value()]


@dataclass(frozen=True)
class CopyBulkS2GOp(BulkOp):
    """Copy consecutive bytes from shared to global memory, in this thread's bulk group."""

    def issue(self, src: Tensor, dst: Tensor, options: dict[str, Any]) -> None:
        expect_space("a bulk copy", "source", src, AddressSpace.smem)
        expect_space("a bulk copy", "destination", dst, AddressSpace.gmem)
        groups = ((src.value,), (dst.value,), policy(options))
        build.cute("bulk_store", (), groups, kind=build.string(""))
