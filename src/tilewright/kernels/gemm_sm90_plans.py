"""How a matrix product of sm_90 is laid out: tiles, warpgroups, clusters, buffers, and the order of tiles."""

from __future__ import annotations

from dataclasses import dataclass

import tilewright.cute as cute
from tilewright import TFloat32
from tilewright.utils import LayoutEnum, sm90

WARPGROUP = 128
CONSUMERS = 2
ALIGNMENT = 1024  # of shared memory: after so many bytes a swizzle repeats
LINE_BYTES = 128  # of a swizzle
INSTRUCTION_M = 64


@dataclass(frozen=True)
class Sm90Plan:
    """How D (M, N, L) = A (M, K, L) · B (N, K, L) is computed.

    Attributes:
        dtype: element type of A and B.
        k_major: whether K is contiguous of A and of B, else M or N is.
        result: element type of D.
        n_major: whether N is contiguous of D, else M is.
        tile: (m, n, k) of a tile of D and of the steps along K in which it is computed.
        cluster: blocks along M and N that share tiles of A and B.
        stages: buffers for tiles of A and B.
        pingpong: whether the two warpgroups that multiply take turns at tiles, else they share each tile.
        group: clusters along M whose tiles are computed before those of the next column, so that L2 holds what they
            share.
    """

    dtype: type[cute.Numeric]
    k_major: tuple[bool, bool]
    result: type[cute.Numeric]
    n_major: bool
    tile: tuple[int, int, int]
    cluster: tuple[int, int] = (1, 1)
    stages: int = 4
    pingpong: bool = False
    group: int = 8

    @property
    def threads(self) -> int:
        """Threads of a block: a warpgroup that copies, and two that multiply."""
        return WARPGROUP * (1 + CONSUMERS)

    @property
    def rows(self) -> int:
        """Rows of a tile that one warpgroup multiplies."""
        return self.tile[0] if self.pingpong else self.tile[0] // CONSUMERS

    @property
    def accumulator(self) -> type[cute.Numeric]:
        """The type in which products are added."""
        return cute.Int32 if self.dtype is cute.Int8 else cute.Float32

    @property
    def shared_a(self) -> cute.ComposedLayout:
        """(m, k, stages) of A in shared memory."""
        return sm90.make_smem_layout(self.dtype, _order(self.k_major[0]), (self.tile[0], self.tile[2]), self.stages)

    @property
    def shared_b(self) -> cute.ComposedLayout:
        """(n, k, stages) of B in shared memory."""
        return sm90.make_smem_layout(self.dtype, _order(self.k_major[1]), (self.tile[1], self.tile[2]), self.stages)

    @property
    def piece(self) -> tuple[int, int]:
        """(rows, columns) of D that a warpgroup stores at once: lines of 128 bytes."""
        return INSTRUCTION_M, min(LINE_BYTES * 8 // self.result.width, self.tile[1])

    @property
    def shared_d(self) -> cute.ComposedLayout:
        """(rows, columns, buffers) of D in shared memory, those of one warpgroup after those of the other."""
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
        return (m + n) * k * self.dtype.width // 8

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes, with a margin for barriers."""
        rows, columns = self.piece
        stores = CONSUMERS * self.store_buffers * rows * columns * self.result.width // 8
        return self.stages * self.stage_bytes + stores + ALIGNMENT

    def tiled_mma(self, columns: int) -> cute.TiledMma:
        """The instruction of one warpgroup, 64 rows by `columns`."""
        majors = tuple(_order(major).sm90_mma_major_mode() for major in self.k_major)
        dtype = TFloat32 if self.dtype is cute.Float32 else self.dtype
        return sm90.make_trivial_tiled_mma(
            dtype, dtype, majors[0], majors[1], self.accumulator, (1, 1, 1), (INSTRUCTION_M, columns)
        )


def _order(contiguous_last: bool) -> LayoutEnum:
    return LayoutEnum.ROW_MAJOR if contiguous_last else LayoutEnum.COL_MAJOR
