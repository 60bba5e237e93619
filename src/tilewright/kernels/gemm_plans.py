"""How a matrix product is laid out: the tile of a block, its warps, the stages of its pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import tilewright.cute as cute
from tilewright.cute.nvgpu import warp
from tilewright.kernels.gemm_operands import Operand
from tilewright.kernels.gemm_results import staged

WARP = 32


@dataclass(frozen=True)
class GemmPlan:
    """How D = A·B is computed by blocks.

    Attributes:
        a: A, a matrix (M, K).
        b: B, a matrix (N, K).
        tile: (m, n, k) of a block at a time.
        warps: warps along M and N, which share the tile.
        stages: tiles of A and B that are in shared memory or on their way there, at least 2.
        group: tiles along M that neighbouring blocks take before they go on along N, so that L2 holds what they share.
        result: elements of one store of D, whose contiguous mode is N; 1 where D has another order.
    """

    a: Operand
    b: Operand
    tile: tuple[int, int, int]
    warps: tuple[int, int]
    stages: int
    group: int = 8
    result: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARP * self.warps[0] * self.warps[1]

    @property
    def accumulator(self) -> type[cute.Numeric]:
        """The type in which products are added."""
        return cute.Int32 if self.a.dtype.width == 8 else cute.Float32

    def shared_bytes(self, result: type[cute.Numeric]) -> int:
        """Bytes of shared memory of a block that stores elements of type `result`."""
        m, n, k = self.tile
        stages = self.a.shared_bytes(m, k, self.stages) + self.b.shared_bytes(n, k, self.stages)
        return max(stages, m * n * result.width // 8 if staged(result, self.result) else 0)

    def tiled_mma(self) -> cute.TiledMma:
        """The instruction, over the block's warps; each takes two along N at once, as many as one `ldmatrix` feeds."""
        if self.a.dtype.width == 8:
            op = warp.MmaI8Op(self.a.dtype, (16, 8, 32))
        elif self.a.dtype is cute.Float32:
            op = warp.MmaTF32Op((16, 8, 8))
        else:
            op = warp.MmaF16BF16Op(self.a.dtype, cute.Float32, (16, 8, 16))
        m, n = self.warps
        return cute.make_tiled_mma(op, (m, n, 1), permutation_mnk=(16 * m, 16 * n, op.shape_mnk[2]))
