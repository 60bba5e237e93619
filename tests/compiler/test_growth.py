"""Processor time of a compilation grows with the operations of a kernel, not with their square."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute


@cute.kernel
def _sums(x: cute.Tensor, count: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    v = x[t]
    for i in cutlass.range_constexpr(count):
        v = v * 1.5 + float(i)
    x[t] = v


@cute.kernel
def _branches(x: cute.Tensor, count: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    v = x[t]
    for i in cutlass.range_constexpr(count):
        if t > i:
            v = v + float(i)
    x[t] = v


@cute.kernel
def _guarded_stores(x: cute.Tensor, count: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    v = x[t]
    for i in cutlass.range_constexpr(count):
        if t > i:
            x[i] = v


@cute.kernel
def _branches_in_a_loop(x: cute.Tensor, count: cutlass.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    v = x[t]
    for _ in range(t):
        for i in cutlass.range_constexpr(count):
            if t > i:
                v = v + float(i)
            else:
                v = v * 0.5
    x[t] = v


@cute.jit
def _launch(x: cute.Tensor, kernel: cutlass.Constexpr, count: cutlass.Constexpr) -> None:
    kernel(x, count).launch(grid=(1, 1, 1), block=(32, 1, 1))


def _compiled(kernel: Any, count: int) -> Any:
    made = cute.compile(_launch, np.zeros(1 << 12, np.float32), kernel, count, target="emu", no_cache=True)
    made.stages["ptx"]
    return made


def _seconds(kernel: Any, count: int) -> float:
    start = time.process_time()
    _compiled(kernel, count)
    return time.process_time() - start


FEW = 128
TIMES = 32


@pytest.mark.parametrize("kernel", [_sums, _branches, _guarded_stores, _branches_in_a_loop])
def test_time_grows_with_the_operations(kernel: Callable[..., Any]) -> None:
    """32 times the operations take at most 48 times as long, rather 28; 1,024 where each costs what all others do."""
    _seconds(kernel, 2)
    few = min(_seconds(kernel, FEW) for _ in range(3))
    assert _seconds(kernel, TIMES * FEW) < 1.5 * TIMES * few
