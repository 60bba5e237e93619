"""An op as it is benchmarked: its inputs, and what computes it."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.ops.frameworks import torch
from tilewright.tools.benching.cases import Case

Function = Callable[..., Any]
"""Of a case's inputs: its result, a tensor or a tuple of tensors; None in a tuple is a result that is not made."""


class Inputs:
    """Makes a case's inputs on `device`: the same ones in every run."""

    def __init__(self, case: Case, device: str) -> None:
        self.case = case
        self.device = device
        self.dtype = getattr(torch, case.dtype)
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(zlib.crc32(str(case).encode()))

    def normal(self, *shape: int, dtype: Any = None) -> Any:
        """Normal random numbers, in the case's dtype by default."""
        wanted = dtype or self.dtype
        made = torch.empty(shape, device=self.device, dtype=torch.float32 if wanted.itemsize < 4 else wanted)
        return made.normal_(generator=self._generator).to(wanted)

    def integers(self, bound: int, *shape: int) -> Any:
        """Random integers from 0 to below `bound`, of int64."""
        return torch.randint(bound, shape, device=self.device, generator=self._generator)


@dataclass(frozen=True)
class Subject:
    """How an op is benchmarked: functions of its inputs and, by name, the case's options.

    Args:
        inputs: makes the tensors that each backend is called with.
        kernel: this project's op.
        ref: its reference.
        exact: the op by its definition; in float64 it is what results are checked against.
        torch: PyTorch's own function; None where it has none, or `peers` has it.
        operator: this project's operator, on results that it keeps; None where it is not measured.
        compiled: what `torch.compile` compiles; None is `torch`.
        peers: by name (torch, triton, quack), a function of a case that gives what to call with the inputs, or None for
            what the peer cannot do. It may raise ModuleNotFoundError.
    """

    inputs: Callable[[Inputs], tuple[Any, ...]]
    kernel: Function
    ref: Function
    exact: Function
    torch: Function | None = None
    operator: Callable[[], Function] | None = None
    compiled: Function | None = None
    peers: Mapping[str, Callable[[Case], Function | None]] = field(default_factory=dict)

    def backend(self, name: str, case: Case) -> Function | None:
        """What to call with a case's inputs; None where the backend has nothing for it.

        Raises:
            ModuleNotFoundError: the backend is not installed.
        """
        if name in self.peers:
            return self.peers[name](case)
        options = case.arguments
        if name == "torch.ops":
            return self.operator() if self.operator is not None and not case.recorded else None
        own = {"kernel": self.kernel, "ref": self.ref, "torch": self.torch}.get(name)
        if own is not None:
            return lambda *inputs: own(*inputs, **options)
        compiled = self.compiled or self.torch
        return _compiled(compiled, options) if name == "torch.compile" and compiled is not None else None

    def wanted(self, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results in float64."""
        wide = (item.double() if item.is_floating_point() else item for item in inputs)
        return as_tuple(self.exact(*wide, **case.arguments))


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    torch._dynamo.reset()  # else shapes and functions add up to the limit beyond which nothing is compiled
    return torch.compile(lambda *inputs: function(*inputs, **options), dynamic=False)


def narrowed(formula: Function) -> Function:
    """A formula computed in float32 on 16-bit inputs; its results have the dtype of the first input."""

    def call(*inputs: Any, **options: Any) -> Any:
        wide = (item.float() if item.is_floating_point() and item.itemsize < 4 else item for item in inputs)
        results = formula(*wide, **options)
        if isinstance(results, tuple):
            return tuple(item.to(inputs[0].dtype) for item in results)
        return results.to(inputs[0].dtype)

    return call


def as_tuple(results: Any) -> tuple[Any, ...]:
    """The tensors among the results of a function."""
    return tuple(item for item in (results if isinstance(results, tuple) else (results,)) if item is not None)


def public(op: str) -> Function:
    """The function `tilewright.ops.<op>`, looked up when it is called."""

    def call(*inputs: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(f"tilewright.ops.{op}"), op)(*inputs, **options)

    return call


def reference(op: str, name: str = "") -> Function:
    """The function `name` of `tilewright.ops.ref.<op>`, that of the op's name by default, looked up when called."""

    def call(*inputs: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(f"tilewright.ops.ref.{op}"), name or op)(*inputs, **options)

    return call


def operator(name: str) -> Any:
    """The operator `torch.ops.tilewright.<name>`."""
    return getattr(torch.ops.tilewright, name)


def keeping(make: Function, run: Function) -> Callable[[], Function]:
    """For `Subject.operator`: `run(*results, *inputs)` with what `make(*inputs)` gave at the first call."""

    def made() -> Function:
        kept: list[Any] = []

        def call(*inputs: Any) -> Any:
            if not kept:
                kept.extend(make(*inputs))
            run(*kept, *inputs)
            return kept[0]

        return call

    return made


_BROKEN: dict[str, str] = {}


def optional(module: str) -> Any:
    """An optional package's module.

    Raises:
        ModuleNotFoundError: it is not installed, or does not import, which is tried once.
    """
    if module in _BROKEN:
        raise ModuleNotFoundError(_BROKEN[module])
    try:
        return importlib.import_module(module)
    except Exception as error:
        _BROKEN[module] = f"{type(error).__name__}: {error}"
        raise ModuleNotFoundError(_BROKEN[module]) from error


def in_triton(name: str) -> Callable[[Case], Function | None]:
    """For `Subject.peers`: a function of this project's peers in Triton, which compute in float32."""

    def of_case(case: Case) -> Function | None:
        kernels = optional("tilewright.tools.benching.triton_kernels")
        return None if case.dtype == "float64" else getattr(kernels, name)

    return of_case
