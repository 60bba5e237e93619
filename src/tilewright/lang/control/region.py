"""Where a body runs, and early ways out of it."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation, stable_file
from tilewright.lang.locations import user_location

_HINTS = {
    "break": "keep a Boolean and test it in the head of a `while`, or use `cutlass.range_constexpr` and `const_expr`",
    "continue": "put the rest of the loop body under an `if` of the opposite condition",
    "return": "set a variable in every branch and return it once at the end, or put the rest under an `else`",
    "raise": "use `cute.testing.assert_` for what is checked at run time",
}


class Region:
    """One construct whose body is being run or traced.

    `runtime` is true for a region of the program. `around` is the region around it, or at the top of a function the
    names of variables that belong to Python code outside the program (`host`).
    """

    __slots__ = ("file", "host", "kind", "line", "parent", "runtime")

    def __init__(self, kind: str, runtime: bool, around: Region | tuple[str, ...], depth: int = 2) -> None:
        frame = sys._getframe(depth)
        self.kind = kind
        self.runtime = runtime
        self.parent = around if isinstance(around, Region) else None
        self.host: tuple[str, ...] = around.host if isinstance(around, Region) else around
        self.file = stable_file(frame.f_code.co_filename)
        self.line = frame.f_lineno

    @property
    def is_loop(self) -> bool:
        return self.kind in ("for", "while")

    def place(self) -> SourceLocation:
        return SourceLocation(self.file, self.line)


class Exit:
    """A signal: a body ended early."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind = kind
        self.value = value


BREAK = Exit("break")
CONTINUE = Exit("continue")


def return_(region: Region, value: Any) -> Exit:
    """`return value` inside a body."""
    at: Region | None = region
    while at is not None:
        if at.runtime:
            refuse("return", at)
        at = at.parent
    return Exit("return", value)


def break_(region: Region) -> Exit:
    """`break` inside a body."""
    _check_loop_exit("break", region)
    return BREAK


def continue_(region: Region) -> Exit:
    """`continue` inside a body."""
    _check_loop_exit("continue", region)
    return CONTINUE


def raise_(region: Region) -> None:
    """Before a `raise` inside a body: it must be decided when the program is traced."""
    if region.runtime:
        refuse("raise", region)


def is_return(signal: Exit | None) -> bool:
    """True when a `return` left the construct."""
    return signal is not None and signal.kind == "return"


def _check_loop_exit(kind: str, region: Region) -> None:
    at: Region | None = region
    while at is not None:
        if at.runtime:
            refuse(kind, at)
        if at.is_loop:
            return
        at = at.parent


def refuse(kind: str, region: Region) -> NoReturn:
    """Raise the error of an early way out that crosses `region`."""
    what = {"if": "under a runtime `if`", "with": "inside a runtime `with`"}.get(
        region.kind, f"in a runtime `{region.kind}` loop"
    )
    raise CompileError(
        f"`{kind}` {what}",
        location=user_location(),
        values={f"`{region.kind}`": region.place()},
        hint=_HINTS[kind] + "; a condition of compile time goes into `cutlass.const_expr(...)`",
    )
