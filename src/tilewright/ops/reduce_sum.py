"""`reduce_sum`: the sum over one dimension, in variants that show what each step of tuning gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import reducing as kernels
from tilewright.kernels import views
from tilewright.kernels.views import DTYPES
from tilewright.ops.dims import from_the_end, without
from tilewright.ops.frameworks import FLOATS, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.ref import reduce as ref
from tilewright.ops.registration import NARROW, computed_dtype, define, direct, maker, recorded

VARIANTS = tuple(kernels.VARIANTS)


def _kernel(out: Any, x: Any, dim: int = -1, variant: str = "auto") -> None:
    if 0 not in x.shape:
        kernels.reduce(out, x, "sum", (dim,), variant, op="reduce_sum")
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
    if is_torch(x) and direct(x):
        return _ready_to_run(x, dim, keepdim, variant)(x)
    place = _checked(x, dim, variant)
    if not is_torch(x):
        out = np.empty(without(x.shape, (place,), False), x.dtype if dtype_name(x) in FLOATS else np.int64)
        FORWARD.run(out, x, place, variant)
    else:
        out = recorded(_ReduceSum, x, place, variant)
    return out.reshape(without(x.shape, (place,), True)) if keepdim else out


_ready: dict[Any, Callable[[Any], Any]] = {}


def _ready_to_run(x: Any, dim: int, keepdim: bool, variant: str) -> Callable[[Any], Any]:
    """What sums tensors like this one, checked and prepared once."""
    kernel = FORWARD.uses_kernel(x)
    key = (kernel, dim, keepdim, variant, views.facts(x), x.dtype in NARROW and computed_dtype(x))
    return _ready.get(key) or views.keep(_ready, key, _prepared(x, dim, keepdim, variant, kernel))


def _prepared(x: Any, dim: int, keepdim: bool, variant: str, kernel: bool) -> Callable[[Any], Any]:
    place = _checked(x, dim, variant)
    shape, kept = (without(x.shape, (place,), each) for each in (False, True))
    make = maker(shape, _result_dtype(x), x.device)
    passes = None
    if kernel and 0 not in x.shape:
        passes = kernels.prepare(make(), x, "sum", (place,), variant, op="reduce_sum")

    def run(x: Any) -> Any:
        out = make()
        if passes is None:
            FORWARD.run(out, x, place, variant)
        else:
            kernels.run(passes, out, x)
        return out.view(kept) if keepdim else out

    return run


def _result_dtype(x: Any) -> Any:
    return computed_dtype(x) if x.dtype.is_floating_point else torch.int64


def _checked(x: Any, dim: int, variant: str) -> int:
    """`dim` as a negative number."""
    check_tensor("reduce_sum", "x", x, DTYPES)
    if variant not in VARIANTS:
        raise ArgumentError(f"reduce_sum: there is no variant {variant!r}", values={"variants": ", ".join(VARIANTS)})
    if x.ndim == 0:
        raise ArgumentError("reduce_sum: a tensor without dimensions has no rows", hint="x.reshape(1)")
    (place,) = from_the_end("reduce_sum", int(dim), x.ndim)
    return place


def _forward(run: Any, x: Any, dim: int, variant: str, shape: Sequence[int]) -> Any:
    out = x.new_empty(shape, dtype=_result_dtype(x))
    run(out, x, dim, variant)
    return out


if torch is not None:

    class _ReduceSum(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, dim: int, variant: str) -> Any:
            return _forward(FORWARD.way(x), x, dim, variant, without(x.shape, (dim,), False))

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
