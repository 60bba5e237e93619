"""`gemm_grouped`: groups of rows, each times a matrix of its own, in one launch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import gemm_grouped as kernels
from tilewright.ops.frameworks import check_alike, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.gemm import check_no_gradient
from tilewright.ops.ref import gemm_grouped as ref
from tilewright.ops.registration import define, direct

FORWARD = define(
    "_gemm_grouped(Tensor(a!) out, Tensor a, Tensor b, Tensor ends) -> ()",
    kernel=kernels.gemm_grouped,
    reference=ref.gemm_grouped,
    numpy_reference=ref.gemm_grouped,
)
OUTER = define(
    "_gemm_grouped_outer(Tensor(a!) out, Tensor a, Tensor b, Tensor ends) -> ()",
    kernel=kernels.gemm_grouped_outer,
    reference=ref.gemm_grouped_outer,
    numpy_reference=ref.gemm_grouped_outer,
)
DTYPES = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2")
"""Element types of A and B."""
_RESULTS = ("float16", "bfloat16", "float32")


def gemm_grouped(a: Any, b: Any, ends: Any, out: Any = None) -> Any:
    """Rows ends[g - 1] to ends[g] of the result are those of `a` times b[g], for each group g.

    That is a layer of experts: rows are sorted by the expert that they go to. Where the copy engine of sm_90 takes `a`
    and `b`, it is one launch, for which nobody waits for `ends`; else there is a product for each group.

    Args:
        a: (M, K), of PyTorch or NumPy: float16, bfloat16, float32 (multiplied as TF32), float8_e4m3fn or float8_e5m2.
        b: (G, K, N) of the same dtype.
        ends: (G,) of int32, where `a` lies: the row behind each group, and they do not fall. One behind M counts as M.
        out: where the result goes, (M, N): float16, bfloat16 or float32. It has no gradient.

    Returns:
        `out`, or a new tensor of the dtype of `a`, bfloat16 for 8-bit floats. Rows behind the last end are zeros in a
        new tensor; what they hold in `out` is not defined.

    Raises:
        ArgumentError: (a ValueError) types, shapes or devices do not go together.
    """
    shape = _check(a, b, ends, out)
    if not is_torch(a):
        out = np.zeros(shape, _numpy_dtype(a)) if out is None else out
        FORWARD.run(out, a, b, ends)
        return out
    if out is not None:
        check_no_gradient("gemm_grouped", "a result in out= has no gradient", a, b, out)
    if out is not None or direct(a, b):
        out = a.new_zeros(shape, dtype=_dtype(a)) if out is None else out
        FORWARD.way(a, b, out)(out, a, b, ends)
        return out
    return _Grouped.apply(a, b, ends)


def _check(a: Any, b: Any, ends: Any, out: Any) -> tuple[int, int]:
    """The shape of the result."""
    for name, value, rank in (("a", a, 2), ("b", b, 3), ("ends", ends, 1)):
        check_tensor("gemm_grouped", name, value, ("int32",) if name == "ends" else DTYPES)
        if value.ndim != rank:
            raise ArgumentError(
                f"gemm_grouped: {name} has {value.ndim} dimensions, not {rank}", values={"shape": tuple(value.shape)},
                hint="a is (M, K), b is (G, K, N), ends is (G,)",
            )  # fmt: skip
    check_alike("gemm_grouped", a=a, b=b, ends=ends, out=out)
    if a.dtype != b.dtype:
        raise ArgumentError(
            "gemm_grouped: a and b have different dtypes", values={"a": dtype_name(a), "b": dtype_name(b)},
            hint="convert one of them first",
        )  # fmt: skip
    if a.shape[1] != b.shape[1] or ends.shape[0] != b.shape[0]:
        wrong = "each matrix of b needs as many rows as a has columns"
        if a.shape[1] == b.shape[1]:
            wrong = "ends has another number of groups than b"
        raise ArgumentError(
            f"gemm_grouped: {wrong}",
            values={"a": tuple(a.shape), "b": tuple(b.shape), "ends": tuple(ends.shape)},
            hint="a is (M, K), b is (G, K, N), ends is (G,)",
        )
    shape = a.shape[0], b.shape[2]
    if out is not None:
        check_tensor("gemm_grouped", "out", out, _RESULTS)
        if tuple(out.shape) != shape:
            raise ArgumentError(
                "gemm_grouped: out has another shape than the result",
                values={"out": tuple(out.shape), "expected": shape},
                hint="leave out= away, and a new tensor is returned",
            )
    return shape


def _dtype(a: Any) -> Any:
    return torch.bfloat16 if a.dtype.itemsize == 1 else a.dtype


def _numpy_dtype(a: Any) -> Any:
    return np.dtype(ml_dtypes.bfloat16) if a.dtype.itemsize == 1 else a.dtype


if torch is not None:

    class _Grouped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, ends: Any) -> Any:
            ctx.save_for_backward(a, b, ends)
            out = a.new_zeros((a.shape[0], b.shape[2]), dtype=_dtype(a))
            FORWARD.dispatched(out, a, b, ends)
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            a, b, ends = ctx.saved_tensors
            da = db = None
            if ctx.needs_input_grad[0]:
                da = torch.zeros_like(a)
                FORWARD.dispatched(da, grad, b.mT, ends)
            if ctx.needs_input_grad[1]:
                db = torch.empty_like(b)
                OUTER.dispatched(db, a, grad, ends)
            return da, db, None
