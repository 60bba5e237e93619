"""Epilogues beside those of EVT's tests, in the same form: more functions, more reductions, masks, layouts."""

from __future__ import annotations

import numpy as np

from tests.lib.epilogue.rows import ALPHA_C, F16, F32, ROWS, Row, c_of, d_of
from tilewright.epilogue import hardswish, min, permute, relu, silu, sum


def evt_silu(accum):
    D = silu(accum)
    return D


def evt_hardswish(accum):
    D = hardswish(accum)
    return D


def least(accum, alpha, C):
    rows = min(accum, dim=[1])
    columns = min(accum, dim=[2])
    total = min(accum, dim=[1, 2])
    D = alpha * accum + C
    return D, rows, columns, total


def over_batch(accum):
    batch = sum(accum, dim=[0])
    D = accum + 1.0
    return D, batch


def with_mask(accum, C):
    D, mask = relu(accum + C, with_mask=True)
    return D, mask


def permuted_twice(accum, C):
    D = permute(permute(accum, indices=(0, 2, 1)) + C, indices=(1, 0, 2))
    return D


MORE = (
    Row("silu", evt_silu, lambda b, m, n: {}, d_of,
        lambda a: {"D": a["accum"] / (1 + np.exp(-a["accum"]))}, exact=False),
    Row("hardswish", evt_hardswish, lambda b, m, n: {}, d_of,
        lambda a: {"D": a["accum"] * np.clip(a["accum"] + 3, 0, 6) / 6}, exact=False),
    Row("least", least, ALPHA_C,
        lambda b, m, n: {**d_of(b, m, n), "rows": ((b, 1, n), F32), "columns": ((b, m, 1), F32),
                         "total": ((b, 1, 1), F32)},
        lambda a: {"D": 2 * a["accum"] + a["C"], "rows": a["accum"].min(1, keepdims=True),
                   "columns": a["accum"].min(2, keepdims=True), "total": a["accum"].min((1, 2), keepdims=True)}),
    Row("over_batch", over_batch, lambda b, m, n: {}, lambda b, m, n: {**d_of(b, m, n), "batch": ((1, m, n), F32)},
        lambda a: {"D": a["accum"] + 1, "batch": a["accum"].sum(0, keepdims=True)}),
    Row("with_mask", with_mask, c_of, lambda b, m, n: {**d_of(b, m, n), "mask": ((b, m, n), np.bool_)},
        lambda a: {"D": np.clip(a["accum"] + a["C"], 0, None), "mask": a["accum"] + a["C"] > 0}),
    Row("permuted_twice", permuted_twice, lambda b, m, n: {"C": ((b, n, m), F16)},
        lambda b, m, n: {"D": ((n, b, m), F16)},
        lambda a: {"D": np.swapaxes(np.swapaxes(a["accum"], 1, 2) + a["C"], 0, 1)}),
)  # fmt: skip

ALL = (*ROWS, *MORE)


def check(row: Row, found: dict[str, np.ndarray], arrays: dict, examples: dict) -> None:
    """Compare what a kernel gave, arrays of NumPy."""
    expected = row.expected({name: np.asarray(array, np.float64) for name, array in arrays.items()})
    assert list(found) == list(expected)
    for name, wanted in expected.items():
        got = found[name]
        assert got.dtype == examples[name].dtype and got.shape == examples[name].shape, name
        if row.exact:
            np.testing.assert_array_equal(got, wanted.astype(got.dtype), err_msg=name)
        else:  # half a unit in the last place of float16, and what float32 leaves
            np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=2**-11 + 2**-20, atol=2**-24, err_msg=name)
