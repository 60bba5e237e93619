"""Collectives of a block, or of groups of whole warps of it.

    warp 0   fold over its lanes ──► slot 0 ┐             ┌► every thread folds all slots
    warp 1   fold over its lanes ──► slot 1 ┤ one barrier ├► in one order, so all have the same bits
    ...                                     ┘             └►

Up to 8 warps each thread reads all slots at once; more than that a warp reads one slot a lane and folds again over its
lanes. A second barrier follows where the slots are used again: in a loop, or in memory that the caller gives. Several
values share the barriers.

The first warp may also fold the slots for all, and leave the result in a place of its own behind a second barrier,
which is then the last: in a loop, where of more than 4 warps this is less work; and of more than 8 where the block's
last warp is not whole or its extents come at run time, and that warp could not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.arch import shuffle_sync
from tilewright.lang.collective_values import taken_apart
from tilewright.lang.control.generate import if_generate, run_if, select_
from tilewright.lang.control.placement import in_loop
from tilewright.lang.locations import calling_location
from tilewright.lang.math import extreme
from tilewright.lang.numbers.numeric import Boolean, Int32, Numeric, Uint8, Uint16, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lib.comm.folds import Fold, folds_of, tree
from tilewright.lib.comm.participants import WARP, Group, group_of
from tilewright.lib.comm.slots import slots_of
from tilewright.lib.comm.warp import (
    Lanes,
    fold_lanes,
    fold_to_first,
    lane_before,
    lanes_of,
    scan_lanes,
)

READ_AT_ONCE, READ_AGAIN = 8, 4  # slots that every thread reads: once, and again and again
BITS: dict[int, type[Numeric]] = {8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}

Numbers = list[Numeric]


def block_allreduce(
    x: Any, op: Any = "add", smem: Any = None, barrier_id: Any = 0, threads: int | None = None, *,
    loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """`x` folded over the block; all threads get the same bits. All of them must call.

    Args:
        x: a number, a vector, or a tuple of them, which share the barriers.
        op: add, mul, min, max, and, or, xor; for a tuple also a tuple of operations.
        smem: shared memory to exchange through, which nobody uses when the call begins; by default memory of its own.
        barrier_id: the barrier, 0 to 15, at which the threads meet.
        threads: with a multiple of 32, `x` is folded over the caller's group of so many consecutive threads, and only
            that group needs to call. Each group needs a barrier of its own.

    Raises:
        CompileError: an argument does not go with the others, or with the block.
    """
    return _reduced(x, op, smem, group_of(threads, barrier_id), to_all=True)


def block_reduce(
    x: Any, op: Any = "add", smem: Any = None, barrier_id: Any = 0, threads: int | None = None, *,
    loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """`block_allreduce` for the first thread of the group alone: in others the result is not specified."""
    return _reduced(x, op, smem, group_of(threads, barrier_id), to_all=False)


def _reduced(x: Any, op: Any, smem: Any, group: Group, to_all: bool) -> Any:
    numbers, rebuild = taken_apart(x)
    folds = folds_of(x, op, numbers)
    lifted = [fold.lift(number) for fold, number in zip(folds, numbers, strict=True)]
    found = fold_block(lifted, folds, group, smem, to_all)
    return rebuild([fold.lower(number) for fold, number in zip(folds, found, strict=True)])


def fold_block(
    numbers: Numbers, folds: Sequence[Fold], group: Group, smem: Any = None, to_all: bool = True, guarded: bool = False
) -> Numbers:
    """The fold over the group, in the types in which folds compute: in every thread, or in those of the first warp.

    The caller is `guarded` where a barrier of its own comes before the slots are used again.
    """
    lanes = lanes_of(WARP)
    if group.warps == 1:
        return [fold_lanes(number, fold, lanes) for number, fold in zip(numbers, folds, strict=True)]
    parts = [fold_to_first(number, fold, lanes) for number, fold in zip(numbers, folds, strict=True)]
    again = smem is not None or (in_loop() and not guarded)
    by_first = (to_all or not group.is_static) and not _each_gathers(group, again)
    kinds = [fold.computing for fold in folds]
    slots = slots_of(smem, kinds, group.slots * (2 if by_first else 1))
    _put(slots, parts, group.first_slot + group.warp, group.lane == 0)
    group.sync()
    if by_first:
        found = _gathered_by_first_warp(slots, folds, group)
    elif to_all:
        found = _gather(slots, folds, group)
    else:
        found = _in_first_warp(lambda: _gather(slots, folds, group), parts, group)
    if smem is not None or (again and not by_first):  # another call may use the caller's memory in another way
        group.sync()
    return found


def _put(slots: Sequence[Tensor], numbers: Sequence[Numeric], place: Any, condition: Any) -> None:
    with run_if(condition):
        for slot, number in zip(slots, numbers, strict=True):
            slot[place] = number


def _each_gathers(group: Group, again: bool) -> bool:
    """True where every thread folds the slots: they are few, or every warp has a lane for each and does it once."""
    if again:
        return group.is_static and group.warps <= READ_AGAIN
    return group.is_static and (group.warps <= READ_AT_ONCE or group.full)


def _in_first_warp(make: Callable[[], Numbers], otherwise: Numbers, group: Group) -> Numbers:
    """What `make` gives in the group's first warp, and `otherwise` in others."""
    types = [type(number) for number in otherwise]
    found = if_generate(group.warp == 0, make, lambda: otherwise, (), types)
    return found if isinstance(found, list) else [found]


def _gather(slots: Sequence[Tensor], folds: Sequence[Fold], group: Group) -> Numbers:
    """The fold of all slots, in every thread of the warps that call."""
    if group.is_static and group.warps <= READ_AT_ONCE:
        return [tree(_read(slot, group), fold) for slot, fold in zip(slots, folds, strict=True)]
    return [
        fold_lanes(number, fold, _slot_lanes(group))
        for number, fold in zip(_one_each(slots, folds, group, _slot_lanes(group)), folds, strict=True)
    ]


def _read(slot: Tensor, group: Group) -> Numbers:
    """The slots of the group; in vectors where they fill them."""
    if group.whole and group.warps & (group.warps - 1) == 0:
        return list(slot.load())
    return [slot[group.first_slot + number] for number in range(group.warps)]


def _slot_lanes(group: Group) -> Lanes:
    """Groups of as many lanes as there are slots, rounded up to a power of two. (The warps that call are whole.)"""
    return lanes_of(1 << (group.warps - 1).bit_length(), 0xFFFFFFFF)


def _one_each(slots: Sequence[Tensor], folds: Sequence[Fold], group: Group, lanes: Lanes) -> Numbers:
    """One slot a lane; lanes that have none get what changes nothing."""
    place, running = lanes.place, group.running
    if isinstance(running, int) and running == lanes.width:
        return [slot[group.first_slot + place] for slot in slots]
    nearest = extreme("min", place, running - 1, False)
    return [
        select_(place < running, slot[group.first_slot + nearest], fold.identity)
        for slot, fold in zip(slots, folds, strict=True)
    ]


def _gathered_by_first_warp(slots: Sequence[Tensor], folds: Sequence[Fold], group: Group) -> Numbers:
    """The first warp, which is whole where there are several, folds all slots and leaves the result behind them.

    Nobody writes slots again before all warps have passed the barrier here, nor the result before the next one's.
    """
    place = group.slots + group.first_slot

    def fold_slots() -> None:
        lanes = lanes_of(WARP, 0xFFFFFFFF)
        numbers = _one_each(slots, folds, group, lanes)
        found = [fold_lanes(number, fold, lanes) for number, fold in zip(numbers, folds, strict=True)]
        _put(slots, found, place, group.lane == 0)

    def take_slot() -> None:  # of the only warp, which is not whole
        with run_if(group.rank == 0):
            for slot in slots:
                slot[place] = slot[0]

    if group.is_static:
        with run_if(group.warp == 0):
            fold_slots()
    else:
        with run_if(group.warp == 0):
            if_generate(as_numeric(group.threads) >= WARP, fold_slots, take_slot)
    group.sync()
    return [slot[place] for slot in slots]


def block_broadcast(
    x: Any, src: Any = 0, smem: Any = None, barrier_id: Any = 0, threads: int | None = None, *,
    loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """The `x` of thread `src` of the group, in all of its threads. `src` counts threads, x fastest.

    Other arguments, and errors, are those of `block_allreduce`; `src` beyond the group is a CompileError.
    """
    group = group_of(threads, barrier_id)
    numbers, rebuild = taken_apart(x)
    if isinstance(src, int) and isinstance(group.threads, int) and not 0 <= src < group.threads:
        raise CompileError(
            f"there is no thread {src} in a group of {group.threads}",
            location=calling_location(),
            hint=f"src is 0 to {group.threads - 1}, counted within the group",
        )
    kinds = [Uint32 if type(number) is Boolean else type(number) for number in numbers]
    each = group.slots // group.warps
    slots = slots_of(smem, kinds, each)
    place = 0 if group.whole else group.first_slot // group.warps
    given = [kind(number) for kind, number in zip(kinds, numbers, strict=True)]
    _put(slots, given, place, group.rank == src)
    group.sync()
    found = [slot[place] for slot in slots]
    if smem is not None or in_loop():
        group.sync()
    return rebuild([
        item != 0 if type(number) is Boolean else item for item, number in zip(found, numbers, strict=True)
    ])  # fmt: skip


def block_scan(
    x: Any, op: Any = "add", exclusive: bool = False, smem: Any = None, barrier_id: Any = 0,
    threads: int | None = None, *, loc: object = None, ip: object = None,
) -> Any:  # fmt: skip
    """`x` folded over the threads of the group up to this one, or where `exclusive` up to the one before.

    Threads count x fastest. The first thread's exclusive scan is what changes nothing: 0, 1, and so on. Other arguments
    are those of `block_allreduce`.
    """
    group = group_of(threads, barrier_id)
    numbers, rebuild = taken_apart(x)
    folds = folds_of(x, op, numbers)
    lifted = [fold.lift(number) for fold, number in zip(folds, numbers, strict=True)]
    _, shown = scan_block(lifted, folds, group, exclusive, smem)
    if exclusive:
        shown = [select_(group.rank == 0, fold.neutral, item) for fold, item in zip(folds, shown, strict=True)]
    return rebuild([fold.lower(item) for fold, item in zip(folds, shown, strict=True)])


def scan_block(
    numbers: Numbers, folds: Sequence[Fold], group: Group, exclusive: bool, smem: Any = None
) -> tuple[Numbers, Numbers]:
    """The inclusive scans over the group, and those that were asked for, whose first is the fold's identity."""
    lanes = lanes_of(WARP)
    own = [scan_lanes(number, fold, lanes) for number, fold in zip(numbers, folds, strict=True)]
    shown = own
    if exclusive:
        shown = [lane_before(item, lanes, fold.identity) for item, fold in zip(own, folds, strict=True)]
    if group.warps == 1:
        return own, shown
    slots = slots_of(smem, [fold.computing for fold in folds], group.slots)
    last = WARP - 1 if lanes.count is None else lanes.count - 1
    _put(slots, own, group.first_slot + group.warp, group.lane == last)
    group.sync()
    before = _before(slots, folds, group)
    if smem is not None or in_loop():
        group.sync()
    return tuple(
        [fold(left, right) for fold, left, right in zip(folds, before, items, strict=True)] for items in (own, shown)
    )  # type: ignore[return-value]


def _before(slots: Sequence[Tensor], folds: Sequence[Fold], group: Group) -> Numbers:
    """The fold of the slots of the warps before this one; what changes nothing in the first."""
    if group.is_static and group.warps <= READ_AT_ONCE:
        return [_fold_before(_read(slot, group), fold, group) for slot, fold in zip(slots, folds, strict=True)]
    if _each_gathers(group, again=False):
        lanes = lanes_of(WARP, 0xFFFFFFFF)
        scans = [
            scan_lanes(number, fold, lanes)
            for number, fold in zip(_one_each(slots, folds, group, lanes), folds, strict=True)
        ]
        place = extreme("max", group.warp - 1, 0, False)
        found = [shuffle_sync(scan, place) for scan in scans]
    else:
        _scan_in_first_warp(slots, folds, group)
        place = group.first_slot + extreme("max", group.warp - 1, 0, False)
        found = [slot[place] for slot in slots]
    return [select_(group.warp == 0, fold.identity, item) for fold, item in zip(folds, found, strict=True)]


def _fold_before(items: Numbers, fold: Fold, group: Group) -> Numeric:
    found = fold.identity
    for number, item in enumerate(items[:-1]):
        found = select_(group.warp > number, fold(found, item), found)
    return found


def _scan_in_first_warp(slots: Sequence[Tensor], folds: Sequence[Fold], group: Group) -> None:
    """The first warp puts scans in the places of the slots, for all."""

    def scan_slots() -> None:
        lanes = lanes_of(WARP, 0xFFFFFFFF)
        numbers = _one_each(slots, folds, group, lanes)
        scans = [scan_lanes(number, fold, lanes) for number, fold in zip(numbers, folds, strict=True)]
        _put(slots, scans, group.first_slot + group.lane, group.lane < group.running)

    if group.is_static:
        with run_if(group.warp == 0):
            scan_slots()
    else:
        if_generate((group.warp == 0) & (as_numeric(group.threads) >= WARP), scan_slots)
    group.sync()


# Votes: the barrier itself counts.


def block_any(
    pred: Any, barrier_id: Any = 0, threads: int | None = None, *, loc: object = None, ip: object = None
) -> Boolean:
    """True where the predicate holds in some thread of the group: one barrier, no memory."""
    return Boolean(_vote("or", pred, group_of(threads, barrier_id)) != 0)


def block_all(
    pred: Any, barrier_id: Any = 0, threads: int | None = None, *, loc: object = None, ip: object = None
) -> Boolean:
    """True where the predicate holds in all threads of the group: one barrier, no memory."""
    return Boolean(_vote("and", pred, group_of(threads, barrier_id)) != 0)


def block_count(
    pred: Any, barrier_id: Any = 0, threads: int | None = None, *, loc: object = None, ip: object = None
) -> Int32:
    """In how many threads of the group the predicate holds: one barrier, no memory."""
    return Int32(_vote("popc", pred, group_of(threads, barrier_id)))


def _vote(kind: str, pred: Any, group: Group) -> Uint32:
    given = Uint32(Boolean(as_numeric(pred)))
    operands: list[Any] = [given, Uint32(as_numeric(group.barrier_id))]
    if not group.whole:
        operands.append(Uint32(as_numeric(group.threads)))
    at = ", ".join(f"${number + 2}" for number in range(len(operands) - 1))
    begin = "{ .reg .pred p, q; setp.ne.u32 p, $1, 0; "
    if kind == "popc":
        text = f"{begin}bar.red.popc.u32 $0, {at}, p; }}"
    else:
        text = f"{begin}bar.red.{kind}.pred q, {at}, p; selp.u32 $0, 1, 0, q; }}"
    return Uint32(instruction(text, operands, result=Uint32))


def block_barrier(barrier_id: Any = 0, threads: int | None = None, *, loc: object = None, ip: object = None) -> None:
    """Wait for all threads of the block, or of the caller's group."""
    group_of(threads, barrier_id).sync()
