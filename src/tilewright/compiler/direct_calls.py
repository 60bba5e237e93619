"""Direct calls of a jit function from Python: what was compiled for such a call before, found without tracing.

A table of each function goes from the arguments of a call (`arguments.call_key`) to what it runs. What is found is run
only if nothing else has changed either: no setting (`settings.state`), and nothing that the function can reach
(`still_valid` of what `build.find` gave; where nothing but tracing can tell, a call is not kept).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arguments.binding import BoundCall
from tilewright.arguments.call_key import NUMBERS, key_of, number_key, program_key_of
from tilewright.base import settings

MOST_KEPT = 1024
"""Calls that a function remembers, and shapes that a program is remembered for."""

Arguments = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Ready:
    """What a call runs: `run` on the arguments that `passed` chooses (None: all, as they are); then it gives `result`.

    It may be run while `settings.state()` is `state` and `still_valid()`.
    """

    executor: Any
    run: Callable[..., Any]
    passed: Arguments | None
    result: Any
    state: object
    still_valid: Callable[[], bool]

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if self.passed is None:
            self.run(*args)
        else:
            self.run(*self.passed(args, kwargs))
        return self.result


@dataclass(frozen=True, slots=True)
class _ByNumbers:
    """Calls that differ only in numbers that are baked in, which `choose` picks."""

    choose: Arguments
    ready: dict[Hashable, Ready]


class DirectCalls:
    """The calls of one function that are kept."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, Ready | _ByNumbers] = {}
        self._programs: dict[Hashable, Ready | _ByNumbers] = {}
        self._native_key: Callable[..., Hashable] = _no_key

    def find(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Ready | None:
        """What a call with these arguments runs; None where it is not known, or may have changed."""
        if not self._programs:
            return None
        key = self._native_key(*args, **kwargs)
        if key is None:
            key = key_of(args, kwargs)
            if key is None:
                return None
        found = self._calls.get(key)
        if found is None:
            found = self._programs.get(program_key_of(args, kwargs))
            if found is None:
                return None
            _keep(self._calls, key, found)
        if type(found) is _ByNumbers:
            found = found.ready.get(_numbers(found.choose(args, kwargs)))
            if found is None:
                return None
        assert isinstance(found, Ready)
        return found if found.state is settings.state() and found.still_valid() else None

    def keep(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], call: BoundCall,
        executor: Any, result: Any, still_valid: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Remember what a call ran: `call` are its arguments sorted, `result` what the traced function returned."""
        form, program = _Form(function, args, kwargs), program_key_of(args, kwargs)
        if program is None or form.gathers or not isinstance(result, _PLAIN_RESULTS):
            return
        self._native_key = executor.device.call_key or _no_key
        key = self._native_key(*args, **kwargs) or key_of(args, kwargs)
        passed = form.choosing([name for name in call.runtime if name in form.names])
        ready = Ready(executor, executor.run_call, passed, result, settings.state(), still_valid)
        numbers = [name for name, value in call.constants.items() if form.gives(name) and type(value) in NUMBERS]
        if not numbers:
            _keep(self._calls, key, ready)
            _keep(self._programs, program, ready)
            return
        choose = form.choosing(numbers) or (lambda args, kwargs: args)
        table = self._programs.get(program)
        if not isinstance(table, _ByNumbers):
            table = _keep(self._programs, program, _ByNumbers(choose, {}))
        _keep(table.ready, _numbers(choose(args, kwargs)), ready)
        _keep(self._calls, key, table)


def _no_key(*_: Any, **__: Any) -> None:
    return


_PLAIN_RESULTS = (type(None), bool, int, float, str)


def _numbers(values: Sequence[Any]) -> Hashable:
    return tuple(map(number_key, values))


def _keep(table: dict[Any, Any], key: Hashable, value: Any) -> Any:
    """`value`, kept in a table that forgets all when it is full."""
    if len(table) >= MOST_KEPT:
        table.clear()
    table[key] = value
    return value


class _Form:
    """Where a call has the arguments of a function: places of positions, names, or defaults."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        parameters = inspect.signature(function).parameters
        kinds = {item.kind for item in parameters.values()}
        self.gathers = bool(kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})
        self.names = list(parameters)
        self._places = {name: place for place, name in enumerate(self.names[: len(args)])}
        self._named = frozenset(kwargs)
        self._defaults = {name: item.default for name, item in parameters.items()}
        self._whole = not kwargs and len(args)

    def gives(self, name: str) -> bool:
        """Whether the call has the argument itself, not the default."""
        return name in self._places or name in self._named

    def choosing(self, names: Sequence[str]) -> Arguments | None:
        """What chooses these arguments of a call; None where they are all, in order."""
        if self._whole and [self._places.get(name) for name in names] == list(range(self._whole)):
            return None
        sources = [(self._places.get(name), name, self._defaults.get(name)) for name in names]

        def passed(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
            return [args[place] if place is not None else kwargs.get(name, default) for place, name, default in sources]

        return passed
