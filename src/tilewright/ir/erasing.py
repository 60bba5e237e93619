"""Erasing operations: those that nothing uses, and those that are still used.

MLIR ends the process over the second, so passes of the user get an error instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.base.errors import PassError
from tilewright.ir import build, mlir
from tilewright.ir.context import active, current
from tilewright.ir.locations import source_location
from tilewright.ir.user_ops import USER_OPS
from tilewright.ir.walk import operations


def erase_unused(root: Any) -> None:
    """Erase the arithmetic, addresses and views inside `root` that nothing uses; divisions stay, as they may fail."""
    build.forget_pure()
    for op in reversed(operations(root)):
        name = op.name
        unneeded = name in _ADDRESSES or _is_user_pure(name) or _is_total_arithmetic(name)
        if unneeded and not any(True for result in op.results for _ in result.uses):
            op.erase()


def _is_user_pure(name: str) -> bool:
    found = USER_OPS.get(name)
    return found is not None and found.spec.pure


def _is_total_arithmetic(name: str) -> bool:
    return name.startswith("arith.") and not name.startswith(_MAY_FAIL)


_ADDRESSES = frozenset(
    f"cute.{name}" for name in ("make_tensor", "view", "iterator", "leaf", "ptr_offset", "field", "ptr_cast")
)
_MAY_FAIL = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")


@contextmanager
def checked_erasing(told: Callable[[Any], None] | None = None) -> Iterator[None]:
    """`op.erase()` raises a PassError inside the block, on this thread, where a result of `op` is used.

    `told(op)` is called before each operation that is erased.
    """
    _install()
    session = current()
    before = session.checks_erasing, session.told_of_erasing
    session.checks_erasing, session.told_of_erasing = True, told or session.told_of_erasing
    try:
        yield
    finally:
        session.checks_erasing, session.told_of_erasing = before


@functools.cache
def _install() -> None:
    base = next(cls for cls in mlir.ir.Operation.__mro__ if "erase" in vars(cls))
    plain = base.erase

    @functools.wraps(plain)
    def erase(self: Any) -> None:
        if active() and current().checks_erasing:
            _refuse_used(self)
            told = current().told_of_erasing
            if told is not None:
                told(self)
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
