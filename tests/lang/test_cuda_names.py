"""Names of CUDA C++ in kernels: the error says how the language writes them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import CompileError
from tilewright.lang.diagnostics import cuda_names


def hint_of(body):
    """The hint of the error in a kernel with that body."""

    @cute.kernel
    def kernel(x: cute.Tensor):
        x[body()] = 1.0

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    with pytest.raises(CompileError) as error:
        launch(np.zeros(32, np.float32))
    return error.value.hint


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (lambda: threadIdx.x, "`cute.arch.thread_idx()` gives a tuple (x, y, z)"),  # noqa: F821
        (lambda: cute.blockIdx.x, "`cute.arch.block_idx()` gives a tuple (x, y, z)"),
        (lambda: __syncthreads(), "CUDA's __syncthreads is `cute.arch.sync_threads`"),  # noqa: F821
        (lambda: atomicAdd(0, 1), "CUDA's atomicAdd is `cute.arch.atomic_add`"),  # noqa: F821
        (lambda: thread_idx()[0], "it is `cute.arch.thread_idx`"),  # noqa: F821
        (lambda: cute.lane_idx(), "it is `cute.arch.lane_idx`"),
        (lambda: cute.arch.thread_idx().y, "a place is a tuple (x, y, z): `[1]` is its y"),
        (lambda: cute.arch.thread_id()[0], "did you mean 'thread_idx'?"),
    ],
)
def test_hints(body, hint):
    assert hint_of(body) == hint


def test_every_name_that_a_hint_gives_is_there():
    named = [*cuda_names._TRIPLES.values(), *cuda_names._FUNCTIONS.values(), *cuda_names._OF_ARCH.split()]
    assert [name for name in named if not hasattr(cute.arch, name)] == []
