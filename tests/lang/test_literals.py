"""Python numbers beside numbers of the language keep all their digits; NumPy's float64 and exact integers judge."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright import Float32, Float64, Int32, Int64, Uint64
from tilewright.base.errors import CompileError

PLACES = pytest.mark.parametrize("place", [on_device, on_host], ids=["device", "host"])


def on(place: Any, body: Any, *arrays: Any) -> Any:
    return place(body, *arrays, **({"block": 1} if place is on_device else {}))


X = np.array([0.1, 0.2, 0.3, 1.5, 0.7, 3.25])
FLOATS = {
    "sum": lambda x: x + 0.1, "product": lambda x: 0.1 * x, "tiny": lambda x: x - 1e-9, "quotient": lambda x: 0.3 / x,
    "remainder": lambda x: x % 0.1, "great": lambda x: x * 2**70, "odd": lambda x: x + (2**60 + 1),
}  # fmt: skip


@PLACES
@pytest.mark.parametrize("name", FLOATS)
def test_literals_beside_float64_are_float64(name, place):
    function = FLOATS[name]

    def body(x: cute.Tensor, out: cute.Tensor, vector: cute.Tensor):
        for i in cutlass.range_constexpr(6):
            out[i] = function(x[i])
        vector.store(function(x.load()))

    wanted = np.array([function(float(x)) for x in X])
    _, out, vector = on(place, body, X, np.zeros(6), np.zeros(6))
    assert np.array_equal(out, wanted) and np.array_equal(vector, wanted)


@PLACES
def test_comparisons_with_literals_see_all_digits(place):
    def body(x: cute.Tensor, out: cute.Tensor):
        for i in cutlass.range_constexpr(6):
            v = x[i]
            chain = (1 if v == 0.1 else 0) + (2 if v < 0.3 else 0) + (4 if 0.1 < v <= 0.7 else 0)
            out[i] = chain + (8 if v in (0.2, 0.3) else 0) + (16 if max(v, 0.7) == 0.7 else 0)

    wanted = [
        (v == 0.1) + 2 * (v < 0.3) + 4 * (0.1 < v <= 0.7) + 8 * (v in (0.2, 0.3)) + 16 * (v <= 0.7) for v in X.tolist()
    ]
    assert on(place, body, X, np.zeros(6, np.int32))[1].tolist() == wanted


@PLACES
@pytest.mark.parametrize(
    ("dtype", "literal", "wanted"),
    [(np.float16, 1 + 2**-11 + 2**-30, 1 + 2**-10), (ml_dtypes.bfloat16, 1 + 2**-8 + 2**-30, 1 + 2**-7)],
)
def test_literals_are_rounded_once(dtype, literal, wanted, place):
    """Just above the middle of two numbers: by way of Float32 it would be the middle, and go down to even."""

    def body(x: cute.Tensor, out: cute.Tensor):
        out.store(x.load() * literal)

    assert float(on(place, body, np.ones(1, dtype), np.zeros(1, dtype))[1][0]) == wanted


@PLACES
def test_integer_literals_of_64_bits_and_more(place):
    def body(x: cute.Tensor, u: cute.Tensor, out: cute.Tensor, unsigned: cute.Tensor):
        for i in cutlass.range_constexpr(4):
            low = (1 if x[i] < 2**63 else 0) + (2 if x[i] > -(2**63) - 1 else 0)
            out[i] = low + (4 if x[i] == 2**64 else 0) + (8 if x[i] + 2**64 > 2**64 else 0)
            unsigned[i] = (u[i] + 2**63) ^ 0xFFFFFFFFFFFFFFFF

    x, u = np.array([0, -1, 2**63 - 1, -(2**63)]), np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    _, _, out, unsigned = on(place, body, x, u, np.zeros(4, np.int32), np.zeros(4, np.uint64))
    assert out.tolist() == [3, 3, 11, 3]
    assert unsigned.tolist() == [((v + 2**63) % 2**64) ^ (2**64 - 1) for v in u.tolist()]


def test_constants_compute_alike():
    assert (Float64(1) + 0.1).value == 1.1 and (0.1 + Float32(0)).value == float(np.float32(0.1))
    assert (Float64(0.1) == 0.1).value is True and (Float32(0.1) == 0.1).value is True
    assert Float64(Float32(0.1)).value == float(np.float32(0.1))  # not a literal
    assert type(Uint64(1) + 2**63) is Uint64 and (Uint64(1) + 2**63).value == 2**63 + 1
    assert (Float32(1) * 2**64).value == 2.0**64 and (Int64(-1) < 2**63).value is True


def test_an_integer_of_more_than_128_bits_is_refused():
    with pytest.raises(CompileError, match="an integer of more than 128 bits") as caught:
        Int32(1) + 2**128
    assert "hint: " in str(caught.value)
