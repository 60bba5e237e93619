"""Facts about run-time extents that a layout function needs and cannot prove.

By default a missing fact is a `LayoutError` that states it. Inside `runtime_checks(handler)` the function
goes on as if the fact held, and hands it to `handler`, which checks it when the extents are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

from tilewright.base.errors import LayoutError
from tilewright.layout.dynamic import Leaf
from tilewright.layout.symbolic import evaluate


class Fact(NamedTuple):
    """`left` is a multiple of `right` (`kind` "multiple"), or `left <= right` (`kind` "at most")."""

    kind: Literal["multiple", "at most"]
    left: Leaf
    right: Leaf

    def __str__(self) -> str:
        left, right = (getattr(leaf, "expression", leaf.__str__)() for leaf in (self.left, self.right))
        relation = "is a multiple of" if self.kind == "multiple" else "is at most"
        return f"{left} {relation} {right}"

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether it is true when the symbols have the values in `env`."""
        left, right = evaluate(self.left, env), evaluate(self.right, env)
        return _is_true(self.kind, left, right)


_handler: ContextVar[Callable[[Fact], None] | None] = ContextVar("tilewright_layout_facts", default=None)


@contextmanager
def runtime_checks(handler: Callable[[Fact], None]) -> Iterator[None]:
    """Hand facts that cannot be proved to `handler` inside the block, instead of refusing."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


@contextmanager
def proving() -> Iterator[None]:
    """Refuse what cannot be proved inside the block, also where someone checks facts at run time."""
    token = _handler.set(None)
    try:
        yield
    finally:
        _handler.reset(token)


def checking() -> bool:
    """True if someone will check facts at run time."""
    return _handler.get() is not None


def require(fact: Fact, function: str, **values: object) -> None:
    """Go on only if someone will check `fact` at run time.

    Raises:
        LayoutError: no handler is set; the message states the fact.
    """
    known = _written(fact)
    if known:
        return
    handler = _handler.get()
    if handler is not None and known is None:
        handler(fact)
        return
    if known is False:
        raise LayoutError(f"{function}: it does not hold that {fact}", values=values)
    raise LayoutError(
        f"{function}: it is not known that {fact}",
        values=values,
        hint="give the extent its divisibility (sym_int(divisibility=), assume), or use runtime_checks",
    )


def _written(fact: Fact) -> bool | None:
    """Whether the fact holds where both sides are numbers of the program, else None."""
    left, right = (leaf if type(leaf) is int else leaf.written for leaf in (fact.left, fact.right))
    if left is None or right is None:
        return None
    return _is_true(fact.kind, left, right)


def _is_true(kind: str, left: int, right: int) -> bool:
    if kind == "multiple":
        return left % right == 0 if right else left == 0
    return left <= right
