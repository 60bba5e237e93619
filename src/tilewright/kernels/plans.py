"""How row-wise kernels are laid out: threads, rows of a block, blocks of a cluster, by the length of a row.

The rule, which measurements on an H100 chose (docs/kernels/softmax_online.md):

* a thread holds about `ELEMENTS` elements of its rows: enough 16-byte loads in flight, few enough registers (twice as
  many, to which the assembler is held) for several blocks on a multiprocessor;
* a row of up to 32 threads is one warp's or less, and needs no shared memory; blocks have at least `BLOCK` threads, so
  that short rows lie side by side in one;
* a row beyond `MOST_THREADS` threads is dealt to up to `MOST_BLOCKS` blocks of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
ELEMENTS = 32
BLOCK = 128
MOST_THREADS = 512
MOST_BLOCKS = 8
MOST_BLOCK = 1024
REGISTERS = 65536  # of a multiprocessor
FEW_REGISTERS, LEAST_REGISTERS = 64, 40  # of a thread
SHARED_BYTES = 228 << 10  # of a multiprocessor


@dataclass(frozen=True)
class RowPlan:
    """How a kernel is laid out over rows of N columns.

    Args:
        columns: N where `threads * vector * count * cluster` is N, else 0: then accesses are guarded.
        threads: threads that share a row in one block, a power of two.
        rows: rows of a block.
        vector: elements of an access.
        count: accesses of a thread.
        cluster: blocks that share a row, each with an equal part of the columns; a power of two.
        staged: rows wait in shared memory rather than in registers; `vector` elements are 16 bytes then.
        resident: blocks that a multiprocessor shall hold at once, which bounds a thread's registers.
    """

    columns: int
    threads: int
    rows: int
    vector: int
    count: int
    cluster: int = 1
    staged: bool = False
    resident: int = 0

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows

    @property
    def lanes(self) -> int:
        """Lanes of a warp that share a row."""
        return min(self.threads, WARP)

    @property
    def warps(self) -> int:
        """Warps of a block that share a row; 1 where a row has a warp or less."""
        return max(self.threads // WARP, 1)

    @property
    def partials(self) -> int:
        """Warps that share a row, in all blocks."""
        return self.warps * self.cluster

    @property
    def group(self) -> int:
        """Lanes that fold what the warps of a row have."""
        return min(self.partials, WARP)

    @property
    def tile(self) -> int:
        """Columns of one block."""
        return self.threads * self.vector * self.count


def power_of_two(number: int) -> int:
    """The least power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


def row_plan(
    columns: int,
    vector: int,
    *,
    held: int = 1,
    words: int = 1,
    registers: int = FEW_REGISTERS,
    threads: int = 0,
    cluster: int = 0,
    most_blocks: int = MOST_BLOCKS,
    staged: bool = False,
) -> RowPlan:
    """The plan for rows of `columns`, accessed `vector` elements at a time.

    Args:
        columns: N.
        vector: elements of an access.
        held: rows that a thread holds at the same time.
        words: registers that an element takes when computed with, 2 in Float64.
        registers: what a thread that holds `ELEMENTS` elements may use.
        threads: taken as it is, where given.
        cluster: taken as it is, where given.
        staged: rows wait in shared memory.
        most_blocks: the most blocks of a cluster that the chip has, 1 before sm_90.
    """
    wanted = power_of_two(-(-columns * held // ELEMENTS))
    if not cluster:
        cluster = min(power_of_two(-(-wanted // MOST_THREADS)), most_blocks)
    if not threads:
        threads = min(max(wanted // cluster, 1), MOST_BLOCK)
    accesses = -(-columns // vector)
    threads = min(threads, power_of_two(accesses))
    if cluster > 1:
        threads = max(threads, WARP)  # whole warps of one row take part in an exchange between blocks
    count = -(-accesses // (threads * cluster))
    rows = 1 if cluster > 1 else max(BLOCK // threads, 1)
    exact = threads * cluster * count * vector == columns
    if staged:
        bytes_ = 16 * count * threads * rows * held
        resident = min(SHARED_BYTES // (bytes_ + 1024), REGISTERS // (LEAST_REGISTERS * threads * rows))
    else:
        crowded = power_of_two(-(-count * vector * words * held // ELEMENTS))
        resident = REGISTERS // (registers * crowded * threads * rows)
    return RowPlan(columns if exact else 0, threads, rows, vector, count, cluster, staged, resident)
