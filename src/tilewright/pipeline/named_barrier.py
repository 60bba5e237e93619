"""Barriers of a block by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import arch
from tilewright.lang.locations import user_location
from tilewright.lang.nvgpu import barriers


@dataclass(frozen=True)
class NamedBarrier:
    """Barrier `barrier_id` (0 to 15) for `num_threads` threads of the block.

    Barrier 0 is the one of `sync_threads`. Memory written before arriving is visible to threads that waited.

    Raises:
        CompileError: there is no such barrier, or the threads do not fill warps.
    """

    barrier_id: int
    num_threads: int

    def __post_init__(self) -> None:
        if isinstance(self.barrier_id, int) and not 0 <= self.barrier_id <= 15:
            raise CompileError(
                f"barrier {self.barrier_id}", location=user_location(), hint="a block has barriers 0 to 15"
            )
        if isinstance(self.num_threads, int) and (self.num_threads <= 0 or self.num_threads % arch.WARP_SIZE):
            raise CompileError(
                f"a barrier of {self.num_threads} threads",
                location=user_location(),
                hint="the count is a multiple of 32",
            )

    def arrive(self, *, loc: object = None, ip: object = None) -> None:
        """Arrive without waiting; counts as one of `num_threads`."""
        barriers.barrier_arrive(barrier_id=self.barrier_id, number_of_threads=self.num_threads)

    def arrive_and_wait(self, *, loc: object = None, ip: object = None) -> None:
        """Wait until `num_threads` threads have arrived."""
        arch.barrier(barrier_id=self.barrier_id, number_of_threads=self.num_threads)

    def wait(self, *, loc: object = None, ip: object = None) -> None:
        """As `arrive_and_wait`: the hardware's named barriers know no wait without an arrival."""
        self.arrive_and_wait()

    sync = arrive_and_wait

    def arrive_unaligned(self, *, loc: object = None, ip: object = None) -> None:
        """`arrive` where the threads of a warp come one by one."""
        barriers.barrier_arrive(barrier_id=self.barrier_id, number_of_threads=self.num_threads, aligned=False)

    def wait_unaligned(self, *, loc: object = None, ip: object = None) -> None:
        """`arrive_and_wait` where the threads of a warp come one by one."""
        barriers.barrier_unaligned(self.barrier_id, self.num_threads)

    def get_barrier(self, *, loc: object = None, ip: object = None) -> int:
        """The barrier's number."""
        return self.barrier_id

    def max(self) -> int:
        """How many barriers a block has."""
        return 16


def arrive(barrier_id: int, num_threads: int, *, loc: object = None, ip: object = None) -> None:
    """`NamedBarrier(barrier_id, num_threads).arrive()`."""
    NamedBarrier(barrier_id, num_threads).arrive()


def arrive_unaligned(barrier_id: int, num_threads: int, *, loc: object = None, ip: object = None) -> None:
    """`NamedBarrier(barrier_id, num_threads).arrive_unaligned()`."""
    NamedBarrier(barrier_id, num_threads).arrive_unaligned()


def arrive_and_wait(barrier_id: int, num_threads: int, *, loc: object = None, ip: object = None) -> None:
    """`NamedBarrier(barrier_id, num_threads).arrive_and_wait()`."""
    NamedBarrier(barrier_id, num_threads).arrive_and_wait()


def wait(barrier_id: int, num_threads: int, *, loc: object = None, ip: object = None) -> None:
    """`NamedBarrier(barrier_id, num_threads).wait()`."""
    NamedBarrier(barrier_id, num_threads).wait()


def wait_unaligned(barrier_id: int, num_threads: int, *, loc: object = None, ip: object = None) -> None:
    """`NamedBarrier(barrier_id, num_threads).wait_unaligned()`."""
    NamedBarrier(barrier_id, num_threads).wait_unaligned()
