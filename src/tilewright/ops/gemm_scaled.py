"""`gemm_scaled`: the product of matrices of 8 bits that stand for others, times their scales."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.ops.frameworks import check_dtype, check_tensor, is_torch, torch
from tilewright.ops.gemm import gemm

DTYPES = ("float8_e4m3fn", "float8_e5m2", "int8", "float16", "bfloat16")
"""Element types of A and B."""
_RESULTS = ("bfloat16", "float16", "float32")


def gemm_scaled(
    a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, out: Any = None, dtype: str = "bfloat16"
) -> Any:
    """(scale_a · a) · (scale_b · b) + bias; the scales multiply the sums, in the same kernel.

    Args:
        a: (..., M, K), of PyTorch or NumPy: float8_e4m3fn, float8_e5m2, int8, float16 or bfloat16. The batch has one
            dimension at most.
        b: (..., K, N) of the same dtype.
        scale_a: a number, or a tensor with one element or with one for each row of A, (M, 1).
        scale_b: a number, or a tensor with one element or with one for each column of B, (1, N) or (N,).
        bias: (N,), or what else broadcasts to the result; None for none.
        out: where the result goes, (..., M, N), of any strides.
        dtype: of the result where there is no `out`: "bfloat16", "float16" or "float32".

    Returns:
        `out`, or a new tensor. It has no gradient.

    Raises:
        ArgumentError: (a ValueError) types, shapes or devices do not go together.
    """
    for name, value in (("a", a), ("b", b)):
        check_tensor("gemm_scaled", name, value, DTYPES)
    check_dtype("gemm_scaled", "the result", dtype, _RESULTS)
    for name, value in (("a", a), ("b", b)):
        if value.ndim < 2:
            raise ArgumentError(
                f"gemm_scaled: {name} needs at least two dimensions", values={"shape": tuple(value.shape)},
                hint="a vector as a matrix of one row is x[None]",
            )  # fmt: skip
    m, n = a.shape[-2], b.shape[-1]
    operands = {"scale_a": _scale("scale_a", scale_a, (m, 1)), "scale_b": _scale("scale_b", scale_b, (1, n))}
    if bias is not None:
        operands["bias"] = bias
    if out is None:
        out = _empty(a, (*_batch(a, b), m, n), dtype)
    return gemm(a, b, _scaled if bias is None else _scaled_with_bias, out=out, **operands)


def _scaled(accum: Any, scale_a: Any, scale_b: Any) -> Any:
    D = accum * scale_a * scale_b
    return D


def _scaled_with_bias(accum: Any, scale_a: Any, scale_b: Any, bias: Any) -> Any:
    D = accum * scale_a * scale_b + bias
    return D


def _scale(name: str, scale: Any, lines: tuple[int, int]) -> Any:
    """A scale as a number, or a tensor of shape () or `lines`, after a batch."""
    if isinstance(scale, (int, float, np.floating)):
        return float(scale)
    check_tensor("gemm_scaled", name, scale, ("float32",))
    shape = tuple(scale.shape)
    if name == "scale_b" and len(shape) == 1 and shape[0] == lines[1]:
        scale, shape = scale[None], (1, *shape)
    if all(extent == 1 for extent in shape):
        return scale.reshape(())
    if shape[-2:] != lines:
        line = "row of a" if name == "scale_a" else "column of b"
        raise ArgumentError(
            f"gemm_scaled: {name} has neither one element nor one for each {line}",
            values={name: shape, "expected": lines},
            hint="scales of blocks along K go into the sums themselves: multiply a and b by them first",
        )
    return scale


def _batch(a: Any, b: Any) -> tuple[int, ...]:
    """The batch of the result, where `gemm` accepts the operands."""
    return max((tuple(a.shape[:-2]), tuple(b.shape[:-2])), key=lambda shape: (len(shape), shape))


def _empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    if is_torch(like):
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    return np.empty(shape, getattr(ml_dtypes, dtype, None) or np.dtype(dtype))
