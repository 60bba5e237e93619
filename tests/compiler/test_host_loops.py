"""Loops of host code that do not end by themselves: Ctrl-C and failed launches end them."""

import os
import signal
import threading

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int32, Int64
from tilewright.base.errors import EmulationError


@cute.kernel
def add_one(x: cute.Tensor, at: Int32):
    x[at] = x[at] + 1.0


@cute.jit
def counts(x: cute.Tensor, n: Int32):
    i = Int32(0)
    j = Int32(0)
    while i < n:
        j = j * 5 + 3
        if j == 2:
            i = i + 1
    add_one(x, j % 2).launch(grid=1, block=1)


@cute.jit
def launches(x: cute.Tensor, n: Int32):
    while n > 0:
        add_one(x, 0).launch(grid=1, block=1)


@cute.jit
def nested(x: cute.Tensor, n: Int32):
    i = Int64(0)
    while i >= 0:
        for j in cutlass.range(n):
            i = (i + j) % 7


@cute.jit
def fails(x: cute.Tensor, n: Int32):
    i = Int32(0)
    while i < n:
        add_one(x, n).launch(grid=1, block=1)  # beyond the end


@cute.jit
def ends(x: cute.Tensor, n: Int32):
    i = Int32(0)
    while i < n:
        j = i * 0
        while j < n * 20_000:  # more turns than between two looks for Ctrl-C
            j = j + 1
        add_one(x, j - n * 20_000).launch(grid=1, block=1)
        i = i + 1


@pytest.mark.parametrize("function", [counts, nested])
def test_ctrl_c_ends_a_loop_of_native_code(function):
    x = np.zeros(4, np.float32)
    compiled = cute.compile(function, x, 3)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(x, 3)
    timer.join()
    assert not x.any()


def test_an_exception_of_a_signal_handler_ends_a_loop_of_launches():
    class Late(BaseException):
        pass

    def late(signum, frame):
        raise Late

    x = np.zeros(4, np.float32)
    compiled = cute.compile(launches, x, 3)
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)  # again, where one is lost on its way into Python
    try:
        with pytest.raises(Late):
            compiled(x, 3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x[0] > 0 and not x[1:].any()


def test_a_failed_launch_ends_the_loop_around_it():
    x = np.zeros(4, np.float32)
    with pytest.raises(EmulationError, match="Out-of-bounds"):
        fails(x, 4)


def test_loops_that_end_do_as_before():
    x = np.zeros(4, np.float32)
    compiled = cute.compile(ends, x, 3)
    for _ in range(3):
        compiled(x, 5)
    assert x.tolist() == [15, 0, 0, 0]
