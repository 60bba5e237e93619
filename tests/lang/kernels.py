"""Running a body as a kernel or as host code on NumPy arrays."""

from __future__ import annotations

import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack


def on_device(body, *arrays, block=32, grid=1, cluster=None, **options):
    """Run `body` as a kernel of the emulator on arrays with static layouts; gives the arrays."""
    kernel = cute.kernel(body)

    @cute.jit
    def host(tensors: tuple):
        kernel(*tensors).launch(grid=grid, block=block, cluster=cluster)

    tensors = tuple(from_dlpack(array) for array in arrays)
    cute.compile(host, tensors, target="emu", **options)(tensors)
    return arrays if len(arrays) > 1 else arrays[0]


def on_host(body, *arrays, **options):
    """Run `body` as host code on arrays."""
    function = cute.jit(body)
    tensors = [from_dlpack(array) for array in arrays]
    cute.compile(function, *tensors, target="emu", **options)(*tensors)
    return arrays if len(arrays) > 1 else arrays[0]
