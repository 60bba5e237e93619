"""Element types: from names of frameworks, and conversions as stores do them, on NumPy and in kernels."""

import ml_dtypes
import numpy as np
import pytest

import tilewright
from tilewright import epilogue
from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.elements import converted, element_of, limits, numpy_dtype, scalar_element

TYPES = {
    "I8": np.int8, "U8": np.uint8, "I16": np.int16, "I32": np.int32, "I64": np.int64, "F16": np.float16,
    "BF16": ml_dtypes.bfloat16, "E4M3": ml_dtypes.float8_e4m3fn, "E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
NAN, INF = float("nan"), float("inf")
VALUES = [0.5, 1.5, -0.5, -2.5, 126.6, 300.0, -300.0, 3e9, -3e9, 1e30, INF, -INF, NAN, 1 / 3, 464.0, 480.0]


@pytest.mark.parametrize(
    "dtype, wanted",
    [
        (np.int8, [0, 2, 0, -2, 127, 127, -128, 127, -128, 127, 127, -128, 0, 0, 127, 127]),
        (np.uint8, [0, 2, 0, 0, 127, 255, 0, 255, 0, 255, 255, 0, 0, 0, 255, 255]),
        (np.int32, [0, 2, 0, -2, 127, 300, -300, 2**31 - 1, -(2**31), 2**31 - 1, 2**31 - 1, -(2**31), 0, 0, 464, 480]),
        (
            np.int64,
            [0, 2, 0, -2, 127, 300, -300, 3 * 10**9, -3 * 10**9, 2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 0, 464, 480],
        ),
    ],
)
def test_floats_become_integers(dtype, wanted):
    found = converted(np.array(VALUES, np.float32 if dtype != np.int64 else np.float64), np.dtype(dtype))
    assert found.dtype == dtype and found.tolist() == wanted


def test_floats_become_narrow_floats():
    found = converted(np.array(VALUES, np.float32), np.dtype(ml_dtypes.float8_e4m3fn)).astype(np.float32)
    assert np.isnan(found[12])
    assert found[[5, 6, 7, 8, 10, 11, 14, 15]].tolist() == [288, -288, 448, -448, 448, -448, 448, 448]
    halves = converted(np.array([70000.0, 65519.0, 1 / 3], np.float32), np.dtype(np.float16))
    assert halves.tolist() == [INF, 65504, float(np.float16(1 / 3))]


def test_integers_keep_their_low_bits_and_become_floats():
    assert converted(np.array([300, -1]), np.dtype(np.uint8)).tolist() == [44, 255]
    assert converted(np.array([3]), np.dtype(np.float16)).tolist() == [3.0]
    assert converted(np.array([0.0, 0.25, NAN]), np.dtype(np.bool_)).tolist() == [False, True, True]


@pytest.mark.parametrize("compute", [tilewright.Float32, tilewright.Float64], ids=str)
def test_kernels_convert_alike(monkeypatch, compute):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")
    accum = np.array(VALUES, np.float32).reshape(1, 2, 8)
    text = "def f(accum):\n" + "".join(f"    {name} = accum\n" for name in TYPES)
    text += f"    D = accum\n    return D, {', '.join(TYPES)}\n"
    examples = {name: np.zeros(accum.shape, dtype) for name, dtype in {**TYPES, "D": np.float32}.items()}
    found = epilogue.compile(text, {"accum": accum, **examples}, element_compute=compute)(accum=accum)
    wanted = epilogue.trace(text, {"accum": accum, **examples}, element_compute=compute).evaluate(accum=accum)
    for name in (*TYPES, "D"):
        np.testing.assert_array_equal(found[name].astype(np.float64), wanted[name].astype(np.float64), err_msg=name)


def test_types_by_their_names():
    for dtype in (*TYPES.values(), np.float32, np.float64, np.bool_):
        assert numpy_dtype(element_of(dtype)) == np.dtype(dtype) == numpy_dtype(element_of(np.dtype(dtype)))
    assert element_of(tilewright.Float16) is tilewright.Float16
    assert scalar_element(2) is scalar_element(2.5) is tilewright.Float32
    assert scalar_element(np.float16(2)) is tilewright.Float16
    assert limits(tilewright.Int8) == (-128, 127) and limits(tilewright.Float8E4M3FN) == (-448, 448)


@pytest.mark.parametrize("dtype", [np.complex64, "a word", np.dtype("M8[s]")])
def test_types_that_no_epilogue_has(dtype):
    with pytest.raises(EpilogueError, match="epilogues have no tensors of type") as caught:
        element_of(dtype)
    assert "Float16" in str(caught.value)


def test_types_below_a_byte():
    with pytest.raises(EpilogueError, match="epilogues have no Int4 tensors"):
        numpy_dtype(tilewright.Int4)
