"""Which threads of a block take part in a collective, and the barrier at which they meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.arch import barrier, block_dim, lane_idx, linear_thread_idx, sync_threads, thread_idx
from tilewright.lang.locations import calling_location
from tilewright.lang.numbers.numeric import Int32

WARP = 32
MOST_WARPS = 32


def block_threads() -> int | Int32:
    """The threads of a block: a number where the launch gives its extents while compiling."""
    block = trace.device("a collective").block
    if block and all(isinstance(extent, int) for extent in block):
        return int(math.prod(block))
    x, y, z = block_dim()
    found: Int32 = (x * y * z).assuming(bound=1024)
    return found


def linear_thread() -> Int32:
    """The thread's number in its block, x fastest."""
    block = trace.current().block
    if len(block) == 3 and block[1] == 1 and block[2] == 1:
        return thread_idx()[0]
    return linear_thread_idx()


@dataclass(frozen=True)
class Group:
    """Threads of a block that meet at one barrier: all of them, or consecutive ones in whole warps.

    Where the block's extents come at run time (`is_static` is false), `warps` and `slots` are the most there may be.
    """

    threads: int | Int32
    whole: bool
    barrier_id: Any
    is_static: bool

    @property
    def warps(self) -> int:
        """The warps of the group, the last of which need not be whole."""
        return -(-self.threads // WARP) if isinstance(self.threads, int) else MOST_WARPS

    @property
    def full(self) -> bool:
        """True where every warp is known to have all of its lanes."""
        return isinstance(self.threads, int) and self.threads % WARP == 0

    @property
    def rank(self) -> Int32:
        """The thread's number in the group."""
        thread = linear_thread()
        return thread if self.whole else thread % self.threads

    @property
    def warp(self) -> Int32:
        """The number of the warp in the group."""
        return Int32(self.rank // WARP)

    @property
    def running(self) -> int | Int32:
        """How many warps there are at run time."""
        return self.warps if isinstance(self.threads, int) else (self.threads + (WARP - 1)) // WARP

    @property
    def slots(self) -> int:
        """Places in memory for a number of each warp of the block: groups that run side by side share none."""
        if self.whole:
            return self.warps
        threads = block_threads()
        return -(-threads // WARP) if isinstance(threads, int) else MOST_WARPS

    @property
    def first_slot(self) -> Any:
        """That of the group's first warp."""
        return 0 if self.whole else linear_thread() // self.threads * self.warps

    @property
    def lane(self) -> Int32:
        """The thread's lane in its warp."""
        return lane_idx()

    def sync(self) -> None:
        """Wait for all threads of the group."""
        if self.whole and isinstance(self.barrier_id, int) and self.barrier_id == 0:
            sync_threads()
        else:
            barrier(barrier_id=self.barrier_id, number_of_threads=None if self.whole else self.threads)


def group_of(threads: int | None, barrier_id: Any) -> Group:
    """The group of the calling thread.

    Raises:
        CompileError: `threads` is no multiple of 32, or more than the block has.
    """
    all_threads = block_threads()
    if threads is None or (isinstance(all_threads, int) and threads == all_threads):
        return Group(all_threads, True, barrier_id, isinstance(all_threads, int))
    if not isinstance(threads, int) or threads <= 0 or threads % WARP:
        raise CompileError(
            f"a block has no groups of {threads} threads",
            location=calling_location(),
            hint="threads is a multiple of 32, the group's warps follow each other; smaller groups are those of a warp:"
            " warp_allreduce(x, width=8)",
        )
    if isinstance(all_threads, int) and threads > all_threads:
        raise CompileError(
            f"there is no group of {threads} threads in a block of {all_threads}",
            location=calling_location(),
            hint="leave threads out for the whole block",
        )
    if isinstance(barrier_id, int) and barrier_id == 0:
        raise CompileError(
            f"a group of {threads} threads meets at barrier 0",
            location=calling_location(),
            hint="barrier 0 is the whole block's; give each group one of its own: barrier_id=1 + group",
        )
    return Group(threads, False, barrier_id, True)
