"""The kernel of `copy_transpose`: y[..., n, m] = x[..., m, n], tile by tile through swizzled shared memory.

A thread loads a sub-block of `rows` x `columns` elements, one vector a row, turns it in registers, and writes one
vector of 16 bytes a column to shared memory, which holds the tile transposed. After a barrier the threads read the
tile's rows in order and store them in whole vectors. The swizzle takes the bits that tell apart the columns of
neighbouring threads, so both passes use all banks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.kernels import elementwise, views
from tilewright.kernels.launching import on_gpu

VECTOR_BITS = 128
TILE_SIZES = (16, 32, 64, 128)
_NARROW = 8
_SIDE_BYTES = 256
_LINE_BYTES = 128
_WIDE = 256


@dataclass(frozen=True)
class TransposePlan:
    """How a tile is moved.

    Attributes:
        dtype: element type.
        m: rows of x in a tile, a power of two.
        n: columns of x in a tile, a power of two.
        load: elements of one load, along n. 1 where x has no mode of stride 1.
        store: elements of one store, along m.
        threads: threads of a block.
        along_n: whether blocks follow each other along n, not along m.
        dense: whether the last mode of x and that of y have stride 1; where not, `load` or `store` is 1.
    """

    dtype: type[cute.Numeric]
    m: int
    n: int
    load: int
    store: int
    threads: int
    along_n: bool = False
    dense: tuple[bool, bool] = (True, True)

    @property
    def rows(self) -> int:
        """Rows of a thread's sub-block: as many elements as shared memory takes at a time."""
        return min(VECTOR_BITS // self.dtype.width, self.m)

    @property
    def tiled(self) -> bool:
        """Whether each thread stores equally many vectors of a tile."""
        return self.m * self.n // self.store % self.threads == 0

    @property
    def swizzle(self) -> cute.Swizzle:
        """Which vectors of shared memory change places, so that eight threads at a time meet eight groups of banks.

        Eight neighbouring threads write to `side` columns of sub-blocks and 8 / side rows of them. The number of the
        row is in the lowest bits of a vector's place, the lowest bits of the column's number go to the bits above.
        """
        side = min(self.n // self.load, 8).bit_length() - 1
        place = (self.m // self.rows * self.load).bit_length() - 1  # of the lowest bit of the column's number
        base = self.rows.bit_length() - 1
        if place < 3:
            return cute.make_swizzle(place, base, 3)
        return cute.make_swizzle(side, base + 3 - side, place - 3 + side)


@cute.jit
def _load_sub_block(
    x: cute.Tensor,
    held: cute.Tensor,
    batch: cute.Integer,
    row: cute.Integer,
    vector: cute.Integer,
    whole: cutlass.Constexpr,
) -> None:
    """held (columns, rows) = x[batch, row + r, vector]; zeros outside x, unless the `whole` tile is known to be in."""
    _, rows, vectors = x.shape[1]
    if cutlass.const_expr(not whole):
        held.fill(0)
    for r in cutlass.range_constexpr(cute.size(held, mode=[1])):
        if cutlass.const_expr(whole):
            cute.autovec_copy(x[None, (batch, row + r, vector)], held[None, r])
        else:
            if row + r < rows and vector < vectors:
                cute.autovec_copy(x[None, (batch, row + r, vector)], held[None, r])


@cute.jit
def _turn_bytes(held: cute.Tensor) -> cute.Tensor:
    """The transpose (columns, rows) of elements of 8 bits, 4 x 4 of them at a time, as four words.

    Two permutations of two words each interleave rows 0, 1 and rows 2, 3; two more interleave what they give.
    """
    columns, rows = held.shape
    turned = cute.make_rmem_tensor(cute.make_layout((columns, rows), stride=(rows, 1)), held.element_type)
    source, target = (
        cute.recast_tensor(held, cute.Int32),
        cute.recast_tensor(cute.make_tensor(turned.iterator, cute.make_layout((rows, columns))), cute.Int32),
    )
    for c in cutlass.range_constexpr(columns // 4):
        for r in cutlass.range_constexpr(rows // 4):
            word = [source[c, 4 * r + k] for k in range(4)]
            low, high = 0x5140, 0x7362
            upper = cute.arch.prmt(word[0], word[1], low), cute.arch.prmt(word[0], word[1], high)
            lower = cute.arch.prmt(word[2], word[3], low), cute.arch.prmt(word[2], word[3], high)
            for k in cutlass.range_constexpr(4):
                halves = 0x5410 if k % 2 == 0 else 0x7632
                target[r, 4 * c + k] = cute.arch.prmt(upper[k // 2], lower[k // 2], halves)
    return turned


@cute.jit
def _store_lines(
    shared: cute.Tensor,
    y: cute.Tensor,
    batch: cute.Integer,
    line: cute.Integer,
    vector: cute.Integer,
    plan: cutlass.Constexpr,
    whole: cutlass.Constexpr,
) -> None:
    """y[batch, line + i, vector + j] = the tile's line i, vector j, as far as they are inside y."""
    thread, _, _ = cute.arch.thread_idx()
    along = plan.m // plan.store
    for step in cutlass.range_constexpr(cute.ceil_div(along * plan.n, plan.threads)):
        index = step * plan.threads + thread
        i, j = index // along, index % along
        source = cute.local_tile(shared[i, None], (plan.store,), (j,))
        if cutlass.const_expr(whole and plan.tiled):
            cute.autovec_copy(source, y[None, (batch, line + i, vector + j)])
        else:
            if i < plan.n and line + i < y.shape[1][1] and vector + j < y.shape[1][2]:
                cute.autovec_copy(source, y[None, (batch, line + i, vector + j)])


@cute.kernel
def copy_transpose_kernel(
    x: cute.Tensor, y: cute.Tensor, tiles_m: cute.Integer, tiles_n: cute.Integer, plan: cutlass.Constexpr
) -> None:
    """One block moves one tile of x, given as vectors ((1, 1, load), (batch, m, n / load)), to y, likewise."""
    rows, columns = plan.rows, plan.load
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    batch, tile_m, tile_n = tile_of(block, tiles_m, tiles_n, plan.along_n)
    first_m, first_n = tile_m * plan.m, tile_n * plan.n

    lines = cute.make_layout((plan.n, (rows, plan.m // rows)), stride=(plan.m, (1, rows)))
    places = cute.make_composed_layout(plan.swizzle, 0, lines)
    shared = cutlass.utils.SmemAllocator().allocate_tensor(plan.dtype, places, 128)

    _, m, vectors = x.shape[1]
    whole = first_m + plan.m <= m and first_n + plan.n <= vectors * columns
    across = plan.n // columns
    for step in cutlass.range_constexpr(cute.ceil_div(across * (plan.m // rows), plan.threads)):
        index = step * plan.threads + thread
        row, column = index // across * rows, index % across
        if row < plan.m:
            held = cute.make_rmem_tensor((columns, rows), plan.dtype)
            if whole:
                _load_sub_block(x, held, batch, first_m + row, tile_n * across + column, True)
            else:
                _load_sub_block(x, held, batch, first_m + row, tile_n * across + column, False)
            if cutlass.const_expr(plan.dtype.width == 8 and columns % 4 == 0 and rows % 4 == 0):
                held = _turn_bytes(held)
            for c in cutlass.range_constexpr(columns):
                cute.autovec_copy(held[c, None], shared[column * columns + c, (None, row // rows)])
    cute.arch.sync_threads()

    if whole:
        _store_lines(shared, y, batch, first_n, tile_m * (plan.m // plan.store), plan, True)
    else:
        _store_lines(shared, y, batch, first_n, tile_m * (plan.m // plan.store), plan, False)


@cute.jit
def tile_of(
    block: cute.Integer, tiles_m: cute.Integer, tiles_n: cute.Integer, along_n: cutlass.Constexpr
) -> tuple[Any, Any, Any]:
    """(batch, tile along m, tile along n) of a block."""
    in_batch = tiles_m * tiles_n
    batch, rest = block // in_batch, block % in_batch
    if cutlass.const_expr(along_n):
        return batch, rest // tiles_n, rest % tiles_n
    return batch, rest % tiles_m, rest // tiles_m


@cute.jit
def launch_copy_transpose(y: cute.Tensor, x: cute.Tensor, plan: cutlass.Constexpr) -> None:
    """y[..., n, m] = x[..., m, n], of two modes or three."""
    sources, targets = _as_vectors(x, plan.load), _as_vectors(y, plan.store)
    batch, m, _ = sources.shape[1]
    _, n, _ = targets.shape[1]
    tiles_m, tiles_n = cute.ceil_div(m, plan.m), cute.ceil_div(n, plan.n)
    copy_transpose_kernel(sources, targets, tiles_m, tiles_n, plan).launch(
        grid=(batch * tiles_m * tiles_n, 1, 1), block=(plan.threads, 1, 1)
    )


def _as_vectors(matrices: cute.Tensor, width: int) -> cute.Tensor:
    """A matrix, or several, as ((1, 1, width), (batch, rows, vectors))."""
    if cute.rank(matrices) == 2:
        rows, columns = matrices.layout.shape
        places = cute.make_layout((1, rows, columns), stride=(0, *matrices.layout.stride))
        matrices = cute.make_tensor(matrices.iterator, places)
    return cute.zipped_divide(matrices, (1, 1, width))


Prepared = Callable[[Any, Any], None]
_compiled: dict[Any, Prepared] = {}
_chosen: dict[Any, Prepared] = {}


def copy_transpose(y: Any, x: Any, tile_size: int | None = None) -> None:
    """y = x with its last two dimensions exchanged, for tensors of at least two; those of a GPU run there."""
    key = (tile_size, views.facts(x), views.facts(y))
    executor = _chosen.get(key)
    if executor is None:
        if 0 in x.shape:
            return
        executor = views.keep(_chosen, key, prepare(y, x, tile_size))
    executor(y, x)


def prepare(y: Any, x: Any, tile_size: int | None = None) -> Prepared:
    """The kernel for tensors like these; a copy where the transpose is contiguous, or so narrow that tiles are idle."""
    if tile_size is None and (min(x.shape[-2:]) <= _NARROW or views.strides_of(x)[-2:] == (1, x.shape[-2])):
        found, shapes = elementwise.prepare_copy(y, x.swapaxes(-1, -2), "copy_transpose")
        turned = views.Strided.of_pairs([(x.shape[place], views.strides_of(x)[place]) for place in _turned(x.ndim)])
        views_of = (None, turned) if shapes is None else [shapes[0], shapes[1] or turned]
        return lambda y, x: elementwise.run((found, views_of), y, (x,))
    executor = _executor(y, x, tile_size)
    return executor if x.ndim <= 3 else lambda y, x: executor(*(item.reshape(-1, *item.shape[-2:]) for item in (y, x)))


def _turned(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _executor(y: Any, x: Any, tile_size: int | None) -> Prepared:
    plan = transpose_plan(y, x, tile_size)
    rank, target = min(x.ndim, 3), "cuda" if on_gpu(x) else "emu"
    key = (plan, rank, target)
    if key not in _compiled:
        batch, m, n = (cute.sym_int(divisibility=step) for step in (1, plan.store, plan.load))
        fakes = [
            views.fake(plan.dtype, shape[3 - rank :], step, dense)
            for shape, step, dense in zip(
                ((batch, n, m), (batch, m, n)), (plan.store, plan.load), reversed(plan.dense), strict=True
            )
        ]
        _compiled[key] = views.quick(cute.compile(launch_copy_transpose, *fakes, plan, target=target))
    return _compiled[key]


def transpose_plan(y: Any, x: Any, tile_size: int | None = None) -> TransposePlan:
    """How y = x transposed is done: vectors as wide as alignment allows, in tiles of at least 256 bytes a side.

    Where rows of x do not begin at lines of 128 bytes, tiles have 256 columns, so that fewer lines are read by two
    blocks. Smaller matrices have smaller tiles. Blocks follow each other along m.
    """
    dtype = views.dtype_of(x)
    load, store = views.vector(x, cap=64 if dtype.width == 8 else 128), views.vector(y)
    most = tile_size or max(_SIDE_BYTES * 8 // max(dtype.width, 16), 32)
    m = n = tile_size or min(most, _power(max(x.shape[-2:])))
    row_bytes = views.strides_of(x)[-2] * dtype.width // 8
    if tile_size is None and load > 1 and x.shape[-1] >= _WIDE and row_bytes % _LINE_BYTES:
        n = _WIDE
    rows = min(VECTOR_BITS // dtype.width, m)
    load = max(min(load, m * n // (rows * 32)), 1)  # a sub-block for each lane of a warp
    blocks = m * n // (rows * load)  # sub-blocks of a tile
    single = min(load, store) == 1  # more threads make up for small accesses
    threads = max(min(blocks // 2, 1024) if single else min(blocks, 256), min(blocks // 4, 1024), 32)
    dense = views.strides_of(x)[-1] == 1, views.strides_of(y)[-1] == 1
    return TransposePlan(dtype, m, n, load, min(store, m), threads, dense=dense)


def _power(extent: int) -> int:
    """The tile for a matrix of at most `extent` rows and columns."""
    return next((size for size in TILE_SIZES if size >= extent), TILE_SIZES[-1])
