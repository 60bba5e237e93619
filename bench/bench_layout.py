"""The layout algebra: composition, divide, inverse of 1,000 distinct layouts each, nothing remembered."""

from __future__ import annotations

import importlib
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
ROUNDS = 7
"""Each input is measured so often, all functions in turn; the least time counts: other work on the machine is out."""


@dataclass
class Case:
    """A function, its inputs, and the least seconds seen for each input that it takes."""

    name: str
    function: Callable[..., Any]
    inputs: list[tuple[Any, ...]]
    target: float | None = None
    least: dict[int, float] = field(default_factory=dict)

    def measure(self) -> None:
        """Call the function once on each input."""
        for index, args in enumerate(self.inputs):
            start = time.perf_counter()
            try:
                self.function(*args)
            except (ValueError, AssertionError, TypeError):
                continue
            seconds = time.perf_counter() - start
            self.least[index] = min(seconds, self.least.get(index, seconds))

    @property
    def median_us(self) -> float:
        """The median over the inputs, in microseconds."""
        return statistics.median(self.least.values()) * 1e6


def rows(quick: bool) -> Iterator[Row]:
    """Medians over the inputs; beside them the ratio to pycute, where it is installed, on the same inputs."""
    ours = cases(100 if quick else 1000)
    peer = pycute()
    theirs = {case.name: counterpart(peer, case) for case in ours if hasattr(peer, case.function.__name__)}
    for _ in range(ROUNDS):
        for case in [*ours, *theirs.values()]:
            case.measure()
    for case in ours:
        other = theirs.get(case.name)
        note = (
            f"{other.median_us / case.median_us:.1f} times as fast as pycute ({other.median_us:.3g} µs)"
            if other
            else ""
        )
        yield Row(case.name, case.median_us, "µs", len(case.least), case.target, note=note)


def cases(count: int) -> list[Case]:
    """What is measured: rank-3 layouts, compact with their modes in any order."""
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
    lefts, tiles = [left for left, _ in pairs], list(pairs.values())
    return [
        Case("composition", composition, list(pairs), TARGET_US),
        Case("logical_divide", logical_divide, list(zip(lefts, tiles, strict=True)), TARGET_US),
        Case("right_inverse", right_inverse, [(left,) for left in lefts], TARGET_US),
        Case("left_inverse", left_inverse, [(left,) for left in lefts]),
        Case("complement", complement, [(tile, 4096) for tile in tiles]),
        Case("zipped_divide by mode", zipped_divide, [(left, (2, 2, 2)) for left in lefts]),
        Case("make and print", make_and_print, [(left.shape, left.stride) for left in lefts], PRINT_TARGET_US),
    ]


def compact(rng: random.Random) -> Layout:
    """A compact layout of rank 3 with its modes in any order."""
    shape = tuple(rng.choice(EXTENTS) for _ in range(3))
    return make_ordered_layout(shape, tuple(rng.sample(range(3), 3)))


def make_and_print(shape: Any, stride: Any) -> str:
    """One layout from its parts, and its text."""
    return str(Layout(shape, stride))


def pycute() -> Any:
    """CUTLASS's Python prototype of the algebra, from the package nvidia-cutlass, or None."""
    try:
        return importlib.import_module("pycute")
    except ImportError:
        return None


def counterpart(peer: Any, case: Case) -> Case:
    """The same inputs for pycute's function of the same name."""
    inputs = [tuple(converted(peer, value) for value in args) for args in case.inputs]
    return Case(case.name, getattr(peer, case.function.__name__), inputs)


def converted(peer: Any, value: Any) -> Any:
    """A layout as pycute's."""
    return peer.Layout(value.shape, value.stride) if isinstance(value, Layout) else value
