"""Kernels that are called and not launched, and functions that yield."""

import warnings

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute


@cute.kernel
def one(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = 1


def test_a_kernel_that_is_never_launched_warns_with_its_line():
    @cute.jit
    def forgotten(x: cute.Tensor):
        one(x)

    words = r"kernel one is called at .*test_forgotten_launch.py:\d+, but never launched"
    with pytest.warns(UserWarning, match=words) as caught:
        cute.compile(forgotten, np.zeros(32, np.int32))
    place = forgotten.function.__code__
    assert (caught[0].filename, caught[0].lineno) == (place.co_filename, place.co_firstlineno + 2)


def test_a_kernel_that_is_launched_does_not_warn():
    @cute.jit
    def run(x: cute.Tensor):
        one(x).launch(grid=1, block=32)

    x = np.zeros(32, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cute.compile(run, x, target="emu")(x)
    assert (x == 1).all()


@pytest.mark.parametrize("decorate", [cute.jit, cute.kernel])
def test_functions_that_yield_are_refused(decorate):
    def numbers(x):
        yield x

    with pytest.raises(cutlass.CompileError, match="yields or awaits") as caught:
        decorate(numbers)
    assert "test_forgotten_launch.py" in str(caught.value)
