"""Erasing operations: those that nothing uses, and those that are still used.

MLIR ends the process over the second, so passes of the user get an error instead.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.base.errors import PassError
from tilewright.ir import build, mlir
from tilewright.ir.dialect import PURE_OPS
from tilewright.ir.source import source_location
from tilewright.ir.user_ops import USER_OPS
from tilewright.ir.walk import operations


class _Guard(threading.local):
    """`on` inside `checked_erasing`; `told` hears of each operation before it is erased."""

    on = False
    told: Callable[[Any], None] | None = None


_guard = _Guard()


def erase_unused(root: Any) -> None:
    """Erase the pure operations inside `root` whose results nothing uses. Divisions stay: they may be by zero."""
    build.forget_pure()
    for op in reversed(operations(root)):
        if is_pure(op.name) and not any(True for result in op.results for _ in result.uses):
            op.erase()


def is_pure(name: str) -> bool:
    """True of operations that may go where nothing uses their results."""
    if name in PURE_OPS or name in USER_OPS:
        return name in PURE_OPS or USER_OPS[name].spec.pure
    return name.startswith("arith.") and not name.startswith(_MAY_FAIL)


_MAY_FAIL = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")


@contextmanager
def checked_erasing(told: Callable[[Any], None] | None = None) -> Iterator[None]:
    """`op.erase()` raises a PassError inside the block, on this thread, where a result of `op` is used.

    `told(op)` is called before each operation that is erased.
    """
    _install()
    before = _guard.on, _guard.told
    _guard.on, _guard.told = True, told or _guard.told
    try:
        yield
    finally:
        _guard.on, _guard.told = before


@functools.cache
def _install() -> None:
    base = next(cls for cls in mlir.ir.Operation.__mro__ if "erase" in vars(cls))
    plain = base.erase

    @functools.wraps(plain)
    def erase(self: Any) -> None:
        if _guard.on:
            _refuse_used(self)
            if _guard.told is not None:
                _guard.told(self)
        plain(self)

    base.erase = erase


def _refuse_used(op: Any) -> None:
    for result in op.results:
        for use in result.uses:
            raise PassError(
                f"{op.name} is erased while its result is used",
                location=source_location(op.location),
                values={"used by": use.owner.name},
                hint="give what uses it another value first: op.result.replace_all_uses_with(value)",
            )
