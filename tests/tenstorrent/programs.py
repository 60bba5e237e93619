"""Block-level programs, and where the passes of stage `tt` take them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilewright.cute as cute
from examples.tenstorrent import elementwise, fused_matmul, gemm, row_sum, softmax
from tilewright import Constexpr
from tilewright.tenstorrent import STANDARD, PassContext, TenstorrentOptions, trace

BF16 = ml_dtypes.bfloat16


def zeros(*shape, dtype=BF16):
    return np.zeros(shape, dtype)


def random(*shape, seed=0, dtype=BF16):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def context(**options):
    """What passes know, with options of the compilation."""
    return PassContext(options=TenstorrentOptions(**options))


def error(got, expected):
    """The relative error in the Frobenius norm, against float64."""
    expected = np.asarray(expected, np.float64)
    return np.linalg.norm(got.astype(np.float64) - expected) / np.linalg.norm(expected)


def gemm_module(size=128, **sizes):
    """The GEMM of the examples, traced."""
    return trace(gemm.main, zeros(size, size), zeros(size, size), zeros(size, size), **sizes)


def elementwise_module(shape=(64, 128)):
    return trace(elementwise.main, zeros(*shape), zeros(*shape), zeros(*shape))


def row_sum_module(shape=(64, 128)):
    return trace(row_sum.main, zeros(*shape), zeros(shape[0], 1))


def softmax_module(shape=(64, 100)):
    return trace(softmax.main, zeros(*shape), zeros(*shape))


def fused_module():
    return trace(fused_matmul.main, zeros(64, 128), zeros(128, 64), zeros(1, 64), zeros(64, 64))


MODULES = {
    "gemm": gemm_module, "elementwise": elementwise_module, "row_sum": row_sum_module, "softmax": softmax_module,
    "fused": fused_module,
}  # fmt: skip


def before(name, module, ctx=None):
    """The module as the pass called `name` gets it."""
    for item in STANDARD:
        if item.name == name:
            return module
        module = item.run_module(module, ctx)
    return module


def kernels(module):
    """The kernels of a module by role, or the only one."""
    return {item.attrs.get("tt.kernel_role", "kernel"): item for item in module.prim_funcs}


@cute.kernel
def one_kernel(body: Constexpr, tensors: list):
    body(*tensors)


def launched(body, *arrays, grid=(1, 1, 1)):
    """A function that launches a kernel whose body is `body(*tensors)`."""

    @cute.jit
    def main(*tensors):
        one_kernel(body, list(tensors)).launch(grid=grid, block=(32, 1, 1))

    return main


def run(body, *arrays, grid=(1, 1, 1), **options):
    """Compile and run a kernel of that body."""
    compiled = cute.compile(launched(body, *arrays, grid=grid), *arrays, target="tenstorrent", **options)
    compiled(*arrays)
    return compiled
