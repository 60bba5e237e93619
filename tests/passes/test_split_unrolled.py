"""Loops that are unrolled in full: what they compute, what is left of them, and how long LLVM takes."""

import time

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.passes import split_unrolled


@cute.kernel
def digits_kernel(out: cute.Tensor, start: cutlass.Constexpr, stop: cutlass.Constexpr, step: cutlass.Constexpr):
    hashed, last = cutlass.Int32(1), cutlass.Int32(-1)
    for index in cutlass.range(start, stop, step, unroll_full=True):
        hashed = hashed * 31 + index
        last = index
    out[0], out[1] = hashed, last


@cute.jit
def digits(out: cute.Tensor, start: cutlass.Constexpr, stop: cutlass.Constexpr, step: cutlass.Constexpr):
    digits_kernel(out, start, stop, step).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("most", [1024, 10])
@pytest.mark.parametrize(
    "bounds", [(0, 13, 1), (0, 12, 1), (-7, 95, 3), (5, 6, 1), (100, 1, -3), (0, 11, 1), (4, 4, 1)]
)
def test_turns_are_the_same(monkeypatch, most, bounds):
    """Whole groups, a rest, both, neither: in order."""
    monkeypatch.setattr(split_unrolled, "MOST", most)
    monkeypatch.setattr(split_unrolled, "SIZE", 4)
    out = np.zeros(2, np.int32)
    cute.compile(digits, out, *bounds, target="emu")(out)
    hashed, last = 1, -1
    for index in range(*bounds):
        hashed, last = (hashed * 31 + index) % 2**32, index
    assert out.view(np.uint32)[0] == hashed and out[1] == last


def test_nothing_is_left_of_a_long_loop():
    executor = cute.compile(digits, np.zeros(2, np.int32), 0, 1500, 1, target="emu")
    assert "bra" not in executor.stages["ptx"]
    assert executor.stages["cute"].count("scf.for") == 3  # 5 groups, of 256 turns, and 220 turns


@cute.kernel
def squares_kernel(out: cute.Tensor, turns: cutlass.Constexpr):
    x = out[0]
    for index in cutlass.range(turns, unroll_full=True):
        x = x * x + index
    out[0] = x


@cute.jit
def squares(out: cute.Tensor, turns: cutlass.Constexpr):
    squares_kernel(out, turns).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_time_grows_with_the_turns():
    def seconds(turns):
        start = time.process_time()
        text = cute.compile(squares, np.zeros(1, np.float32), turns, target="emu").stages["ptx"]
        assert text.count("fma.rn.f32") == turns - 1  # the first adds nothing
        return time.process_time() - start

    seconds(100)
    assert seconds(32000) < 9 * seconds(8000)  # 20 times when LLVM unrolled them at once
