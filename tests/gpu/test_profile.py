"""`cute.profile` on a GPU: times that are known otherwise."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute


@cute.profile
@cute.kernel
def loops_kernel(x: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    value = x[i]
    with cute.profile("once"):
        for _ in range(n):
            value = value * 1.0000001 + 0.5
    with cute.profile("twice"):
        for _ in range(2 * n):
            value = value * 1.0000001 + 0.5
    x[i] = value


@cute.jit
def loops(x: cute.Tensor, n: cutlass.Int32):
    loops_kernel(x, n).launch(grid=cute.size(x) // 128, block=128)


def test_a_loop_of_twice_the_length_takes_twice_the_time():
    x = np.zeros(128 * 200, np.float32)
    compiled = cute.compile(loops, x, 1, target="cuda")
    compiled(x, 5000)
    compiled(x, 5000)
    found = compiled.profile()
    rows = {row.name: row for row in found.rows()}
    assert found.unit == "ns" and found.asked == 2 * 200 * 4 and found.warps == 1024
    assert rows["twice"].mean / rows["once"].mean == pytest.approx(2, rel=0.1)
    # A chain of fma, 4 cycles each, at 1 to 2.1 GHz.
    assert 5000 * 4 / 2.1 * 0.9 < rows["once"].mean < 5000 * 4 * 1.5
    assert {span.launch for span in found.spans} == {0, 1} and compiled.profile().spans == ()
    for span in found.spans:
        assert 0 <= span.begin <= span.end


@cute.profile
@cute.kernel
def sleeps_kernel(x: cute.Tensor):
    with cute.profile("sleep"):
        begin = cute.arch.globaltimer()
        while cute.arch.globaltimer() - begin < 50_000:
            cute.arch.nanosleep(100)
    x[cute.arch.thread_idx()[0]] = 1.0


@cute.jit
def sleeps(x: cute.Tensor):
    sleeps_kernel(x).launch(grid=4, block=64)


def test_a_wait_by_the_global_timer_takes_as_long():
    x = np.zeros(64, np.float32)
    compiled = cute.compile(sleeps, x, target="cuda")
    compiled(x)
    (whole, sleep) = compiled.profile().rows()
    assert 48_000 < sleep.mean < 60_000 and sleep.runs == whole.runs == 8
