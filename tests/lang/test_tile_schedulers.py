"""Tile schedulers of persistent kernels: every tile is done once, in the order that is promised."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import utils
from tilewright.base.errors import CompileError

MOST = 64  # tiles that one cluster writes down


@cute.kernel
def write_down(params: utils.PersistentTileSchedulerParams, out: cute.Tensor):
    """out[block, step] is (m, n, l) of the tiles that a block does, one after the other."""
    block = cute.arch.block_idx()
    grid = cute.arch.grid_dim()
    number = block[0] + grid[0] * (block[1] + grid[1] * block[2])
    scheduler = utils.StaticPersistentTileScheduler.create(params, block, grid)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        for mode in cutlass.range_constexpr(3):
            out[number, scheduler.num_tiles_executed, mode] = work.tile_idx[mode]
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@cute.jit
def written_down(
    out: cute.Tensor,
    shape: cute.Shape,
    cluster: cutlass.Constexpr,
    swizzle: cutlass.Constexpr,
    along_m: cutlass.Constexpr,
    active: cutlass.Int32,
):
    params = utils.PersistentTileSchedulerParams(shape, cluster, swizzle, along_m)
    grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, active)
    write_down(params, out).launch(grid=grid, block=(1, 1, 1), cluster=cluster)


def order(shape, swizzle, along_m):
    """(m, n, l) of the clusters as they are visited, written out by loops."""
    m, n, batches = shape
    across, along = (n, m) if along_m else (m, n)
    if swizzle == 1:
        return [(i, j, k) for k in range(batches) for j in range(n) for i in range(m)]
    found = []
    for batch, start in itertools.product(range(batches), range(0, across, swizzle)):
        for step in range(along):
            for lane in range(start, min(start + swizzle, across)):
                found.append((step, lane, batch) if along_m else (lane, step, batch))
    return found


@pytest.mark.parametrize("runtime", (False, True))
@pytest.mark.parametrize(
    ("shape", "cluster", "swizzle", "along_m", "active"),
    (
        ((5, 4, 2), (1, 1, 1), 1, True, 7),
        ((5, 4, 2), (1, 1, 1), 3, True, 7),
        ((5, 4, 2), (1, 1, 1), 3, False, 7),
        ((8, 6, 1), (2, 1, 1), 2, True, 5),
        ((4, 4, 3), (2, 2, 1), 1, True, 100),
        ((1, 1, 1), (1, 1, 1), 4, False, 3),
    ),
)
def test_each_tile_is_done_once_in_order(shape, cluster, swizzle, along_m, active, runtime):
    clusters = [-(-extent // size) for extent, size in zip(shape, cluster, strict=True)]
    visited = order(clusters, swizzle, along_m)
    used = min(active, len(visited))
    inside = cluster[0] * cluster[1]
    out = np.full((used * inside, MOST, 3), -1, np.int32)
    given = tuple(cutlass.Int32(extent) for extent in shape) if runtime else shape
    compiled = cute.compile(written_down, out, given, cluster, swizzle, along_m, active, target="emu")
    compiled(out, given, active)
    for block in range(used * inside):
        number, rank = divmod(block, inside)
        x, y = rank % cluster[0], rank // cluster[0]
        expected = [(m * cluster[0] + x, n * cluster[1] + y, k) for m, n, k in visited[number::used]]
        done = [tuple(tile) for tile in out[block].tolist() if tile[0] >= 0]
        assert done == expected


@pytest.mark.parametrize(("cluster", "swizzle"), (((1, 1, 2), 1), ((1, 1, 1), 0)))
def test_impossible_clusters_and_bands_are_refused(cluster, swizzle):
    @cute.jit
    def asks():
        utils.PersistentTileSchedulerParams((4, 4, 1), cluster, swizzle)

    with pytest.raises(CompileError, match="shared out among clusters along m and n, in bands of one or more"):
        asks()


@cute.kernel
def write_groups_down(
    params: utils.PersistentTileSchedulerParams, problems: cute.Tensor, out: cute.Tensor, tile: cutlass.Constexpr
):
    """out[block, step] is (problem, m, n, M, N, K, tiles of k)."""
    block = cute.arch.block_idx()
    grid = cute.arch.grid_dim()
    number = block[0] + grid[0] * (block[1] + grid[1] * block[2])
    scheduler = utils.StaticPersistentGroupTileScheduler.create(
        params, block, grid, tile, utils.create_initial_search_state(), problems.shape[0], problems
    )
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        found = work.group_search_result
        step = scheduler.num_tiles_executed
        out[number, step, 0] = found.group_idx
        out[number, step, 1] = found.cta_tile_idx_m
        out[number, step, 2] = found.cta_tile_idx_n
        out[number, step, 3] = found.problem_shape_m
        out[number, step, 4] = found.problem_shape_n
        out[number, step, 5] = found.problem_shape_k
        out[number, step, 6] = found.cta_tile_count_k
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@cute.jit
def groups_written_down(
    problems: cute.Tensor, out: cute.Tensor, total: cutlass.Int32, cluster: cutlass.Constexpr, tile: cutlass.Constexpr
):
    params = utils.PersistentTileSchedulerParams((cluster[0], cluster[1], total), cluster)
    grid = utils.StaticPersistentGroupTileScheduler.get_grid_shape(params, 3)
    write_groups_down(params, problems, out, tile).launch(grid=grid, block=(1, 1, 1), cluster=cluster)


@pytest.mark.parametrize("cluster", ((1, 1, 1), (2, 1, 1)))
def test_tiles_of_several_problems(cluster):
    problems = np.array([(100, 64, 32, 1), (64, 200, 65, 1), (1, 1, 1, 1), (300, 128, 64, 1)], np.int32)
    tile = (64 * cluster[0], 64 * cluster[1], 32)  # of a cluster along m and n, of a block along k
    clusters = [
        (group, m, n)
        for group, problem in enumerate(problems)
        for n in range(-(-problem[1] // tile[1]))
        for m in range(-(-problem[0] // tile[0]))
    ]
    inside = cluster[0] * cluster[1]
    out = np.full((3 * inside, MOST, 7), -1, np.int32)
    compiled = cute.compile(groups_written_down, problems, out, len(clusters), cluster, tile, target="emu")
    compiled(problems, out, len(clusters))
    for block in range(3 * inside):
        number, rank = divmod(block, inside)
        expected = [
            (group, m * cluster[0] + rank, n, *problems[group, :3], -(-problems[group, 2] // 32))
            for group, m, n in clusters[number::3]
        ]
        assert [tuple(row) for row in out[block].tolist() if row[0] >= 0] == [tuple(map(int, row)) for row in expected]
