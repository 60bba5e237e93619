"""`gemm_scaled`: the product of matrices of 8 bits that stand for others, times their scales."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels.gemm_sm90_scaled import BLOCK, gemm_scaled_blocks
from tilewright.ops.frameworks import check_alike, check_dtype, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.gemm import check_no_gradient, gemm
from tilewright.ops.ref import gemm_scaled as ref
from tilewright.ops.registration import define

BLOCKS = define(
    "_gemm_scaled_blocks(Tensor(a!) out, Tensor a, Tensor b, Tensor scale_a, Tensor scale_b) -> ()",
    kernel=gemm_scaled_blocks,
    reference=ref.gemm_scaled_blocks,
    numpy_reference=ref.gemm_scaled_blocks,
)
DTYPES = ("float8_e4m3fn", "float8_e5m2", "int8", "float16", "bfloat16")
"""Element types of A and B."""
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_RESULTS = ("bfloat16", "float16", "float32")


def gemm_scaled(
    a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, out: Any = None, dtype: str = "bfloat16"
) -> Any:
    """(scale_a · a) · (scale_b · b) + bias; the scales multiply the sums, in the same kernel.

    Args:
        a: (..., M, K), of PyTorch or NumPy: float8_e4m3fn, float8_e5m2, int8, float16 or bfloat16. The batch has one
            dimension at most.
        b: (..., K, N) of the same dtype.
        scale_a: a number, or a tensor with one element or with one for each row of A, (M, 1), float32.
        scale_b: a number, or a tensor with one element or with one for each column of B, (1, N) or (N,). 8-bit floats
            may have scales of blocks instead: scale_a (M, K / 128) of 128 elements of a row, scale_b (K / 128, N / 128)
            of blocks of 128 x 128, all rounded up; without batch or bias, on sm_90.
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
    if _in_blocks(a, b, scale_a, scale_b):
        return _by_blocks(a, b, scale_a, scale_b, bias, out, dtype)
    operands = {"scale_a": _scale("scale_a", scale_a, (m, 1)), "scale_b": _scale("scale_b", scale_b, (1, n))}
    if bias is not None:
        operands["bias"] = bias
    if out is None:
        out = _empty(a, (*_batch(a, b), m, n), dtype)
    return gemm(a, b, _scaled if bias is None else _scaled_with_bias, out=out, **operands)


def _in_blocks(a: Any, b: Any, scale_a: Any, scale_b: Any) -> bool:
    """Whether both scales are those of blocks."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    blocks, across = -(-k // BLOCK), -(-n // BLOCK)
    shapes = tuple(getattr(scale_a, "shape", ())), tuple(getattr(scale_b, "shape", ()))
    return shapes == ((m, blocks), (blocks, across)) and (blocks > 1 or across not in (1, n))


def _by_blocks(a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any, out: Any, dtype: str) -> Any:
    if a.ndim != 2 or b.ndim != 2 or bias is not None or a.dtype != b.dtype or dtype_name(a) not in _FLOAT8:
        raise ArgumentError(
            "gemm_scaled: scales of blocks go with one product of 8-bit floats, without a bias",
            values={"a": (dtype_name(a), *a.shape), "b": (dtype_name(b), *b.shape), "bias": bias is not None},
            hint="call it for each matrix of the batch, and add a bias to the result",
        )
    for name, value in (("scale_a", scale_a), ("scale_b", scale_b)):
        check_tensor("gemm_scaled", name, value, ("float32",))
    check_alike("gemm_scaled", a=a, b=b, scale_a=scale_a, scale_b=scale_b, out=out)
    if a.shape[1] != b.shape[0]:
        raise ArgumentError(
            "gemm_scaled: a needs as many columns as b has rows", values={"a": tuple(a.shape), "b": tuple(b.shape)},
            hint="shapes are (M, K) and (K, N)",
        )  # fmt: skip
    shape = a.shape[0], b.shape[1]
    if out is None:
        out = _empty(a, shape, dtype)
    elif tuple(out.shape) != shape or dtype_name(out) not in _RESULTS:
        raise ArgumentError(
            "gemm_scaled: out is not like the result", values={"out": (dtype_name(out), *out.shape), "expected": shape},
            hint="leave out= away, and a new tensor is returned",
        )  # fmt: skip
    if is_torch(a):
        check_no_gradient("gemm_scaled", "the result has no gradient", a, b, scale_a, scale_b, out)
    way = BLOCKS.way(a, b, scale_a, scale_b, out) if is_torch(a) else BLOCKS.run
    way(out, a, b, scale_a, scale_b)
    return out


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
            hint="scales of blocks are (M, K / 128) and (K / 128, N / 128), of both matrices",
        )
    return scale


def _batch(a: Any, b: Any) -> tuple[int, ...]:
    """The batch of the result, where `gemm` accepts the operands."""
    return max((tuple(a.shape[:-2]), tuple(b.shape[:-2])), key=lambda shape: (len(shape), shape))


def _empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    if is_torch(like):
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    return np.empty(shape, getattr(ml_dtypes, dtype, None) or np.dtype(dtype))
