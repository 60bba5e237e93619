"""Facts of Tenstorrent's Tensix cores.

Sources, in the headers of ttnn 0.81.1: `dev_mem_map.h` (L1), `ckernel_defs.h` of `tt_llk_wormhole_b0` (DST: 1024 rows
of 16 numbers of 16 bits, half of it at a time where math and packer overlap, and half as many numbers of 32 bits),
`circular_buffer_constants.h` (circular buffers), `wormhole_b0_80_arch.yaml` (the grid of worker cores).
"""

from __future__ import annotations

from dataclasses import dataclass

TILE = 32
FACE = 16
CIRCULAR_BUFFERS = 32


@dataclass(frozen=True)
class Tensix:
    """A kind of core. `grid` is the most worker cores as (x, y), `l1_bytes` the memory of a core, `l1_reserved` the
    part that firmware and kernels take, `dst_tiles` the tiles of 16 bits that DST holds in half-sync mode."""

    name: str
    grid: tuple[int, int]
    l1_bytes: int
    l1_reserved: int
    dst_tiles: int

    def dst_capacity(self, mode: str) -> int:
        """Tiles that DST holds: of `bf16`, or of `fp32`."""
        return self.dst_tiles // 2 if mode == "fp32" else self.dst_tiles


WORMHOLE = Tensix("wormhole_b0", (8, 8), 1464 * 1024, 32 * 1024 + 69 * 1024, 8)
CORES: dict[str, Tensix] = {WORMHOLE.name: WORMHOLE}
FORMATS: dict[str, tuple[str, int]] = {"bf16": ("Float16_b", 2), "f32": ("Float32", 4)}
"""Element types of MLIR: what Tenstorrent calls the format, and its bytes."""
