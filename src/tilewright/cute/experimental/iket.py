"""`cute.experimental.iket`: markers and ranges of in-kernel event tracing, which compile to nothing.

CuTe DSL drops them as well, unless a kernel is compiled for its profiler `run-iket`, which has no part here: kernels
are timed by `cute.profile`. A label is checked, so that a kernel which says nonsense here does so everywhere.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.locations import user_location


def _check(what: str, name: Any) -> None:
    trace.device(f"iket.{what}")
    if not isinstance(name, str) or not name:
        raise CompileError(
            f"iket.{what} takes the name of the event, not {name!r}",
            location=user_location(3),
            hint='a text known while compiling, as "load"',
        )


def mark(name: str, payload: Any = None, *, loc: object = None, ip: object = None) -> None:
    """A point in time; `payload` is a number that the trace would show."""
    _check("mark", name)


def range_push(name: str, payload: Any = None, *, loc: object = None, ip: object = None) -> None:
    """Begin a range inside those that are open."""
    _check("range_push", name)


def range_pop(payload: Any = None, *, loc: object = None, ip: object = None) -> None:
    """End the range that began last."""
    trace.device("iket.range_pop")


def range_start(name: str, payload: Any = None, *, loc: object = None, ip: object = None) -> str:
    """Begin a range, and give the token that ends it."""
    _check("range_start", name)
    return name


def range_end(token: str, payload: Any = None, *, loc: object = None, ip: object = None) -> None:
    """End the range of a token."""
    _check("range_end", token)
