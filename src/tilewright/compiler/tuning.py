"""Choosing the fastest of several configurations: `cute.testing.tune` and `autotune_jit`."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.base.errors import ArgumentError, CompileError, TilewrightError
from tilewright.compiler.benchmark import JitArguments, benchmark
from tilewright.compiler.jit import JitFunction, compile_candidates, compile_function, plans_of
from tilewright.lang import trace


class CantImplementError(Exception):
    """A configuration that a program does not support; tuning skips it."""


def _configurations(params: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*params.values()):
        yield dict(zip(params, values, strict=True))


def tune(
    func: Callable[..., Any],
    params_dict: Mapping[str, Sequence[Any]],
    kernel_arguments: JitArguments | None = None,
    *,
    warmup_iterations: int = 10,
    iterations: int = 100,
    stream: Any = None,
) -> dict[str, Any]:
    """The configuration whose function is fastest.

    Args:
        func: called with the arguments and one configuration; gives a function without arguments, which is timed.
        params_dict: parameter names to the values to try, all combinations.
        kernel_arguments: the arguments for `func`.
        warmup_iterations: see `benchmark`.
        iterations: see `benchmark`.
        stream: see `benchmark`.

    Raises:
        CompileError: no configuration works; the message has the error of each.
    """
    given = kernel_arguments or JitArguments()

    def measured(configuration: dict[str, Any]) -> float | Exception:
        try:
            run = func(*given.args, **given.kwargs, **configuration)
            return benchmark(run, warmup_iterations=warmup_iterations, iterations=iterations, stream=stream)
        except _SKIPPED as error:
            return error

    configurations = list(_configurations(params_dict))
    return configurations[_fastest(configurations, [measured(item) for item in configurations])]


_SKIPPED = (TilewrightError, CantImplementError, ValueError, TypeError)
"""Errors of a configuration that does not work."""


def _fastest(configurations: Sequence[Mapping[str, Any]], seconds: Sequence[float | Exception]) -> int:
    """The number of the configuration that took the least time."""
    times = [(found, number) for number, found in enumerate(seconds) if not isinstance(found, Exception)]
    if times:
        return min(times)[1]
    failures = {
        ", ".join(f"{name}={value}" for name, value in configuration.items()): str(error).split("\n")[0]
        for configuration, error in zip(configurations, seconds, strict=True)
    }
    raise CompileError("no configuration works", values=failures, hint="see the error of each")


class AutotunedFunction(JitFunction[..., Any]):
    """A jit function that times its configurations at the first call, and again when watched arguments change."""

    def __init__(self, function: JitFunction[..., Any], params: Mapping[str, Sequence[Any]], watched: Sequence[str],
                 warmup: int, iterations: int) -> None:  # fmt: skip
        super().__init__(function.function, function.preprocess)
        self._plain = function
        self.symbol_name = function.symbol_name
        self._params = params
        self._watched = tuple(watched)
        self._counts: dict[str, Any] = {"warmup_iterations": warmup, "iterations": iterations}
        self._signature = inspect.signature(self.function)
        unknown = {*params, *watched} - self._signature.parameters.keys()
        if unknown:
            raise ArgumentError(f"{self.function.__name__} has no parameter {sorted(unknown)[0]!r}")
        self._best: dict[Any, Any] = {}
        self.best_config: dict[str, Any] = {}

    @property
    def pipeline(self) -> Any:
        return self._plain.pipeline

    @property
    def defaults(self) -> Any:
        return self._plain.defaults

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if trace.tracing():
            return super().__call__(*args, **kwargs)
        bound = self._signature.bind(*args, **kwargs).arguments
        key = tuple(repr(bound.get(name)) for name in self._watched)
        if key not in self._best:
            self._best[key] = self._tuned(key, args, kwargs)
        executor, self.best_config = self._best[key]
        return executor(*args, **kwargs)

    def _tuned(self, watched: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The fastest configuration, compiled: the one that was the fastest before, or found by trying all."""
        configurations = list(_configurations(self._params))
        calls = [functools.partial(compile_function, self, *args, **kwargs, **item) for item in configurations]
        key = self._key(calls, watched)
        best = tunings().kept_choice(key, len(calls)) if key else None
        if best is not None:
            return calls[best](), configurations[best]
        executors = compile_candidates(calls, _SKIPPED)
        seconds = [self._measured(executor, JitArguments(*args, **kwargs)) for executor in executors]
        best = _fastest(configurations, seconds)
        if key:
            tunings().keep_choice(key, best)
        return executors[best], configurations[best]

    def _measured(self, executor: Any, arguments: JitArguments) -> float | Exception:
        if isinstance(executor, Exception):
            return executor
        try:
            return benchmark(executor, kernel_arguments=arguments, **self._counts)
        except _SKIPPED as error:
            return error

    def _key(self, calls: Sequence[functools.partial[Any]], watched: object) -> str:
        """The key of the choice among these calls; "" where it is not to be kept."""
        try:
            plans = plans_of(calls)
        except _SKIPPED:
            return ""
        return str(tunings().tuning_key(plans, (self._counts, watched)))


def tunings() -> Any:
    """What keeps choices; loaded when something is tuned."""
    return importlib.import_module("tilewright.compiler.cache.tunings")


def autotune_jit(
    params_dict: Mapping[str, Sequence[Any]],
    update_on_change: Sequence[str] = (),
    warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[JitFunction[..., Any]], AutotunedFunction]:
    """Decorator over `@cute.jit`: try all combinations of `params_dict` at the first call and keep the fastest.

    It tries again when the value of an argument named in `update_on_change` is new. The configurations are compiled
    beside each other, and the choice is kept on disk for devices of this name: see docs/cache.md.
    """

    def decorate(function: JitFunction[..., Any]) -> AutotunedFunction:
        if not isinstance(function, JitFunction):
            raise ArgumentError("autotune_jit decorates a @cute.jit function", hint="put @cute.jit below it")
        return AutotunedFunction(function, params_dict, update_on_change, warmup_iterations, iterations)

    return decorate
