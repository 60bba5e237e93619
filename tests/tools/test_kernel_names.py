"""Profilers choose kernels by name: those of an op have its name in theirs."""

import numpy as np
import pytest

from tests.op_cases import on_emulator
from tilewright import ops
from tilewright.emulate import observe

X = np.ones((70, 100), np.float32)
CALLS = {
    "copy_transpose": lambda: ops.copy_transpose(X),
    "cross_entropy": lambda: ops.cross_entropy(X, np.zeros(70, np.int64)),
    "elementwise": lambda: ops.elementwise("add", X, X),
    "gemm": lambda: ops.gemm(X, X.T),
    "gemm_grouped": lambda: ops.gemm_grouped(X, X.T[None], np.array([70], np.int32)),
    "gemm_scaled": lambda: ops.gemm_scaled(X.astype(np.float16), X.T.astype(np.float16), 2.0, 3.0),
    "layernorm": lambda: ops.layernorm(X),
    "reduce": lambda: [ops.reduce(X, name, dim) for name in ("sum", "argmax") for dim in (0, 1)],
    "reduce_sum": lambda: [ops.reduce_sum(X, variant=name) for name in ("naive", "shuffle", "vectorized", "split")],
    "rmsnorm": lambda: ops.rmsnorm(X),
    "softmax_online": lambda: ops.softmax_online(X),
}
OTHERS = {"reduce_sum": "reduce", "gemm_grouped": "gemm", "gemm_scaled": "gemm"}  # whose kernels they run


def test_every_op_is_here():
    assert set(CALLS) == {name for name in ops.__all__ if not name.startswith("set_")}


@pytest.mark.parametrize("op", CALLS)
def test_kernels_have_the_name_of_their_op(op):
    with on_emulator(), observe() as seen:
        CALLS[op]()
    names = [report.kernel for report in seen]
    assert names and all(OTHERS.get(op, op) in name for name in names)
