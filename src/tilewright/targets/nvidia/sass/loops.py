"""A walk through the basic blocks of machine code that goes through loops several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.targets.nvidia.sass.blocks import Block

MOST_PASSES: Final = 8
"""Passes through a loop: enough to come to what every further one is like, also where it fetches stages ahead."""
MOST_INSTRUCTIONS: Final = 60_000
"""A walk has about as many at most; with more, loops are gone through less often."""


@dataclass(frozen=True)
class Loop:
    """Blocks from the one that a jump leads back to, up to that with the jump, by their places in the list."""

    first: int
    last: int
    trips: float


def visits(
    blocks: Sequence[Block], weights: Mapping[int, float], most: int = MOST_PASSES
) -> Iterator[tuple[Block, float]]:
    """The blocks in order, those of loops several times, each with its share of how often warps ran it.

    The shares of a block add up to its weight. The first pass through a loop stands for its beginnings, the others for
    all that follow: a loop that is run 100 times has 1 % in its first pass.

    Args:
        blocks: in the order of the code.
        weights: how many warps ran each block, by its number.
        most: passes through a loop at most.
    """
    loops = loops_of(blocks, weights)
    while most > 1 and _length(blocks, loops, most) > MOST_INSTRUCTIONS:
        most -= 1
    for place, share in _walk(0, len(blocks) - 1, loops, most, 1.0):
        yield blocks[place], weights[blocks[place].number] * share


def loops_of(blocks: Sequence[Block], weights: Mapping[int, float]) -> list[Loop]:
    """The loops, outer ones first. Of those that overlap without one being in the other the longer one is kept."""
    places = {block.number: place for place, block in enumerate(blocks)}
    ends: dict[int, int] = {}
    for place, block in enumerate(blocks):
        for number in block.successors:
            if number in places and places[number] <= place:
                ends[places[number]] = max(place, ends.get(places[number], 0))
    found: list[Loop] = []
    for first, last in sorted(ends.items(), key=lambda item: (item[0] - item[1], item[0])):
        if all(loop.last < first or last < loop.first or loop.first <= first <= last <= loop.last for loop in found):
            found.append(Loop(first, last, _trips(blocks, weights, first, last)))
    return found


def _trips(blocks: Sequence[Block], weights: Mapping[int, float], first: int, last: int) -> float:
    """How often a warp that comes to a loop goes through it, on average."""
    head = blocks[first]
    inside = {block.number for block in blocks[first : last + 1]}
    entering = [
        weights[block.number] for block in blocks if block.number not in inside and head.number in block.successors
    ]
    most = max(entering, default=0.0)
    return max(weights[head.number] / most, 1.0) if most else 1.0


def _walk(first: int, last: int, loops: Sequence[Loop], most: int, share: float) -> Iterator[tuple[int, float]]:
    """Places from `first` to `last`, with the part of their weight that belongs to each visit."""
    place = first
    while place <= last:
        loop = next((item for item in loops if item.first == place and item.last <= last), None)
        if loop is None:
            yield place, share
            place += 1
            continue
        inner = [item for item in loops if item is not loop and loop.first <= item.first and item.last <= loop.last]
        passes = min(most, -(-loop.trips // 1))
        for number in range(int(passes)):
            part = 1 / loop.trips if number == 0 else (1 - 1 / loop.trips) / (passes - 1)
            yield from _walk(loop.first, loop.last, inner, most, share * part)
        place = loop.last + 1


def _length(blocks: Sequence[Block], loops: Sequence[Loop], most: int) -> int:
    """Instructions of a walk."""
    return sum(
        len(block.instructions) * most ** sum(loop.first <= place <= loop.last and loop.trips > 1 for loop in loops)
        for place, block in enumerate(blocks)
    )
