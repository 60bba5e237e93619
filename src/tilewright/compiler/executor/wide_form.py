"""The 64-bit form of a compiled function: the same source with every runtime extent and stride in 64 bits.

It is compiled at the first call with a tensor beyond the 32-bit form (see `base.spans`), and kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tilewright.arguments.aggregates import is_aggregate
from tilewright.arguments.binding import BoundCall
from tilewright.arguments.objects import is_jit_argument
from tilewright.arguments.runtime_tensor import FakeTensor, RuntimeTensor, is_tensor
from tilewright.base import dlpack_types, spans
from tilewright.base.errors import TilewrightError
from tilewright.lang import leaves


class Form(Protocol):
    """A compiled function, as far as its narrower form knows it."""

    device: Any

    def __call__(self, *args: Any, **kwargs: Any) -> None: ...

    def run(self, values: Sequence[Any]) -> None: ...


class WideForm:
    """Makes the 64-bit form of an executor when first asked; `compiled(call)` compiles a function for a call."""

    def __init__(self, call: BoundCall, compiled: Callable[[BoundCall], Form]) -> None:
        self._call = replace(without_memory(call), signature=spans.widened(call.signature))
        self._compiled = compiled
        self._lock = threading.Lock()
        self.executor: Form | None = None

    def get(self) -> Form:
        """The 64-bit form.

        Raises:
            TilewrightError: the source does not compile with extents of 64 bits.
        """
        with self._lock:
            if self.executor is None:
                try:
                    self.executor = self._compiled(self._call)
                except TilewrightError as error:
                    error.values.setdefault("compiled", "the 64-bit form, which a tensor of this call needs")
                    raise
            return self.executor


def without_memory(call: BoundCall) -> BoundCall:
    """A call with something that stands for each of its tensors, to trace with later."""
    return replace(call, runtime={name: _without_memory(value) for name, value in call.runtime.items()})


class _StandIn:
    """Where a tensor was: an executor must not keep the memory of those that it was compiled for."""

    def __init__(self, device: int) -> None:
        self._device = device

    def __dlpack__(self, **_: Any) -> Any:
        raise NotImplementedError("it stands for a tensor while tracing")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


def _without_memory(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        return value
    if isinstance(value, RuntimeTensor):
        return _StandIn(value.view.device)
    if is_tensor(value):
        on_host = hasattr(value, "__array_interface__")
        return _StandIn(dlpack_types.CPU if on_host else int(value.__dlpack_device__()[0]))
    if is_aggregate(value) and not is_jit_argument(value):
        return leaves.make(value, {key: _without_memory(item) for key, item in leaves.split(value).items()})
    return value
