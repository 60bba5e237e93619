"""How an op is made known to PyTorch, once: schema, implementations, fake, vmap.

An operator `tilewright::_<op>` writes its results into its first arguments, `(Tensor(a!) out, Tensor x, ...) -> ()`.
`torch.library.Library.define` and `impl` are used rather than `torch.library.custom_op`, whose calls take longer: see
docs/kernels/softmax_online.md. The public function of an op allocates the results and calls

* the kernel itself, where nothing records, transforms or traces the call (`direct`);
* else the operator, through an `autograd.Function` where there is a gradient.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.ops.frameworks import on_emulator, torch

NAMESPACE = "tilewright"
LIBRARY = None if torch is None else torch.library.Library(NAMESPACE, "DEF")


@dataclass
class Operator:
    """An operator that writes `outputs` tensors, its first arguments.

    `kernel(*outputs, *inputs)` runs on the tensors' device, or on the emulator; `reference(*inputs)` gives the results,
    one or a tuple, in PyTorch; `numpy_reference` in NumPy. `backend` is `kernel` or `ref`; None is the kernel on a GPU,
    and on memory of the host the reference, unless the setting `TILEWRIGHT_TARGET=emu` asks for the emulator.
    `dispatched` is the operator as PyTorch calls it.
    """

    name: str
    outputs: int
    kernel: Callable[..., None]
    reference: Callable[..., Any]
    numpy_reference: Callable[..., Any]
    backend: str | None = None
    dispatched: Any = None

    def run(self, *args: Any) -> None:
        """Run, past PyTorch's dispatcher."""
        if self.quick(*args):
            return
        if (self.backend is None and type(args[0]) in _PLAIN and args[0].is_cuda) or self.uses_kernel(*args):
            self.kernel(*args)
        else:
            self._refer(args[: self.outputs], args[self.outputs :])

    def __post_init__(self) -> None:
        self._router = getattr(self.kernel, "router", None)

    def quick(self, *args: Any) -> bool:
        """Run the kernel by native code alone; False where that is not possible, or is not wanted: nothing is done."""
        if self._router is None or self.backend is not None:
            return False
        try:
            return not self._router.call(*args)
        except Exception:  # noqa: BLE001  (tvm-ffi raises whatever class an error names)
            return False  # the other way says what is wrong

    def run_on_any(self, *args: Any) -> None:
        """`run` where results may have any strides: those that are not contiguous are written by way of a copy."""
        for out in args[: self.outputs]:
            if out is not None and not out.is_contiguous():
                return self._run_on_copies(*args)
        return self.run(*args)

    def _run_on_copies(self, *args: Any) -> None:
        outs = args[: self.outputs]
        dense = [out if out is None or out.is_contiguous() else out.new_empty(out.shape) for out in outs]
        self.run(*dense, *args[self.outputs :])
        for out, copy in zip(outs, dense, strict=True):
            if copy is not out:
                out.copy_(copy)

    def uses_kernel(self, *args: Any) -> bool:
        """Whether a call with these tensors runs the kernel."""
        if self.backend is not None:
            return self.backend == "kernel"
        return getattr(args[0], "is_cuda", False) or on_emulator()

    def _refer(self, outs: Sequence[Any], inputs: Sequence[Any]) -> None:
        if all(out is None or 0 in out.shape for out in outs):
            return
        arrays = any(isinstance(item, np.ndarray) for item in inputs)
        results = self.numpy_reference(*inputs) if arrays else self.reference(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        for out, result in zip(outs, results, strict=True):
            if out is not None:
                out[...] = result

    def way(self, *tensors: Any) -> Callable[..., None]:
        """`run` where it may be called with these tensors, else `dispatched`: see `direct`."""
        way: Callable[..., None] = self.run if direct(*tensors) else self.dispatched
        return way


def define(
    schema: str,
    *,
    kernel: Callable[..., None],
    reference: Callable[..., Any],
    numpy_reference: Callable[..., Any],
    rows: Sequence[int] = (),
) -> Operator:
    """Register an operator under `torch.ops.tilewright`; without PyTorch it is only made.

    Args:
        schema: `_name(Tensor(a!) out, Tensor x, ...) -> ()`, results first.
        kernel: see `Operator`.
        reference: see `Operator`.
        numpy_reference: see `Operator`.
        rows: the places of the arguments that may have more leading dimensions, so that a vmap over them is one call.
            A vmap over any other is a call for each element.
    """
    name, outputs = schema.partition("(")[0], len(re.findall(r"!\)\??", schema))
    made = Operator(name, outputs, kernel, reference, numpy_reference)
    if LIBRARY is not None:
        LIBRARY.define(schema, tags=[torch.Tag.pt2_compliant_tag])
        made.dispatched = getattr(getattr(torch.ops, NAMESPACE), name).default
        for device in ("CUDA", "CPU"):
            LIBRARY.impl(name, made.run_on_any, device)
        qualified = f"{NAMESPACE}::{name}"
        torch.library.register_fake(qualified, lambda *args: None, lib=LIBRARY)
        torch.library.register_vmap(qualified, _vmap_rule(made, frozenset(rows)), lib=LIBRARY)
    return made


def _vmap_rule(operator: Operator, rows: frozenset[int]) -> Callable[..., Any]:
    def rule(info: Any, in_dims: Sequence[int | None], *args: Any) -> Any:
        batched = {place for place, dim in enumerate(in_dims) if isinstance(dim, int)}  # lists have lists of None
        if any(place not in batched and args[place] is not None for place in range(operator.outputs)):
            raise ArgumentError(
                f"torch.ops.{NAMESPACE}.{operator.name}: vmap maps over inputs, but not over tensors that it writes",
                hint="allocate them inside the function that vmap maps, or call the public function",
            )
        if batched <= rows:
            operator.dispatched(*(
                _leading(arg, dim, info.batch_size) if place in rows and arg is not None else arg
                for place, (arg, dim) in enumerate(zip(args, in_dims, strict=True))
            ))  # fmt: skip
        else:
            for number in range(info.batch_size):
                pairs = zip(args, in_dims, strict=True)
                operator.dispatched(*(arg.select(dim, number) if isinstance(dim, int) else arg for arg, dim in pairs))
        return None, None

    return rule


def _leading(tensor: Any, dim: int | None, batch: int) -> Any:
    return tensor.expand(batch, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def direct(first: Any, *tensors: Any) -> bool:
    """Whether an op may run past the dispatcher and autograd: no gradient, transform, mode or trace sees these tensors.

    None is skipped but in the first place.
    """
    if torch is None or _is_compiling() or _modes() or _transforms() is not None or forward_ad._current_level >= 0:
        return False
    if type(first) not in _PLAIN or first.is_neg() or (first.requires_grad and _is_grad_enabled()):
        return False
    for tensor in tensors:
        if tensor is not None and (
            type(tensor) not in _PLAIN or tensor.is_neg() or (tensor.requires_grad and _is_grad_enabled())
        ):
            return False
    return True


def unseen(*tensors: Any) -> bool:
    """Whether no transform, mode or trace sees these tensors; a gradient may be recorded."""
    if torch is None or _is_compiling() or _modes() or _transforms() is not None or forward_ad._current_level >= 0:
        return False
    return all(type(tensor) in _PLAIN and not tensor.is_neg() for tensor in tensors)


def recorded(function: Any, *args: Any) -> Any:
    """`function.apply(*args)` of an `autograd.Function`, in the form that PyTorch calls fastest.

    `apply` binds defaults by the signature of `forward` at each call, and asks for `setup_context`, which only traces
    and transforms need.
    """
    if _is_compiling() or _transforms() is not None:
        return function.apply(*args)
    return _in_one(function)(*args)


@functools.cache
def _in_one(function: Any) -> Any:
    """What applies the function with `forward` and `setup_context` in one."""

    def forward(ctx: Any, *args: Any) -> Any:
        output = function.forward(*args)
        function.setup_context(ctx, args, output)
        return output

    members = {"forward": staticmethod(forward), "backward": staticmethod(function.backward)}
    made: Any = type(function.__name__, (torch.autograd.Function,), members)
    return super(torch.autograd.Function, made).apply


if torch is not None:  # looked up once
    forward_ad = torch.autograd.forward_ad
    _is_compiling, _is_grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
    _modes, _transforms = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack

_PLAIN: frozenset[type] = frozenset() if torch is None else frozenset((torch.Tensor, torch.nn.Parameter))
NARROW: frozenset[Any] = frozenset() if torch is None else frozenset((torch.float16, torch.bfloat16))


def computed_dtype(tensor: Any) -> Any:
    """The dtype of the result of an op that PyTorch runs in float32 under autocast, on a GPU."""
    if tensor.dtype in NARROW and torch.is_autocast_enabled("cuda") and tensor.is_cuda:
        return torch.float32
    return tensor.dtype


def result_like(tensor: Any) -> Any:
    """A new contiguous tensor like this, of `computed_dtype`."""
    if tensor.dtype in NARROW and computed_dtype(tensor) is torch.float32:
        return torch.empty_like(tensor, dtype=torch.float32, memory_format=torch.contiguous_format)
    if tensor.is_contiguous():
        return torch.empty_like(tensor)
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def maker(shape: Sequence[int], dtype: Any, device: Any) -> Callable[[], Any]:
    """What makes new contiguous tensors: in half the time of `torch.empty`."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    steps = tuple(reversed(strides)) if len(shape) else ()
    return functools.partial(torch.empty_strided, tuple(shape), steps, dtype=dtype, device=device)
