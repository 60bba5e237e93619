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


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_warp(dtype):
    for width, threads in ((32, 96), (8, 96), (32, 40), (16, 5)):
        scopes.warp(dtype, width, RUN, threads)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_block(dtype):
    for shape in scopes.BLOCKS:
        scopes.block(dtype, shape, RUN)
    scopes.block(dtype, (300, 1, 1), RUN, dynamic=True)


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_cluster(dtype):
    needs(9)
    for cluster, shape in scopes.CLUSTERS:
        scopes.cluster(dtype, cluster, shape, RUN)
    scopes.cluster(dtype, (4, 1, 1), (64, 1, 1), RUN, mode="pull")


@pytest.mark.parametrize("dtype", cases.TYPES, ids=cases.name_of)
def test_grid(dtype):
    for blocks, threads in ((1, 32), (5, 64), (108, 256)):
        scopes.grid(dtype, blocks, threads, RUN)
