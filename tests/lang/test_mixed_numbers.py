"""Types and literals mixed, folds, zeros and NaN: numbers and vectors, device and host, and while compiling."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import (
    BFloat16,
    Boolean,
    CompileError,
    Float8E4M3FN,
    Float16,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    Uint8,
    Uint32,
    Uint64,
)
from tilewright.cute import ReductionOp
from tilewright.cute.runtime import from_dlpack

NUMPY = {
    Boolean: np.dtype(bool), Int8: np.dtype(np.int8), Int32: np.dtype(np.int32), Int64: np.dtype(np.int64),
    Uint8: np.dtype(np.uint8), Uint32: np.dtype(np.uint32), Uint64: np.dtype(np.uint64),
    Float16: np.dtype(np.float16), BFloat16: np.dtype(ml_dtypes.bfloat16), Float32: np.dtype(np.float32),
    Float64: np.dtype(np.float64),
}  # fmt: skip
PLACES = pytest.mark.parametrize("on_the_device", [True, False], ids=["device", "host"])


def run(body, arrays, on_the_device):
    """`body(tensors)` in a kernel of one thread, or in host code."""

    @cute.jit
    def host(tensors: tuple):
        body(tensors)

    @cute.kernel
    def kernel(tensors: tuple):
        body(tensors)

    @cute.jit
    def device(tensors: tuple):
        kernel(tensors).launch(grid=1, block=1)

    arguments = (tuple(from_dlpack(array) for array in arrays),)
    cute.compile(device if on_the_device else host, *arguments)(*arguments)


# Two types under one operator: a number, a vector and a number of compile time agree.

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "<": operator.lt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
INTEGER_ONLY = ("&", "|", "^", "<<", ">>")


def sample(dtype):
    if dtype is Boolean:
        return [True, True]
    if dtype.is_float:
        return [-2.25, 3.0]
    return [dtype.min if dtype.signed else 250, dtype.max] if dtype.width < 64 else [2**40 + 1, 7]


def possible(name, left, right):
    return not (name in INTEGER_ONLY and (left.is_float or right.is_float))


def compute(name, a, b):
    return OPERATORS[name](a, b & 7 if name in ("<<", ">>") else b)


@PLACES
@pytest.mark.parametrize("left", [Boolean, Int8, Uint32, pytest.param(Int64, marks=pytest.mark.slow), Float16], ids=str)
def test_two_types_meet_alike_everywhere(left, on_the_device):
    rights = [dtype for dtype in NUMPY if dtype not in (Uint64, BFloat16)]
    types = {}

    def body(tensors):
        out, x, *others = tensors
        for row, right in enumerate(rights):
            for column, name in enumerate(OPERATORS):
                if possible(name, left, right):
                    number = compute(name, x[0], others[row][0])
                    vector = compute(name, x.load(), others[row].load())
                    types[row, column] = number.dtype, vector.dtype
                    out[row, column, 0], out[row, column, 1] = number, vector[0]
                    out[row, column, 2] = vector[1]

    x = np.array(sample(left), NUMPY[left])
    others = [np.array(sample(dtype), NUMPY[dtype]) for dtype in rights]
    out = np.zeros((len(rights), len(OPERATORS), 3))
    with np.errstate(all="ignore"):
        run(body, (out, x, *others), on_the_device)
        for (row, column), (number, vector) in types.items():
            name = list(OPERATORS)[column]
            pairs = zip(x.tolist(), others[row].tolist(), strict=True)
            known = [compute(name, left(a), rights[row](b)) for a, b in pairs]
            assert number is vector is type(known[0]), (name, rights[row])
            wanted = [float(item.python()) for item in (known[0], *known)]
            assert np.array_equal(out[row, column], wanted, equal_nan=True), (
                name,
                rights[row],
                out[row, column],
                wanted,
            )


# A vector and a Python number.

LITERALS = [
    (Int8, lambda v: v + 1, Int8, [6, -2]),
    (Int8, lambda v: v + 1000, Int32, [1005, 997]),
    (Uint8, lambda v: v - 6, Uint8, [255, 247]),
    (Uint8, lambda v: v + (-6), Int32, [-1, 247]),
    (Uint8, lambda v: v > -1, Boolean, [1, 1]),
    (Int32, lambda v: v + 2**40, Int64, [2**40 + 5, 2**40 - 3]),
    (Int32, lambda v: v + 1.5, Float32, [6.5, -1.5]),
    (Float16, lambda v: v + 1.5, Float16, [6.5, -1.5]),
    (Float16, lambda v: v * 2, Float16, [10, -6]),
    (Int32, lambda v: 2 - v, Int32, [-3, 5]),
    (Int32, lambda v: 1 / v, Float32, [np.float32(0.2), np.float32(-1) / np.float32(3)]),
    (Boolean, lambda v: v + True, Int32, [2, 2]),
    (Boolean, lambda v: v & True, Boolean, [1, 1]),
    (Boolean, lambda v: -v, Int32, [-1, -1]),
    (Boolean, lambda v: ~v, Boolean, [0, 0]),
    (Int32, lambda v: +v, Int32, [5, -3]),
    (Int32, lambda v: cute.where(v > 0, v, 1.5), Float32, [5, 1.5]),
    (Int8, lambda v: cute.where(v > 0, 1000, v), Int32, [1000, -3]),
    (Int32, lambda v: cute.where(v > 0, 1, 2.5), Float32, [1, 2.5]),
    (Int32, lambda v: cute.where(v > 0, True, False), Boolean, [1, 0]),
    (Float16, lambda v: cute.where(v > 0, v, 0), Float16, [5, 0]),
    (Int32, lambda v: divmod(v, 4)[0] * 10 + divmod(v, 4)[1], Int32, [11, -9]),
    (Float8E4M3FN, lambda v: v + v, Float32, [10, -6]),
]


@PLACES
def test_literals_take_the_element_type_where_they_fit(on_the_device):
    found = {}

    def body(tensors):
        out, x = tensors
        for row, (dtype, compute, _, _) in enumerate(LITERALS):
            result = compute(x.load().to(dtype))
            found[row] = result.dtype
            out[row, 0], out[row, 1] = result[0], result[1]

    out = np.zeros((len(LITERALS), 2))
    run(body, (out, np.array([5, -3], np.int32)), on_the_device)
    for row, (dtype, _, wanted, values) in enumerate(LITERALS):
        assert found[row] is wanted, (row, dtype)
        assert out[row].tolist() == values, (row, dtype)


# Folds.

FOLDS = [
    (Int8, [-5, -3, -9], ReductionOp.MAX, -128, -3),
    (Uint8, [200, 255, 130], ReductionOp.MIN, 255, 130),
    (Uint32, [1 << 31, 5], ReductionOp.MAX, 0, 1 << 31),
    (Int32, [-(2**31), 5], ReductionOp.MIN, 7, -(2**31)),
    (Int32, [-5, -7], ReductionOp.MAX, -math.inf, -5),
    (Int32, [5, 7], ReductionOp.MIN, math.inf, 5),
    (Uint8, [200, 100], ReductionOp.ADD, 0, 44),
    (Int64, [2**40, 2**41], ReductionOp.ADD, 1, 2**40 + 2**41 + 1),
    (Int32, [3, 5], ReductionOp.MUL, 2, 30),
    (Int32, [7, 5], ReductionOp.ADD, 3.0, 15),
    (Int32, [6, 12], ReductionOp.AND, -1, 4),
    (Int32, [6, 12], ReductionOp.OR, 1, 15),
    (Int32, [6, 12], ReductionOp.XOR, 0, 10),
    (Boolean, [True, True, True], ReductionOp.ADD, 0, 3),
    (Boolean, [True, False], ReductionOp.MAX, False, 1),
    (Boolean, [True, False], ReductionOp.AND, True, 0),
    (Boolean, [True, True], ReductionOp.XOR, True, 1),
    (Float32, [1.0, math.nan, 3.0], ReductionOp.MAX, -math.inf, 3.0),
    (Float32, [math.nan, math.nan], ReductionOp.MIN, math.inf, math.inf),
    (Float32, [1.5, -2.5], ReductionOp.ADD, Int32(3), 2.0),
    (Float32, [0.0, -0.0], ReductionOp.MIN, 0.0, -0.0),
]


@PLACES
def test_folds_start_from_a_number_of_the_type(on_the_device):
    def body(tensors):
        out, *inputs = tensors
        for row, (_, _, op, start, _) in enumerate(FOLDS):
            out[row] = inputs[row].load().reduce(op, start, 0)

    inputs = [np.array(values, NUMPY[dtype]) for dtype, values, *_ in FOLDS]
    out = np.zeros(len(FOLDS))
    run(body, (out, *inputs), on_the_device)
    assert out.tolist() == [wanted for *_, wanted in FOLDS]
    assert math.copysign(1, out[-1]) == -1


REFUSED = {
    "starts from Float32 2.5": lambda v: v.reduce(ReductionOp.ADD, 2.5, 0),
    "starts from Float32 nan": lambda v: v.reduce(ReductionOp.ADD, math.nan, 0),
    "starts from Int64 1099511627776": lambda v: v.reduce(ReductionOp.ADD, 2**40, 0),
    "reduce AND of Float32": lambda v: v.to(Float32).reduce(ReductionOp.AND, 0, 0),
    "reduce takes a ReductionOp": lambda v: v.reduce("plus", 0, 0),
    "a reduction profile has one entry for each mode": lambda v: v.reduce(ReductionOp.ADD, 0, (None, 1)),
    "~ on Float32": lambda v: ~v.to(Float32),
    "`shl` on Int32 and 1.0": lambda v: v << 1.0,
    "`and` on Int32 and Float32": lambda v: v & 1.5,
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_result_is_refused(message):
    @cute.jit
    def host(x: cute.Tensor):
        REFUSED[message](x.load())

    with pytest.raises(CompileError) as caught:
        cute.compile(host, from_dlpack(np.zeros(4, np.int32)))
    assert message in str(caught.value) and __file__ in str(caught.value)


# Zeros and NaN.

SPECIAL = [0.0, -0.0, math.nan, 1.5, -math.inf]


@PLACES
@pytest.mark.parametrize("dtype", [Float16, BFloat16, Float32, Float64], ids=str)
def test_extremes_order_zeros_and_pass_over_nan(dtype, on_the_device):
    def body(tensors):
        out, x = tensors
        for i in cutlass.range_constexpr(len(SPECIAL)):
            for j in cutlass.range_constexpr(len(SPECIAL)):
                out[0, i, j], out[1, i, j] = cutlass.min(x[i], x[j]), cutlass.max(x[i], x[j])
                out[2, i, j], out[3, i, j] = x[i] < x[j], x[i] != x[j]

    out = np.zeros((4, len(SPECIAL), len(SPECIAL)), NUMPY[dtype])
    run(body, (out, np.array(SPECIAL, np.float64).astype(NUMPY[dtype])), on_the_device)
    for i, a in enumerate(SPECIAL):
        for j, b in enumerate(SPECIAL):
            known = cutlass.min(dtype(a), dtype(b)).python(), cutlass.max(dtype(a), dtype(b)).python()
            ordered = sorted((v for v in (a, b) if v == v), key=lambda v: (v, math.copysign(1, v)))
            wanted = (ordered[0], ordered[-1]) if ordered else (math.nan, math.nan)
            for found in (known, (float(out[0, i, j]), float(out[1, i, j]))):
                assert np.array_equal(found, wanted, equal_nan=True), (a, b, found)
                assert np.isnan(wanted[0]) or np.array_equal(np.signbit(found), np.signbit(wanted)), (a, b, found)
            assert (bool(out[2, i, j]), bool(out[3, i, j])) == (a < b, a != b)
