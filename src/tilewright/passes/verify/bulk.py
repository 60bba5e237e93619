"""Verifiers of bulk copies: tensor maps, boxes, the memories and barriers of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from tilewright.base.errors import LayoutError
from tilewright.hw.atoms import async_copy
from tilewright.ir import types
from tilewright.ir.accessors import TensorMapInfo, tensor_map_info
from tilewright.layout import ComposedLayout
from tilewright.passes.rules.memory import element_bits
from tilewright.passes.verify.operation import Invalid, Memory, OpSummary, memory, tensor
from tilewright.passes.verify.table import verifies

if TYPE_CHECKING:
    from mlir import ir

_BARRIER_ALIGN = 8


@verifies("make_tensor_map")
def _tensor_map(op: OpSummary) -> None:
    source, made = tensor(op.groups[0][0]), map_info(op.results[0])
    modes, kind = op.numbers("modes"), op.text("type")
    if source.space not in ("gmem", "generic"):
        raise Invalid("a tensor map is of a tensor in global memory", tensor=source.type)
    if element_bits(made.element) != source.bits:
        raise Invalid("the map's elements are as wide as the tensor's", tensor=source.type, map=op.results[0])
    if len(modes) != len(made.box) or len(set(modes)) != len(modes) or min(modes, default=0) < 0:
        raise Invalid("modes are different leaves of the layout, one for each mode of the box", modes=modes)
    if async_copy.TENSOR_TYPES.get(kind, (0, 0))[1] != source.bits:
        raise Invalid(f"a tensor map of type {kind!r} does not hold these elements", tensor=source.type)


@verifies("tma_load")
def _tma_load(op: OpSummary) -> None:
    (map_,), (target,), (barrier,), coord, mask, cache = op.groups
    _box(map_, tensor(target), coord)
    _barrier(barrier)
    _optional(mask=mask, cache=cache)


@verifies("tma_store")
def _tma_store(op: OpSummary) -> None:
    (map_,), (source,), coord, cache = op.groups
    _box(map_, tensor(source), coord)
    op.one_of("kind", ("", *async_copy.REDUCTIONS))
    _optional(cache=cache)


@verifies("tma_prefetch")
def _tma_prefetch(op: OpSummary) -> None:
    (map_,), coord = op.groups
    info = _map(map_)
    if coord and info is not None and len(coord) != len(info.box):
        raise Invalid("a coordinate has a number for each mode of the box", map=map_, numbers=len(coord))


@verifies("tensor_map_copy")
def _tensor_map_copy(op: OpSummary) -> None:
    (map_,), (target,) = op.groups
    map_info(map_)
    if memory(target).layout is not None or memory(target).space not in ("gmem", "generic", "smem"):
        raise Invalid("a tensor map is copied to global or shared memory", dst=target)
    if op.number("align") not in (4, 8, 16) or memory(target).align % op.number("align"):
        raise Invalid("it is copied by words of 4, 8 or 16 bytes, so aligned", dst=target, align=op.number("align"))


@verifies("bulk_load")
def _bulk_load(op: OpSummary) -> None:
    (source,), (target,), (barrier,), mask, cache = op.groups
    _bytes(tensor(source), tensor(target))
    _barrier(barrier)
    _optional(mask=mask, cache=cache)


@verifies("bulk_store")
def _bulk_store(op: OpSummary) -> None:
    (source,), (target,), cache = op.groups
    _bytes(tensor(target), tensor(source))
    op.one_of("kind", ("", *async_copy.REDUCTIONS))
    _optional(cache=cache)


@verifies("bulk_commit")
def _nothing(op: OpSummary) -> None:
    """It has no operands."""


@verifies("bulk_wait")
def _bulk_wait(op: OpSummary) -> None:
    if op.number("groups") < 0:
        raise Invalid("the number of unfinished groups is negative", groups=op.number("groups"))
    if op.number("read") not in (0, 1):
        raise Invalid("read is 0 or 1", read=op.number("read"))


def map_info(type_: ir.Type) -> TensorMapInfo:
    """What a type of a tensor map says; Invalid where no such map can be."""
    try:
        info = tensor_map_info(type_)
        async_copy.check_box(info.box, element_bits(info.element), info.swizzle)
    except ValueError as error:  # a LayoutError too
        message = error.message if isinstance(error, LayoutError) else "a box is numbers between commas"
        raise Invalid(message, map=type_) from error
    if info.swizzle not in async_copy.SWIZZLE_ALIGNMENT:
        raise Invalid("a swizzle is of 0, 32, 64 or 128 bytes", map=type_)
    return info


def _map(type_: ir.Type) -> TensorMapInfo | None:
    """What a tensor map says; None of a pointer to one."""
    if types.is_tensor_map(type_):
        return map_info(type_)
    if not types.is_cute(type_) or memory(type_).layout is not None or memory(type_).space not in ("gmem", "generic"):
        raise Invalid("the map is a tensor map, or a pointer to one in global memory", map=type_)
    return None


def _box(map_: ir.Type, shared: Memory, coord: Sequence[ir.Type]) -> None:
    if shared.space != "smem":
        raise Invalid("the box lies in shared memory", tensor=shared.type)
    if shared.align % async_copy.SHARED_ALIGNMENT:
        raise Invalid(f"a box is aligned to {async_copy.SHARED_ALIGNMENT} bytes", tensor=shared.type)
    count, info = shared.count("a box"), _map(map_)
    if info is None:
        return
    if len(coord) != len(info.box):
        raise Invalid("a coordinate has a number for each mode of the box", map=map_, numbers=len(coord))
    if count * shared.bits != prod(info.box) * element_bits(info.element):
        raise Invalid("the tensor in shared memory holds one box", map=map_, tensor=shared.type)
    if isinstance(shared.layout, ComposedLayout):
        inner = shared.layout.inner
        if async_copy.swizzle_bytes(inner.bits, inner.base, inner.shift, shared.bits) != info.swizzle:
            raise Invalid("the map and the tensor in shared memory have one swizzle", map=map_, tensor=shared.type)


def _bytes(far: Memory, shared: Memory) -> None:
    if far.space not in ("gmem", "generic") or shared.space != "smem":
        raise Invalid("a bulk copy is between global and shared memory", tensors=[far.type, shared.type])
    counts = far.count("a bulk copy"), shared.count("a bulk copy")
    if counts[0] != counts[1] or far.bits != shared.bits:
        raise Invalid("a bulk copy moves as many elements as it fills", tensors=[far.text, shared.text])
    size = counts[0] * far.bits
    if size % (8 * async_copy.BULK_ALIGNMENT) or far.align % async_copy.BULK_ALIGNMENT:
        raise Invalid(f"a bulk copy moves multiples of {async_copy.BULK_ALIGNMENT} bytes, so aligned", bits=size)


def _barrier(type_: ir.Type) -> None:
    found = memory(type_)
    if found.space != "smem" or found.align % _BARRIER_ALIGN:
        raise Invalid(f"an mbarrier lies in shared memory, aligned to {_BARRIER_ALIGN} bytes", barrier=type_)


def _optional(**groups: Sequence[ir.Type]) -> None:
    for name, group in groups.items():
        if len(group) > 1:
            raise Invalid(f"a copy has at most one {name}", given=len(group))
