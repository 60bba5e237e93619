"""Loops over constant bounds that pick registers by their index are unrolled, so that no array goes to local memory."""

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute


@cute.kernel
def twice(x: cute.Tensor, out: cute.Tensor, turns: cutlass.Constexpr):
    values = cute.make_rmem_tensor(cute.make_layout((48, 2)), cutlass.Float32)
    for n in turns(48):
        for m in range(2):
            values[n, m] = x[n] * (m + 1)
    for n in turns(48):
        column = values[n, None]
        out[n] = column[0] + column[1]


@cute.jit
def run(x: cute.Tensor, out: cute.Tensor, turns: cutlass.Constexpr):
    twice(x, out, turns).launch(grid=1, block=1)


def plain(count):
    return cutlass.range(count)


def kept(count):
    return cutlass.range(count, unroll=1)


@pytest.mark.parametrize(("turns", "local"), [(plain, False), (kept, True)])
def test_registers_picked_by_a_loops_index(turns, local):
    x, out = np.arange(48, dtype=np.float32), np.zeros(48, np.float32)
    executor = cute.compile(run, x, out, turns, target="emu", options="--gpu-arch sm_80")
    executor(x, out)
    np.testing.assert_array_equal(out, 3 * x)
    text = executor.stages["ptx"]
    text = text if isinstance(text, str) else "\n".join(text.values())
    assert (".local" in text) == local


@cute.kernel
def shared_only(x: cute.Tensor, out: cute.Tensor):
    total = cutlass.Float32(0)
    for n in range(200):
        total = total + x[n]
    out[0] = total


@cute.jit
def run_shared_only(x: cute.Tensor, out: cute.Tensor):
    shared_only(x, out).launch(grid=1, block=1)


def test_loops_over_memory_are_left_to_llvm():
    x, out = np.ones(200, np.float32), np.zeros(1, np.float32)
    executor = cute.compile(run_shared_only, x, out, target="emu", options="--gpu-arch sm_80")
    executor(x, out)
    assert out[0] == 200
    nvvm = executor.stages["nvvm"]
    assert "loop_unroll" not in (nvvm if isinstance(nvvm, str) else "\n".join(nvvm.values()))
