"""`copy_transpose`: a copy with the last two dimensions exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.kernels import copy_transpose as kernels
from tilewright.kernels import views
from tilewright.kernels.views import DTYPES
from tilewright.ops.frameworks import check_tensor, is_torch, torch
from tilewright.ops.ref import copy_transpose as ref
from tilewright.ops.registration import define, direct, maker, recorded

FORWARD = define(
    "_copy_transpose(Tensor(a!) out, Tensor x, int? tile_size=None) -> ()",
    kernel=kernels.copy_transpose,
    reference=ref.copy_transpose,
    numpy_reference=ref.copy_transpose,
    rows=(0, 1),
)


def copy_transpose(x: Any, tile_size: int | None = None) -> Any:
    """A new tensor (..., n, m) with the elements of x (..., m, n).

    Args:
        x: a tensor of at least two dimensions and any strides, of PyTorch or NumPy: floats, integers or bool.
        tile_size: extent of the square tiles that are moved through shared memory: 16, 32, 64 or 128. By default it
            is chosen by the element's size.

    Returns:
        A contiguous tensor of the dtype of `x`.

    Raises:
        ArgumentError: (a ValueError) x has fewer dimensions, its dtype is none of these, or there is no such tile.
    """
    if not is_torch(x):
        _check(x, tile_size)
        out = np.empty(_turned(x.shape), x.dtype)
        FORWARD.run(out, x, tile_size)
        return out
    if direct(x):
        return _ready_to_run(x, tile_size)(x)
    _check(x, tile_size)
    return recorded(_CopyTranspose, x, tile_size)


def _turned(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


_ready: dict[Any, Callable[[Any], Any]] = {}


def _ready_to_run(x: Any, tile_size: int | None) -> Callable[[Any], Any]:
    """What transposes tensors like this one, checked and prepared once."""
    kernel = FORWARD.uses_kernel(x)
    key = (kernel, tile_size, views.facts(x))
    return _ready.get(key) or views.keep(_ready, key, _prepared(x, tile_size, kernel))


def _prepared(x: Any, tile_size: int | None, kernel: bool) -> Callable[[Any], Any]:
    _check(x, tile_size)
    make = maker(_turned(x.shape), x.dtype, x.device)
    found = kernels.prepare(make(), x, tile_size) if kernel and 0 not in x.shape else None

    def run(x: Any) -> Any:
        out = make()
        if found is None:
            FORWARD.run(out, x, tile_size)
        else:
            found(out, x)
        return out

    return run


def _check(x: Any, tile_size: int | None) -> None:
    check_tensor("copy_transpose", "x", x, DTYPES)
    if x.ndim < 2:
        raise ArgumentError(
            "copy_transpose: x needs at least two dimensions",
            values={"shape": tuple(x.shape)},
            hint="a vector as a matrix of one row is x[None]",
        )
    if tile_size is not None and tile_size not in kernels.TILE_SIZES:
        raise ArgumentError(
            f"copy_transpose: there are no tiles of {tile_size!r}",
            values={"tile sizes": ", ".join(map(str, kernels.TILE_SIZES))},
        )


if torch is not None:

    class _CopyTranspose(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, tile_size: int | None) -> Any:
            out = x.new_empty(_turned(x.shape))
            FORWARD.way(x)(out, x, tile_size)
            return out

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.tile_size = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return copy_transpose(grad, ctx.tile_size), None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, tile_size: int | None) -> Any:
            return _CopyTranspose.apply(x.movedim(in_dims[0], 0), tile_size), 0
