"""Functions that other decorators wrap, and what jit functions return."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import CompileError, Int32

EXPECTED = [0, 1, 2, 3, -4, -5, -6, -7]


def counted(function):
    """A decorator as libraries write them."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


def named(name):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            assert name
            return function(*args, **kwargs)

        return wrapper

    return decorate


def tagged(function):
    function.tag = 1
    return function


def negate(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if x[i] > 3:
        x[i] = -x[i]


def launching(kernel):
    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=8)

    return host


@pytest.mark.parametrize(
    "kernel",
    [cute.kernel(counted(negate)), cute.kernel(named("a")(counted(negate))), cute.kernel(tagged(named("b")(negate))),
     cute.kernel(named("a")(named("b")(counted(tagged(negate)))))],
)  # fmt: skip
def test_the_control_flow_of_a_wrapped_kernel(kernel):
    x = np.arange(8, dtype=np.int32)
    launching(kernel)(x)
    assert x.tolist() == EXPECTED


def test_wrappers_around_and_inside_a_jit_function():
    inner = launching(cute.kernel(negate))

    @counted
    @cute.jit
    @named("a")
    @counted
    def host(x: cute.Tensor, n: Int32):
        if n > 0:
            inner(x)

    for n, expected in ((1, EXPECTED), (0, list(range(8)))):
        x = np.arange(8, dtype=np.int32)
        host(x, n)
        assert x.tolist() == expected
    assert host.calls == 2


def test_the_function_itself_stays_pythons():
    wrapped = counted(negate)
    launching(cute.kernel(wrapped))(np.arange(8, dtype=np.int32))
    assert wrapped.__wrapped__ is negate and wrapped.__closure__ is not None
    assert any(cell.cell_contents is negate for cell in wrapped.__closure__)


def test_an_error_in_a_wrapped_kernel_names_its_line():
    def broken(x: cute.Tensor):
        x[0] = missing  # noqa: F821

    with pytest.raises(CompileError, match="name 'missing' is not defined") as error:
        launching(cute.kernel(counted(broken)))(np.arange(8, dtype=np.int32))
    assert error.value.location.line == broken.__code__.co_firstlineno + 1


@cute.jit
def next_number(n: Int32):
    return n + 1


@cute.jit
def rank_of(x: cute.Tensor):
    return len(x.shape)


def test_what_a_jit_function_returns():
    x = np.zeros((2, 3), np.float32)
    assert rank_of(x) == 2
    with pytest.raises(CompileError, match="next_number returns a value known only at run time"):
        next_number(3)
    with pytest.warns(UserWarning, match="next_number returns a value known only at run time, which no call") as caught:
        assert cute.compile(next_number, 3)(3) is None
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cute.compile(rank_of, x)
