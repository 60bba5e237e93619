"""The epilogues that EVT's own tests have, by file of those tests: functions, operands, and what NumPy says in float64.

Operands are small whole numbers, so that a row marked exact comes out exactly in every order of evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.epilogue import (
    exp,
    gelu,
    max,
    maximum,
    multiply_add,
    permute,
    relu,
    reshape,
    sigmoid,
    sum,
    tanh,
)

Arrays = dict[str, Any]
F16, F32 = np.float16, np.float32


@dataclass(frozen=True)
class Row:
    """An epilogue. `operands` gives shape, type or number by name, `outputs` shape and type, from (b, m, n);
    `expected` the outputs in float64 from the operands. `size` is the only size that the row has, where it has one."""

    name: str
    epilogue: Callable[..., Any]
    operands: Callable[[int, int, int], dict[str, Any]]
    outputs: Callable[[int, int, int], dict[str, Any]]
    expected: Callable[[Arrays], Arrays]
    exact: bool = True
    size: tuple[int, int, int] | None = None

    def arrays(self, b: int, m: int, n: int, seed: int = 0) -> Arrays:
        """Operands: whole numbers from -3 to 3 in the types of the row, in float32 for `accum`."""
        random = np.random.default_rng(seed)
        made = {"accum": random.integers(-3, 4, (b, m, n)).astype(F32)}
        for name, what in self.operands(b, m, n).items():
            shape, dtype = what if isinstance(what, tuple) else (None, None)
            made[name] = what if shape is None else random.integers(-3, 4, shape).astype(dtype)
        return made

    def examples(self, b: int, m: int, n: int, seed: int = 0) -> Arrays:
        """Operands and empty outputs."""
        outputs = {name: np.zeros(shape, dtype) for name, (shape, dtype) in self.outputs(b, m, n).items()}
        return {**self.arrays(b, m, n, seed), **outputs}


def float64(arrays: Arrays) -> dict[str, np.ndarray]:
    return {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def d_of(b, m, n):
    return {"D": ((b, m, n), F16)}


def c_of(b, m, n):
    return {"C": ((b, m, n), F16)}


# Compute


def arith(accum, C, alpha, beta, gamma):
    D = ((accum + C) * alpha - gamma) / beta
    return D


def func_call(accum, C, alpha, beta, gamma):
    D = multiply_add(relu(accum + alpha) + C, beta, gamma)
    return D


def func_call2(accum, C, alpha, beta):
    D = maximum(alpha * accum + beta * C, 0.0)
    return D


def evt_tanh(accum):
    D = tanh(accum)
    return D


def evt_sigmoid(accum):
    D = sigmoid(accum)
    return D


def evt_gelu(accum):
    D = gelu(accum)
    return D


def evt_exp(accum):
    D = exp(accum)
    return D


# Load


def tensor_load(accum, C, aux, aux_batch):
    D = accum + C + aux + aux_batch
    return D


def row_broadcast(accum, C, bias, bias_batch):
    D = accum + C + bias + bias_batch
    return D


def column_broadcast(accum, C, bias, bias_batch):
    D = accum + C + bias + bias_batch
    return D


def scalar_broadcast(accum, C, alpha, alpha_batch):
    D = alpha * accum + alpha_batch * C
    return D


# Store


def aux_store(accum, alpha, C):
    F = alpha * accum
    D = F + C
    return D, F


def col_reduce(accum, alpha, C):
    acc_row_max = max(accum, dim=[2])
    F = alpha * accum
    F_row_max = max(F, dim=[0, 2])
    D = F + C
    return D, F, acc_row_max, F_row_max


def row_reduce(accum, alpha, C):
    acc_col_max = max(accum, dim=[1])
    F = alpha * accum
    F_col_max = max(F, dim=[0, 1])
    D = F + C
    return D, F, acc_col_max, F_col_max


def scalar_reduce(accum, alpha, C):
    acc_max = max(accum, dim=[1, 2])
    F = alpha * accum
    F_max = max(F, dim=[0, 1, 2])
    D = F + C
    return D, F, acc_max, F_max


def sums(accum, C):
    F = accum + C
    columns = sum(F, dim=[2])
    rows = sum(F, dim=[0, 1])
    total = sum(F)
    D = F
    return D, columns, rows, total


# Layout


def permute_1(accum, alpha, C):
    F = alpha * accum
    F_permute = permute(F, indices=(0, 2, 1))
    D_permute = F_permute + permute(C, indices=(0, 2, 1))
    D = permute(D_permute, indices=(0, 2, 1))
    return D, F


def permute_2(accum, alpha, C):
    F = alpha * accum
    F_permute = permute(F, indices=(0, 2, 1))
    D = F_permute + C
    return D, F


def permute_3(accum, alpha, C):
    F = alpha * accum
    F_permute = permute(F, indices=(1, 0, 2))
    D = F_permute + C
    return D, F


def reshape_1(accum, alpha, TensorE):
    F = alpha * accum
    E_reshape = reshape(TensorE, new_shape=(512, 1))
    D = F + E_reshape
    return D


def reshape_2(accum, alpha, TensorE):
    F = alpha * accum
    F_reshape = reshape(F, new_shape=(2, 3, 512, 256))
    D = F_reshape + TensorE
    return D


# Mixed


def same_variable(accum):
    z0 = relu(accum)
    D = z0 + z0
    return D


def no_lca(accum, alpha, C):
    E = relu(accum)
    F = alpha * accum
    tmp_2 = maximum(F, C) + E  # noqa: F841
    D = E + C
    return D


def mixed(accum, alpha, C, beta, aux, cbias, rbias):
    F = alpha * accum + (beta * C + aux)
    F_row_max = max(F, dim=[0, 1])
    E = relu(F + 1) + cbias + rbias
    E_col_max = max(E, dim=[0, 2])
    D = E + F
    return D, F, F_row_max, E_col_max


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _mixed_operands(b, m, n):
    return {
        **c_of(b, m, n), "alpha": 2.0, "beta": 0.5, "aux": ((b, m, n), F16),
        "cbias": ((m, 1), F16), "rbias": ((n,), F16),
    }  # fmt: skip


def _mixed_outputs(b, m, n):
    return {**d_of(b, m, n), "F": ((b, m, n), F16), "F_row_max": ((n,), F32), "E_col_max": ((m, 1), F32)}


def _mixed_expected(a):
    F = 2 * a["accum"] + 0.5 * a["C"] + a["aux"]
    E = np.where(F + 1 > 0, F + 1, 0) + a["cbias"] + a["rbias"]
    return {"D": E + F, "F": F, "F_row_max": F.max((0, 1)), "E_col_max": E.max((0, 2))[:, None]}


def _with_f(b, m, n):
    return {**d_of(b, m, n), "F": ((b, m, n), F16)}


ALPHA_C = lambda b, m, n: {"alpha": 2.0, **c_of(b, m, n)}  # noqa: E731

ROWS = (
    Row("arith", arith, lambda b, m, n: {**c_of(b, m, n), "alpha": 1.5, "beta": 0.5, "gamma": 2.5}, d_of,
        lambda a: {"D": ((a["accum"] + a["C"]) * 1.5 - 2.5) / 0.5}),
    Row("func_call", func_call, lambda b, m, n: {**c_of(b, m, n), "alpha": 1.5, "beta": 0.5, "gamma": 2.5}, d_of,
        lambda a: {"D": (np.clip(a["accum"] + 1.5, 0, None) + a["C"]) * 0.5 + 2.5}),
    Row("func_call2", func_call2, lambda b, m, n: {**c_of(b, m, n), "alpha": 1.5, "beta": 0.5}, d_of,
        lambda a: {"D": np.clip(1.5 * a["accum"] + 0.5 * a["C"], 0, None)}),
    Row("tanh", evt_tanh, lambda b, m, n: {}, d_of, lambda a: {"D": np.tanh(a["accum"])}, exact=False),
    Row("sigmoid", evt_sigmoid, lambda b, m, n: {}, d_of, lambda a: {"D": 1 / (1 + np.exp(-a["accum"]))}, exact=False),
    Row("gelu", evt_gelu, lambda b, m, n: {}, d_of,
        lambda a: {"D": a["accum"] / 2 * (1 + _erf(a["accum"] / math.sqrt(2)))}, exact=False),
    Row("exp", evt_exp, lambda b, m, n: {}, d_of, lambda a: {"D": np.exp(a["accum"])}, exact=False),
    Row("tensor_load", tensor_load,
        lambda b, m, n: {**c_of(b, m, n), "aux": ((m, n), F16), "aux_batch": ((b, m, n), F32)}, d_of,
        lambda a: {"D": a["accum"] + a["C"] + a["aux"][None] + a["aux_batch"]}),
    Row("row_broadcast", row_broadcast,
        lambda b, m, n: {**c_of(b, m, n), "bias": ((n,), F16), "bias_batch": ((b, 1, n), F16)}, d_of,
        lambda a: {"D": a["accum"] + a["C"] + a["bias"][None, None, :] + a["bias_batch"]}),
    Row("column_broadcast", column_broadcast,
        lambda b, m, n: {**c_of(b, m, n), "bias": ((m, 1), F16), "bias_batch": ((b, m, 1), F16)}, d_of,
        lambda a: {"D": a["accum"] + a["C"] + a["bias"][None] + a["bias_batch"]}),
    Row("scalar_broadcast", scalar_broadcast,
        lambda b, m, n: {**c_of(b, m, n), "alpha": 0.5, "alpha_batch": ((b, 1, 1), F16)}, d_of,
        lambda a: {"D": 0.5 * a["accum"] + a["alpha_batch"] * a["C"]}),
    Row("aux_store", aux_store, ALPHA_C, _with_f, lambda a: {"D": 2 * a["accum"] + a["C"], "F": 2 * a["accum"]}),
    Row("col_reduce", col_reduce, ALPHA_C,
        lambda b, m, n: {**_with_f(b, m, n), "acc_row_max": ((b, m, 1), F32), "F_row_max": ((m, 1), F32)},
        lambda a: {"D": 2 * a["accum"] + a["C"], "F": 2 * a["accum"], "acc_row_max": a["accum"].max(2)[:, :, None],
                   "F_row_max": (2 * a["accum"]).max((0, 2))[:, None]}),
    Row("row_reduce", row_reduce, ALPHA_C,
        lambda b, m, n: {**_with_f(b, m, n), "acc_col_max": ((b, 1, n), F32), "F_col_max": ((n,), F32)},
        lambda a: {"D": 2 * a["accum"] + a["C"], "F": 2 * a["accum"], "acc_col_max": a["accum"].max(1)[:, None, :],
                   "F_col_max": (2 * a["accum"]).max((0, 1))}),
    Row("scalar_reduce", scalar_reduce, ALPHA_C,
        lambda b, m, n: {**_with_f(b, m, n), "acc_max": ((b, 1, 1), F32), "F_max": ((1, 1, 1), F32)},
        lambda a: {"D": 2 * a["accum"] + a["C"], "F": 2 * a["accum"],
                   "acc_max": a["accum"].max((1, 2)).reshape(-1, 1, 1),
                   "F_max": (2 * a["accum"]).max().reshape(1, 1, 1)}),
    Row("sums", sums, c_of,
        lambda b, m, n: {**d_of(b, m, n), "columns": ((b, m, 1), F32), "rows": ((1, n), F32),
                         "total": ((1, 1), F32)},
        lambda a: {"D": a["accum"] + a["C"], "columns": (a["accum"] + a["C"]).sum(2)[:, :, None],
                   "rows": (a["accum"] + a["C"]).sum((0, 1))[None],
                   "total": (a["accum"] + a["C"]).sum().reshape(1, 1)}),
    Row("permute_1", permute_1, ALPHA_C, _with_f, lambda a: {"D": 2 * a["accum"] + a["C"], "F": 2 * a["accum"]}),
    Row("permute_2", permute_2, lambda b, m, n: {"alpha": 2.0, "C": ((b, n, m), F16)},
        lambda b, m, n: {"D": ((b, n, m), F16), "F": ((b, m, n), F16)},
        lambda a: {"D": np.swapaxes(2 * a["accum"], 1, 2) + a["C"], "F": 2 * a["accum"]}),
    Row("permute_3", permute_3, lambda b, m, n: {"alpha": 2.0, "C": ((m, b, n), F16)},
        lambda b, m, n: {"D": ((m, b, n), F16), "F": ((b, m, n), F16)},
        lambda a: {"D": np.swapaxes(2 * a["accum"], 0, 1) + a["C"], "F": 2 * a["accum"]}),
    Row("reshape", reshape_1, lambda b, m, n: {"alpha": 2.0, "TensorE": ((16, 32), F16)}, d_of,
        lambda a: {"D": 2 * a["accum"] + a["TensorE"].ravel()[None, :, None]}, size=(3, 512, 256)),
    Row("reshape2", reshape_2, lambda b, m, n: {"alpha": 2.0, "TensorE": ((2, 3, 1, 256), F16)},
        lambda b, m, n: {"D": ((2, 3, 512, 256), F16)},
        lambda a: {"D": np.stack([np.stack([2 * a["accum"][3 * i + j] + a["TensorE"][i, j] for j in range(3)])
                                  for i in range(2)])}, size=(6, 512, 256)),
    Row("same_variable_used_multiple_times", same_variable, lambda b, m, n: {}, d_of,
        lambda a: {"D": 2 * np.clip(a["accum"], 0, None)}),
    Row("no_lca", no_lca, ALPHA_C, d_of, lambda a: {"D": np.clip(a["accum"], 0, None) + a["C"]}),
    Row("mixed_dag", mixed, _mixed_operands, _mixed_outputs, _mixed_expected),
    Row("mixed_dag_f32", mixed, lambda b, m, n: {**_mixed_operands(b, m, n), "C": ((b, m, n), F32)},
        lambda b, m, n: {**_mixed_outputs(b, m, n), "D": ((b, m, n), F32)}, _mixed_expected),
)  # fmt: skip
"""All but the errors, in EVT's order."""

SIZES = ((3, 8, 8), (3, 488, 504), (1, 8, 768))
"""(b, m, n) of rows that have any size."""
