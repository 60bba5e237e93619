"""Who holds which element of a tile.

A distribution is linear in the bits of a thread's number: bit `b` moves the thread's part by `threads[b]`, a mode and a
number of elements, and `values` are the coordinates of its elements from there on. Where a bit moves nothing, threads
hold the same elements.

* `blocked`: elements that lie side by side in memory go to one thread, 16 bytes at a time; the lanes of a warp follow
  along the same mode and then along the others; warps go along the other modes first. So a row is folded within a warp
  where there are as many rows as warps.
* `folded`: what is left of a distribution when a mode is folded. All who held a part of it hold the result.
* `of_fragments`: any distribution that the layout algebra gives, as of accumulators of an MMA.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Coordinate = tuple[int, ...]
Step = tuple[int, int] | None
LANE_BITS = 5


@dataclass(frozen=True)
class Distribution:
    """See the module. `shape` and all displacements are powers of two."""

    shape: Coordinate
    threads: tuple[Step, ...]
    values: tuple[Coordinate, ...]

    @property
    def copies(self) -> int:
        """The bits of a thread's number that move nothing."""
        return sum(1 << bit for bit, step in enumerate(self.threads) if step is None)

    def bits_along(self, mode: int) -> list[int]:
        """The bits of a thread's number that move it along a mode."""
        return [bit for bit, step in enumerate(self.threads) if step is not None and step[0] == mode]

    def coordinate(self, thread: int, value: int) -> Coordinate:
        """Which element a thread holds as its value of that number."""
        found = list(self.values[value])
        for bit, step in enumerate(self.threads):
            if step is not None and thread >> bit & 1:
                found[step[0]] += step[1]
        return tuple(found)

    def run(self, mode: int, most: int) -> int:
        """How many values of a thread lie side by side along a mode, in groups that begin at multiples of as many."""
        steps = [step[1] for step in self.threads if step is not None and step[0] == mode]
        count = 1
        while 2 * count <= min(most, len(self.values)) and self._runs(mode, 2 * count, steps):
            count *= 2
        return count

    def _runs(self, mode: int, count: int, steps: Sequence[int]) -> bool:
        if len(self.values) % count or any(step % count for step in steps):
            return False
        for first in range(0, len(self.values), count):
            begin = self.values[first]
            if begin[mode] % count:
                return False
            for number in range(1, count):
                wanted = tuple(item + number * (axis == mode) for axis, item in enumerate(begin))
                if self.values[first + number] != wanted:
                    return False
        return True


def blocked(shape: Sequence[int], threads: int, fast: int, vector: int) -> Distribution:
    """Elements along mode `fast` in groups of `vector`, see the module.

    Args:
        shape: powers of two.
        threads: of the block, a power of two, 32 at least.
        fast: the mode along which memory is contiguous.
        vector: how many elements a thread takes at a time, at most.
    """
    others = [mode for mode in reversed(range(len(shape))) if mode != fast]
    covered = [1] * len(shape)
    covered[fast] = min(vector, shape[fast], max(1, math.prod(shape) // threads))
    group = covered[fast]
    steps: list[Step] = []
    for bit in range(threads.bit_length() - 1):
        order = [fast, *others] if bit < LANE_BITS else [*others, fast]
        mode = next((mode for mode in order if covered[mode] < shape[mode]), None)
        steps.append(None if mode is None else (mode, covered[mode]))
        if mode is not None:
            covered[mode] *= 2
    repeats = [range(0, extent, step) for extent, step in zip(shape, covered, strict=True)]
    values = tuple(
        tuple(item + number * (mode == fast) for mode, item in enumerate(begin))
        for begin in itertools.product(*repeats)
        for number in range(group)
    )
    return Distribution(tuple(shape), tuple(steps), values)


def folded(source: Distribution, modes: Sequence[int]) -> Distribution:
    """What is left when modes are folded to extent 1."""

    def kept(coordinate: Coordinate) -> Coordinate:
        return tuple(0 if mode in modes else item for mode, item in enumerate(coordinate))

    return Distribution(
        tuple(1 if mode in modes else extent for mode, extent in enumerate(source.shape)),
        tuple(None if step is not None and step[0] in modes else step for step in source.threads),
        tuple(dict.fromkeys(map(kept, source.values))),
    )


def of_fragments(
    shape: Sequence[int], threads: int, used: int, part: Callable[[int], Sequence[Coordinate]]
) -> Distribution:
    """The distribution of which `part(thread)` lists a thread's elements; threads from `used` on hold the same again.

    Raises:
        ValueError: it is not linear in the bits of the thread's number.
    """
    values = tuple(part(0))
    steps: list[Step] = []
    for bit in range(threads.bit_length() - 1):
        if 1 << bit >= used:
            steps.append(None)
            continue
        moved = [after - before for before, after in zip(values[0], part(1 << bit)[0], strict=True)]
        along = [(mode, step) for mode, step in enumerate(moved) if step]
        if len(along) > 1:
            raise ValueError(f"bit {bit} moves along several modes")
        steps.append(along[0] if along else None)
    return Distribution(tuple(shape), tuple(steps), values)
