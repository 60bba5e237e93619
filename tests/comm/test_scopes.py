"""Collectives of warps, blocks, clusters and grids on the emulator with all checks, under several schedules."""

import numpy as np
import pytest

from tests.comm import cases, scopes

FEW = cases.OnEmulator((0, 3))
MANY = cases.OnEmulator(range(20))
QUICK_TYPES = (np.bool_, np.int8, np.uint32, np.int64, cases.BF16, np.float32, np.float64)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_warp(dtype):
    scopes.warp(dtype, 32, FEW)


@pytest.mark.parametrize("width", (1, 2, 4, 8, 16))
def test_groups_of_lanes(width):
    scopes.warp(np.float32, width, FEW)


@pytest.mark.parametrize("threads", (5, 16, 40, 70))
def test_lanes_of_partial_warps(threads):
    for width in (32, 8):
        scopes.warp(np.float32, width, FEW, threads)
        scopes.warp(np.int32, width, FEW, threads)


@pytest.mark.parametrize("dtype", QUICK_TYPES, ids=cases.name_of)
def test_block(dtype):
    scopes.block(dtype, (64, 1, 1), FEW)


@pytest.mark.parametrize("shape", scopes.BLOCKS[1:], ids=str)
def test_shapes_of_blocks(shape):
    scopes.block(np.float32, shape, FEW)


@pytest.mark.parametrize("threads", (20, 64, 300))
def test_blocks_whose_extents_come_at_run_time(threads):
    scopes.block(np.int32, (threads, 1, 1), FEW, dynamic=True)


@pytest.mark.parametrize("dtype", (np.int32, cases.BF16, np.float64), ids=cases.name_of)
def test_cluster(dtype):
    scopes.cluster(dtype, (2, 1, 1), (64, 1, 1), FEW)


@pytest.mark.parametrize(("cluster", "shape"), scopes.CLUSTERS[1:], ids=str)
def test_shapes_of_clusters(cluster, shape):
    scopes.cluster(np.float32, cluster, shape, FEW)


def test_cluster_by_pulling():
    scopes.cluster(np.int64, (4, 1, 1), (64, 1, 1), FEW, mode="pull")


@pytest.mark.parametrize("dtype", (np.int32, np.float32), ids=cases.name_of)
def test_grid(dtype):
    scopes.grid(dtype, 5, 64, FEW)


@pytest.mark.parametrize("arch", ("sm_80", "sm_89", "sm_100a", "sm_120a"))
def test_other_chips(arch):
    scopes.warp(np.float32, 32, FEW, arch=arch)
    scopes.block(np.int32, (64, 1, 1), FEW, arch=arch)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_every_type_under_twenty_schedules(dtype):
    for width, threads in ((2, 96), (8, 40), (32, 96), (32, 40), (16, 5)):
        scopes.warp(dtype, width, MANY, threads)
    for shape in ((64, 1, 1), (20, 1, 1), (7, 5, 3), (288, 1, 1)):
        scopes.block(dtype, shape, MANY)
    scopes.block(dtype, (300, 1, 1), MANY, dynamic=True)
    for cluster, shape in scopes.CLUSTERS[:2]:
        scopes.cluster(dtype, cluster, shape, MANY)
    scopes.cluster(dtype, (2, 1, 1), (64, 1, 1), MANY, mode="pull")
    for blocks, threads in ((3, 20), (5, 64)):
        scopes.grid(dtype, blocks, threads, MANY)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_every_type_over_every_group(dtype):
    for width in (1, 4, 16):
        for threads in (96, 40):
            scopes.warp(dtype, width, FEW, threads)
    for shape in scopes.BLOCKS:
        scopes.block(dtype, shape, FEW)
    for threads in (20, 64):
        scopes.block(dtype, (threads, 1, 1), FEW, dynamic=True)
    for cluster, shape in scopes.CLUSTERS:
        scopes.cluster(dtype, cluster, shape, FEW)
    for blocks, threads in ((1, 32), (9, 256)):
        scopes.grid(dtype, blocks, threads, FEW)
