"""Numbers of the language against Python's integers and NumPy's floats, in kernels and in host functions."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    LaunchError,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from tilewright.lang.numbers import numeric

INTEGERS = [Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64]
FLOATS = [Float16, BFloat16, Float32, Float64]
NUMPY = {
    Boolean: np.dtype(bool),
    Int8: np.dtype(np.int8),
    Int16: np.dtype(np.int16),
    Int32: np.dtype(np.int32),
    Int64: np.dtype(np.int64),
    Uint8: np.dtype(np.uint8),
    Uint16: np.dtype(np.uint16),
    Uint32: np.dtype(np.uint32),
    Uint64: np.dtype(np.uint64),
    Float16: np.dtype(np.float16),
    BFloat16: np.dtype(ml_dtypes.bfloat16),
    Float32: np.dtype(np.float32),
    Float64: np.dtype(np.float64),
}
N = 128
RANDOM = np.random.default_rng(7)


def wrapped(value: int, dtype) -> int:
    """`value` modulo 2^width, as `dtype` holds it."""
    bits = value & ((1 << dtype.width) - 1)
    return bits - (1 << dtype.width) if dtype.signed and bits >> (dtype.width - 1) else bits


def shifted(value: int, amount: int, left: bool) -> int:
    """An unbounded shift; one by a negative or huge amount of the language counts as unsigned."""
    return value << min(amount, 300) if left else value >> min(amount, 300)


BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
}
COMPARE = ["lt", "le", "gt", "ge", "eq", "ne"]


def integer_operands(dtype) -> tuple[np.ndarray, np.ndarray]:
    """Random ones and every pair of the extremes; the second is never zero."""
    edges = [dtype.min, dtype.min + 1, -1 if dtype.signed else 1, 0, 1, 2, dtype.max - 1, dtype.max]
    a = [x for x in edges for _ in edges] + [
        int(RANDOM.integers(dtype.min, dtype.max, endpoint=True, dtype=NUMPY[dtype])) for _ in range(64)
    ]
    b = [y for _ in edges for y in edges] + [int(RANDOM.integers(-9 if dtype.signed else 1, 9)) for _ in range(64)]
    return np.array(a, NUMPY[dtype]), np.array([y or 3 for y in b], NUMPY[dtype])


@cute.jit
def every_operation(a, b, out: cute.Tensor, truth: cute.Tensor, i):
    """Row k of `out` and `truth` is operation k."""
    out[0, i] = a + b
    out[1, i] = a - b
    out[2, i] = a * b
    out[3, i] = a // b
    out[4, i] = a % b
    out[5, i] = a & b
    out[6, i] = a | b
    out[7, i] = a ^ b
    out[8, i] = min(a, b)
    out[9, i] = max(a, b)
    out[10, i] = -a
    out[11, i] = ~a
    out[12, i] = abs(a)
    out[13, i] = a << (b & 15)
    out[14, i] = a >> (b & 15)
    out[15, i] = a // 8
    out[16, i] = a % 8
    out[17, i] = a // 7
    out[18, i] = a % 7
    truth[0, i] = a < b
    truth[1, i] = a <= b
    truth[2, i] = a > b
    truth[3, i] = a >= b
    truth[4, i] = a == b
    truth[5, i] = a != b


@cute.kernel
def on_device(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, truth: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    every_operation(a[i], b[i], out, truth, i)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, truth: cute.Tensor):
    on_device(a, b, out, truth).launch(grid=1, block=N)


@cute.jit
def on_host(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, truth: cute.Tensor):
    for i in range(cute.size(a)):
        every_operation(a[i], b[i], out, truth, i)


def expected_integers(a: int, b: int, dtype) -> list[int]:
    values = [function(a, b) for function in BINARY.values()]
    values += [-a, ~a, abs(a), shifted(a, b & 15, True), shifted(a, b & 15, False), a // 8, a % 8, a // 7, a % 7]
    return [wrapped(value, dtype) for value in values]


@pytest.mark.parametrize("place", [launch, on_host], ids=["device", "host"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_wrap_and_divide_as_python_does(dtype, place):
    a, b = integer_operands(dtype)
    out, truth = np.zeros((19, N), NUMPY[dtype]), np.zeros((6, N), bool)
    cute.compile(place, a, b, out, truth)(a, b, out, truth)
    for i in range(N):
        x, y = int(a[i]), int(b[i])
        assert [int(v) for v in out[:, i]] == expected_integers(x, y, dtype), (x, y)
        assert truth[:, i].tolist() == [getattr(operator, name)(x, y) for name in COMPARE], (x, y)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_numbers_of_compile_time_compute_alike(dtype):
    a, b = integer_operands(dtype)
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        left, right = dtype(x), dtype(y)
        found = [
            left + right,
            left - right,
            left * right,
            left // right,
            left % right,
            left & right,
            left | right,
            left ^ right,
            cutlass.min(left, right),
            cutlass.max(left, right),
            -left,
            ~left,
            abs(left),
            left << (right & 15),
            left >> (right & 15),
            left // 8,
            left % 8,
            left // 7,
            left % 7,
        ]
        assert [int(value) for value in found] == expected_integers(x, y, dtype), (x, y)
        assert all(type(value) is dtype for value in found[:15])
        assert [bool(getattr(operator, name)(left, right)) for name in COMPARE] == [
            getattr(operator, name)(x, y) for name in COMPARE
        ]


def test_shifts_by_the_width_and_more():
    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[0, i] = a[0] << i
        out[1, i] = a[0] >> i
        out[2, i] = Int32(Uint32(a[0]) >> Uint32(i))
        out[3, i] = a[0] >> 33
        out[4, i] = a[0] << 33

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        kernel(a, out).launch(grid=1, block=64)

    a, out = np.array([-5], np.int32), np.zeros((5, 64), np.int32)
    cute.compile(host, a, out)(a, out)
    for i in range(64):
        assert out[:, i].tolist() == [wrapped(-5 << i, Int32), -5 >> i, wrapped((2**32 - 5) >> i, Int32), -1, 0]


def test_division_by_zero_on_the_host():
    @cute.jit
    def host(out: cute.Tensor, a: Int32, b: Int32):
        out[0] = a // b
        out[1] = a % b

    out = np.zeros(2, np.int32)
    executor = cute.compile(host, out, 1, 1)
    executor(out, -7, 2)
    assert out.tolist() == [-4, 1]
    executor(out, Int32.min, -1)
    assert out.tolist() == [Int32.min, 0]
    line = host.function.__code__.co_firstlineno + 2
    with pytest.raises(LaunchError, match="division by zero") as caught:
        executor(out, 1, 0)
    assert (caught.value.location.file, caught.value.location.line) == (__file__, line)
    executor(out, 7, -2)
    assert out.tolist() == [-4, -1]


# Floats.


@cute.jit
def every_float_operation(a, b, out: cute.Tensor, truth: cute.Tensor, i):
    out[0, i] = a + b
    out[1, i] = a - b
    out[2, i] = a * b
    out[3, i] = a / b
    out[4, i] = min(a, b)
    out[5, i] = max(a, b)
    out[6, i] = -a
    out[7, i] = abs(a)
    truth[0, i] = a < b
    truth[1, i] = a <= b
    truth[2, i] = a > b
    truth[3, i] = a >= b
    truth[4, i] = a == b
    truth[5, i] = a != b


@cute.kernel
def floats_on_device(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, truth: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    every_float_operation(a[i], b[i], out, truth, i)


@cute.jit
def launch_floats(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, truth: cute.Tensor):
    floats_on_device(a, b, out, truth).launch(grid=1, block=N)


@cute.jit
def floats_on_host(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, truth: cute.Tensor):
    for i in range(cute.size(a)):
        every_float_operation(a[i], b[i], out, truth, i)


def float_operands(dtype) -> tuple[np.ndarray, np.ndarray]:
    edges = [0.0, -0.0, 1.0, -1.5, float("inf"), -float("inf"), float("nan"), 3.0]
    a = np.array([x for x in edges for _ in edges] + list(RANDOM.standard_normal(64) * 100)).astype(NUMPY[dtype])
    b = np.array([y for _ in edges for y in edges] + list(RANDOM.standard_normal(64))).astype(NUMPY[dtype])
    return a, b


def same_float(found, wanted) -> bool:
    """Equal, both NaN; zeros of either sign count as equal where IEEE 754 leaves it open."""
    return bool(np.isnan(found) and np.isnan(wanted)) or found == wanted


@pytest.mark.parametrize("place", [launch_floats, floats_on_host], ids=["device", "host"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_round_once_to_nearest_even(dtype, place):
    a, b = float_operands(dtype)
    out, truth = np.zeros((8, N), NUMPY[dtype]), np.zeros((6, N), bool)
    cute.compile(place, a, b, out, truth)(a, b, out, truth)
    wide = np.float64  # the products and sums of 16-bit and 32-bit floats are exact enough in float64 to round once
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        results = [x + y, x - y, x * y, x / y, np.where(y < x, y, x), np.where(y > x, y, x), -x, np.abs(x)]
        for row, values in enumerate(results):
            wanted = values.astype(NUMPY[dtype])
            for i in range(N):
                assert same_float(out[row, i], wanted[i]), (row, a[i], b[i], out[row, i], wanted[i])
    for row, name in enumerate(COMPARE):
        assert (truth[row] == getattr(operator, name)(x, y)).all(), name


def test_sum_and_product_of_float32_is_correctly_rounded():
    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = a[i] * a[i] + 1.0

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        kernel(a, out).launch(grid=1, block=N)

    a, out = RANDOM.standard_normal(N).astype(np.float32), np.zeros(N, np.float32)
    cute.compile(host, a, out, options="--fp-contract off")(a, out)
    assert (out == a * a + np.float32(1)).all()  # two roundings, not one fused


# Promotion.

PROMOTED = [
    (Int32, Int32, Int32),
    (Int32, Int64, Int64),
    (Int8, Int32, Int32),
    (Uint8, Int8, Uint8),
    (Int32, Uint32, Uint32),
    (Uint32, Int64, Int64),
    (Int64, Uint32, Int64),
    (Boolean, Boolean, Int32),
    (Boolean, Int8, Int32),
    (Int32, Float32, Float32),
    (Int64, Float16, Float16),
    (Float16, BFloat16, Float32),
    (Float16, Float32, Float32),
    (Float32, Float64, Float64),
    (BFloat16, BFloat16, BFloat16),
    (Boolean, Float64, Float64),
]


@pytest.mark.parametrize("left, right, wanted", PROMOTED, ids=str)
def test_promotion(left, right, wanted):
    seen = []

    @cute.jit
    def host(a: left, b: right):
        for x, y in ((a, b), (b, a), (left(1), b), (a, right(1))):
            seen.append(type(x + y))

    cute.compile(host, 1, 1)
    assert seen == [wanted] * 4
    assert type(left(1) + right(1)) is wanted


def test_python_numbers_beside_typed_ones():
    seen = {}

    @cute.jit
    def host(i: Int32, h: Float16, f: Float32, b: Boolean, n: Int64):
        seen.update(
            int_int=type(i + 1),
            int_float=type(i + 1.5),
            half_int=type(h + 1),
            half_float=type(h * 1.5),
            float_int=type(f + 1),
            bool_int=type(b + 1),
            division=type(i / 2),
            floor=type(i // 2),
            power=type(f**2),
            wide=type(n + 1),
            comparison=type(i < 1),
            logic=type((i < 1) & (f > 0)),
            negated=type(-b),
            inverted=type(~b),
            reflected=type(2 - i),
        )

    cute.compile(host, 1, 1.0, 1.0, True, 1)
    assert seen == {
        "int_int": Int32,
        "int_float": Float32,
        "half_int": Float16,
        "half_float": Float32,
        "float_int": Float32,
        "bool_int": Int32,
        "division": Float32,
        "floor": Int32,
        "power": Float32,
        "wide": Int64,
        "comparison": Boolean,
        "logic": Boolean,
        "negated": Int32,
        "inverted": Boolean,
        "reflected": Int32,
    }


# Conversions.


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, Boolean], ids=str)
def test_conversions(source):
    targets = [*INTEGERS, *FLOATS, Boolean]
    if source.is_float:
        values = np.array([0.0, 1.0, 2.5, 3.75, 100.0, 126.0, 0.3, 65.5], NUMPY[source])
    elif source is Boolean:
        values = np.array([False, True] * 4)
    else:
        values = np.array([source.min, source.max, 0, 1, 2, 77, 100, source.max // 3], NUMPY[source])

    @cute.kernel
    def kernel(x: cute.Tensor, outs: tuple):
        i = cute.arch.thread_idx()[0]
        for target, out in zip(targets, outs, strict=True):
            out[i] = x[i].to(target)

    @cute.jit
    def host(x: cute.Tensor, outs: tuple):
        kernel(x, outs).launch(grid=1, block=8)

    outs = tuple(np.zeros(8, NUMPY[target]) for target in targets)
    cute.compile(host, values, outs)(values, outs)
    for target, out in zip(targets, outs, strict=True):
        for value, found in zip(values.tolist(), out.tolist(), strict=True):
            exact = float(value) if source.is_float else int(value)
            if target is Boolean:
                wanted = exact != 0
            elif target.is_float:
                wanted = float(np.array(exact).astype(NUMPY[target])) if source.is_float else rounded(exact, target)
            else:
                wanted = wrapped(int(exact), target)
            assert found == wanted, (value, target)


def rounded(value: int, dtype) -> float:
    """An integer rounded once to a float type."""
    digits = {Float16: 11, BFloat16: 8, Float32: 24, Float64: 53}[dtype]
    if value == 0:
        return 0.0
    exponent = max(abs(value).bit_length() - digits, 0)
    number = round(Fraction(value, 1 << exponent)) * (1 << exponent)
    if dtype not in (Float16, BFloat16):
        return float(number)
    with np.errstate(over="ignore"):
        return float(np.array(float(number)).astype(NUMPY[dtype]))


def test_bitcast():
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[i] = x[i].bitcast(Uint32)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=4)

    x, out = np.array([1.0, -0.0, 3.5, np.inf], np.float32), np.zeros(4, np.uint32)
    cute.compile(host, x, out)(x, out)
    assert (out == x.view(np.uint32)).all()


# Types themselves.


def test_facts_of_types():
    assert [t.width for t in (Boolean, Int8, Uint16, Int32, Float64, BFloat16)] == [8, 8, 16, 32, 64, 16]
    assert (Int8.min, Int8.max, Uint32.max, Int64.min) == (-128, 127, 2**32 - 1, -(2**63))
    assert Float32.inf == float("inf") and Float32.zero == 0.0 and Int32.zero == 0
    assert Int32.is_integer and not Int32.is_float and Float16.is_float and Uint8.signed is False and Int8.signed
    assert str(Int32) == "Int32" and repr(Int32(3)) == "Int32(3)" and str(Float32(1.5)) == "1.5"
    assert int(Int32(2**31)) == -(2**31) and int(Uint8(-1)) == 255 and float(Float16(1.0004)) == 1.0
    assert float(BFloat16(1.00390625)) == 1.0 and float(BFloat16(3.4e38)) == float("inf")
    with pytest.raises(cutlass.CompileError, match="Int32 has no infinity"):
        Int32.inf
    with pytest.raises(cutlass.CompileError, match="base of the number types"):
        cutlass.Numeric(1)
    assert Int32(7) // Int32(-2) == -4 and Int32(7) % Int32(-2) == -1
    assert bool(Int32(3) == 3) and hash(Int32(3)) is not None


def test_powers():
    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor, n: Int32):
        for i in range(cute.size(a)):
            out[0, i] = a[i] ** 3
            out[1, i] = a[i] ** 0
            out[2, i] = a[i] ** n
            out[3, i] = a[i] ** 13

    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor, n: Int32):
        i = cute.arch.thread_idx()[0]
        out[0, i] = a[i] ** 3
        out[1, i] = a[i] ** 0
        out[2, i] = a[i] ** n
        out[3, i] = a[i] ** 13

    @cute.jit
    def launch(a: cute.Tensor, out: cute.Tensor, n: Int32):
        kernel(a, out, n).launch(grid=1, block=16)

    a, out = np.arange(-8, 8, dtype=np.int32), np.zeros((4, 16), np.int32)
    for function in (host, launch):
        executor = cute.compile(function, a, out, 1)
        for n in (0, 1, 5, 31, -1, -2):
            executor(a, out, n)
            for i, x in enumerate(a.tolist()):
                power = x**n if n >= 0 else {1: 1, -1: 1 - 2 * (n & 1)}.get(x, 0)
                assert out[:, i].tolist() == [x**3, 1, wrapped(power, Int32), wrapped(x**13, Int32)], (x, n)


def test_float_remainders_and_powers():
    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[0, i] = a[i] % b[i]
        out[1, i] = a[i] // b[i]
        out[2, i] = cute.math.absf(a[i]) ** b[i]

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
        kernel(a, b, out).launch(grid=1, block=64)

    a, b = (RANDOM.uniform(-9, 9, 64).astype(np.float32) for _ in range(2))
    out = np.zeros((3, 64), np.float32)
    cute.compile(host, a, b, out)(a, b, out)
    assert (out[0] == np.mod(a, b)).all()
    assert (out[1] == np.floor(a / b)).all()
    power = np.abs(a).astype(np.float64) ** b
    assert (np.abs(out[2] - power) <= 1e-6 * power).all()


def test_least_and_greatest():
    nan = float("nan")
    assert float(cutlass.min(nan, 1.0)) == float(cutlass.min(1.0, nan)) == float(cutlass.max(nan, 1.0)) == 1.0
    assert int(cutlass.max(3, 9, 5)) == 9 and int(cutlass.min([4, 2, 8])) == 2 and type(cutlass.max(1, 2.5)) is Float32
    with pytest.raises(cutlass.CompileError, match="at least one number"):
        cutlass.min()
    with pytest.raises(cutlass.CompileError, match="max of int and str"):
        cutlass.max(1, "a")

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        out[0, i] = cutlass.max(x[i], 1.5, Float32(-1))
        out[1, i] = cutlass.min(x[i], 1.5, 2)
        out[2, i] = max(x[i], 0.5, 1.0)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=4)

    x, out = np.array([0, 3, nan, -2], np.float32), np.zeros((3, 4), np.float32)
    cute.compile(host, x, out)(x, out)
    assert out[0].tolist() == [1.5, 3, 1.5, 1.5] and out[1].tolist() == [0, 1.5, 1.5, -2]
    assert out[2, :2].tolist() == [1, 3] and out[2, 3] == 1


# Divisions and shifts by constants at the edges.

EDGES = {
    "by minus one": (lambda x: x // -1, lambda x: -x),
    "modulo minus one": (lambda x: x % -1, lambda x: 0),
    "pair": (lambda x: divmod(x, -3)[0] * 7 + divmod(x, -3)[1], lambda x: x // -3 * 7 + x % -3),
    "reflected pair": (
        lambda x: divmod(9, x | 1)[0] * 7 + divmod(9, x | 1)[1],
        lambda x: 9 // (x | 1) * 7 + 9 % (x | 1),
    ),
    "shift by the width": (lambda x: x << 64, lambda x: 0),
    "shift far right": (lambda x: x >> 99, lambda x: -1 if x < 0 else 0),
}


SIGNED_ONLY = ("by minus one", "modulo minus one", "pair")
EDGE_CASES = [
    (dtype, name)
    for dtype in (Int8, Int32, Int64, Uint8, Uint32)
    for name in EDGES
    if dtype.signed or name not in SIGNED_ONLY
]


@pytest.mark.parametrize(("dtype", "name"), EDGE_CASES, ids=lambda item: str(item))
@pytest.mark.parametrize("on_the_device", [True, False], ids=["device", "host"])
def test_constants_at_the_edges(dtype, name, on_the_device):
    ours, python = EDGES[name]

    @cute.jit
    def fill(x: cute.Tensor, out: cute.Tensor, vector: cute.Tensor):
        for i in cutlass.range_constexpr(8):
            out[i] = ours(x[i])
        vector.store(ours(x.load()))

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor, vector: cute.Tensor):
        fill(x, out, vector)

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor, vector: cute.Tensor):
        kernel(x, out, vector).launch(grid=1, block=1)

    x = np.array([dtype.min, dtype.min + 1, 0, 1, 2, 7, dtype.max - 1, dtype.max], NUMPY[dtype])
    out = [np.zeros(8, NUMPY[dtype]) for _ in range(2)]
    arguments = [cute.runtime.from_dlpack(array) for array in (x, *out)]
    cute.compile(launch if on_the_device else fill, *arguments)(*arguments)
    wanted = [wrapped(python(int(item)), dtype) for item in x]
    assert out[0].tolist() == wanted and out[1].tolist() == wanted
    assert [int(dtype(ours(dtype(int(item))))) for item in x] == wanted


BY_ZERO = {
    "quotient": lambda x: x // 0,
    "remainder": lambda x: x % 0,
    "typed": lambda x: x // Int32(0),
    "known both": lambda x: Int32(3) % 0,
}


@pytest.mark.parametrize("name", BY_ZERO)
@pytest.mark.parametrize("whole", [False, True], ids=["number", "tensor"])
def test_integer_division_by_a_known_zero_is_an_error_while_compiling(name, whole):
    @cute.jit
    def host(x: cute.Tensor):
        BY_ZERO[name](x.load() if cutlass.const_expr(whole) else x[0])

    with pytest.raises(cutlass.CompileError, match="division by zero") as caught:
        cute.compile(host, cute.runtime.from_dlpack(np.zeros(4, np.int32)))
    assert __file__ in str(caught.value) and "hint" in str(caught.value)


@pytest.mark.parametrize("shift", [lambda x: x << -1, lambda x: x >> Int32(-3)], ids=["left", "right"])
def test_a_known_negative_shift_is_an_error_while_compiling(shift):
    @cute.jit
    def host(x: cute.Tensor):
        shift(x[0])

    with pytest.raises(cutlass.CompileError, match="a shift by -"):
        cute.compile(host, np.zeros(4, np.int32))


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (-1.0, 0.0), (1.0, -0.0), (0.0, 0.0), (math.nan, 0.0), (-5.0, 3.0)])
def test_float_division_by_zero_is_the_same_at_compile_time(a, b):
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        out[0] = x[0] / x[1]
        out[1] = x[0] // x[1]
        out[2] = x[0] % x[1]

    x, out = np.array([a, b], np.float32), np.zeros(3, np.float32)
    cute.compile(host, x, out)(x, out)
    known = [Float32(a) / Float32(b), Float32(a) // Float32(b), Float32(a) % Float32(b)]
    assert np.array_equal(out, np.array([number.python() for number in known], np.float32), equal_nan=True)


def test_a_zero_that_divides_in_a_branch_is_told_and_gives_zero():
    """Kernels compute with the stages of a pipeline that they do not have, where they never come."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        stages = Int32(0)
        if out[1] > 0:
            out[0] = out[1] // stages + Int32(4) % stages

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    out = np.array([7, 1], np.int32)
    with pytest.warns(numeric.DivisionByZeroWarning, match="in a branch that run time decides: it gives 0 there"):
        run(out)
    assert out.tolist() == [0, 1]
