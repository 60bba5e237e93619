"""`reduce_sum`: the sum over one dimension, in variants that show what each step of tuning gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import reducing as kernels
from tilewright.kernels.views import DTYPES
from tilewright.ops.dims import from_the_end, without
from tilewright.ops.frameworks import FLOATS, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.ref import reduce as ref
from tilewright.ops.registration import computed_dtype, define, direct

VARIANTS = tuple(kernels.VARIANTS)


def _kernel(out: Any, x: Any, dim: int = -1, variant: str = "auto") -> None:
    if 0 not in x.shape:
        kernels.reduce(out, x, "sum", (dim,), variant)
    elif 0 not in out.shape:
        out[...] = 0


FORWARD = define(
    '_reduce_sum(Tensor(a!) out, Tensor x, int dim=-1, str variant="auto") -> ()',
    kernel=_kernel,
    reference=lambda x, dim=-1, variant="auto": ref.reduce(x, "sum", (dim,)),
    numpy_reference=lambda x, dim=-1, variant="auto": ref.numpy_reduce(x, "sum", (dim,)),
    rows=(0, 1),
)


def reduce_sum(x: Any, dim: int = -1, keepdim: bool = False, variant: str = "auto") -> Any:
    """The sum of x over `dim`.

    Args:
        x: a tensor of at least one dimension and any strides, of PyTorch or NumPy: floats, integers or bool.
        dim: the dimension.
        keepdim: leave it in place, with extent 1.
        variant: how rows are summed.

            * "naive": a block a row, one element at a time, a tree in shared memory;
            * "shuffle": the same with shuffles within warps;
            * "vectorized": loads of 16 bytes, four of them before the first is used;
            * "multi_row": so too, with a warp a row and four rows a block;
            * "split": a row over several blocks, and a second pass over what they give;
            * "auto": the best of these by a rule; other dimensions than the last along columns.

    Returns:
        A new tensor of the dtype of `x`; float32 for 16-bit floats under autocast, int64 for integers and bool.

    Raises:
        DimensionError: (an IndexError) `dim` is out of range.
        ArgumentError: (a ValueError) there is no such variant, or the dtype is none of these.
    """
    check_tensor("reduce_sum", "x", x, DTYPES)
    if variant not in VARIANTS:
        raise ArgumentError(f"reduce_sum: there is no variant {variant!r}", values={"variants": ", ".join(VARIANTS)})
    if x.ndim == 0:
        raise ArgumentError("reduce_sum: a tensor without dimensions has no rows", hint="x.reshape(1)")
    (place,) = from_the_end("reduce_sum", int(dim), x.ndim)
    shape = without(x.shape, (place,), False)
    if not is_torch(x):
        out = np.empty(shape, x.dtype if dtype_name(x) in FLOATS else np.int64)
        FORWARD.run(out, x, place, variant)
    elif direct(x):
        out = _forward(FORWARD.run, x, place, variant, shape)
    else:
        out = _ReduceSum.apply(x, place, variant)
    return out.reshape(without(x.shape, (place,), True)) if keepdim else out


def _forward(run: Any, x: Any, dim: int, variant: str, shape: Sequence[int]) -> Any:
    out = x.new_empty(shape, dtype=computed_dtype(x) if x.dtype.is_floating_point else torch.int64)
    run(out, x, dim, variant)
    return out


if torch is not None:

    class _ReduceSum(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, dim: int, variant: str) -> Any:
            return _forward(FORWARD.dispatched, x, dim, variant, without(x.shape, (dim,), False))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.dim, _ = inputs
            ctx.shape, ctx.dtype = x.shape, x.dtype

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.unsqueeze(ctx.dim).expand(ctx.shape).to(ctx.dtype), None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, dim: int, variant: str) -> Any:
            return _ReduceSum.apply(x.movedim(in_dims[0], 0), dim, variant), 0
