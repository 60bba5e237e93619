"""Functions that see every compilation while they are registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.compiler import logs

_hooks: list[Callable[[Any], None]] = []


@contextmanager
def after_compile(hook: Callable[[Any], None]) -> Iterator[None]:
    """Call `hook(executor)` after each compilation inside the block."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)


def compiled(executor: Any) -> None:
    """Tell the log and the hooks that a function was compiled."""
    logs.compiled(executor)
    for hook in list(_hooks):
        hook(executor)
