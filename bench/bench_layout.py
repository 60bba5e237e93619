"""The layout algebra: composition, divide, inverse of 1,000 distinct layouts each, nothing remembered."""

from __future__ import annotations

import importlib
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.runner import Row
from tilewright.layout import (
    Layout,
    complement,
    composition,
    left_inverse,
    logical_divide,
    make_ordered_layout,
    right_inverse,
    zipped_divide,
)

EXTENTS = (2, 4, 8, 16, 32)
TARGET_US = 20.0
PRINT_TARGET_US = 5.0


def rows(quick: bool) -> Iterator[Row]:
    """Medians over the inputs; beside them the ratio to pycute, where it is installed, on the same inputs."""
    count = 100 if quick else 1000
    pairs, tiles = inputs(count)
    lefts = [left for left, _ in pairs]
    peer = pycute()
    cases: list[tuple[str, Callable[..., Any], list[tuple[Any, ...]], float | None, str]] = [
        ("composition", composition, pairs, TARGET_US, "composition"),
        ("logical_divide", logical_divide, list(zip(lefts, tiles, strict=True)), TARGET_US, "logical_divide"),
        ("right_inverse", right_inverse, [(left,) for left in lefts], TARGET_US, "right_inverse"),
        ("left_inverse", left_inverse, [(left,) for left in lefts], None, "left_inverse"),
        ("complement", complement, [(tile, 4096) for tile in tiles], None, "complement"),
        ("zipped_divide by mode", zipped_divide, [(left, (2, 2, 2)) for left in lefts], None, "zipped_divide"),
    ]
    for name, function, arguments, target, theirs in cases:
        ours = median_us(function, arguments)
        yield Row(f"{name}, rank 3", ours, "µs", count, target, note=ratio(peer, theirs, arguments, ours))
    shapes = [(left.shape, left.stride) for left in lefts]
    yield Row("make and print", median_us(make_and_print, shapes), "µs", count, PRINT_TARGET_US)


def inputs(count: int) -> tuple[list[tuple[Layout, Layout]], list[Layout]]:
    """Distinct pairs of compact layouts of rank 3 that compose, and distinct tiles for the left ones."""
    rng = random.Random(1)
    pairs: dict[tuple[Layout, Layout], Layout] = {}
    while len(pairs) < count:
        pair = (compact(rng), compact(rng))
        tile = Layout((rng.choice((2, 4)), rng.choice((1, 2))), (1, rng.choice((4, 8))))
        try:
            composition(*pair)
            logical_divide(pair[0], tile)
        except ValueError:
            continue
        pairs[pair] = tile
    return list(pairs), list(pairs.values())


def compact(rng: random.Random) -> Layout:
    """A compact layout of rank 3 with its modes in any order."""
    shape = tuple(rng.choice(EXTENTS) for _ in range(3))
    return make_ordered_layout(shape, tuple(rng.sample(range(3), 3)))


def make_and_print(shape: Any, stride: Any) -> str:
    """One layout from its parts, and its text."""
    return str(Layout(shape, stride))


def median_us(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> float:
    """The median over the inputs of the time of one call, the least of three, in microseconds.

    Inputs that the function refuses do not count.
    """
    times = []
    for args in arguments:
        try:
            times.append(min(seconds(function, args) for _ in range(3)))
        except (ValueError, AssertionError, TypeError):
            continue
    return statistics.median(times) * 1e6


def seconds(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def pycute() -> Any:
    """CUTLASS's Python prototype of the algebra, from the package nvidia-cutlass, or None."""
    try:
        return importlib.import_module("pycute")
    except ImportError:
        return None


def ratio(peer: Any, name: str, arguments: list[tuple[Any, ...]], ours: float) -> str:
    """How pycute does on the same inputs."""
    function = getattr(peer, name, None)
    if function is None:
        return "" if peer is None else "not in pycute"
    theirs = median_us(function, [tuple(converted(peer, value) for value in args) for args in arguments])
    return f"{theirs / ours:.1f} times as fast as pycute ({theirs:.3g} µs)"


def converted(peer: Any, value: Any) -> Any:
    """A layout as pycute's."""
    return peer.Layout(value.shape, value.stride) if isinstance(value, Layout) else value
