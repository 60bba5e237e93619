"""Collectives on a device, against NumPy."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.comm import cases, scopes
from tilewright.base import settings

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module", autouse=True)
def on_the_device():
    with settings.scope(target="cuda"):
        yield


class OnDevice:
    """Runs compiled functions on the device, several times."""

    def place(self, array):
        if array.dtype == cases.BF16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).cuda()
        return torch.from_numpy(array).cuda()

    def __call__(self, compiled, arrays, *others):
        found = []
        for _ in range(3):
            placed = [self.place(array) for array in arrays]
            compiled(*placed, *others)
            torch.cuda.synchronize()
            out = placed[1].cpu()
            is_bf16 = arrays[1].dtype == cases.BF16
            found.append(out.view(torch.int16).numpy().view(cases.BF16) if is_bf16 else out.numpy())
        assert all(other.tobytes() == found[0].tobytes() for other in found[1:])
        return found[0]


RUN = OnDevice()


def needs(major):
    if torch.cuda.get_device_capability()[0] < major:
        pytest.skip(f"needs sm_{major}0")


SOME_TYPES = (np.bool_, np.int8, np.uint64, np.float16, cases.BF16, np.float64)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_warp(dtype):
    scopes.warp(dtype, 32, RUN)


def test_groups_of_lanes_of_partial_warps():
    for dtype in (np.int32, np.float32):
        scopes.warp(dtype, 8, RUN, threads=40)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_block(dtype):
    scopes.block(dtype, (7, 5, 3), RUN)


@pytest.mark.parametrize("shape", scopes.BLOCKS, ids=str)
def test_shapes_of_blocks(shape):
    scopes.block(np.float32, shape, RUN)


def test_blocks_whose_extents_come_at_run_time():
    for threads in (20, 300):
        scopes.block(np.float32, (threads, 1, 1), RUN, dynamic=True)


@pytest.mark.parametrize("dtype", SOME_TYPES, ids=cases.name_of)
def test_cluster(dtype):
    needs(9)
    scopes.cluster(dtype, *scopes.CLUSTERS[0], RUN)


@pytest.mark.parametrize(("cluster", "shape"), (*scopes.CLUSTERS, ((8, 1, 1), (1024, 1, 1))), ids=str)
def test_shapes_of_clusters(cluster, shape):
    needs(9)
    scopes.cluster(np.float32, cluster, shape, RUN)


def test_cluster_by_pulling():
    needs(9)
    scopes.cluster(np.float32, (4, 1, 1), (64, 1, 1), RUN, mode="pull")


@pytest.mark.parametrize("dtype", SOME_TYPES[2:], ids=cases.name_of)
def test_grid(dtype):
    scopes.grid(dtype, 5, 64, RUN)


def test_a_grid_of_many_blocks():
    scopes.grid(np.float32, 108, 256, RUN)


@cute.jit
def often(v, work, collective):
    """A collective in a loop, each on what the last gave."""
    for _ in cutlass.range(100, unroll=1):
        v = collective(v, work) * 0.5
    return v


@pytest.mark.parametrize("threads", (128, 256, 512, 288))
def test_memory_is_used_again_in_loops(threads):
    """On values of which all sums are exact: half the sum of n equal numbers, 100 times, scaled by 2 / n each time."""

    def body(v, work):
        def block(x, _):
            return cute.block_allreduce(x) * (2.0 / threads)

        def cluster(x, _):
            return cute.cluster_allreduce(x) * (2.0 / threads / 4)

        def grid(x, memory):
            return cute.grid_allreduce(x, "max", memory) * 2.0

        return [often(v, work, collective) for collective in (block, cluster, grid)]

    needs(9)
    x = np.full(8 * threads, 2.0, np.float32)
    found, _ = cases.rows(
        body, x, 3, grid=(8, 1, 1), block=(threads, 1, 1), cluster=(4, 1, 1), cooperative=True,
        work=cute.grid_workspace(8), run=RUN,
    )  # fmt: skip
    np.testing.assert_allclose(found, 2.0, rtol=1e-4)
