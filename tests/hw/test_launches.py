"""Hints of launches that no chip takes."""

import pytest

from tilewright.hw import launches


@pytest.mark.parametrize(
    "grid, hint",
    [
        ((0, 1, 1), launches.NOTHING),
        ((5, 0, 1), launches.NOTHING),
        ((-1, 1, 1), launches.NEGATIVE),
        ((0, -4, 1), launches.NEGATIVE),
        ((4_900_000_000, 1, 1), launches.LOOP),
        ((2**31, 70000, 1), launches.LOOP),
        ((1, 65536, 1), launches.ALONG_X),
        ((1, 1, 100_000), launches.ALONG_X),
    ],
)
def test_grids(grid, hint):
    assert launches.grid_hint(grid) == hint


@pytest.mark.parametrize(
    "block, hint",
    [
        ((0, 1, 1), launches.NO_THREADS),
        ((32, 0, 1), launches.NO_THREADS),
        ((-32, 1, 1), launches.NEGATIVE),
        ((2048, 1, 1), launches.FEWER),
        ((32, 33, 1), launches.FEWER),
        ((32, 32, 65), launches.FEWER),
        ((1, 1, 65), launches.NOT_ALONG_Z),
        ((4, 1, 128), launches.NOT_ALONG_Z),
    ],
)
def test_blocks(block, hint):
    assert launches.block_hint(block) == hint


@pytest.mark.parametrize(
    "cluster, hint",
    [
        ((0, 1, 1), launches.NO_CLUSTER),
        ((2, -1, 1), launches.NO_CLUSTER),
        ((17, 1, 1), launches.SMALL_CLUSTER),
        ((4, 4, 2), launches.SMALL_CLUSTER),
    ],
)
def test_clusters(cluster, hint):
    assert launches.cluster_hint(cluster) == hint
