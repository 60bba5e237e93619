"""How a matrix product of sm_90 is laid out: tiles, warpgroups, clusters, buffers, the order of tiles; and the rule.

The rule estimates how long the busiest multiprocessor works, in products of one row and column, and takes the plan
with the least:

    tiles of the busiest multiprocessor · m · n · (K / splits + what is added) / speed of the tile

`speed` is what a tile of that kind reaches of the fastest one where there is enough work. What is added is the time in
which a tile is stored and nothing multiplied, of which ping-pong leaves little; where several blocks share a tile along
K, also that of the exchange of sums: each writes and one of them reads `splits` times the tile. Products in parts,
which a second kernel adds, have no exchange, but their sums go through L2. The figures are those of an H200
(docs/kernels/gemm.md), but for that of this traffic, which is worked out from the rate of L2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import tilewright.cute as cute
from tilewright import TFloat32
from tilewright.cute.nvgpu import warpgroup
from tilewright.utils import LayoutEnum, sm90

WARPGROUP = 128
CONSUMERS = 2
ALIGNMENT = 1024  # of shared memory: after so many bytes a swizzle repeats
LINE_BYTES = 128  # of a swizzle
GRAIN_BITS = 128  # of addresses and strides that the copy engine takes
INSTRUCTION_M = 64
WARP_M = 16  # rows of an instruction that a warp holds
_STRIP_ELEMENTS = 4096
_WIDE = 128  # columns of an instruction whose sums take so many registers that ptxas counts them


def accumulator_of(dtype: type[cute.Numeric]) -> type[cute.Numeric]:
    """The type in which products of elements of type `dtype` are added."""
    return {64: cute.Float64}.get(dtype.width, cute.Int32 if dtype is cute.Int8 else cute.Float32)


@dataclass(frozen=True)
class Sm90Plan:
    """How D (M, N, L) = A (M, K, L) · B (N, K, L) is computed.

    Attributes:
        dtype: element type of A and B, in which they are multiplied.
        k_major: whether K is contiguous of A and of B, else M or N is.
        result: element type of D; None where an epilogue stores what it makes of D.
        n_major: whether N is contiguous of D, else M is.
        tile: (m, n, k) of a tile of D and of the steps along K in which it is computed.
        cluster: blocks along M and N that share tiles of A and B.
        stages: buffers for tiles of A and B.
        pingpong: whether the two warpgroups that multiply take turns at tiles, else they share each tile.
        splits: blocks that share the products along K of one tile.
        parts: of K, whose products are a batch; their sums go to memory, and a second kernel adds them.
        narrow: element type of A, 8 bits, where it is another than that of B: A goes through registers, where it is
            converted, K is contiguous in it, and `dtype` has 16 bits.
        group: clusters along M whose tiles are computed before those of the next column, so that L2 holds what they
            share.
    """

    dtype: type[cute.Numeric]
    k_major: tuple[bool, bool]
    result: type[cute.Numeric] | None
    n_major: bool
    tile: tuple[int, int, int]
    cluster: tuple[int, int] = (1, 1)
    stages: int = 4
    pingpong: bool = False
    splits: int = 1
    parts: int = 1
    group: int = 8
    narrow: type[cute.Numeric] | None = None

    @property
    def threads(self) -> int:
        """Threads of a block: a warpgroup that copies, and two that multiply."""
        return WARPGROUP * (1 + CONSUMERS)

    @property
    def rows(self) -> int:
        """Rows of a tile that one warpgroup multiplies."""
        return self.tile[0] if self.pingpong else self.tile[0] // CONSUMERS

    @property
    def moves_registers(self) -> bool:
        """Whether registers go from the warps that copy to those that multiply. ptxas 13.5 does not do it for narrower
        products ("unable to determine register count at entry"), which have enough."""
        return self.tile[1] >= _WIDE

    @property
    def accumulator(self) -> type[cute.Numeric]:
        """The type in which products are added."""
        return accumulator_of(self.dtype)

    @property
    def held(self) -> tuple[type[cute.Numeric], type[cute.Numeric]]:
        """Element types of A and B as they lie in memory."""
        return self.narrow or self.dtype, self.dtype

    @property
    def shared_a(self) -> cute.ComposedLayout:
        """(m, k, stages) of A in shared memory."""
        return sm90.make_smem_layout(self.held[0], _order(self.k_major[0]), (self.tile[0], self.tile[2]), self.stages)

    @property
    def shared_b(self) -> cute.ComposedLayout:
        """(n, k, stages) of B in shared memory."""
        return sm90.make_smem_layout(self.dtype, _order(self.k_major[1]), (self.tile[1], self.tile[2]), self.stages)

    @property
    def share(self) -> tuple[int, int]:
        """(rows, columns) of D for which one epilogue runs: those of a warpgroup."""
        return self.rows, self.tile[1]

    @property
    def team(self) -> int:
        """Threads that run it."""
        return WARPGROUP

    @property
    def teams(self) -> int:
        """How many such teams a block has, each with shared memory of its own."""
        return CONSUMERS

    @property
    def strip(self) -> int:
        """Rows of D that an epilogue takes at once: those of one or more warps of an instruction."""
        return max(min(_STRIP_ELEMENTS // self.tile[1], INSTRUCTION_M) // WARP_M * WARP_M, WARP_M)

    @property
    def strip_bytes(self) -> int:
        """Bytes of a strip of sums of one warpgroup."""
        return self.strip * self.tile[1] * self.accumulator.width // 8

    @property
    def piece(self) -> tuple[int, int]:
        """(rows, columns) of D that a warpgroup stores at once: lines of 128 bytes."""
        assert self.result is not None
        return INSTRUCTION_M, min(LINE_BYTES * 8 // self.result.width, self.tile[1])

    @property
    def shared_d(self) -> cute.ComposedLayout:
        """(rows, columns, buffers) of D in shared memory, those of one warpgroup after those of the other."""
        assert self.result is not None
        order = _order(self.n_major)
        return sm90.make_smem_layout(self.result, order, self.piece, CONSUMERS * self.store_buffers)

    @property
    def store_buffers(self) -> int:
        """Pieces of D of each warpgroup that are on their way to memory."""
        return 2

    @property
    def stage_bytes(self) -> int:
        """Bytes of the tiles of A and B of one step."""
        m, n, k = self.tile
        return (m * self.held[0].width + n * self.held[1].width) * k // 8

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes, with a margin for barriers."""
        if self.result is None:
            stores = CONSUMERS * self.strip_bytes
        else:
            rows, columns = self.piece
            stores = CONSUMERS * self.store_buffers * rows * columns * self.result.width // 8
        return self.stages * self.stage_bytes + stores + ALIGNMENT

    def tiled_mma(self, columns: int) -> cute.TiledMma:
        """The instruction of one warpgroup, 64 rows by `columns`."""
        majors = tuple(_order(major).sm90_mma_major_mode() for major in self.k_major)
        dtype = TFloat32 if self.dtype is cute.Float32 else self.dtype
        source = warpgroup.OperandSource.RMEM if self.narrow else warpgroup.OperandSource.SMEM
        return sm90.make_trivial_tiled_mma(
            dtype, dtype, majors[0], majors[1], self.accumulator, (1, 1, 1), (INSTRUCTION_M, columns), source
        )


def _order(contiguous_last: bool) -> LayoutEnum:
    return LayoutEnum.ROW_MAJOR if contiguous_last else LayoutEnum.COL_MAJOR


@dataclass(frozen=True)
class Kind:
    """What is multiplied: element types and orders, as in `Sm90Plan`."""

    dtype: type[cute.Numeric]
    k_major: tuple[bool, bool]
    result: type[cute.Numeric] | None
    n_major: bool
    narrow: type[cute.Numeric] | None = None


@dataclass(frozen=True)
class _Shape:
    """A tile (m, n) and how it is computed; `added` is the time of its stores in steps of one along K."""

    m: int
    n: int
    pingpong: bool
    speed: float
    added: int


_STORES = 115  # steps along K that take as long as the stores of a tile
_SHAPES = (
    _Shape(128, 128, True, 1.0, 24),
    _Shape(128, 256, False, 1.008, _STORES),
    _Shape(256, 128, False, 1.006, _STORES),
    _Shape(128, 192, False, 1.0, _STORES),
    _Shape(128, 192, True, 0.998, 64),
    _Shape(64, 256, True, 0.972, 64),
    _Shape(128, 128, False, 0.99, _STORES),
    _Shape(64, 128, True, 0.86, 24),
    _Shape(64, 64, True, 0.8, 24),
    _Shape(256, 192, False, 0.9, _STORES),
)
_CLUSTERS = ((2, 1), (1, 2), (1, 1))
_ALONE = 0.985  # the speed of a block without a cluster
_TOGETHER = 1 << 20  # the time by which a cluster begins later
_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
_PARTS = (4, 8, 16, 32, 64)
PART_VECTOR = 4  # elements of a row that a thread adds: N is a multiple
_PART_TRAFFIC = 10  # the time in which a sum of a part is written and read
_LEAST_STEPS = 4  # along K, of a block that shares a tile
_EXCHANGE, _START = 350, 8 << 20
_MOST_STAGES = 8


def sm90_plans(
    kind: Kind, extents: tuple[int, int, int, int], multiprocessors: int, shared_bytes: int, splits: bool = True
) -> list[Sm90Plan]:
    """All plans for D of extents (M, N, K, L) on a device, the one that the rule prefers first.

    Without `splits` no products of a tile are shared, so that each row of D is added up in one order, whatever M, N
    and L are.
    """
    made = [*_candidates(kind, extents, multiprocessors, shared_bytes, _SPLITS if splits else (1,))]
    if splits:
        made += _in_parts(kind, extents, multiprocessors, shared_bytes)
    return [plan for _, plan in sorted(made, key=lambda pair: pair[0])]


def _candidates(
    kind: Kind, extents: tuple[int, int, int, int], multiprocessors: int, shared_bytes: int, shares: Sequence[int]
) -> Iterator[tuple[float, Sm90Plan]]:
    m, n, k, batch = extents
    for shape in _SHAPES:
        tile = shape.m, shape.n, LINE_BYTES * 8 // kind.dtype.width
        steps = -(-k // tile[2])
        for cluster in _CLUSTERS:
            if m <= shape.m * (cluster[0] - 1) or n <= shape.n * (cluster[1] - 1):
                continue  # a block would have nothing to do
            if not _in_boxes(kind, tile, cluster):
                continue
            down, along = -(-m // (shape.m * cluster[0])), -(-n // (shape.n * cluster[1]))
            tiles = down * along * cluster[0] * cluster[1] * batch
            for splits in shares:
                if splits > 1 and (tiles >= multiprocessors or steps < _LEAST_STEPS * splits):
                    break
                plan = _fitting(kind, tile, cluster, shape.pingpong, splits, shared_bytes)
                shared = splits > 1
                deep = -(-steps // splits) * tile[2] + shape.added + shared * _EXCHANGE * splits
                waves = -(-tiles * splits // multiprocessors)
                alone = cluster == (1, 1)
                speed = shape.speed * (_ALONE if alone else 1)
                last = shape.m * shape.n * (_STORES - shape.added)  # nothing is multiplied beside the last stores
                once = last + shared * _START + (not alone) * _TOGETHER
                yield waves * shape.m * shape.n * deep / speed + once, plan


def _in_parts(
    kind: Kind, extents: tuple[int, int, int, int], multiprocessors: int, shared_bytes: int
) -> Iterator[tuple[float, Sm90Plan]]:
    """Plans for one D of few tiles, whose products are made in parts along K."""
    m, n, k, batch = extents
    grain = GRAIN_BITS // kind.dtype.width
    if kind.result is None or kind.narrow or not kind.n_major or batch > 1 or n % PART_VECTOR:
        return
    for shape in _SHAPES:
        tile = shape.m, shape.n, LINE_BYTES * 8 // kind.dtype.width
        tiles = -(-m // shape.m) * -(-n // shape.n)
        for parts in _PARTS:
            if k % (parts * grain) or -(-k // tile[2]) < _LEAST_STEPS * parts or tiles * parts > 2 * multiprocessors:
                continue
            plan = replace(_fitting(kind, tile, (1, 1), shape.pingpong, 1, shared_bytes), parts=parts)
            waves = -(-tiles * parts // multiprocessors)
            alone = waves * shape.m * shape.n * (k // parts + shape.added) / (shape.speed * _ALONE)
            last = shape.m * shape.n * (_STORES - shape.added)
            yield alone + last + _START + _PART_TRAFFIC * parts * m * n, plan


def _in_boxes(kind: Kind, tile: tuple[int, int, int], cluster: tuple[int, int]) -> bool:
    """Whether blocks of a cluster can copy equal parts of the tiles that they share.

    Where K is not contiguous, a tile is copied by boxes of 128 bytes along the mode that is.
    """
    for mode, shared_by in ((0, cluster[1]), (1, cluster[0])):
        boxes = tile[mode] * kind.dtype.width // (8 * LINE_BYTES)
        if not kind.k_major[mode] and boxes % shared_by:
            return False
    return True


def _fitting(
    kind: Kind, tile: tuple[int, int, int], cluster: tuple[int, int], pingpong: bool, splits: int, shared_bytes: int
) -> Sm90Plan:
    """The plan with as many stages as go into shared memory."""
    plan = Sm90Plan(
        kind.dtype, kind.k_major, kind.result, kind.n_major, tile, cluster, 1, pingpong, splits, narrow=kind.narrow
    )
    stages = 1 + (shared_bytes - plan.shared_bytes) // plan.stage_bytes
    return replace(plan, stages=min(stages, _MOST_STAGES))
