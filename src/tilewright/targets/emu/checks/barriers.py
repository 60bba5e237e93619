"""Barriers: threads that are missing where others wait, and threads of a warp at different instructions.

An aligned barrier is one that all threads of a warp execute (PTX ISA 9.7.13.1); that threads have ended releases a
barrier of all threads (9.7.12, `exit`). So by PTX a thread may end early, a warp may not meet without a thread that
lives, and none may go round the barrier: end in code that stands behind it. A barrier for a number of threads counts
whole warps. Kernels of the DSL have no early ends: there all threads reach each barrier of all (`Batch.all_arrive`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import FaultKind
from tilewright.targets.emu.checks.observer import Batch, Observer
from tilewright.targets.emu.checks.order.barriers import present_in
from tilewright.targets.emu.code import Code
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes, unflatten
from tilewright.targets.emu.ptx import Instruction

EFFECTS = frozenset({"st", "red", "atom"})


class Barriers(Observer):
    """Checks that those meet at barriers who have to."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._everyone = batch.alive.copy()
        self._all = batch.living
        self._warps = batch.alive_masks()
        """The threads of each warp, when all were alive."""
        self._ends = np.full(len(batch.alive), -1, np.int64)
        """The block of the kernel's code in which each thread ended, -1 in another function."""
        self._arrived: dict[tuple[int, int], list[Array]] = {}
        """Lanes that arrived without waiting, by barrier and slot."""
        self._checked: set[tuple[int, int, int]] = set()
        self._behind: dict[tuple[int, int], list[int]] = {}

    # Events.

    def threads_ended(self, L: Lanes, cohort: Cohort) -> None:
        self._ends[L.ids] = -1 if cohort.frames else cohort.pc

    def barrier_passed(self, cohort: Cohort) -> None:
        """Who has come to a barrier at which all living threads of the batch are is the same each time."""
        if self.batch.living == self._all:
            return
        place = id(cohort.code), cohort.pc, self.batch.living
        if place not in self._checked:
            self._checked.add(place)
            present = present_in([cohort], len(self.batch.alive))
            self._check_present(np.unique(cohort.L.slot), present, [cohort], False)

    def barrier_arrived(self, L: Lanes, number: int) -> None:
        for slot in np.unique(L.slot).tolist():
            self._arrived.setdefault((number, slot), []).append(L.ids[L.slot == slot])

    def barrier_done(self, number: int, done: Array, cohorts: list[Cohort], counted: Array) -> None:
        self._check_alignment(done, cohorts)
        there = present_in(cohorts, len(self.batch.alive))
        for slot in np.flatnonzero(done).tolist() if self._arrived else ():
            for lanes in self._arrived.pop((number, slot), ()):
                there[lanes] = True
        for kind in (False, True):
            slots = np.flatnonzero(done & (counted == kind))
            if len(slots):
                self._check_present(slots, there, cohorts, kind)

    def warp_synced(self, L: Lanes, mask: Any, cohort: Cohort) -> None:
        """Report threads of a `bar.warp.sync`'s mask that have gone round it."""
        named = np.broadcast_to(mask & self._warps[L.warp] & ~L.present, (L.n,))
        if not np.count_nonzero(named):
            return
        rows = np.zeros(len(self._warps), np.uint32)
        rows[L.warp] = named
        absent = np.unpackbits(rows.view(np.uint8), bitorder="little").astype(bool)
        lanes = np.flatnonzero(absent)
        if not self.batch.all_arrive:
            lanes = lanes[self._went_round(lanes, cohort)]
        if len(lanes):
            waiting = L.subset(np.flatnonzero(np.isin(L.warp, lanes // 32)))
            self._missing(gate_of(cohort), waiting, lanes, "a barrier of their warp", "diverged")

    # Checks.

    def _check_alignment(self, done: Array, cohorts: list[Cohort]) -> None:
        """The threads of a warp execute one and the same `bar.sync`: the aligned form does not put up with less."""
        places: dict[int, Instruction] = {}
        for cohort in cohorts if len(cohorts) > 1 else ():
            mine = gate_of(cohort)
            for warp in np.unique(cohort.L.warp[done[cohort.L.slot]]).tolist():
                other = places.setdefault(warp, mine)
                if other is not mine and (is_aligned(mine) or is_aligned(other)):
                    self._misaligned(mine, other, cohort.L.subset(np.flatnonzero(cohort.L.warp == warp)))
                    return

    def _misaligned(self, mine: Instruction, other: Instruction, L: Lanes) -> None:
        """The finding of threads of one warp that meet at different barrier instructions."""
        values = {"other instruction": f"line {other.line}: {other.text}"}
        hint = "all threads of a warp execute the same bar.sync; barrier.sync without .aligned may differ"
        message = "The threads of a warp wait at different barrier instructions"
        self.batch.report(Fault("barrier", message, -1, None, values, hint, L, mine))

    def _check_present(self, slots: Array, present: Array, cohorts: list[Cohort], counted: bool) -> None:
        """Report threads that are missing where those `present` met, in these blocks; `counted`: so many, not all."""
        absent = (self._everyone & ~present).reshape(self.batch.slots, -1)[slots]
        some = present.reshape(self.batch.slots, -1)[slots].reshape(len(slots), -1, 32).any(axis=2)
        partial = absent & np.repeat(some, 32, axis=1)
        every = self.batch.all_arrive and not counted
        if not np.count_nonzero(absent if every else partial):
            return
        for cohort in cohorts:
            here = np.flatnonzero(np.isin(cohort.L.slot, slots))
            if not len(here) or not is_aligned(gate_of(cohort)):
                continue
            lanes = slots[:, None] * self.batch.shape.stride + np.arange(self.batch.shape.stride)
            missing = lanes[absent if every else partial]
            if not every and not counted:
                missing = missing[self.batch.alive[missing] | self._went_round(missing, cohort)]
            if len(missing):
                self._missing(gate_of(cohort), cohort.L.subset(here), missing, "a barrier", "barrier")
            return

    def _went_round(self, lanes: Array, cohort: Cohort) -> Array:
        """Which threads have ended in code with effects that stands behind where a cohort is."""
        frame = cohort.frames[0] if cohort.frames else cohort
        place = id(frame.code), frame.pc
        if place not in self._behind:
            self._behind[place] = effects_behind(frame.code, frame.pc)
        return np.asarray(np.isin(self._ends[lanes], self._behind[place]))

    def _missing(self, gate: Instruction, L: Lanes, lanes: Array, what: str, kind: FaultKind) -> None:
        """The finding: threads wait without those that had to come."""
        slot, thread = divmod(int(lanes[0]), self.batch.shape.stride)
        others = f" and {len(lanes) - 1} more" if len(lanes) > 1 else ""
        ended = "ended without it" if not self.batch.alive[lanes[0]] else "not there"
        values = {
            "missing": f"block {unflatten(int(self.batch.blocks[slot]), self.batch.shape.grid)}, "
            f"thread {unflatten(thread, self.batch.shape.block)}{others}: {ended}"
        }
        hint = "let all threads execute it: put it outside of the branch or loop that they do not share"
        message = f"Some threads do not reach {what} at which others wait"
        self.batch.report(Fault(kind, message, -1, None, values, hint, L, gate))


def gate_of(cohort: Cohort) -> Instruction:
    """The instruction in front of which threads have gathered."""
    gate = cohort.code.blocks[cohort.pc].gate_site
    assert gate is not None
    return gate


def is_aligned(instruction: Instruction) -> bool:
    """Whether a barrier is one that whole warps execute together (PTX ISA 9.7.13.1)."""
    return instruction.op == "bar" or "aligned" in instruction.mods


def effects_behind(code: Code, start: int) -> list[int]:
    """The blocks that write to memory among those that follow a block."""
    found: set[int] = set()
    work = list(code.blocks[start].targets)
    while work:
        number = work.pop()
        if number not in found:
            found.add(number)
            work += code.blocks[number].targets
    return [number for number in found | {start} if not EFFECTS.isdisjoint(code.blocks[number].classes)]
