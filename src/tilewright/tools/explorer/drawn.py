"""Drawings of the layouts that stand in the types of stage `cute`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tilewright import layout as algebra
from tilewright.base.errors import TilewrightError
from tilewright.layout import ComposedLayout, Layout
from tilewright.layout.draw.svg import svg
from tilewright.layout.draw.swizzle import bank_table, plain

MOST_ROWS: Final = 32
MOST_COLUMNS: Final = 32
"""Larger drawings are cut: they show the first rows and columns."""
STAND_IN: Final = 8
"""What an extent is drawn as that is known only at run time."""

TYPE: Final = re.compile(r'!cute\.tensor<([\w]+), "(\w+)", "([^"]*)"')
_DYNAMIC: Final = re.compile(r"\?(?:\{[^}]*\})?")
_DIVISOR: Final = re.compile(r"div=(\d+)")


@dataclass(frozen=True)
class Drawing:
    """A layout as SVG with what there is to say of it, or only that where it cannot be drawn.

    `plain` is the same layout without its swizzle, where it has one and banks are drawn.
    """

    title: str
    facts: str
    svg: str
    plain: str = ""


def drawings(texts: Iterable[str]) -> dict[str, Drawing]:
    """The drawings of all tensor types in some texts, by `element space layout`."""
    found: dict[str, Drawing] = {}
    for text in texts:
        for element, space, layout in TYPE.findall(text):
            key = f"{element} {space} {layout}"
            if key not in found:
                found[key] = drawing(element, space, layout)
    return found


def drawing(element: str, space: str, text: str) -> Drawing:
    """The drawing of one tensor's layout; in shared memory with the banks."""
    title = f"{element} in {space}: {text}"
    try:
        return _drawing(title, element, space, text)
    except TilewrightError as error:
        return Drawing(title, str(error).splitlines()[0], "")


def _drawing(title: str, element: str, space: str, text: str) -> Drawing:
    static, stand_ins = with_stand_ins(text)
    layout = Layout.parse(static)
    facts = [f"rank {algebra.rank(layout)}, {algebra.size(layout)} elements"]
    if stand_ins:
        facts = [f"rank {algebra.rank(layout)}, drawn as {static}: what is ? is known only at run time"]
    part = clipped(layout)
    if algebra.size(part) != algebra.size(layout):
        facts.append(f"the part {part.shape} of {layout.shape} is drawn")
    banked = space == "smem" and isinstance(part(0), int)
    bits = int(re.sub(r"\D+", " ", element).split()[0])
    if not banked:
        return Drawing(title, "; ".join(facts), algebra.layout_svg(part))
    without = svg(bank_table(plain(part), bits)) if isinstance(part, ComposedLayout) else ""
    return Drawing(title, "; ".join(facts), svg(bank_table(part, bits)), without)


def with_stand_ins(text: str) -> tuple[str, bool]:
    """A layout's text with small numbers for what is known only at run time, and whether there is any.

    Extents become `STAND_IN`; strides are taken as if the modes before were compact.
    """
    shape, colon, stride = text.rpartition(":")
    if "?" not in text:
        return text, False
    shape = _DYNAMIC.sub(lambda found: str(_multiple(found[0], STAND_IN)), shape)
    reached = 1
    for extent, step in zip(re.findall(r"\d+", shape.rpartition(" ")[2]), _leaves(stride), strict=False):
        reached = max(reached, int(extent) * int(step)) if step.isdigit() else reached

    def next_stride(found: re.Match[str]) -> str:
        nonlocal reached
        made = _multiple(found[0], reached)
        reached = made * STAND_IN
        return str(made)

    return f"{shape}{colon}{_DYNAMIC.sub(next_stride, stride)}", True


def _leaves(text: str) -> list[str]:
    return re.findall(r"\?(?:\{[^}]*\})?|[\d@-]+", text)


def _multiple(leaf: str, least: int) -> int:
    """The least multiple of a leaf's divisor that is at least `least`."""
    divisor = int(found[1]) if (found := _DIVISOR.search(leaf)) else 1
    return -(-least // divisor) * divisor


def clipped(layout: Any) -> Any:
    """The same function on its first rows and columns, few enough to be read."""
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, layout.offset, clipped(layout.outer))
    if algebra.rank(layout) < 2:
        shape, _ = _within(layout.shape, MOST_ROWS * 2)
        return Layout(shape, layout.stride)
    first, _ = _within(layout.shape[0], MOST_ROWS)
    rest, _ = _within(layout.shape[1:], MOST_COLUMNS)
    return Layout((first, *rest), layout.stride)


def _within(shape: Any, budget: int) -> tuple[Any, int]:
    """The shape with its product within a budget, later modes cut first; and what is left of the budget."""
    if isinstance(shape, tuple):
        kept = []
        for mode in shape:
            part, budget = _within(mode, budget)
            kept.append(part)
        return tuple(kept), budget
    extent = min(shape, budget)
    return extent, max(budget // max(extent, 1), 1)
