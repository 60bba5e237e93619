"""The operations of TMA atoms: load a box, load it for several blocks, store it, reduce it into memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.atoms.copy_atom import CopyOp, CopyTraits, one_thread
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int16, Int32, Int64, Numeric, as_numeric
from tilewright.lang.nvgpu.elect import one_thread_of_warp
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.tensor import Tensor

if TYPE_CHECKING:
    from mlir import ir


class TmaAtom(Protocol):
    """What the operations ask of an atom: its tensor map, and the boxes that a copy of two tensors moves."""

    @property
    def map(self) -> ir.Value: ...

    def boxes(self, coordinates: Tensor, shared: Tensor) -> list[tuple[Sequence[Any], Tensor]]: ...


@dataclass(frozen=True)
class TmaOp(CopyOp):
    """Base of the operations that make_tiled_tma_atom takes."""

    def traits(self, dtype: type[Numeric], num_bits: int) -> CopyTraits:
        return one_thread(num_bits or dtype.width)

    def text(self, num_bits: int) -> str:
        raise CompileError(
            f"{type(self).__name__} needs a tensor map",
            location=user_location(),
            hint="make the atom on the host with cute.nvgpu.cpasync.make_tiled_tma_atom",
        )

    @property
    def kind(self) -> str:
        """What the copy does with what is there already, "" for nothing."""
        return ""

    @property
    def is_multicast(self) -> bool:
        """Whether a copy goes to several blocks of the cluster."""
        return False

    @abstractmethod
    def issue(self, atom: TmaAtom, src: Tensor, dst: Tensor, pred: Tensor | None, options: dict[str, Any]) -> None:
        """Start the copies of `cute.copy`; `options` are what it was given by name."""


@dataclass(frozen=True)
class CopyBulkTensorTileG2SOp(TmaOp):
    """Copy a box from global to shared memory. `cute.copy` takes `tma_bar_ptr=`, the mbarrier that counts the bytes.

    Elements outside the tensor are zeros. The barrier must expect the bytes of whole boxes, with
    mbarrier_arrive_and_expect_tx.
    """

    def issue(self, atom: TmaAtom, src: Tensor, dst: Tensor, pred: Tensor | None, options: dict[str, Any]) -> None:
        barrier = _barrier(options.pop("tma_bar_ptr", None))
        mask = self._mask(options)
        cache, map_ = policy(options), map_of(atom, options)
        no_more(options, pred)
        boxes = atom.boxes(src, dst)
        with one_thread_of_warp():
            for at, place in boxes:
                groups = ((map_,), (place.value,), (barrier,), coordinate(at), mask, cache)
                build.cute("tma_load", (), groups)

    def _mask(self, options: dict[str, Any]) -> list[ir.Value]:
        """A copy for one block ignores the mask, which callers give in all cases."""
        options.pop("mcast_mask", None)
        return []


@dataclass(frozen=True)
class CopyBulkTensorTileG2SMulticastOp(CopyBulkTensorTileG2SOp):
    """Copy a box to the blocks of the cluster in `mcast_mask=`: to the same place in each, telling the same barrier."""

    @property
    def is_multicast(self) -> bool:
        return True

    def _mask(self, options: dict[str, Any]) -> list[ir.Value]:
        mask = options.pop("mcast_mask", None)
        if mask is None:
            raise CompileError(
                "a multicast copy needs mcast_mask=, the blocks of the cluster that it goes to",
                location=user_location(4),
                hint="cute.make_layout_image_mask or create_tma_multicast_mask give one",
            )
        return [Int16(as_numeric(mask)).ir_value()]


@dataclass(frozen=True)
class CopyBulkTensorTileS2GOp(TmaOp):
    """Copy a box from shared to global memory; elements outside the tensor are dropped.

    Before it, threads that wrote the box call `fence_proxy("async.shared", space="cta")` and meet at a barrier. The
    thread that copies closes the group (`cp_async_bulk_commit_group`) and waits before the box is used again.
    """

    def issue(self, atom: TmaAtom, src: Tensor, dst: Tensor, pred: Tensor | None, options: dict[str, Any]) -> None:
        cache, map_ = policy(options), map_of(atom, options)
        no_more(options, pred)
        boxes = atom.boxes(dst, src)
        with one_thread_of_warp():
            for at, place in boxes:
                groups = ((map_,), (place.value,), coordinate(at), cache)
                build.cute("tma_store", (), groups, kind=build.string(self.kind))


class ReductionKind(Enum):
    """What a bulk copy to global memory does with what is there."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"


@dataclass(frozen=True)
class CopyReduceBulkTensorTileS2GOp(CopyBulkTensorTileS2GOp):
    """Reduce a box in shared memory into global memory, element by element."""

    reduction_kind: Any = ReductionKind.ADD

    def __post_init__(self) -> None:
        name = str(getattr(self.reduction_kind, "name", self.reduction_kind)).upper()
        if name not in ReductionKind.__members__:
            raise CompileError(
                f"a bulk reduction by {self.reduction_kind}",
                location=user_location(),
                hint=f"ReductionKind: {', '.join(ReductionKind.__members__)}",
            )
        object.__setattr__(self, "reduction_kind", ReductionKind[name])

    @property
    def kind(self) -> str:
        return str(self.reduction_kind.value)


def _barrier(pointer: Any) -> ir.Value:
    pointer = getattr(pointer, "iterator", pointer)
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem:
        raise CompileError(
            "a bulk copy to shared memory needs tma_bar_ptr=, a pointer to the mbarrier that counts its bytes",
            location=user_location(4),
            values={"tma_bar_ptr": pointer},
            hint="pipeline.producer_get_barrier(state) gives it",
        )
    return pointer.value


def barrier_of(options: dict[str, Any], *names: str) -> ir.Value:
    """The barrier among the options of a copy, under the first of `names` that is given."""
    found = [options.pop(name) for name in names if options.get(name) is not None]
    return _barrier(found[0] if found else None)


def map_of(atom: TmaAtom, options: dict[str, Any]) -> ir.Value:
    """The tensor map that a copy uses: the atom's, or the one in memory that `tma_desc_ptr=` points to."""
    pointer = options.pop("tma_desc_ptr", None)
    if pointer is None:
        return atom.map
    if not isinstance(pointer, Pointer) or pointer.memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise CompileError(
            "tma_desc_ptr is no pointer to a tensor map in global memory",
            location=user_location(4),
            values={"got": pointer},
        )
    return pointer.value


def policy(options: dict[str, Any]) -> list[ir.Value]:
    """The L2 cache policy of a copy, `cache_policy=`, as its group of operands."""
    value = options.pop("cache_policy", None)
    if value is None:
        return []
    number = value if isinstance(value, Numeric) else getattr(value, "value", value)
    return [Int64(as_numeric(number)).ir_value()]


def coordinate(at: Sequence[Any]) -> list[ir.Value]:
    """The numbers of a coordinate, in 32 bits."""
    return [Int32(as_numeric(number)).ir_value() for number in at]


_NO_EFFECT = frozenset(("loc", "ip"))


def no_more(options: dict[str, Any], pred: Tensor | None) -> None:
    """Refuse options that the copy does not have."""
    unknown = [name for name, value in options.items() if value is not None and name not in _NO_EFFECT]
    if pred is not None or unknown:
        raise CompileError(
            f"a bulk copy has no option {unknown[0] if unknown else 'pred'!r}",
            location=user_location(4),
            hint="a box is cut at the tensor's end; put the copy in a branch to leave it out",
        )
