"""Small block-level kernels: one operation each, on a matrix that one block holds or a grid covers."""

from __future__ import annotations

import tilewright.cute as cute
import tilewright.tile as tile
from tilewright import Constexpr


@cute.kernel
def mapped_kernel(x: cute.Tensor, y: cute.Tensor, change: Constexpr, shape: Constexpr):
    row, column, _ = cute.arch.block_idx()
    tile.store(y, (row, column), change(tile.load(x, (row, column), shape)))


@cute.jit
def mapped(x: cute.Tensor, y: cute.Tensor, change: Constexpr, shape: Constexpr = (16, 32), threads: Constexpr = 64):
    """y = change(x), tile by tile."""
    grid = (cute.ceil_div(x.shape[0], shape[0]), cute.ceil_div(x.shape[1], shape[1]), 1)
    mapped_kernel(x, y, change, shape).launch(grid=grid, block=(threads, 1, 1))


@cute.kernel
def alone_kernel(x: cute.Tensor, y: cute.Tensor, change: Constexpr, shape: Constexpr):
    tile.store(y, (0, 0), change(tile.load(x, (0, 0), shape)))


@cute.jit
def alone(x: cute.Tensor, y: cute.Tensor, change: Constexpr, shape: Constexpr, threads: Constexpr = 128):
    """y = change(x) of one tile, which `change` may give another shape."""
    alone_kernel(x, y, change, shape).launch(grid=1, block=(threads, 1, 1))
