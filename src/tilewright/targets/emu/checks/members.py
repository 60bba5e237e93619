"""Launches that run side by side on several devices, as epochs name them.

An epoch has room for one number of a block and one of an instruction. Where several launches are under way, each gets
numbers of its own for its blocks, and each program for its instructions; a launch by itself keeps its own from 0 on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.targets.emu.lanes import Array, Shape, unflatten
from tilewright.targets.emu.ptx import Instruction

Knowledge = dict[int, Array]
"""See `order.knowledge`."""


def whole_queue(queue: int) -> int:
    """The key of what is known of whole launches: a row of one number, up to which launch of a queue."""
    return -(1 << 32) - queue


@dataclass(frozen=True)
class Member:
    """A launch of a `device`, the `turn`th of a queue (from 1), and what is ordered before all that it does (`known`).

    Its blocks are `first_block`, `first_block + 1`, ... in epochs, its instructions `first_site`, ...
    """

    kernel: str
    shape: Shape
    device: int
    queue: int
    turn: int
    first_block: int
    first_site: int
    known: Knowledge = field(default_factory=dict)

    def as_turn(self) -> Array:
        """The row that says that the launch has ended, and all before it in its queue."""
        return np.array([self.turn])


class Members:
    """The launches since all devices were last idle."""

    def __init__(self) -> None:
        self._members: list[Member] = []
        self._blocks: list[int] = []
        self._devices = np.empty(0, np.int64)
        self._programs: list[tuple[int, Sequence[Instruction]]] = []

    def add(
        self, kernel: str, shape: Shape, sites: Sequence[Instruction], device: int, queue: int, turn: int,
        known: Knowledge,
    ) -> Member:  # fmt: skip
        """One more launch, of a program whose instructions are `sites`."""
        last = self._members[-1] if self._members else None
        first = 0 if last is None else last.first_block + last.shape.blocks
        made = Member(kernel, shape, device, queue, turn, first, self._site_of(sites), known)
        self._members.append(made)
        self._blocks.append(first)
        self._devices = np.append(self._devices, device)
        return made

    def _site_of(self, sites: Sequence[Instruction]) -> int:
        """The number of a program's first instruction; that of its last launch where it has been launched before."""
        for first, known in self._programs:
            if known is sites:
                return first
        first = sum(len(known) for _, known in self._programs)
        self._programs.append((first, sites))
        return first

    def member_of(self, block: int) -> Member:
        """The launch that a block belongs to."""
        return self._members[bisect_right(self._blocks, block) - 1]

    def covered(self, block: int, known: Knowledge) -> bool:
        """Whether what is known of whole launches includes all that a block did."""
        member = self.member_of(block)
        done = known.get(whole_queue(member.queue))
        return done is not None and int(done[0]) >= member.turn

    def devices_of(self, block: Any) -> Array:
        """The devices that blocks run on."""
        return np.asarray(self._devices[np.searchsorted(self._blocks, block, "right") - 1])

    def instruction_at(self, mark: int) -> Instruction | None:
        """An instruction by its number in epochs."""
        for first, sites in self._programs:
            if 0 <= mark - first < len(sites):
                return sites[mark - first]
        return None

    def name_of(self, block: int, thread: int) -> str:
        """A thread in words: device, block and thread, and the kernel."""
        member = self.member_of(block)
        place = unflatten(block - member.first_block, member.shape.grid)
        return (
            f"device {member.device}, block {place}, thread {unflatten(thread, member.shape.block)} of {member.kernel}"
        )
