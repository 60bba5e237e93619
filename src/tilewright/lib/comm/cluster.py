"""Collectives of a cluster, over the shared memory of its blocks (sm_90 and up).

Push, the default: every block has mailboxes and an mbarrier that counts the bytes which land in them.

    block 0, warp w   fold over the lanes ──► st.async to mailbox (0, w) of blocks 0, 1, ..., C-1
    block 1, warp w   fold over the lanes ──► st.async to mailbox (1, w) of blocks 0, 1, ..., C-1
    every thread      waits at the mbarrier of its own block, and folds all mailboxes in one order

No block may write before all have made their barriers: the blocks meet once, at the beginning of the kernel. In a loop
two sets of mailboxes take turns. A block ends no sooner than all that is sent to it has landed, since it waits for it.

Pull: every block puts its number into its own shared memory, the cluster meets, every thread reads all blocks' numbers,
the cluster meets again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.arch import block_idx_in_cluster, lane_idx
from tilewright.lang.collective_values import taken_apart
from tilewright.lang.control.generate import if_generate, run_if, select_
from tilewright.lang.control.placement import in_loop, kernel_entry
from tilewright.lang.locations import calling_location
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Numeric, Uint32, as_numeric
from tilewright.lang.nvgpu.cluster_begin import ready_for_cluster
from tilewright.lang.nvgpu.distributed import map_dsmem_ptr, store_async_dsmem
from tilewright.lang.nvgpu.mbarrier import (
    mbarrier_arrive_and_expect_tx,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_wait,
)
from tilewright.lang.nvgpu.threads import cluster_arrive, cluster_wait
from tilewright.lang.tensors.algebra import make_layout
from tilewright.lang.tensors.allocation import SmemAllocator, make_rmem_tensor
from tilewright.lib.comm import block as blocks
from tilewright.lib.comm.block import Numbers
from tilewright.lib.comm.folds import Fold, folds_of, tree
from tilewright.lib.comm.participants import WARP, Group, group_of, linear_thread
from tilewright.lib.comm.slots import ALIGN, slots_of
from tilewright.lib.comm.warp import fold_lanes, lanes_of

MODES = ("auto", "push", "pull")


def cluster_blocks() -> int:
    """The blocks of a cluster of this launch; 1 where it has none.

    Raises:
        CompileError: they are known only at run time.
    """
    extents = trace.device("a collective of a cluster").cluster
    if not all(isinstance(extent, int) for extent in extents):
        raise CompileError(
            "the blocks of the cluster are known only at run time",
            location=calling_location(),
            values={"cluster": extents},
            hint="launch with cluster=(x, y, z) of Python numbers",
        )
    return max(int(math.prod(extents)), 1)


class Mailboxes:
    """Places for numbers of each type in every block, which all blocks of the cluster write and one mbarrier counts."""

    def __init__(self, types: Sequence[type[Numeric]], places: int) -> None:
        self.types, self.places = types, places
        self.stages = 2 if in_loop() else 1
        if self.stages > 1:
            with kernel_entry():
                self._turns = make_rmem_tensor(1, Int32)
                self._turns[0] = 0
        ready_for_cluster(self._prepare)
        self.stage, self.parity = self._take_turn()

    def _prepare(self) -> None:
        count = -(-self.places * 8 // ALIGN) * ALIGN // 8  # so that each stage is aligned
        layout = make_layout((count, self.stages))
        self._slots = [SmemAllocator().allocate_tensor(cls, layout, ALIGN) for cls in self.types]
        self._barriers = SmemAllocator().allocate_array(Int64, self.stages)
        with run_if(linear_thread() == 0):
            for number in range(self.stages):
                mbarrier_init(self._barriers + number, 1)
            mbarrier_init_fence()

    def _take_turn(self) -> tuple[Any, Any]:
        """The stage, and the parity of its phase."""
        if self.stages == 1:
            return 0, 0
        turn = self._turns[0]
        self._turns[0] = turn + 1
        return turn % 2, turn // 2 % 2

    @property
    def barrier(self) -> Any:
        """The mbarrier of the stage."""
        return self._barriers + self.stage

    def expect(self, count: int) -> None:
        """Say how many numbers of each type will land in this block."""
        with run_if(linear_thread() == 0):
            mbarrier_arrive_and_expect_tx(self.barrier, count * sum(cls.width // 8 for cls in self.types))

    def send(self, numbers: Sequence[Numeric], place: Any, to: Any) -> None:
        """Write the numbers at a place of block `to`: called by one thread for each place and block."""
        for slot, number in zip(self._slots, numbers, strict=True):
            store_async_dsmem(slot.iterator + (self.stage * slot.stride[1] + place), number, self.barrier, to)

    def wait(self) -> None:
        """Wait until all has landed."""
        mbarrier_wait(self.barrier, self.parity)

    def at_once(self) -> list[Numbers]:
        """All numbers of each type, in every thread."""
        return [[slot[place, self.stage] for place in range(self.places)] for slot in self._slots]

    def at(self, place: Any) -> Numbers:
        """The numbers at one place."""
        return [slot[place, self.stage] for slot in self._slots]


def cluster_allreduce(x: Any, op: Any = "add", mode: str = "auto", *, loc: object = None, ip: object = None) -> Any:
    """`x` folded over all threads of the cluster; all of them get the same bits. All of them must call.

    Args:
        x: a number, a vector, or a tuple of them, which share the exchange.
        op: add, mul, min, max, and, or, xor; for a tuple also a tuple of operations.
        mode: push, pull, or auto, which is push.

    Raises:
        CompileError: the chip has no clusters, or the launch says only at run time how large they are.
    """
    if mode not in MODES:
        raise CompileError(f"there is no mode {mode!r}", location=calling_location(), hint=f"one of {', '.join(MODES)}")
    numbers, rebuild = taken_apart(x)
    folds = folds_of(x, op, numbers)
    lifted = [fold.lift(number) for fold, number in zip(folds, numbers, strict=True)]
    group = group_of(None, 0)
    if cluster_blocks() == 1:
        found = blocks.fold_block(lifted, folds, group)
    else:
        found = _pulled(lifted, folds, group) if mode == "pull" else _pushed(lifted, folds, group)
    return rebuild([fold.lower(number) for fold, number in zip(folds, found, strict=True)])


def cluster_reduce(x: Any, op: Any = "add", *, loc: object = None, ip: object = None) -> Any:
    """`cluster_allreduce` for the threads of the cluster's first block alone: in others the result is not specified."""
    numbers, rebuild = taken_apart(x)
    if cluster_blocks() == 1 or in_loop():  # in a loop, blocks that do not wait could run ahead of the first
        return cluster_allreduce(x, op)
    folds = folds_of(x, op, numbers)
    lifted = [fold.lift(number) for fold, number in zip(folds, numbers, strict=True)]
    found = _pushed(lifted, folds, group_of(None, 0), only_to_first=True)
    return rebuild([fold.lower(number) for fold, number in zip(folds, found, strict=True)])


def _pushed(numbers: Numbers, folds: Sequence[Fold], group: Group, only_to_first: bool = False) -> Numbers:
    count, rank = cluster_blocks(), block_idx_in_cluster()
    by_warps = group.is_static and group.full and group.warps * count <= WARP * 4
    each = group.warps if by_warps else 1
    parts = (
        [fold_lanes(number, fold, lanes_of(WARP)) for number, fold in zip(numbers, folds, strict=True)]
        if by_warps
        else blocks.fold_block(numbers, folds, group)
    )
    boxes = Mailboxes([fold.computing for fold in folds], each * count)
    boxes.expect(each * count)
    place = rank * each + (group.warp if by_warps else 0)
    lane = lane_idx()
    sends = lane < (1 if only_to_first else count)
    if by_warps:
        with run_if(sends):
            boxes.send(parts, place, lane)
    else:
        _send_to_all(boxes, parts, place, 1 if only_to_first else count, group)
    if not only_to_first:
        boxes.wait()
        return _emptied(boxes, folds)

    def received() -> Numbers:
        boxes.wait()
        return _emptied(boxes, folds)

    found = if_generate(rank == 0, received, lambda: parts, (), [type(part) for part in parts])
    return found if isinstance(found, list) else [found]


def _send_to_all(boxes: Mailboxes, numbers: Numbers, place: Any, count: int, group: Group) -> None:
    """Send numbers that every thread has to the first `count` blocks: by a thread for each, where there are so many."""
    if isinstance(group.threads, int) and group.threads >= count:
        with run_if(group.rank < count):
            boxes.send(numbers, place, group.rank)
        return
    with run_if(group.rank == 0):
        for to in range(count):
            boxes.send(numbers, place, to)


def _emptied(boxes: Mailboxes, folds: Sequence[Fold]) -> Numbers:
    """The fold of all mailboxes of the block, in every thread."""
    if boxes.places <= 2 * blocks.READ_AT_ONCE:
        return [tree(items, fold) for items, fold in zip(boxes.at_once(), folds, strict=True)]
    width = min(1 << (boxes.places - 1).bit_length(), WARP)
    lanes = lanes_of(width, 0xFFFFFFFF)
    rounds = [boxes.at(lanes.place + first) for first in range(0, boxes.places // width * width, width)]
    found = (
        [tree(list(items), fold) for items, fold in zip(zip(*rounds, strict=True), folds, strict=True)]
        if rounds
        else []
    )
    rest = boxes.places % width
    if rest:
        last = boxes.at(select_(lanes.place < rest, boxes.places - rest + lanes.place, boxes.places - 1))
        tail = [select_(lanes.place < rest, item, fold.identity) for item, fold in zip(last, folds, strict=True)]
        found = [fold(a, b) for fold, a, b in zip(folds, found, tail, strict=True)] if found else tail
    return [fold_lanes(number, fold, lanes) for number, fold in zip(found, folds, strict=True)]


def _pulled(numbers: Numbers, folds: Sequence[Fold], group: Group) -> Numbers:
    own = blocks.fold_block(numbers, folds, group, guarded=True)
    slots = slots_of(None, [fold.computing for fold in folds], 1)
    with run_if(group.rank == 0):
        for slot, number in zip(slots, own, strict=True):
            slot[0] = number
    cluster_barrier()
    found = [
        tree([map_dsmem_ptr(slot.iterator, rank).load() for rank in range(cluster_blocks())], fold)
        for slot, fold in zip(slots, folds, strict=True)
    ]
    cluster_barrier()  # before a block writes again, or ends
    return found


def cluster_broadcast(x: Any, src: Any = 0, *, loc: object = None, ip: object = None) -> Any:
    """The `x` of the first thread of block `src`, in all threads of the cluster.

    Raises:
        CompileError: there is no such block, or the launch says only at run time how large the cluster is.
    """
    numbers, rebuild = taken_apart(x)
    count, group = cluster_blocks(), group_of(None, 0)
    if isinstance(src, int) and not 0 <= src < count:
        raise CompileError(
            f"there is no block {src} in a cluster of {count}",
            location=calling_location(),
            hint=f"src is the rank of a block, 0 to {count - 1}",
        )
    if count == 1:
        return blocks.block_broadcast(x)
    kinds = [_sent_as(type(number)) for number in numbers]
    boxes = Mailboxes(kinds, 1)
    boxes.expect(1)
    with run_if((block_idx_in_cluster() == src) & (group.rank == 0)):
        given = [_as_sent(number) for number in numbers]
        for to in range(count):
            boxes.send(given, 0, to)
    boxes.wait()
    return rebuild([_as_given(item, type(number)) for item, number in zip(boxes.at(0), numbers, strict=True)])


def _sent_as(cls: type[Numeric]) -> type[Numeric]:
    """The type of 32 or 64 bits in which a number travels."""
    if cls.width in (32, 64) and cls is not Boolean:
        return cls
    return Uint32


def _as_sent(number: Numeric) -> Numeric:
    cls = type(number)
    if _sent_as(cls) is cls:
        return number
    if cls.is_float:
        return Uint32(number.bitcast(blocks.BITS[cls.width]))
    return Uint32(number)


def _as_given(sent: Numeric, cls: type[Numeric]) -> Numeric:
    if type(sent) is cls:
        return sent
    if cls is Boolean:
        return Boolean(sent != 0)
    return cls(blocks.BITS[cls.width](sent).bitcast(cls)) if cls.is_float else cls(sent)


def cluster_scan(x: Any, op: Any = "add", exclusive: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """`x` folded over the threads of the cluster up to this one, or where `exclusive` up to the one before.

    Threads count by the rank of their block, then x fastest.
    """
    count, group = cluster_blocks(), group_of(None, 0)
    if count == 1:
        return blocks.block_scan(x, op, exclusive)
    numbers, rebuild = taken_apart(x)
    folds = folds_of(x, op, numbers)
    lifted = [fold.lift(number) for fold, number in zip(folds, numbers, strict=True)]
    own, shown = blocks.scan_block(lifted, folds, group, exclusive)
    boxes = Mailboxes([fold.computing for fold in folds], count)
    boxes.expect(count)
    rank = block_idx_in_cluster()
    with run_if(group.rank == group.threads - 1):
        for to in range(count):
            boxes.send(own, rank, to)
    boxes.wait()
    results = []
    for fold, items, item in zip(folds, boxes.at_once(), shown, strict=True):
        before = fold.identity
        for number, total in enumerate(items[:-1]):
            before = select_(rank > number, fold(before, total), before)
        found = fold(before, item)
        if exclusive:
            found = select_((rank == 0) & (group.rank == 0), fold.neutral, found)
        results.append(fold.lower(found))
    return rebuild(results)


def cluster_any(pred: Any, *, loc: object = None, ip: object = None) -> Boolean:
    """True where the predicate holds in some thread of the cluster."""
    return Boolean(cluster_allreduce(Boolean(as_numeric(pred)), "or"))


def cluster_all(pred: Any, *, loc: object = None, ip: object = None) -> Boolean:
    """True where the predicate holds in all threads of the cluster."""
    return Boolean(cluster_allreduce(Boolean(as_numeric(pred)), "and"))


def cluster_barrier(*, loc: object = None, ip: object = None) -> None:
    """Wait for all threads of the cluster; memory written before is visible to them after."""
    cluster_arrive()
    cluster_wait()
