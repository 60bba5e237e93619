"""How a matrix product is laid out: the tile of a block, its warps, the stages of its pipeline, and the rule for them.

The rule estimates how many products the busiest multiprocessor makes one after another, and takes the plan with the
fewest:

    tiles of the busiest multiprocessor · m · n · (K / splits + what is added) / speed of the tile

`speed` is what a tile of that size reaches of the fastest one, as measured (docs/kernels/gemm.md): larger tiles reuse
what they read more often. Where there are fewer tiles than multiprocessors, several blocks share the products of a
tile along K; each writes and one of them reads `splits` times the tile, which takes as long as `EXCHANGE` products of
each element, after a fixed time of `START` products of a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import tilewright.cute as cute
from tilewright.cute.nvgpu import warp
from tilewright.kernels.gemm_operands import Operand

WARP = 32
EXCHANGE, START = 128, 4 << 20
_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
_LEAST_STEPS = 4  # tiles along K of a block that shares a tile


@dataclass(frozen=True)
class GemmPlan:
    """How D = A·B is computed by blocks.

    Attributes:
        a: A, a matrix (M, K).
        b: B, a matrix (N, K).
        tile: (m, n, k) of a block at a time.
        warps: warps along M and N, which share the tile.
        stages: tiles of A and B that are in shared memory or on their way there, at least 2.
        splits: blocks that share the products along K of one tile.
        group: tiles along M that neighbouring blocks take before they go on along N, so that L2 holds what they share.
        turned: whether it is the transpose of D that is computed, as where M is its contiguous mode: `a` is then the
            transpose of B, and `b` that of A.
    """

    a: Operand
    b: Operand
    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    splits: int = 1
    group: int = 16
    turned: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARP * self.warps[0] * self.warps[1]

    @property
    def strip(self) -> int:
        """Rows of D of one instruction of each warp along M."""
        return self.warps[0] * (8 if self.a.dtype.width == 64 else 16)

    @property
    def share(self) -> tuple[int, int]:
        """(rows, columns) of D for which one epilogue runs: those of the block's tile."""
        return self.tile[:2]

    @property
    def team(self) -> int:
        """Threads that run it."""
        return self.threads

    @property
    def teams(self) -> int:
        """How many such teams a block has, each with shared memory of its own."""
        return 1

    @property
    def accumulator(self) -> type[cute.Numeric]:
        """The type in which products are added."""
        return {8: cute.Int32, 64: cute.Float64}.get(self.a.dtype.width, cute.Float32)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block, for the stages and then for a strip of sums."""
        m, n, k = self.tile
        stages = self.a.shared_bytes(m, k, self.stages) + self.b.shared_bytes(n, k, self.stages)
        return max(stages, self.strip * n * self.accumulator.width // 8)

    def tiled_mma(self) -> cute.TiledMma:
        """The instruction, over the block's warps; each takes two along N at once, as many as one `ldmatrix` feeds."""
        op: warp.MmaSyncOp
        if self.a.dtype.width == 8:
            op = warp.MmaI8Op(self.a.dtype, (16, 8, 32))
        elif self.a.dtype.width == 64:
            op = warp.MmaF64Op()
        elif self.a.dtype.width == 32:
            op = warp.MmaTF32Op((16, 8, 8))
        else:
            op = warp.MmaF16BF16Op(self.a.dtype, cute.Float32, (16, 8, 16))
        (m, n), (height, width, depth) = self.warps, op.shape_mnk
        return cute.make_tiled_mma(op, (m, n, 1), permutation_mnk=(height * m, 2 * width * n, depth))


@dataclass(frozen=True)
class _Shape:
    """A tile (m, n) of so many bytes along K, its warps and stages, and its speed."""

    m: int
    n: int
    k_bytes: int
    warps: tuple[int, int]
    stages: int
    speed: float


_SHAPES = (
    _Shape(128, 256, 128, (2, 4), 3, 1.0),
    _Shape(128, 128, 128, (2, 2), 3, 0.93),
    _Shape(64, 128, 128, (2, 2), 4, 0.8),
    _Shape(64, 64, 128, (2, 2), 5, 0.7),
)
_OF_FLOAT64 = (_Shape(64, 64, 128, (2, 2), 3, 1.0),)


def gemm_plan(
    a: Operand, b: Operand, extents: tuple[int, int, int, int], turned: bool, multiprocessors: int
) -> GemmPlan:
    """The plan for D (M, N, L) = A (M, K, L) · B (N, K, L), or its transpose, of extents (M, N, K, L), by the rule."""
    return gemm_plans(a, b, extents, turned, multiprocessors)[0]


def gemm_plans(
    a: Operand, b: Operand, extents: tuple[int, int, int, int], turned: bool, multiprocessors: int
) -> list[GemmPlan]:
    """All plans, the one that the rule prefers first."""
    ranked = sorted(_candidates(a, b, extents, turned, multiprocessors), key=lambda pair: pair[0])
    return [plan for _, plan in ranked]


def _candidates(
    a: Operand, b: Operand, extents: tuple[int, int, int, int], turned: bool, multiprocessors: int
) -> Iterator[tuple[float, GemmPlan]]:
    m, n, k, batch = extents
    for shape in _shapes_of(a, b):
        tile = shape.m, shape.n, shape.k_bytes * 8 // a.dtype.width
        tiles = -(-m // shape.m) * -(-n // shape.n) * batch
        steps = -(-k // tile[2])
        for splits in _SPLITS:
            if splits > 1 and (tiles >= multiprocessors or steps < _LEAST_STEPS * splits):
                break
            deep = max(-(-steps // splits), 1) * tile[2] + shape.stages * tile[2]
            shared = splits > 1
            each = shape.m * shape.n * (deep + shared * EXCHANGE * (1 + splits)) / shape.speed
            cost = -(-tiles * splits // multiprocessors) * each + shared * START
            yield cost, GemmPlan(a, b, tile, shape.warps, shape.stages, splits, turned=turned)


def _shapes_of(a: Operand, b: Operand) -> tuple[_Shape, ...]:
    """The tiles for operands of these kinds: shallower ones for elements of 32 bits that are read one by one."""
    if a.dtype.width == 64:
        return _OF_FLOAT64
    if a.by_ldmatrix and b.by_ldmatrix:
        return _SHAPES
    return tuple(replace(shape, k_bytes=shape.k_bytes // 2, stages=shape.stages + 1) for shape in _SHAPES)
