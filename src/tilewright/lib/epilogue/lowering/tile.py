"""Which thread holds which elements of a tile, as the operations of an epilogue ask for it.

A thread holds `rows` x `columns` vectors of `vector` elements that follow each other along N:

             column 0 (n)      column 1
    row 0    v v v v           v v v v
    row 1    v v v v           v v v v

Threads lie over the tile with those of a row next to each other, and go through it in steps of all threads. Values of
a thread are `TensorSSA`s of shape (vector, columns, rows). A kernel whose accumulators lie otherwise brings them into
this order by way of shared memory, or gives the places of its own in a subclass of `Tile`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tilewright.cute as cute
from tilewright import utils

WARP = 32


@dataclass(frozen=True)
class ThreadGrid:
    """How the threads of a block lie over a tile: numbers of threads are powers of two.

    Attributes:
        threads_m: threads along M.
        threads_n: threads along N, the fastest.
        vector: elements that follow each other along N in one thread. The extent of N is a multiple of it.
        rows: vectors of a thread along M.
        columns: vectors of a thread along N.
        rows_follow: whether a thread's rows follow each other, and M is a multiple of their number; else they lie
            `threads_m` apart, so that threads of neighbouring rows take neighbouring ones.
        whole_m: whether M is known to be a multiple of the tile's.
        whole_n: whether N is.
    """

    threads_m: int
    threads_n: int
    vector: int
    rows: int = 1
    columns: int = 1
    rows_follow: bool = False
    whole_m: bool = False
    whole_n: bool = False

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.threads_m * self.threads_n

    @property
    def tile_m(self) -> int:
        """Rows of the tile."""
        return self.threads_m * self.rows

    @property
    def tile_n(self) -> int:
        """Columns of the tile."""
        return self.threads_n * self.vector * self.columns

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of a thread's values."""
        return self.vector, self.columns, self.rows

    @property
    def lanes_n(self) -> tuple[int, ...]:
        """Distances of the lanes of a warp that share a row, for shuffles."""
        return tuple(1 << bit for bit in range(min(self.threads_n, WARP).bit_length() - 1))

    @property
    def lanes_m(self) -> tuple[int, ...]:
        """Distances of the lanes of a warp that share a column."""
        first = len(self.lanes_n)
        last = min(self.threads, WARP).bit_length() - 1
        return tuple(1 << bit for bit in range(first, last))

    @property
    def warps_n(self) -> int:
        """Warps that share a row."""
        return max(self.threads_n // WARP, 1)

    @property
    def warps_m(self) -> int:
        """Warps that share a column."""
        return max(self.threads // (WARP * self.warps_n), 1)


@dataclass
class Place:
    """Where a block stands: the tile's first row and column, its batch, and which part of a reduction it computes.

    Attributes:
        m: the first row.
        n: the first column.
        batch: the batch.
        part_m: which of `parts_m` shares of the rows this block folds, for reductions over M.
        part_n: which of `parts_n` shares of the columns.
        parts_m: into how many shares M is divided.
        parts_n: into how many shares N is divided.
    """

    m: Any
    n: Any
    batch: Any
    part_m: Any = 0
    part_n: Any = 0
    parts_m: Any = 1
    parts_n: Any = 1


class Tile:
    """A thread's part of a tile: device code.

    Attributes:
        grid: the threads of the block.
        extents: (M, N, L) of the whole problem; L is a number.
        place: where the tile lies.
        rows: the rows of the thread's vectors, counted from the first of the problem; also `local_rows` of the tile.
        columns: the first columns of the thread's vectors; also `local_columns`.
        accumulator: what the thread has of the accumulator, or None where `accum` is loaded.
        walks: whether the same threads go on to other rows of the same columns before the end.
        row_range: the numbers of the thread's rows that a step computes; of `column_range` so, its columns.
    """

    def __init__(
        self, grid: ThreadGrid, extents: Sequence[Any], place: Place, walks: bool = False, thread: Any = None
    ) -> None:
        """`thread` is the thread's number among those of the grid, by default that in the block."""
        thread = cute.arch.thread_idx()[0] if thread is None else thread
        self.grid, self.extents, self.place, self.walks = grid, tuple(extents), place, walks
        self.thread = thread
        self.thread_n = thread % grid.threads_n if grid.threads_n > 1 else cute.Int32(0)
        self.thread_m = thread // grid.threads_n if grid.threads_m > 1 else cute.Int32(0)
        self.local_rows = [
            self.thread_m * grid.rows + number if grid.rows_follow else self.thread_m + number * grid.threads_m
            for number in range(grid.rows)
        ]
        self.local_columns = [(self.thread_n + number * grid.threads_n) * grid.vector for number in range(grid.columns)]
        self.accumulator: Any = None
        self.row_range, self.column_range = range(grid.rows), range(grid.columns)
        self._stand(place)

    def _stand(self, place: Place) -> None:
        m, n = self.extents[:2]
        self.rows = [place.m + row for row in self.local_rows]
        self.columns = [place.n + column for column in self.local_columns]
        self.rows_inside = [True if self.grid.whole_m else row < m for row in self.rows]
        self.columns_inside = [True if self.grid.whole_n else column < n for column in self.columns]
        # Loads of what lies outside read what lies inside, so that they need no branch.
        self.read_rows = [row if self.grid.whole_m else cute.math.min(row, m - 1) for row in self.rows]
        last = n - self.grid.vector
        self.read_columns = [column if self.grid.whole_n else cute.math.min(column, last) for column in self.columns]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the thread's values in a step: (vector, columns, rows)."""
        return self.grid.vector, len(self.column_range), len(self.row_range)

    def at(self, m: Any) -> Tile:
        """The same columns of the tile whose first row is `m`."""
        other = copy.copy(self)
        other.place = replace(self.place, m=m)
        other._stand(other.place)
        return other

    def step(self, rows: range, columns: range, accumulator: Any = None) -> Tile:
        """The part of this tile that one step computes: some of the thread's rows and columns."""
        part = copy.copy(self)
        part.row_range, part.column_range, part.accumulator = rows, columns, accumulator
        return part

    def inside(self, row: int, column: int) -> Any:
        """Whether the thread's vector of this row and column lies in the problem: True, or a `Boolean`."""
        return both(self.rows_inside[row], self.columns_inside[column])

    def shared(self, dtype: Any, count: int) -> Any:
        """A tensor of `count` elements in shared memory, for an operation of its own."""
        return utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout(count))

    def sync(self) -> None:
        """Wait for all threads of the tile."""
        cute.arch.sync_threads()

    # Folding over threads

    def folded(self, number: Any, over_m: bool, over_n: bool, fold: Callable[[Any, Any], Any]) -> Any:
        """`number` folded over the lanes of the warp along M, along N, or both, in every one of them."""
        for distance in (*(self.grid.lanes_n if over_n else ()), *(self.grid.lanes_m if over_m else ())):
            number = fold(number, cute.arch.shuffle_sync_bfly(number, distance))
        return number

    def warps(self, over_m: bool, over_n: bool) -> int:
        """How many warps of the block hold parts of what is folded along M, along N, or both."""
        return (self.grid.warps_m if over_m else 1) * (self.grid.warps_n if over_n else 1)

    def warp(self, over_m: bool, over_n: bool) -> Any:
        """Which of `warps` this thread belongs to."""
        warp = self.thread // WARP
        along_n = warp % self.grid.warps_n
        along_m = warp // self.grid.warps_n
        if over_m and over_n:
            return warp
        return along_m if over_m else along_n if over_n else cute.Int32(0)

    def leads(self, over_m: bool, over_n: bool) -> Any:
        """Whether this thread is the first of its warp's lanes along M, along N, or both."""
        lane = self.thread % WARP
        mask = sum((*(self.grid.lanes_n if over_n else ()), *(self.grid.lanes_m if over_m else ())))
        return True if not mask else (lane & mask) == 0


def both(a: Any, b: Any) -> Any:
    """`a and b` of conditions that are True or `Boolean`s."""
    return b if a is True else a if b is True else a & b
