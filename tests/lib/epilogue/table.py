"""The epilogues that EVT's own tests verify, each with what NumPy computes: shared by tests of all kernels.

Operands are small whole numbers, so that all but the functions of real numbers are exact. A row's expectation is written
out in NumPy by hand; `accum` is a float32 array (L, M, N).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.epilogue import (
    exp, gelu, hardswish, max, maximum, min, multiply_add, permute, relu, reshape, sigmoid, silu, sum, tanh,
)  # fmt: skip

F16, F32 = np.float16, np.float32


@dataclass(frozen=True)
class Row:
    """An epilogue: operands and outputs by name, shapes in L, M, N and numbers, and what is expected.

    Attributes:
        fn: the epilogue.
        operands: a shape, a shape with a dtype, or a number; `accum` is (L, M, N) without being named.
        outputs: likewise.
        expected: of arrays by name in float32.
        exact: whether results are equal, or near to half a unit in the last place of float16 and two of float32.
        shape: (L, M, N) where the row needs a certain one.
    """

    fn: Callable[..., Any]
    operands: dict[str, Any]
    outputs: dict[str, Any]
    expected: Callable[..., dict[str, np.ndarray]]
    exact: bool = True
    shape: tuple[int, int, int] | None = None


TABLE: dict[str, Row] = {}


def row(outputs: dict[str, Any], expected: Any, exact: bool = True, shape: Any = None, **operands: Any) -> Any:
    def add(fn: Any) -> Any:
        TABLE[fn.__name__] = Row(fn, operands, outputs, expected, exact, shape)
        return fn

    return add


FULL, FULL32 = "LMN", ("LMN", F32)
D = {"D": FULL}

# compute


@row(D, lambda accum, C, alpha, beta, gamma: {"D": ((accum + C) * alpha - gamma) / beta}, C=FULL, alpha=1.5, beta=0.5, gamma=2.5)
def arith(accum, C, alpha, beta, gamma):
    D = ((accum + C) * alpha - gamma) / beta
    return D


@row(D, lambda accum, C, alpha, beta, gamma: {"D": np.maximum(accum + alpha, 0) * 1 * beta + C * beta + gamma}, C=FULL, alpha=1.5, beta=0.5, gamma=2.5)
def func_call(accum, C, alpha, beta, gamma):
    D = multiply_add(relu(accum + alpha) + C, beta, gamma)
    return D


@row(D, lambda accum, C, alpha, beta: {"D": np.maximum(alpha * accum + beta * C, 0)}, C=FULL, alpha=1.5, beta=0.5)
def func_call2(accum, C, alpha, beta):
    D = maximum(alpha * accum + beta * C, 0.0)
    return D


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


@row(D, lambda accum, C, alpha: {"D": np.tanh(accum * alpha) + C}, exact=False, C=FULL, alpha=0.25)
def tanh_of_scaled(accum, C, alpha):
    D = tanh(accum * alpha) + C
    return D


@row(D, lambda accum, C, alpha: {"D": _sigmoid(accum * alpha) + C}, exact=False, C=FULL, alpha=0.25)
def sigmoid_of_scaled(accum, C, alpha):
    D = sigmoid(accum * alpha) + C
    return D


@row(D, lambda accum: {"D": 0.5 * accum * (1 + _erf(accum * math.sqrt(0.5)))}, exact=False)
def gelu_of_accum(accum):
    D = gelu(accum)
    return D


@row(D, lambda accum, alpha: {"D": np.exp(accum * alpha)}, exact=False, alpha=0.25)
def exp_of_scaled(accum, alpha):
    D = exp(accum * alpha)
    return D


@row(D, lambda accum: {"D": accum * _sigmoid(accum)}, exact=False)
def silu_of_accum(accum):
    D = silu(accum)
    return D


@row(D, lambda accum: {"D": accum * np.clip(accum + 3, 0, 6) / 6}, exact=False)
def hardswish_of_accum(accum):
    D = hardswish(accum)
    return D


# load


@row(D, lambda accum, C, aux, aux_batch: {"D": accum + C + aux + aux_batch}, C=FULL, aux="MN", aux_batch=FULL32)
def tensor_load(accum, C, aux, aux_batch):
    D = accum + C + aux + aux_batch
    return D


@row(D, lambda accum, C, bias, bias_batch: {"D": accum + C + bias + bias_batch}, C=FULL, bias="N", bias_batch=("L1N", F32))
def row_broadcast(accum, C, bias, bias_batch):
    D = accum + C + bias + bias_batch
    return D


@row(D, lambda accum, C, bias, bias_batch: {"D": accum + C + bias + bias_batch}, C=FULL, bias="M1", bias_batch=("LM1", F32))
def column_broadcast(accum, C, bias, bias_batch):
    D = accum + C + bias + bias_batch
    return D


@row(D, lambda accum, C, alpha, alpha_batch: {"D": accum * alpha + C * alpha_batch}, C=FULL, alpha=0.5, alpha_batch="L11")
def scalar_broadcast(accum, C, alpha, alpha_batch):
    D = accum * alpha + C * alpha_batch
    return D


# store


@row({"D": FULL, "F": FULL}, lambda accum, alpha, C: {"F": alpha * accum, "D": alpha * accum + C}, C=FULL, alpha=0.5)
def aux_store(accum, alpha, C):
    F = alpha * accum
    D = F + C
    return D, F


@row({"D": FULL, "acc_max": ("LM1", F32), "F_max": ("M1", F32)},
     lambda accum, alpha, C: {"D": alpha * accum + C, "acc_max": accum.max(2, keepdims=True), "F_max": (alpha * accum).max((0, 2))[:, None]},
     C=FULL, alpha=2.0)  # fmt: skip
def column_reduce(accum, alpha, C):
    acc_max = max(accum, dim=[2])
    F = alpha * accum
    F_max = max(F, dim=[0, 2])
    D = F + C
    return D, acc_max, F_max


@row({"D": FULL, "acc_sum": ("L1N", F32), "F_max": ("N", F32)},
     lambda accum, alpha, C: {"D": alpha * accum + C, "acc_sum": accum.sum(1, keepdims=True), "F_max": (alpha * accum).max((0, 1))},
     C=FULL, alpha=2.0)  # fmt: skip
def row_reduce(accum, alpha, C):
    acc_sum = sum(accum, dim=[1])
    F = alpha * accum
    F_max = max(F, dim=[0, 1])
    D = F + C
    return D, acc_sum, F_max


@row({"D": FULL, "acc_min": ("L11", F32), "F_sum": ("111", F32)},
     lambda accum, alpha, C: {"D": alpha * accum + C, "acc_min": accum.min((1, 2), keepdims=True), "F_sum": (alpha * accum).sum(keepdims=True)},
     C=FULL, alpha=2.0)  # fmt: skip
def scalar_reduce(accum, alpha, C):
    acc_min = min(accum, dim=[1, 2])
    F = alpha * accum
    F_sum = sum(F, dim=[0, 1, 2])
    D = F + C
    return D, acc_min, F_sum


@row({"D": FULL, "over_batch": ("1MN", F32)}, lambda accum: {"D": accum, "over_batch": accum.sum(0, keepdims=True)})
def batch_reduce(accum):
    over_batch = sum(accum, dim=[0])
    D = accum + 0.0
    return D, over_batch


@row({"D": FULL, "mask": ("LMN", np.bool_)}, lambda accum: {"D": np.maximum(accum, 0), "mask": accum > 0})
def relu_with_mask(accum):
    D, mask = relu(accum, with_mask=True)
    return D, mask


# layout


@row({"D": FULL, "F": FULL}, lambda accum, alpha, C: {"F": alpha * accum, "D": alpha * accum + C}, C=FULL, alpha=0.5)
def permute_1(accum, alpha, C):
    F = alpha * accum
    F_permute = permute(F, indices=(0, 2, 1))
    D_permute = F_permute + permute(C, indices=(0, 2, 1))
    D = permute(D_permute, indices=(0, 2, 1))
    return D, F


@row({"D": "LNM", "F": "LNM"}, lambda accum, alpha, C: {"F": (alpha * accum).transpose(0, 2, 1), "D": (alpha * accum).transpose(0, 2, 1) + C}, C="LNM", alpha=0.5)
def permute_2(accum, alpha, C):
    F = permute(alpha * accum, indices=(0, 2, 1))
    D = F + C
    return D, F


@row({"D": "MLN", "F": "MLN"}, lambda accum, alpha, C: {"F": (alpha * accum).transpose(1, 0, 2), "D": (alpha * accum).transpose(1, 0, 2) + C}, C="MLN", alpha=0.5)
def permute_3(accum, alpha, C):
    F = permute(alpha * accum, indices=(1, 0, 2))
    D = F + C
    return D, F


@row(D, lambda accum, alpha, tensor_bias: {"D": accum * alpha + tensor_bias.reshape(64, 1)}, shape=(3, 64, 24), alpha=0.5, tensor_bias="4,16")
def reshape_1(accum, alpha, tensor_bias):
    bias = reshape(tensor_bias, new_shape=(64, 1))
    D = accum * alpha + bias
    return D


@row({"D": "2,3,20,24"}, lambda accum, alpha: {"D": (accum * alpha).reshape(2, 3, 20, 24)}, shape=(6, 20, 24), alpha=0.5)
def reshape_2(accum, alpha):
    F = alpha * accum
    D = reshape(F, new_shape=(2, 3, 20, 24))
    return D


# mixed


@row(D, lambda accum: {"D": 2 * np.maximum(accum, 0)})
def same_variable_used_multiple_times(accum):
    z0 = relu(accum)
    D = z0 + z0
    return D


@row(D, lambda accum, alpha: {"D": alpha * accum + np.maximum(alpha * accum + 1, 0)}, alpha=0.5)
def no_lca(accum, alpha):
    E = relu(alpha * accum + 1.0)
    tmp_0 = E + 3.0  # goes nowhere
    D = alpha * accum + E
    return D


def _mixed(accum, alpha, C, beta, aux, cbias, rbias):
    F = alpha * accum + (beta * C + aux)
    E = np.maximum(F + 1, 0) + cbias + rbias
    return {
        "D": E + F, "F_row_max": F.max((0, 1)), "E_col_max": E.max((0, 2))[:, None], "F": F,
    }  # fmt: skip


_MIXED = {"C": FULL, "aux": FULL, "cbias": "M1", "rbias": "N", "alpha": 0.5, "beta": 0.25}


@row({"D": FULL, "F_row_max": ("N", F32), "E_col_max": ("M1", F32), "F": FULL}, _mixed, **_MIXED)
def mixed_dag(accum, alpha, C, beta, aux, cbias, rbias):
    F = alpha * accum + (beta * C + aux)
    F_row_max = max(F, dim=[0, 1])
    E = relu(F + 1) + cbias + rbias
    E_col_max = max(E, dim=[0, 2])
    D = E + F
    return D, F, F_row_max, E_col_max


@row({"D": FULL32, "F_row_max": ("N", F32), "E_col_max": ("M1", F32), "F": FULL32}, _mixed, **{**_MIXED, "C": FULL32, "aux": FULL32})
def mixed_dag_float(accum, alpha, C, beta, aux, cbias, rbias):
    F = alpha * accum + (beta * C + aux)
    F_row_max = max(F, dim=[0, 1])
    E = relu(F + 1) + cbias + rbias
    E_col_max = max(E, dim=[0, 2])
    D = E + F
    return D, F, F_row_max, E_col_max


@dataclass
class Arrays:
    """A row's arrays: operands, outputs of the wrong numbers, and what is expected, in the outputs' types."""

    operands: dict[str, Any]
    outputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray] = field(default_factory=dict)


def arrays_of(
    item: Row, shape: tuple[int, int, int], accum_dtype: Any = F32, seed: int = 0, accum: Any = None
) -> Arrays:
    """Random small whole numbers for a row at (L, M, N), `accum` too where it is not given."""
    rng = np.random.default_rng(seed)
    shape = item.shape or shape
    operands: dict[str, Any] = {"accum": _whole(rng, shape, accum_dtype) if accum is None else accum}
    for name, what in item.operands.items():
        operands[name] = what if isinstance(what, float) else _whole(rng, *_shape(what, shape))
    outputs = {name: np.full(*_shape(what, shape)[:1], 99, _shape(what, shape)[1]) for name, what in item.outputs.items()}
    wide = {name: value.astype(F32) if isinstance(value, np.ndarray) else F32(value) for name, value in operands.items()}
    if not item.exact:
        wide = {name: value.astype(np.float64) for name, value in wide.items()}
    expected = item.expected(**wide)
    return Arrays(operands, outputs, {name: np.asarray(expected[name]) for name in outputs})


def check(item: Row, made: Arrays, found: dict[str, Any]) -> None:
    """Compare what a kernel gave."""
    for name, wanted in made.expected.items():
        got = np.asarray(found[name])
        assert got.shape == made.outputs[name].shape and got.dtype == made.outputs[name].dtype, (name, got.shape, got.dtype)
        if item.exact:
            np.testing.assert_array_equal(got, wanted.astype(got.dtype), err_msg=name)
        else:
            unit = 2.0**-11 if got.dtype == F16 else 2.0**-22
            np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=unit * 1.01, atol=2e-6, err_msg=name)


def _whole(rng: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(dtype)


def _shape(what: Any, shape: tuple[int, int, int]) -> tuple[tuple[int, ...], Any]:
    text, dtype = what if isinstance(what, tuple) else (what, F16)
    if "," in text:
        return tuple(int(part) for part in text.split(",")), dtype
    extents = dict(zip("LMN", shape, strict=True))
    return tuple(extents.get(letter, 1) for letter in text), dtype
