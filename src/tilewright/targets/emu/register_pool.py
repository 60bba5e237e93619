"""The registers of a block that `setmaxnreg` hands from one warpgroup to another (PTX ISA 9.7.20.5).

A block begins with as many registers for each thread as a compiler may give it; that is the most, so that no launch is
reported which a GPU has the registers for. `.dec` gives registers up, `.inc` waits for those that are given up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.hw.chips import chip
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.lanes import Array, Lanes, Shape
from tilewright.targets.emu.sync import warpgroup_gate

GROUP, UNIT, MOST = 128, 8, 256
"""Threads of a warpgroup; registers of a thread are a multiple of `UNIT`, at most `MOST`."""
HOPPER = "sm_90"


def registers_at_entry(shape: Shape, directives: dict[str, tuple[int, ...]]) -> int:
    """The most registers that each thread of a block may begin with."""
    blocks = directives.get("minnctapersm", (1,))[0]
    threads = -(-shape.threads // 32) * 32 * blocks
    fair = chip(HOPPER).registers_per_block // threads // UNIT * UNIT
    return min(fair, MOST, *directives.get("maxnreg", ()))


class RegisterPool:
    """What each thread of each warpgroup holds: a row a block of the batch, a column a warpgroup."""

    def __init__(self, slots: int, shape: Shape, first: int) -> None:
        groups = -(-shape.threads // GROUP)
        self.threads = np.minimum(shape.threads - np.arange(groups) * GROUP, GROUP)
        self.held: Array = np.full((slots, groups), first, np.int64)
        self.total = first * shape.threads

    def take(self, L: Lanes, count: int, grows: bool) -> Array:
        """Give the warpgroups of these lanes `count` registers a thread. Returns, by lane, who must wait."""
        groups = L.thread // GROUP
        refused = np.zeros(L.n, bool)
        for slot, group in {*zip(L.slot.tolist(), groups.tolist(), strict=True)}:
            free = self.total - int((self.held[slot] * self.threads).sum())
            wanted = int((count - self.held[slot, group]) * self.threads[group])
            if grows and wanted > free:
                refused |= (L.slot == slot) & (groups == group)
            else:
                self.held[slot, group] = count
        return refused


def registers_gate(machine: Any, cohort: Cohort, count: int, grows: bool) -> bool:
    """Wait until all living threads of each warpgroup stand here and, for more registers, until there are so many."""
    if not warpgroup_gate(machine, cohort):
        return False
    refused = machine.register_pool.take(cohort.L, count, grows)
    if not grows:
        machine.look_again("setmaxnreg")
    if not refused.any():
        return True
    machine.split_wait(cohort, refused)
    return False
