"""Layouts and coordinates as text in types and attributes of the `cute` dialect.

Runtime leaves print as `?`, `?{div=8}`, `?{i64}`, `?{i64 div=8}`; their values are operands, i32 and i64 apart, each in
order of appearance. `encode` splits a layout into text and leaves, `decode_layout` joins them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tilewright.layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from tilewright.layout.dynamic import DynamicInt

_TOKEN = re.compile(r"\s*((?:\?(?:\{[^}]*\})?|-?\d+)(?:@\d+)*|[(),:])")


def encode(item: Any) -> tuple[str, list[Any], list[Any]]:
    """Text of a layout or coordinate, its i32 leaves, its i64 leaves."""
    leaves32: list[Any] = []
    leaves64: list[Any] = []

    def leaf(value: DynamicInt) -> str:
        (leaves64 if value.width == 64 else leaves32).append(value)
        facts = ["i64"] if value.width == 64 else []
        facts += [f"div={value.divisibility}"] if value.divisibility > 1 else []
        return f"?{{{' '.join(facts)}}}" if facts else "?"

    return _text(item, leaf), leaves32, leaves64


def _text(item: Any, leaf: Callable[[DynamicInt], str]) -> str:
    if isinstance(item, Layout):
        return f"{_text(item.shape, leaf)}:{_text(item.stride, leaf)}"
    if isinstance(item, ComposedLayout):
        return f"{item.inner} o {_text(item.offset, leaf)} o {_text(item.outer, leaf)}"
    if isinstance(item, ScaledBasis):
        return "@".join([_text(item.value, leaf), *map(str, reversed(item.mode))])
    if isinstance(item, DynamicInt):
        return leaf(item)
    if isinstance(item, tuple):
        return "(" + ",".join(_text(part, leaf) for part in item) + ")"
    return str(item)


def widths(text: str) -> list[int]:
    """The widths of the runtime leaves in order of appearance."""
    return [64 if "i64" in match else 32 for match in re.findall(r"\?(?:\{[^}]*\})?", text)]


def decode_layout(text: str, leaves: Callable[[int, int], Any]) -> Layout | ComposedLayout:
    """The layout written `text`; `leaves(width, divisibility)` gives the next runtime leaf of that width."""
    if " o " in text:
        inner, offset, outer = text.split(" o ")
        bits, base, shift = re.findall(r"-?\d+", inner)
        start = decode_coord(offset, leaves)  # before the outer layout: leaves come in order of appearance
        return ComposedLayout(Swizzle(int(bits), int(base), int(shift)), start, decode_layout(outer, leaves))
    shape, stride = text.split(":")
    return Layout(decode_coord(shape, leaves), decode_coord(stride, leaves))


def decode_coord(text: str, leaves: Callable[[int, int], Any]) -> Any:
    """The integer or tuple written `text`."""
    tokens = _TOKEN.findall(text)
    value, rest = _parse(iter(tokens), leaves)
    if rest is not None:
        raise ValueError(f"trailing {rest!r} in {text!r}")
    return value


def _parse(tokens: Iterator[str], leaves: Callable[[int, int], Any]) -> tuple[Any, str | None]:
    token = next(tokens)
    if token != "(":
        return _leaf(token, leaves), next(tokens, None)
    return tuple(_items(tokens, leaves)), next(tokens, None)


def _items(tokens: Iterator[str], leaves: Callable[[int, int], Any]) -> Iterable[Any]:
    for token in tokens:
        if token == ")":
            return
        if token == "(":
            yield tuple(_items(tokens, leaves))
        elif token != ",":
            yield _leaf(token, leaves)


def _leaf(token: str, leaves: Callable[[int, int], Any]) -> Any:
    token, *path = token.split("@")
    value = _integer(token, leaves)
    return ScaledBasis(value, [int(mode) for mode in reversed(path)]) if path else value


def _integer(token: str, leaves: Callable[[int, int], Any]) -> Any:
    if not token.startswith("?"):
        return int(token)
    divisibility = re.search(r"div=(\d+)", token)
    return leaves(64 if "i64" in token else 32, int(divisibility.group(1)) if divisibility else 1)
