"""How row-wise kernels are laid out: threads, rows of a block, blocks of a cluster, by the length of a row.

The rule, which measurements on an H100 chose (docs/kernels/softmax_online.md):

* a thread holds about `BYTES` of its row: four 16-byte loads in flight, and registers for several blocks on a
  multiprocessor;
* a row of up to 32 * `ELEMENTS` elements is held by one warp at most, and needs no shared memory; blocks have at least
  `BLOCK` threads, so that short rows lie side by side in one;
* a row beyond `MOST_BLOCK` threads is dealt to 4 or 8 blocks of a cluster, of up to `WIDE_BLOCK` threads, so that
  several fit on a multiprocessor; of `MOST_BLOCK` where they would not;
* where a thread would hold more than `ELEMENTS` 32-bit registers in spite of that, its part waits in shared memory.

A kernel that writes no row need not hold one: rows of `STREAMED_BYTES` and more go by in turns
(docs/kernels/cross_entropy.md).
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
ACCESS_BYTES = 16  # the widest access of a thread
BYTES, ELEMENTS = 64, 32
BLOCK = 128
MOST_BLOCK = 1024
WIDE_BLOCK = 512
PORTABLE, MOST_BLOCKS = 8, 16  # blocks of a cluster
STAGED_BYTES = 72 << 10  # of a block, three of which fit on a multiprocessor
SHARED_BYTES = 227 << 10  # of a multiprocessor, for its blocks
MOST_SHARED = SHARED_BYTES - 4096  # of a block, beside what its warps exchange
STAGED_REGISTERS, HELD_REGISTERS, REGISTERS = (
    48,
    64,
    65536,
)  # of a thread, of one that holds `ELEMENTS`, of a multiprocessor
MOST_STAGES = 4
STREAMED_BYTES = {2: 64 << 10, 4: 512 << 10, 8: 512 << 10}  # of a row, by the size of its elements


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
        stages: rows that wait in shared memory at once, where a vector is 16 bytes; 0: they wait in registers.
        resident: blocks that a multiprocessor shall hold at once, which bounds a thread's registers; 0: any number.
        shifted: rows begin anywhere: accesses begin at the first multiple of 16 bytes of each, and what is before it,
            or behind the last whole vector, is accessed one element at a time. Not with tensors that all rows share.
        turns: parts of `tile` columns in which a row goes by, where a kernel holds no row.
    """

    columns: int
    threads: int
    rows: int
    vector: int
    count: int
    cluster: int = 1
    stages: int = 0
    resident: int = 0
    shifted: bool = False
    turns: int = 1

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
    size: int,
    *,
    held: int = 1,
    threads: int = 0,
    cluster: int = 0,
    staged: bool | None = None,
    most_blocks: int = MOST_BLOCKS,
) -> RowPlan:
    """The plan for rows of `columns` elements of `size` bytes, accessed `vector` elements at a time.

    Args:
        columns: N.
        vector: elements of an access.
        size: bytes of an element.
        held: rows that a thread holds at the same time.
        threads: taken as it is, where given.
        cluster: taken as it is, where given.
        staged: whether rows wait in shared memory, where given.
        most_blocks: the most blocks of a cluster that the chip has, 1 before sm_90.
    """
    least = -(-columns * held // ELEMENTS) if held > 1 else 0
    wanted = power_of_two(max(-(-columns * size // BYTES), least))
    if not cluster:
        cluster = min(_cluster(wanted, size, held), most_blocks)
    if not threads:
        roomy = 1 < cluster < MOST_BLOCKS and columns * size <= cluster * STAGED_BYTES
        threads = min(max(wanted // cluster, 1), WIDE_BLOCK if roomy else MOST_BLOCK)
        threads = WARP if columns * held <= WARP * ELEMENTS and wanted > WARP else threads
    threads, count = _dealt(columns, vector, threads, cluster)
    if staged is None:
        crowded = held == 1 and count * vector * max(size // 4, 1) > ELEMENTS
        shared = ACCESS_BYTES * count * threads
        staged = crowded and threads >= WIDE_BLOCK and vector * size == ACCESS_BYTES and shared <= MOST_SHARED
    full = count * vector * max(size // 4, 1) * held == ELEMENTS and not staged
    resident = REGISTERS // (HELD_REGISTERS * threads) if full and threads >= WIDE_BLOCK else 0
    return _plan(columns, vector, threads, cluster, count, int(staged), resident)


def _cluster(threads: int, size: int, held: int) -> int:
    """The blocks that share a row which so many threads should hold."""
    if threads <= MOST_BLOCK:
        return 1
    if threads <= 4 * MOST_BLOCK:
        return 4 if held == 1 else PORTABLE
    few = threads <= 16 * MOST_BLOCK and (held == 1 or size < 4)
    return PORTABLE if few else MOST_BLOCKS


def _dealt(columns: int, vector: int, threads: int, cluster: int) -> tuple[int, int]:
    """How many threads take part, at most `threads`, and the accesses of each."""
    accesses = -(-columns // vector)
    threads = min(threads, power_of_two(accesses))
    if cluster > 1:
        threads = max(threads, WARP)  # whole warps of one row take part in an exchange between blocks
    return threads, -(-accesses // (threads * cluster))


def _plan(columns: int, vector: int, threads: int, cluster: int, count: int, stages: int, resident: int) -> RowPlan:
    rows = 1 if cluster > 1 else max(BLOCK // threads, 1)
    exact = threads * cluster * count * vector == columns
    return RowPlan(columns if exact else 0, threads, rows, vector, count, cluster, stages, resident)


def reading_plan(
    columns: int, vector: int, size: int, *, held: int, threads: int = 0, cluster: int = 0,
    staged: bool | None = None, most_blocks: int = MOST_BLOCKS,
) -> RowPlan:  # fmt: skip
    """The plan of a kernel that only reads rows: arguments as `row_plan` has them, for which those given choose it."""
    if threads or cluster or staged or columns * size < STREAMED_BYTES[size]:
        return row_plan(
            columns, vector, size, held=held, threads=threads, cluster=cluster, staged=staged, most_blocks=most_blocks
        )
    return streaming_plan(columns, vector, WIDE_BLOCK, 2 if size < 4 else 4)


def streaming_plan(columns: int, vector: int, threads: int, count: int) -> RowPlan:
    """A block for each row, of which a thread has `count` accesses in flight at once."""
    tile = threads * vector * count
    return RowPlan(0 if columns % tile else columns, threads, 1, vector, count, turns=-(-columns // tile))


def gathering_plan(
    columns: int, vector: int, size: int, *, held: int, threads: int = 0, cluster: int = 0,
    staged: bool | None = None, most_blocks: int = MOST_BLOCKS,
) -> RowPlan:  # fmt: skip
    """The plan for blocks that go through many rows and keep sums of them: arguments as `row_plan` has them.

    A thread keeps sums of `ELEMENTS` elements, of half as many in Float64, in registers. Rows of 16-bit floats wait in
    shared memory, several at once; of others the next one waits in registers, where those suffice.
    """
    each = ELEMENTS if size <= 4 else ELEMENTS // 2
    widest = WIDE_BLOCK if size < 4 else WIDE_BLOCK // 2
    wanted = power_of_two(-(-columns // each))
    if not cluster:
        cluster = min(power_of_two(-(-wanted // widest)), most_blocks)
    if not threads:
        threads = min(max(wanted // cluster, min(BLOCK, power_of_two(-(-columns // vector)))), MOST_BLOCK)
        threads = MOST_BLOCK if threads > widest else threads
    threads, count = _dealt(columns, vector, threads, cluster)
    stage = ACCESS_BYTES * count * max(threads, BLOCK) * held
    if staged is None:
        staged = (size < 4 or threads > widest) and vector * size == ACCESS_BYTES and stage <= MOST_SHARED
    half = SHARED_BYTES // 2 - 2048
    most = half if 2 * stage <= half else MOST_SHARED
    stages = min(max(most // stage, 1), MOST_STAGES) if staged else 0
    return _plan(columns, vector, threads, cluster, count, stages, 0)
