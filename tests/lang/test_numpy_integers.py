"""Integers of NumPy that a kernel's module holds stand for Python's, wherever a number is taken."""

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import Float32, Int32
from tilewright.base.errors import CompileError

TWO = np.int64(2)
TABLE = np.arange(10, dtype=np.uint8)


@cute.kernel
def numbers_kernel(x: cute.Tensor, out: cute.Tensor):
    out[0] = x[TWO]
    out[TWO] = x[0] + Int32(TWO) + Int32(TABLE[9])
    out[1] = Int32(Float32(TABLE[7]) * 2.0)
    out[3] = TWO + x[1]
    tile = cute.local_tile(x, (TWO,), (1,))
    out[4] = tile[TABLE[1]]


@cute.jit
def numbers(x: cute.Tensor, out: cute.Tensor):
    numbers_kernel(x, out).launch(grid=1, block=1)


def test_numpy_integers_are_numbers():
    out = np.zeros(5, np.int32)
    numbers(np.array([100, 200, 300, 400], np.int32), out)
    assert out.tolist() == [300, 14, 100 + 2 + 9, 202, 400]


def test_a_numpy_array_is_no_number():
    @cute.jit
    def whole(x: cute.Tensor):
        x[0] = Int32(TABLE)

    with pytest.raises(CompileError, match=r"Int32\(\) takes a number, got ndarray"):
        whole(np.zeros(4, np.int32))
