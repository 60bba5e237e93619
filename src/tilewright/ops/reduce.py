"""`reduce`: sum, mean, max, min, prod and argmax over any dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError, DimensionError
from tilewright.kernels import reducing as kernels
from tilewright.kernels import views
from tilewright.kernels.reductions import NAMES
from tilewright.kernels.views import DTYPES
from tilewright.ops.dims import from_the_end, without
from tilewright.ops.frameworks import FLOATS, check_dtype, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.ref import reduce as ref
from tilewright.ops.registration import NARROW, computed_dtype, define, direct, maker, recorded

_NEUTRAL = {"sum": 0, "prod": 1, "mean": math.nan}


def _kernel(out: Any, x: Any, op: str, dim: Sequence[int]) -> None:
    """out = the reduction over `dim`, negative numbers in rising order."""
    if 0 in x.shape:
        if 0 not in out.shape:
            out[...] = _NEUTRAL[op]
        return
    if op == "argmax" and len(dim) > 1 and not _flat(x):
        x = x.copy() if isinstance(x, np.ndarray) else x.contiguous()
    kernels.reduce(out, x, op, dim)


def _flat(x: Any) -> bool:
    return bool(x.flags.c_contiguous) if isinstance(x, np.ndarray) else bool(x.is_contiguous())


FORWARD = define(
    "_reduce(Tensor(a!) out, Tensor x, str op, int[] dim) -> ()",
    kernel=_kernel,
    reference=ref.reduce,
    numpy_reference=ref.numpy_reduce,
    rows=(0, 1),
)


def reduce(x: Any, op: str = "sum", dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Any:
    """The reduction `op` of x over the dimensions `dim`.

    Floats are accumulated in float32, float64 in itself, and the result is rounded once; sums and products of integers
    and bool are int64. A NaN is the greatest number and the least. The same call gives the same bits.

    Args:
        x: a tensor of any shape and strides, of PyTorch or NumPy: floats, integers or bool.
        op: "sum", "mean", "prod", "max", "min" or "argmax"; the mean is of floats.
        dim: a dimension or several; None is all. An argmax takes one, or all of the flattened tensor.
        keepdim: leave reduced dimensions in place, with extent 1.

    Returns:
        A new tensor: of int64 for argmax and for sums and products of integers, else of the dtype of `x`; under
        autocast sums and products of 16-bit floats are float32, as in PyTorch. An extreme passes its gradient on in
        equal parts to all elements that reach it.

    Raises:
        DimensionError: (an IndexError) `dim` is out of range.
        ArgumentError: (a ValueError) there is no such reduction, it does not take the dtype, or an extreme is asked of
            no elements.
    """
    if not is_torch(x):
        check_tensor("reduce", "x", x, DTYPES)
        dims = _checked_dims(dtype_name(x), x.shape, op, _hashable(dim))
        out = np.empty(without(x.shape, dims, False), _result_dtype(x, op))
        FORWARD.run(out, x, op, dims)
        return out.reshape(without(x.shape, dims, True)) if keepdim else out
    if direct(x):
        return _ready_to_run(x, op, _hashable(dim), keepdim)(x)
    dims = _checked_dims(dtype_name(x), x.shape, op, dim)
    return recorded(_Reduce, x, op, dims, keepdim)


def _hashable(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list) else dim


_ready: dict[Any, Callable[[Any], Any]] = {}


def _ready_to_run(x: Any, op: str, dim: Any, keepdim: bool) -> Callable[[Any], Any]:
    """What reduces tensors like this one, checked and prepared once."""
    kernel = FORWARD.uses_kernel(x)
    key = (kernel, op, dim, keepdim, views.facts(x), x.dtype in NARROW and computed_dtype(x))
    return _ready.get(key) or views.keep(_ready, key, _prepared(x, op, dim, keepdim, kernel))


def _prepared(x: Any, op: str, dim: Any, keepdim: bool, kernel: bool) -> Callable[[Any], Any]:
    dims = _checked_dims(dtype_name(x), x.shape, op, dim)
    if not kernel or 0 in x.shape or (op == "argmax" and len(dims) > 1):
        return lambda x: _forward(FORWARD.run, x, op, dims, keepdim)
    shape, kept, dtype = without(x.shape, dims, False), without(x.shape, dims, True), _result_dtype(x, op)
    make = maker(shape, dtype, x.device)
    passes = kernels.prepare(make(), x, op, dims)

    def run(x: Any) -> Any:
        out = make()
        kernels.run(passes, out, x)
        return out.view(kept) if keepdim else out

    return run


def _checked_dims(dtype: str, shape: Sequence[int], op: str, dim: Any) -> tuple[int, ...]:
    check_dtype("reduce", "x", dtype, DTYPES)
    dims = from_the_end("reduce", dim, len(shape))
    _check(dtype, shape, op, dim, dims)
    return dims


def _check(dtype: str, shape: Sequence[int], op: str, dim: Any, dims: Sequence[int]) -> None:
    if op not in NAMES:
        raise ArgumentError(f"reduce: there is no reduction {op!r}", values={"reductions": ", ".join(NAMES)})
    if op == "mean" and dtype not in FLOATS:
        raise ArgumentError(
            f"reduce: the mean is of floats, and x has dtype {dtype}", hint="convert it first: x.to(float32)"
        )
    if op == "argmax" and len(dims) > 1 and dim is not None:
        raise ArgumentError("reduce: argmax is over one dimension or all", values={"dim": dim})
    if op in ("max", "min", "argmax") and any(shape[place] == 0 for place in dims):
        raise DimensionError(
            f"reduce: {op} expected a reduction dim with non-zero size", values={"shape": tuple(shape), "dim": dim}
        )


def _result_dtype(x: Any, op: str) -> Any:
    """The dtype of the result, of NumPy or PyTorch as `x` is."""
    if op == "argmax" or (op in ("sum", "prod") and dtype_name(x) not in FLOATS):
        return torch.int64 if is_torch(x) else np.int64
    return computed_dtype(x) if is_torch(x) and op in ("sum", "prod") else x.dtype


def _forward(run: Any, x: Any, op: str, dims: Sequence[int], keepdim: bool) -> Any:
    out = x.new_empty(without(x.shape, dims, False), dtype=_result_dtype(x, op))
    run(out, x, op, dims)
    return out.reshape(without(x.shape, dims, True)) if keepdim else out


if torch is not None:

    class _Reduce(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, op: str, dims: Sequence[int], keepdim: bool) -> Any:
            return _forward(FORWARD.way(x), x, op, dims, keepdim)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.op, ctx.dims, ctx.keepdim = inputs
            if not output.dtype.is_floating_point:
                ctx.mark_non_differentiable(output)
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, out = ctx.saved_tensors
            kept = without(x.shape, ctx.dims, True)
            return ref.reduce_backward(grad.reshape(kept), x, out.reshape(kept), ctx.op, ctx.dims), None, None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, op: str, dims: Sequence[int], keepdim: bool) -> Any:
            return _Reduce.apply(x.movedim(in_dims[0], 0), op, dims, keepdim), 0
