"""Reading layouts back from the text they print as."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.inttuple import MOST_DEPTH, IntTuple
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, late
from tilewright.layout.symbolic import sym_int

_TOKEN = re.compile(
    r"\s*(?:(?P<swizzle>S<\s*(-?\d+)\s*,\s*(-?\d+)\s*,\s*(-?\d+)\s*>)|(?P<dynamic>\?(?:\{[^}]*\})?)"
    r"|(?P<number>-?\d+)|(?P<sign>[(),:@])|(?P<compose>o))"
)
_FACTS = re.compile(r"(i64)?\s*(?:div=(\d+))?")


_MOST_DIGITS = 1000
_MOST_TEXT = 60
"""The most characters that an error shows on each side of the fault."""


def _excerpt(source: str, position: int) -> dict[str, object]:
    start = max(position - _MOST_TEXT, 0)
    cut = "..." if start else ""
    return {"text": cut + source[start : position + _MOST_TEXT], "here": " " * (position - start + len(cut)) + "^"}


def parse(source: str) -> Any:
    """The layout, composed layout, swizzle or IntTuple that prints as `source`.

    Blanks and a comma after the last item of a tuple are allowed; each `?` is a new symbolic integer.

    Raises:
        LayoutError: `source` is not of that form; the message shows where.
    """
    return _Reader(source).whole()


class _Reader:
    """A recursive descent over the tokens of one text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = list(self._scan())
        self.place = 0

    def _scan(self) -> Iterator[tuple[str, Any, int]]:
        position = 0
        end = len(self.source.rstrip())
        while position < end:
            match = _TOKEN.match(self.source, position)
            if match is None:
                raise self._error(position, "unexpected text")
            kind = str(match.lastgroup)
            if match.end() - position > _MOST_DIGITS:
                raise self._error(position, f"a number of more than {_MOST_DIGITS} digits")
            yield kind, (match.groups()[1:4] if kind == "swizzle" else match[kind]), match.start(kind)
            position = match.end()

    def _error(self, position: int, problem: str) -> LayoutError:
        return LayoutError(
            f"not a layout: {problem} at column {position}",
            values=_excerpt(self.source, position),
            hint='write shape:stride, such as "(4,8):(8,1)" or "S<3,4,3> o 0 o (8,64):(64,1)"',
        )

    def _peek(self) -> tuple[str, Any, int]:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("end", None, len(self.source))

    def _accept(self, value: str) -> bool:
        if self._peek()[1] != value:
            return False
        self.place += 1
        return True

    def whole(self) -> Any:
        value = self._composed()
        kind, _, position = self._peek()
        if kind != "end":
            raise self._error(position, "text after the end")
        return value

    def _composed(self) -> Any:
        """`inner o offset o outer`, or what stands alone."""
        first = self._single()
        if not self._accept("o"):
            return first
        offset = self._tuple()
        if not self._accept("o"):
            raise self._error(self._peek()[2], "a composed layout is `inner o offset o outer`; missing `o`")
        outer = self._composed()
        if not isinstance(outer, Layout | ComposedLayout):
            raise self._error(self._peek()[2], "the outer part must be a layout")
        return ComposedLayout(first, offset, outer)

    def _single(self) -> Any:
        kind, value, _ = self._peek()
        if kind == "swizzle":
            self.place += 1
            return Swizzle(*map(int, value))
        shape = self._tuple()
        return Layout(shape, self._tuple()) if self._accept(":") else shape

    def _tuple(self, depth: int = 0) -> IntTuple:
        position = self._peek()[2]
        if not self._accept("("):
            return self._leaf()
        if depth == MOST_DEPTH:
            raise self._error(position, f"nesting deeper than {MOST_DEPTH}")
        items: list[IntTuple] = []
        while not self._accept(")"):
            items.append(self._tuple(depth + 1))
            if not self._accept(",") and self._peek()[1] != ")":
                raise self._error(self._peek()[2], "missing `)`")
        return tuple(items)

    def _leaf(self) -> Any:
        kind, value, position = self._peek()
        if kind not in ("number", "dynamic"):
            raise self._error(position, "a number, `?` or `(` should stand")
        self.place += 1
        leaf: Any = int(value) if kind == "number" else self._symbol(value, position)
        path: list[int] = []
        while self._accept("@"):
            path.insert(0, int(self._number()))
        return ScaledBasis(leaf, path) if path else leaf

    def _number(self) -> str:
        kind, value, position = self._peek()
        if kind != "number":
            raise self._error(position, "a mode number should stand")
        self.place += 1
        return str(value)

    def _symbol(self, token: str, position: int) -> Any:
        match = _FACTS.fullmatch(token[2:-1].strip())
        if match is None:
            raise self._error(position, "facts are `i64` and `div=n`")
        return sym_int(int(match[2] or 1), 64 if match[1] else 32)


late["parse"] = parse
