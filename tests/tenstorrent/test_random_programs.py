"""Random shapes, tiles and grids: 1 to 64 cores, idle cores, ragged tensors with padding that the source says."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
import tilewright.tile as tile
from tests.tenstorrent.programs import BF16
from tilewright import Constexpr, Float32

FEW, MANY = 10, 200


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr, n: Constexpr, k: Constexpr):
    row, column, _ = cute.arch.block_idx()
    acc = tile.zeros((m, n), Float32)
    for step in range(cute.ceil_div(a.shape[1], k)):
        acc = tile.dot(tile.load(a, (row, step), (m, k)), tile.load(b, (step, column), (k, n)), acc)
    tile.store(c, (row, column), acc.to(c.element_type))


@cute.kernel
def map_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr, n: Constexpr, k: Constexpr):
    row, column, _ = cute.arch.block_idx()
    x, y = (tile.load(item, (row, column), (m, n)).to(Float32) for item in (a, b))
    tile.store(c, (row, column), (x * y + tile.maximum(x, 0.0)).to(c.element_type))


@cute.kernel
def fold_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, m: Constexpr, n: Constexpr, k: Constexpr):
    row, _, _ = cute.arch.block_idx()
    total = tile.zeros((m, 1), Float32)
    for step in range(cute.ceil_div(a.shape[1], k)):
        total = total + tile.sum(tile.load(a, (row, step), (m, k)).to(Float32), 1)
    tile.store(c, (row, 0), (total + tile.load(b, (row, 0), (m, 1)).to(Float32)).to(c.element_type))


@cute.jit
def main(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, kernel: Constexpr, m: Constexpr, n: Constexpr, k: Constexpr):
    grid = (cute.ceil_div(c.shape[0], m), cute.ceil_div(c.shape[1], n), 1)
    kernel(a, b, c, m, n, k).launch(grid=grid, block=(32, 1, 1))


def gemm_case(rows, inner, columns):
    return gemm_kernel, ((rows, inner), (inner, columns), (rows, columns)), lambda a, b: a @ b


def map_case(rows, _, columns):
    return map_kernel, ((rows, columns),) * 3, lambda a, b: a * b + np.maximum(a, 0)


def fold_case(rows, inner, _):
    return fold_kernel, ((rows, inner), (rows, 1), (rows, 1)), lambda a, b: a.sum(1, keepdims=True) + b


def program(seed):
    """Kernel, tensors, expected result, sizes of tiles, and two grids of cores."""
    rng = np.random.default_rng(seed)
    extents = [int(rng.integers(1, 7)) * 32 - int(rng.choice([0, 0, 1, 13, 31])) for _ in range(3)]
    kernel, shapes, function = (gemm_case, map_case, fold_case)[seed % 3](*extents)
    arrays = [rng.standard_normal(shape).astype(BF16) for shape in shapes]
    expected = function(*(item.astype(np.float64) for item in arrays[:2]))
    m, n = [(32, 32), (32, 64), (64, 32), (64, 64)][int(rng.integers(4))]
    tiles = (m, 1 if kernel is fold_kernel else n, int(rng.choice([32, 64, 96])))
    grids = [f"{rng.integers(1, 9)}x{rng.integers(1, 9)}" for _ in range(2)]
    return kernel, arrays, expected, tiles, grids


def check(seed):
    kernel, (a, b, c), expected, tiles, grids = program(seed)
    results = []
    for grid in grids:
        c[...] = np.nan
        compiled = cute.compile(main, a, b, c, kernel, *tiles, target="tenstorrent", options=f"--core-grid {grid}")
        compiled(a, b, c)
        results.append(c.copy())
    assert np.linalg.norm(results[0].astype(np.float64) - expected) <= 5e-3 * np.linalg.norm(expected) + 1e-3, seed
    assert (results[0].view(np.uint16) == results[1].view(np.uint16)).all(), (seed, grids)


@pytest.mark.parametrize("seed", range(FEW))
def test_a_few_programs(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, MANY))
def test_many_programs(seed):
    check(seed)
