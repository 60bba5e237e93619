"""`elementwise`: a function of up to three tensors, element by element, with broadcasting."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base.errors import ArgumentError
from tilewright.kernels import elementwise as kernels
from tilewright.kernels.functions import FUNCTIONS, OF_FLOATS
from tilewright.kernels.views import DTYPES, dtype_of, facts, keep
from tilewright.ops.frameworks import FLOATS, check_alike, check_tensor, dtype_name, is_torch, torch
from tilewright.ops.ref import elementwise as ref
from tilewright.ops.registration import define, direct, maker, recorded

_INPUTS = {name: len(inspect.signature(function).parameters) for name, function in FUNCTIONS.items()}


def _kernel(out: Any, op: str, x: Any, y: Any = None, z: Any = None) -> None:
    kernels.elementwise(out, _given(x, y, z), FUNCTIONS[op], _computed_type(out))


def _computed_type(out: Any) -> type[cute.Numeric]:
    dtype = dtype_of(out)
    return cute.Float32 if dtype.is_float and dtype.width < 32 else dtype


def _prepare(out: Any, op: str, inputs: Sequence[Any]) -> kernels.Prepared:
    return kernels.prepare(out, inputs, FUNCTIONS[op], _computed_type(out))


def _given(*inputs: Any) -> tuple[Any, ...]:
    return tuple(item for item in inputs if item is not None)


def _reference(op: str, x: Any, y: Any = None, z: Any = None) -> Any:
    inputs = _given(x, y, z)
    dtype = _torch_dtype(op, inputs)
    computed = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return ref.elementwise(op, [item.to(computed) for item in inputs]).to(dtype)


def _numpy_reference(op: str, x: Any, y: Any = None, z: Any = None) -> Any:
    inputs = _given(x, y, z)
    dtype = _numpy_dtype(op, inputs)
    computed = np.dtype(np.float32) if dtype.kind in "fV" and dtype.itemsize < 4 else dtype
    return ref.numpy_elementwise(op, [item.astype(computed) for item in inputs]).astype(dtype)


FORWARD = define(
    "_elementwise(Tensor(a!) out, str op, Tensor x, Tensor? y=None, Tensor? z=None) -> ()",
    kernel=_kernel,
    reference=_reference,
    numpy_reference=_numpy_reference,
)


def elementwise(op: str, *inputs: Any) -> Any:
    """The function `op` of the inputs, element by element, broadcast to one shape.

    16-bit floats are computed in float32 and rounded once. The types of the inputs are promoted to that of the result
    (`torch.promote_types`, `numpy.result_type`), which is float32 for functions of integers that give floats.

    Args:
        op: "copy", "neg", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "silu" or "gelu" of one
            tensor; "add", "sub", "mul", "div", "maximum" or "minimum" of two; "fma", a·b + c, of three.
        inputs: tensors of any shapes and strides, of PyTorch or NumPy: floats, integers or bool.

    Returns:
        A new contiguous tensor.

    Raises:
        ArgumentError: (a ValueError) there is no such function, it takes another number of tensors, their shapes do not
            broadcast, or they lie on several devices.
    """
    if not all(map(is_torch, inputs)):
        out = np.empty(_check(op, inputs), _numpy_dtype(op, inputs))
        FORWARD.run(out, op, *inputs)
        return out
    if direct(*inputs):
        return _ready_to_run(op, inputs)(*inputs)
    _check(op, inputs)
    return recorded(_Elementwise, op, *inputs)


_ready: dict[Any, Callable[..., Any]] = {}


def _ready_to_run(op: str, inputs: Sequence[Any]) -> Callable[..., Any]:
    """What computes the function of tensors like these, checked and prepared once."""
    kernel = FORWARD.uses_kernel(*inputs)
    key = (kernel, op, *map(facts, inputs))
    return _ready.get(key) or keep(_ready, key, _prepared(op, inputs, kernel))


def _prepared(op: str, inputs: Sequence[Any], kernel: bool) -> Callable[..., Any]:
    shape, dtype = _check(op, inputs), _torch_dtype(op, inputs)
    make = maker(shape, dtype, inputs[0].device)
    found = _prepare(make(), op, inputs) if kernel and 0 not in shape else None

    def run(*inputs: Any) -> Any:
        out = make()
        if found is None:
            FORWARD.run(out, op, *inputs)
        else:
            kernels.run(found, out, inputs)
        return out

    return run


def _check(op: str, inputs: Sequence[Any]) -> tuple[int, ...]:
    """The shape of the result."""
    if op not in FUNCTIONS:
        raise ArgumentError(f"elementwise: there is no function {op!r}", values={"functions": ", ".join(FUNCTIONS)})
    if len(inputs) != _INPUTS[op]:
        raise ArgumentError(f"elementwise: {op} takes {_INPUTS[op]} tensors, and there are {len(inputs)}")
    named = dict(zip(("x", "y", "z"), inputs, strict=False))
    for name, item in named.items():
        check_tensor("elementwise", name, item, DTYPES)
    check_alike("elementwise", **named)
    shape = kernels.broadcast_shape([tuple(item.shape) for item in inputs])
    if shape is None:
        shapes = {name: tuple(item.shape) for name, item in named.items()}
        raise ArgumentError("elementwise: the shapes do not broadcast", values=shapes)
    return shape


def _torch_dtype(op: str, inputs: Sequence[Any]) -> Any:
    dtype = inputs[0].dtype
    for item in inputs[1:]:
        dtype = torch.promote_types(dtype, item.dtype)
    return torch.float32 if op in OF_FLOATS and not dtype.is_floating_point else dtype


def _numpy_dtype(op: str, inputs: Sequence[Any]) -> Any:
    dtype = np.result_type(*(item.dtype for item in inputs))
    return np.dtype(np.float32) if op in OF_FLOATS and dtype_name(np.empty(0, dtype)) not in FLOATS else dtype


if torch is not None:

    class _Elementwise(torch.autograd.Function):
        @staticmethod
        def forward(op: str, *inputs: Any) -> Any:
            shape = kernels.broadcast_shape([item.shape for item in inputs])
            out = inputs[0].new_empty(shape, dtype=_torch_dtype(op, inputs))
            FORWARD.way(*inputs)(out, op, *inputs)
            return out

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.op, *tensors = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            _, gradients = torch.func.vjp(lambda *inputs: _reference(ctx.op, *inputs), *ctx.saved_tensors)
            return None, *gradients(grad)

        @staticmethod
        def vmap(info: Any, in_dims: Any, op: str, *inputs: Any) -> Any:
            rank = max(item.ndim - (dim is not None) for item, dim in zip(inputs, in_dims[1:], strict=True))
            lined_up = (
                item if dim is None else _lined_up(item.movedim(dim, 0), rank)
                for item, dim in zip(inputs, in_dims[1:], strict=True)
            )
            return _Elementwise.apply(op, *lined_up), 0


def _lined_up(item: Any, rank: int) -> Any:
    """(batch, ...) as (batch, 1, ..., ...) of rank + 1."""
    return item.reshape(item.shape[0], *(1,) * (rank + 1 - item.ndim), *item.shape[1:])
