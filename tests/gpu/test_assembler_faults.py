"""What assemblers got wrong and `targets/nvidia/mends/mend_ptx.py` writes otherwise, on a device."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import BFloat16, Boolean, Float8E5M2, Float16, Float32, Float64, Int32, Int64, Uint8, Uint16, Uint32

LEAST = -(2**31)
WORDS = np.array([LEAST, LEAST + 1, -65536, -32768, -129, -1, 0, 1, 127, 255, 32767, 65535, 65536, 2**31 - 1], np.int32)


NEGATED = 3 - WORDS.astype(np.int64)
FLOATS = WORDS.view(np.float32)


def as_float(x):
    """The f32 number of the same bits; some are NaN."""
    words = cute.make_rmem_tensor(1, Int32)
    words[0] = x
    return cute.recast_tensor(words, Float32)[0]


@cute.jit
def least_of_three(x):
    return min(x, -(x - 3), Int32(-5))


@cute.jit
def greatest_of_three(x):
    return max(-x, -(x - 3), x)


@cute.jit
def greatest_with_absolute(x):
    return max(abs(x), Int32(300))


@cute.jit
def each(fn: cutlass.Constexpr, x: cute.Tensor, out: cute.Tensor):
    _each(fn, x, out).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))


@cute.kernel
def _each(fn: cutlass.Constexpr, x: cute.Tensor, out: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    out[i] = fn(x[i])


def computed(fn, dtype, target="cuda"):
    """`fn` of every word."""
    out = np.zeros(len(WORDS), dtype)
    cute.compile(each, fn, WORDS, out, target=target)(WORDS, out)
    return out


def wrapped(values, dtype):
    return np.asarray(values).astype(dtype)


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (lambda x: Float32(Uint32(abs(x))), np.abs(WORDS.astype(np.float64)).astype(np.float32)),
        (lambda x: Int32(abs(x) < 0), (WORDS == LEAST).astype(np.int32)),
        (lambda x: Int32(-abs(x) > 0), np.zeros(len(WORDS), np.int32)),
        (lambda x: Int64(abs(Int64(x) << 32) < 0), (WORDS == LEAST).astype(np.int64)),
        (lambda x: Int32(-x.to(cutlass.Int16)), wrapped(-WORDS.astype(np.int16), np.int32)),
        (lambda x: Int32(abs(x.to(cutlass.Int16))), wrapped(np.abs(WORDS.astype(np.int16)), np.int32)),
        (lambda x: -Float64(x < 0), np.where(WORDS < 0, -1.0, -0.0)),
        (lambda x: -Float32(x < 0), np.where(WORDS < 0, -1.0, -0.0).astype(np.float32)),
        (lambda x: -Float64(Boolean(x)), np.where(WORDS != 0, -1.0, -0.0)),
        (lambda x: cute.math.sqrt(Float32(Uint8(x))), np.sqrt(WORDS.astype(np.uint8).astype(np.float32))),
        (least_of_three, np.minimum(np.minimum(WORDS, wrapped(NEGATED, np.int32)), -5)),
        (greatest_of_three, np.maximum(np.maximum(-WORDS, wrapped(NEGATED, np.int32)), WORDS)),
        (greatest_with_absolute, np.maximum(np.abs(WORDS), 300)),
        (lambda x: Int32(abs(as_float(x)) >= -1.0), (~np.isnan(FLOATS)).astype(np.int32)),
        (lambda x: Int32(abs(as_float(x)) + 2.0 > 1.0), (~np.isnan(FLOATS)).astype(np.int32)),
        (lambda x: Int32(-abs(as_float(x)) < 1.0), (~np.isnan(FLOATS)).astype(np.int32)),
        (lambda x: Int32(cute.math.cos(as_float(x), fastmath=True) >= -2.0), (~np.isnan(FLOATS)).astype(np.int32)),
    ],
)
def test_numbers(fn, wanted):
    found = computed(fn, wanted.dtype)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def upper_half(x):
    """The upper 16 bits of the lower 16 bits, widened: 0."""
    words = cute.make_rmem_tensor(1, Uint32)
    words[0] = Uint32(Uint16(x))
    return Int32(cute.recast_tensor(words, Uint16)[1])


def parts(x):
    words = cute.make_rmem_tensor(1, cutlass.Uint64)
    words[0] = cutlass.Uint64(Uint16(x))
    quarters = cute.recast_tensor(words, Uint16)
    return Int32(quarters[0]) + (Int32(quarters[1] | quarters[2] | quarters[3]) << 16)


@pytest.mark.parametrize(("fn", "wanted"), [(upper_half, 0 * WORDS), (parts, WORDS & 0xFFFF)])
def test_the_halves_of_widened_numbers(fn, wanted):
    np.testing.assert_array_equal(computed(fn, np.int32), wanted)


@pytest.mark.parametrize("dtype", [Float16, BFloat16, Float32])
def test_constants_of_fp8_through_a_branch(dtype):
    @cute.jit
    def fn(x):
        values = cute.make_rmem_tensor(8, Float8E5M2)
        values.fill(Float8E5M2(-7.0))
        if x > 100:
            values.store((3 - values.load()).to(Float8E5M2))
        return Float32(values[7].to(dtype)) + Float32(values[2].to(dtype))

    np.testing.assert_array_equal(computed(fn, np.float32), np.where(WORDS > 100, 20.0, -14.0))


def test_one_half_of_a_sum_with_a_constant():
    @cute.jit
    def fn(x):
        halves = cute.make_rmem_tensor(2, cutlass.Int16)
        halves.fill(x.to(cutlass.Int16))
        halves.store((halves.load() + 7).to(cutlass.Int16))
        return Int32(halves[0]) if x < 0 else x

    wanted = np.where(WORDS < 0, (WORDS.astype(np.int16) + np.int16(7)).astype(np.int32), WORDS)
    np.testing.assert_array_equal(computed(fn, np.int32), wanted)
