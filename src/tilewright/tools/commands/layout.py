"""`tilewright layout`: evaluate, print and draw a layout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewright import layout as algebra
from tilewright.base.errors import ArgumentError
from tilewright.layout import ComposedLayout, Layout, Swizzle
from tilewright.layout.draw import show
from tilewright.layout.draw.cells import MOST_CELLS
from tilewright.layout.inttuple import text
from tilewright.tools.console import in_colour
from tilewright.tools.layout_expression import evaluate

LARGEST_COUNT = 1 << 20
"""Most values that are counted, or drawn."""
LARGEST_TABLE = 64
"""Most rows or columns that are printed; a picture has no such limit."""
MOST_BITS = 1024
EXPRESSION_HELP = "(4,8):(8,1), S<3,3,3> o 0 o (8,64):(64,1), or a function: zipped_divide((8,8):(8,1), (2,4))"
TILER_HELP = "M,N: the layout is a (thread, value) layout of this tile; show which thread holds what"


def command(
    expression: Annotated[str, typer.Argument(help=EXPRESSION_HELP)],
    swizzle: Annotated[str | None, typer.Option(help="B,M,S: put a swizzle around the layout")] = None,
    tiler: Annotated[str | None, typer.Option(help=TILER_HELP)] = None,
    svg: Annotated[Path | None, typer.Option(help="draw it into this file; a swizzle is drawn with its banks")] = None,
    bits: Annotated[int, typer.Option(help="bits of an element, for the banks of a swizzle")] = 16,
) -> None:
    """Evaluate a layout expression; print the result, its sizes, and where each coordinate goes."""
    value = evaluate(expression)
    if swizzle is not None:
        value = swizzled(value, swizzle)
    tile = None if tiler is None else extents("--tiler", tiler)
    if not 1 <= bits <= MOST_BITS:
        raise ArgumentError(f"--bits {bits}: an element has 1 to {MOST_BITS} bits", hint="--bits 16 for Float16")
    print(value if is_layout(value) or isinstance(value, Swizzle) else text(value))
    for line in facts(value):
        print(line)
    if svg is not None:
        svg.write_text(picture(value, tile, bits), encoding="utf-8")
        print(f"wrote {svg}")
    elif is_layout(value):
        print_table(value, tile)


def is_layout(value: Any) -> bool:
    """Whether the value is a layout, composed or not."""
    return isinstance(value, Layout | ComposedLayout)


def integers(option: str, word: str) -> tuple[int, ...]:
    """Integers with commas."""
    try:
        return tuple(int(part) for part in word.split(","))
    except ValueError as error:
        raise ArgumentError(f"{option} {word!r} is not a list of integers", hint="write 3,4,3 or 16,8") from error


def extents(option: str, word: str) -> tuple[int, ...]:
    """Positive integers with commas."""
    found = integers(option, word)
    if min(found) < 1:
        raise ArgumentError(f"{option} {word!r}: extents are positive", hint="write 16,8")
    return found


def swizzled(value: Any, word: str) -> ComposedLayout:
    """`value` with a swizzle written B,M,S around it."""
    numbers = integers("--swizzle", word)
    if len(numbers) != 3:
        raise ArgumentError(f"--swizzle {word!r} is not B,M,S", hint="three integers, for example 3,4,3")
    if not is_layout(value):
        raise ArgumentError("--swizzle needs a layout", values={"value": value})
    return ComposedLayout(Swizzle(*numbers), 0, value)


def facts(value: Any) -> Iterator[str]:
    """Sizes of a layout; how its values lie when it is static."""
    if not is_layout(value):
        return
    yield f"rank {algebra.rank(value)}   depth {algebra.depth(value)}   size {algebra.size(value)}"
    if not algebra.is_static(value) or has_coordinates(value):
        return
    if algebra.size(value) > LARGEST_COUNT:
        yield f"cosize {algebra.cosize(value)}   (too large to look at each value)"
        return
    indices = [value(i) for i in range(algebra.size(value))]
    distinct = len(set(indices))
    last = max(indices, default=-1)
    yield f"cosize {last + 1}   values {'all different' if distinct == len(indices) else f'{distinct} different'}"


def has_coordinates(value: Any) -> bool:
    """Whether the layout's values are coordinates, not offsets."""
    return algebra.size(value) > 0 and not isinstance(value(0), int)


def print_table(value: Any, tile: tuple[int, ...] | None) -> None:
    """The values of a static layout, or the threads and values of a tile; coloured on a terminal."""
    colour = in_colour()
    if tile is not None:
        show.print_layout_tv(value, tile, colour)
        return
    if not algebra.is_static(value) or algebra.size(value) == 0:
        return
    size = algebra.size(value)
    rows = algebra.size(value, [0]) if algebra.rank(value) > 1 else 1
    if max(rows, size // rows) > LARGEST_TABLE:
        print(f"({size} values are too many to print{'; --svg draws them' if size <= MOST_CELLS else ' or draw'})")
        return
    show.print_layout(value, colour)


def picture(value: Any, tile: tuple[int, ...] | None, bits: int) -> str:
    """The drawing that fits the value: a tile, a swizzle with its banks, or a layout."""
    if is_layout(value) and algebra.is_static(value) and algebra.size(value) > LARGEST_COUNT:
        raise ArgumentError(f"a picture of {algebra.size(value)} values", values={"at most": LARGEST_COUNT},
                            hint="draw a tile of it")  # fmt: skip
    if tile is not None:
        return show.tv_layout_svg(value, tile)
    if isinstance(value, Swizzle) or (isinstance(value, ComposedLayout) and isinstance(value.inner, Swizzle)):
        return show.swizzle_svg(value, bits)
    if not is_layout(value):
        raise ArgumentError("--svg needs a layout", values={"value": value})
    return show.layout_svg(value)
