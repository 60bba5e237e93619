"""What tensors take unasked, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.kernels import on_device, on_host
from tilewright import BFloat16, Boolean, Float16, Float32, Float64, Int4, Int8, Int16, Int32, Int64, Uint8, Uint32
from tilewright.base.errors import CompileError

WAYS = {
    "element": lambda t, x: t.__setitem__(0, x),
    "fill": lambda t, x: t.fill(x),
    "pointer": lambda t, x: t.iterator.store(x),
    "vector": lambda t, x: t.store(cute.full(2, x, type(x))),
}


def stored(way, dtype, source, value=3):
    """What a tensor of `dtype` holds after a runtime number of `source` was stored."""

    def body(x: cute.Tensor, out: cute.Tensor):
        t = cute.make_rmem_tensor(2, dtype)
        t.fill(1)
        WAYS[way](t, x[0].to(source))
        out[0] = t[0].to(Float64)

    return on_device(body, np.array([value], np.float64), np.zeros(1), block=1)[1][0]


TAKEN = [
    (Int16, Int8), (Int64, Int32), (Int8, Int32), (Int4, Int8), (Int8, Boolean), (Int4, Boolean), (Float16, Boolean),
    (Uint32, Int32), (Int32, Uint32), (Float16, Int32), (Float32, Int64), (Float32, Float16), (Float32, BFloat16),
    (Float16, Float32), (Float32, Float64), (Float16, BFloat16), (Float64, Float32), (Float16, cutlass.Float8E4M3FN),
    (cutlass.Float8E5M2, cutlass.Float8E4M3FN), (cutlass.TFloat32, Float32),
]  # fmt: skip
REFUSED = [(Int8, Float32), (Int32, Float16), (Int64, Float64), (Boolean, Float32), (Boolean, Int8)]


@pytest.mark.parametrize("way", WAYS)
def test_numbers_that_fit_are_taken(way):
    for dtype, source in TAKEN:
        assert stored(way, dtype, source) == (1 if Boolean is source else 3), (dtype, source)


@pytest.mark.parametrize("way", WAYS)
def test_numbers_of_a_greater_kind_are_refused(way):
    for dtype, source in REFUSED:
        with pytest.raises(CompileError, match=f"{source} is stored as an? {dtype}, which may change it") as caught:
            stored(way, dtype, source)
        assert caught.value.hint == f"convert it where that is meant: `x.to({dtype})` or `{dtype}(x)`"
        assert "test_implicit_conversion.py" in str(caught.value)


def test_numbers_of_the_kind_wrap_and_are_rounded():
    assert stored("element", Int8, Int32, 300) == 44
    assert stored("element", Uint8, Int32, -1) == 255
    assert stored("vector", Float16, Float32, 0.1) == float(np.float16(np.float32(0.1)))


@pytest.mark.parametrize("where", [on_device, on_host])
def test_literals_are_taken_if_they_are_numbers_of_the_type(where):
    def body(out: cute.Tensor):
        bytes_, halves = cute.make_rmem_tensor(2, Int8), cute.make_rmem_tensor(2, Float16)
        bytes_[0], bytes_[1] = -128, 3.0
        halves.fill(0.1)
        halves[1] = Int32(2)
        for i in cutlass.range_constexpr(2):
            out[i], out[2 + i] = bytes_[i].to(Float32), halves[i].to(Float32)

    out = where(body, np.zeros(4, np.float32), **({"block": 1} if where is on_device else {}))
    assert out.tolist() == [-128, 3, float(np.float16(0.1)), 2]


@pytest.mark.parametrize(
    ("dtype", "value"), [(Int8, 128), (Int8, 0.5), (Uint8, -1), (Boolean, 2), (Int32, float("nan")), (Int4, Int32(8))]
)
def test_literals_of_no_such_number(dtype, value):
    def body(out: cute.Tensor):
        cute.make_rmem_tensor(2, dtype).fill(value)
        out[0] = 1

    with pytest.raises(CompileError, match=r"is stored as an? \w+, which may change it"):
        on_device(body, np.zeros(1, np.int32), block=1)
