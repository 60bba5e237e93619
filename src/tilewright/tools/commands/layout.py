"""`tilewright layout`: evaluate, print and draw a layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

from tilewright import layout as algebra
from tilewright.base.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.layout.inttuple import text
from tilewright.tools.layout_expression import evaluate

LARGEST_TABLE = 64
"""Most rows or columns that are printed."""
EXPRESSION_HELP = "(4,8):(8,1), S<3,3,3> o 0 o (8,64):(64,1), or a function: zipped_divide((8,8):(8,1), (2,4))"


def command(
    expression: Annotated[str, typer.Argument(help=EXPRESSION_HELP)],
    swizzle: Annotated[str | None, typer.Option(help="B,M,S: put a swizzle around the layout")] = None,
) -> None:
    """Evaluate a layout expression; print the result, its sizes, and where each coordinate goes."""
    value = evaluate(expression)
    if swizzle is not None:
        value = swizzled(value, swizzle)
    console = Console(highlight=False)
    console.print(text(value) if is_tuple(value) else str(value), markup=False)
    for line in facts(value):
        console.print(line, markup=False)
    for line in table(value):
        console.print(line, markup=False, soft_wrap=True)


def is_tuple(value: Any) -> bool:
    """Whether the value is no layout but numbers in nested tuples."""
    return isinstance(value, int | tuple) or value is None


def swizzled(value: Any, word: str) -> ComposedLayout:
    """`value` with a swizzle written B,M,S around it."""
    parts = word.split(",")
    if len(parts) != 3 or not all(part.strip().lstrip("-").isdigit() for part in parts):
        raise ArgumentError(f"--swizzle {word!r} is not B,M,S", hint="three integers, for example 3,4,3")
    if not isinstance(value, Layout | ComposedLayout):
        raise ArgumentError("--swizzle needs a layout", values={"value": value})
    bits, base, shift = map(int, parts)
    return ComposedLayout(Swizzle(bits, base, shift), 0, value)


def facts(value: Any) -> Iterator[str]:
    """Sizes of a layout; what its values are when it is static."""
    if not isinstance(value, Layout | ComposedLayout):
        return
    yield f"rank {algebra.rank(value)}   depth {algebra.depth(value)}   size {algebra.size(value)}"
    if not algebra.is_static(value) or has_coordinates(value):
        return
    indices = [value(i) for i in range(algebra.size(value))]
    distinct = len(set(indices))
    last = max(indices, default=-1)
    yield f"cosize {last + 1}   values {'all different' if distinct == len(indices) else f'{distinct} different'}"


def has_coordinates(value: Any) -> bool:
    """Whether the layout's values are coordinates, not offsets."""
    return algebra.size(value) > 0 and not isinstance(value(0), int)


def table(value: Any) -> Iterator[str]:
    """The values of a static layout of rank 1 or 2: rows are the first mode, columns the second."""
    if not isinstance(value, Layout | ComposedLayout) or not algebra.is_static(value) or algebra.rank(value) > 2:
        return
    if algebra.rank(value) < 2:
        cells = [[str(value(index)) for index in range(algebra.size(value))]]
    else:
        rows, columns = algebra.size(value, [0]), algebra.size(value, [1])
        cells = [[str(value(row, column)) for column in range(columns)] for row in range(rows)]
    if max(len(cells), len(cells[0]) if cells else 0) > LARGEST_TABLE:
        yield f"(its {algebra.size(value)} values are too many to print)"
        return
    width = max((len(cell) for row in cells for cell in row), default=1)
    for row in cells:
        yield " ".join(f"{cell:>{width}}" for cell in row)
