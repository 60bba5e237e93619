"""Pairs of Float32: sums, products and their roundings, against Python's fractions; chips with and without a pair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tilewright.cute as cute
from tests.lang.kernels import on_device
from tilewright.base.errors import CompileError

ROUNDINGS = ("rn", "rz", "rm", "rp")
A = np.array([1 + 2**-23, -(1 + 2**-23), 3.3, -1e-3, 16777216.0, 0.1], np.float32)
B = np.array([2**-24, -(2**-24), 7.7, 5.5, 1.0, 0.2], np.float32)
C = np.array([-1.0, 1.0, -25.4, 1e-9, 2**-30, 3.0], np.float32)


def rounded(exact: Fraction, rounding: str) -> np.float32:
    """The float32 that a rounding gives: of the two nearest ones by their distance, ties to even."""
    near = np.float32(float(exact))
    choices = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    if rounding == "rn":
        return min(choices, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1))
    down = max(x for x in choices if Fraction(float(x)) <= exact)
    up = min(x for x in choices if Fraction(float(x)) >= exact)
    toward_zero = down if exact > 0 else up
    return {"rm": down, "rp": up, "rz": toward_zero}[rounding]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_each_number_is_rounded_by_itself(arch):
    @cute.kernel
    def kernel(out: cute.Tensor, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        i = 2 * cute.arch.thread_idx()[0]
        x, y, z = (a[i], a[i + 1]), (b[i], b[i + 1]), (c[i], c[i + 1])
        for place, rounding in enumerate(ROUNDINGS):
            results = (
                cute.arch.add_packed_f32x2(x, y, rnd=rounding),
                cute.arch.sub_packed_f32x2(x, y, rnd=rounding),
                cute.arch.mul_packed_f32x2(x, y, rnd=rounding),
                cute.arch.fma_packed_f32x2(x, y, z, rnd=rounding),
            )
            for row, (low, high) in enumerate(results):
                out[place, row, i] = low
                out[place, row, i + 1] = high

    @cute.jit
    def run(out: cute.Tensor, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        kernel(out, a, b, c).launch(grid=1, block=3)

    out = np.zeros((4, 4, 6), np.float32)
    compiled = cute.compile(run, out, A, B, C, arch=arch)
    compiled(out, A, B, C)
    for place, rounding in enumerate(ROUNDINGS):
        for i, (a, b, c) in enumerate(zip(*(map(Fraction, map(float, x)) for x in (A, B, C)), strict=True)):
            expected = [rounded(exact, rounding) for exact in (a + b, a - b, a * b, a * b + c)]
            assert out[place, :, i].tolist() == expected, (rounding, i)
    ptx = compiled.stages["ptx"]
    assert ("fma.rm.f32x2" in ptx) is (arch == "sm_100a")


def test_denormals_as_zero_and_powers_of_e():
    def body(out: cute.Tensor, inputs: cute.Tensor):
        tiny = (inputs[0], inputs[1])
        out[0], out[1] = cute.arch.add_packed_f32x2(tiny, (0.0, 0.0))
        out[2], out[3] = cute.arch.add_packed_f32x2(tiny, (0.0, 0.0), ftz=True)
        out[4], out[5] = cute.arch.exp_packed_f32x2((inputs[2], inputs[3]))

    inputs = np.array([1e-40, 2.0, 1.5, -3.0], np.float32)
    out = np.zeros(6, np.float32)
    on_device(body, out, inputs, block=1)
    assert out[:4].tolist() == [inputs[0], 2.0, 0.0, 2.0]
    np.testing.assert_allclose(out[4:], np.exp(inputs[2:].astype(np.float64)), rtol=1e-6)


def test_what_is_no_pair_and_no_rounding():
    def triple(out: cute.Tensor):
        cute.arch.add_packed_f32x2((1.0, 2.0, 3.0), (1.0, 2.0))

    def number(out: cute.Tensor):
        cute.arch.mul_packed_f32x2((1.0, 2.0), 3.0)

    def rounding(out: cute.Tensor):
        cute.arch.fma_packed_f32x2((1.0, 2.0), (1.0, 2.0), (1.0, 2.0), rnd="up")

    out = np.zeros(1, np.float32)
    with pytest.raises(CompileError, match="add_packed_f32x2 takes pairs of numbers"):
        on_device(triple, out, block=1)
    with pytest.raises(CompileError, match="mul_packed_f32x2 takes pairs of numbers"):
        on_device(number, out, block=1)
    with pytest.raises(CompileError, match=r"fma_packed_f32x2 has no rounding 'up'[\s\S]*one of rn, rz, rm, rp"):
        on_device(rounding, out, block=1)
