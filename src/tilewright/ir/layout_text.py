"""Layouts and coordinates as text in types and attributes of the `cute` dialect.

Runtime leaves print as `?`, `?{div=8}`, `?{i64}`, `?{i64 div=8}`; their values are operands, i32 and i64 apart, each in
order of appearance. `encode` splits a layout into text and leaves, `decode_layout` joins them again. The arguments of a
view are such texts with `;` between them: layouts may stand inside tuples there, and `_` is None.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from tilewright.layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from tilewright.layout.dynamic import DynamicInt

_TOKEN = re.compile(r"\s*((?:\?(?:\{[^}]*\})?|-?\d+)(?:@\d+)*|[(),:_])")


def encode(item: Any) -> tuple[str, list[Any], list[Any]]:
    """Text of a layout or coordinate, its i32 leaves, its i64 leaves."""
    return _encoded(lambda leaf: _text(item, leaf))


def encode_arguments(arguments: tuple[Any, ...]) -> tuple[str, list[Any], list[Any]]:
    """Text of the arguments of a view, their i32 leaves, their i64 leaves."""
    return _encoded(lambda leaf: ";".join(_text(item, leaf) for item in arguments))


def _encoded(write: Callable[[Callable[[DynamicInt], str]], str]) -> tuple[str, list[Any], list[Any]]:
    leaves32: list[Any] = []
    leaves64: list[Any] = []

    def leaf(value: DynamicInt) -> str:
        (leaves64 if value.width == 64 else leaves32).append(value)
        facts = ["i64"] if value.width == 64 else []
        facts += [f"div={value.divisibility}"] if value.divisibility > 1 else []
        return f"?{{{' '.join(facts)}}}" if facts else "?"

    return write(leaf), leaves32, leaves64


def _text(item: Any, leaf: Callable[[DynamicInt], str]) -> str:
    if type(item) is int:
        return str(item)
    if isinstance(item, tuple):
        return "(" + ",".join([_text(part, leaf) for part in item]) + ")"
    if isinstance(item, Layout):
        return f"{_text(item.shape, leaf)}:{_text(item.stride, leaf)}"
    if isinstance(item, ComposedLayout):
        return f"{item.inner} o {_text(item.offset, leaf)} o {_text(item.outer, leaf)}"
    if isinstance(item, ScaledBasis):
        return "@".join([_text(item.value, leaf), *map(str, reversed(item.mode))])
    if isinstance(item, DynamicInt):
        return leaf(item)
    return "_" if item is None else str(item)


def leaves(item: Any) -> list[Any]:
    """The runtime leaves of a layout or coordinate in order of appearance."""
    found: list[Any] = []

    def leaf(value: DynamicInt) -> str:
        found.append(value)
        return "?"

    _text(item, leaf)
    return found


def widths(text: str) -> list[int]:
    """The widths of the runtime leaves in order of appearance."""
    return [64 if "i64" in match else 32 for match in re.findall(r"\?(?:\{[^}]*\})?", text)]


def without_facts(text: str) -> str:
    """The text with a bare `?` for each leaf."""
    return re.sub(r"\?\{[^}]*\}", "?", text)


def decode_layout(text: str, leaves: Callable[[int, int], Any]) -> Layout | ComposedLayout:
    """The layout written `text`; `leaves(width, divisibility)` gives the next runtime leaf of that width."""
    return _static_layout(text) if "?" not in text else _layout(text, leaves)


@functools.lru_cache(maxsize=4096)
def _static_layout(text: str) -> Layout | ComposedLayout:
    return _layout(text, _no_leaf)


def _no_leaf(width: int, divisibility: int) -> Any:
    raise ValueError("a static layout has no leaves of run time")


def _layout(text: str, leaves: Callable[[int, int], Any]) -> Layout | ComposedLayout:
    if " o " in text:
        inner, offset, outer = text.split(" o ")
        start = decode_coord(offset, leaves)  # before the outer layout: leaves come in order of appearance
        return ComposedLayout(decode_swizzle(inner), start, decode_layout(outer, leaves))
    layout: Layout = decode_coord(text, leaves)
    return layout


def decode_swizzle(text: str) -> Swizzle:
    """The swizzle written `text`."""
    bits, base, shift = re.findall(r"-?\d+", text)
    return Swizzle(int(bits), int(base), int(shift))


def decode_arguments(text: str, leaves: Callable[[int, int], Any]) -> tuple[Any, ...]:
    """The arguments written `text`."""
    return tuple(
        decode_layout(part, leaves) if " o " in part else decode_coord(part, leaves) for part in text.split(";") if part
    )


def decode_coord(text: str, leaves: Callable[[int, int], Any]) -> Any:
    """The integer, tuple or layout written `text`."""
    tokens = _tokens(text)
    value, end = _parse(tokens, 0, leaves)
    if tokens[end]:
        raise ValueError(f"trailing {tokens[end]!r} in {text!r}")
    return value


@functools.lru_cache(maxsize=4096)
def _tokens(text: str) -> tuple[str, ...]:
    return (*_TOKEN.findall(text), "")


def _parse(tokens: tuple[str, ...], at: int, leaves: Callable[[int, int], Any]) -> tuple[Any, int]:
    """The item that begins at a token, and the place behind it."""
    if tokens[at] != "(":
        value, at = _leaf(tokens[at], leaves), at + 1
    else:
        items, at = [], at + 1
        while tokens[at] != ")":
            item, at = _parse(tokens, at, leaves)
            items.append(item)
            at += tokens[at] == ","
        value, at = tuple(items), at + 1
    if tokens[at] != ":":
        return value, at
    stride, at = _parse(tokens, at + 1, leaves)
    return Layout(value, stride), at


def _leaf(token: str, leaves: Callable[[int, int], Any]) -> Any:
    if token == "_":
        return None
    token, *path = token.split("@")
    value = _integer(token, leaves)
    return ScaledBasis(value, [int(mode) for mode in reversed(path)]) if path else value


def _integer(token: str, leaves: Callable[[int, int], Any]) -> Any:
    if not token.startswith("?"):
        return int(token)
    divisibility = re.search(r"div=(\d+)", token)
    return leaves(64 if "i64" in token else 32, int(divisibility.group(1)) if divisibility else 1)
