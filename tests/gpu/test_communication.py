"""Collectives on a device, against NumPy."""

import numpy as np
import pytest

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


ALL_SHAPES = (np.int32, np.float32)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_warp(dtype):
    for width, threads in ((32, 96), (8, 40)):
        scopes.warp(dtype, width, RUN, threads)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_block(dtype):
    for shape in scopes.BLOCKS if dtype in ALL_SHAPES else ((256, 1, 1), (7, 5, 3)):
        scopes.block(dtype, shape, RUN)


def test_blocks_whose_extents_come_at_run_time():
    for threads in (20, 64, 300):
        scopes.block(np.float32, (threads, 1, 1), RUN, dynamic=True)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_cluster(dtype):
    needs(9)
    for cluster, shape in scopes.CLUSTERS if dtype in ALL_SHAPES else scopes.CLUSTERS[:1]:
        scopes.cluster(dtype, cluster, shape, RUN)


def test_cluster_by_pulling():
    needs(9)
    scopes.cluster(np.float32, (4, 1, 1), (64, 1, 1), RUN, mode="pull")


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_grid(dtype):
    for blocks, threads in ((1, 32), (108, 256)) if dtype in ALL_SHAPES else ((5, 64),):
        scopes.grid(dtype, blocks, threads, RUN)
