"""Gates: where threads wait for others before an instruction that they execute together.

A gate is called with the machine and a cohort that stands before the instruction. It returns True to let the
whole cohort through; otherwise it has parked or re-queued every part of the cohort itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.cohort import Cohort, joined, part
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes

FULL = np.uint32(0xFFFFFFFF)


def warp_gate(machine: Any, cohort: Cohort, mask: Any) -> bool:
    """Wait until all living threads of `mask` (one for all, or one a lane) of each warp stand here."""
    L = cohort.L
    if L.whole_warps:
        return True
    waiting = machine.parked.pop(cohort.key, None)
    if waiting is not None:
        return bool(machine.again(joined(waiting, cohort)))
    missing = mask & machine.alive_masks()[L.warp] & ~L.present
    absent = missing != 0
    if not absent.any():
        return True
    machine.split_wait(cohort, absent)
    return False


def warpgroup_gate(machine: Any, cohort: Cohort) -> bool:
    """Wait until all living threads of each group of four warps stand here."""
    L = cohort.L
    if L.n == machine.living:
        return True
    waiting = machine.parked.pop(cohort.key, None)
    if waiting is not None:
        return bool(machine.again(joined(waiting, cohort)))
    # A group never spans two blocks: the groups of a block are counted from its first thread.
    per_block = -(-L.shape.stride // 128)
    group = L.slot * per_block + L.thread // 128
    alive = np.flatnonzero(machine.alive)
    owner = alive // L.shape.stride * per_block + alive % L.shape.stride // 128
    total = machine.slots * per_block
    absent = (np.bincount(owner, minlength=total) > np.bincount(group, minlength=total))[group]
    if not absent.any():
        return True
    machine.split_wait(cohort, absent)
    return False


class Barriers:
    """The 16 barriers of each block of a batch."""

    def __init__(self, machine: Any, slots: int) -> None:
        self.machine = machine
        self.slots = slots
        self.counts: dict[int, Array] = {}
        self.expected: dict[int, Array] = {}
        self.parked: dict[int, list[Cohort]] = {}
        self.sums: dict[int, Array] = {}

    def idle(self, number: int) -> bool:
        return number not in self.parked and number not in self.counts

    def arrive(self, L: Lanes, number: int, count: Any, predicate: Any) -> None:
        """Count threads as arrived; `count` 0 means all threads of the block."""
        counts = self.counts.setdefault(number, np.zeros(self.slots, np.int64))
        expected = self.expected.setdefault(number, np.zeros(self.slots, np.int64))
        wanted = np.broadcast_to(np.asarray(count, np.int64), (L.n,))
        before = expected[L.slot]
        self._agree(number, L, wanted, before, (counts[L.slot] > 0) & (before != wanted))
        expected[L.slot] = wanted
        if count.__class__ is np.ndarray:
            self._agree(number, L, wanted, expected[L.slot], expected[L.slot] != wanted)
        counts += np.bincount(L.slot, minlength=self.slots)
        if predicate is not None:
            self._reduce(number, L.slot, np.broadcast_to(predicate, (L.n,)))

    @staticmethod
    def _agree(number: int, L: Lanes, wanted: Array, others: Array, differ: Array) -> None:
        """A fault where threads wait for a number of threads other than the `others` at the same barrier do."""
        if not differ.any():
            return
        at = np.flatnonzero(differ)
        values = {"this thread": int(wanted[at[0]]) or "all", "other threads": int(others[at[0]]) or "all"}
        message = f"Threads wait at barrier {number} for different numbers of threads"
        raise Fault("barrier", message, lanes=at, values=values, among=L)

    def _reduce(self, number: int, slot: Array, predicate: Array) -> None:
        sums = self.sums.setdefault(number, np.zeros(self.slots, np.int64))
        sums += np.bincount(slot, weights=predicate, minlength=self.slots).astype(np.int64)

    def complete(self, number: int) -> Array:
        """Which slots have all their threads at the barrier."""
        counts, expected = self.counts[number], self.expected[number]
        goal = np.where(expected == 0, self.machine.block_alive, expected)
        over = (counts > goal) & (expected != 0)
        if over.any():
            slot = int(np.flatnonzero(over)[0])
            raise Fault("barrier", f"More threads arrive at barrier {number} than it expects",
                        values={"expected": int(goal[slot]), "arrived": int(counts[slot])})  # fmt: skip
        done: Array = (counts > 0) & (counts >= goal)
        return done

    def park(self, cohort: Cohort, number: int) -> None:
        self.parked.setdefault(number, []).append(cohort)

    def release(self, number: int) -> None:
        """Let the threads of complete blocks go on."""
        if number not in self.counts:
            return
        done = self.complete(number)
        if not done.any():
            return
        self.machine.progress()
        self.machine.on.barrier_done(number, done, self.parked.get(number, []), self.expected[number] != 0)
        sums = self.sums.get(number)
        expected = self.expected[number]
        goal = np.where(expected == 0, self.machine.block_alive, expected)
        kept: list[Cohort] = []
        for cohort in self.parked.pop(number, []):
            free = done[cohort.L.slot]
            if sums is not None:
                cohort.result = np.stack((sums[cohort.L.slot], goal[cohort.L.slot]), axis=1)
            if free.all():
                self._pass(cohort)
                continue
            if not free.any():
                kept.append(cohort)
                continue
            self._pass(part(cohort, np.flatnonzero(free), cohort.pc))
            kept.append(part(cohort, np.flatnonzero(~free), cohort.pc))
        if kept:
            self.parked[number] = kept
        self.counts[number][done] = 0
        self.expected[number][done] = 0
        if sums is not None:
            sums[done] = 0
        if not self.counts[number].any():
            del self.counts[number], self.expected[number]
            self.sums.pop(number, None)

    def _pass(self, cohort: Cohort) -> None:
        cohort.passed = True
        self.machine.add(cohort)

    def release_all(self) -> None:
        for number in list(self.counts):
            self.release(number)


def barrier_gate(machine: Any, cohort: Cohort, number: Any, count: Any, predicate: Any = None) -> bool:
    """Wait at a block barrier; `predicate` for `bar.red`."""
    L = cohort.L
    barriers: Barriers = machine.barriers
    if number.__class__ is np.ndarray:
        distinct = np.unique(number)
        if len(distinct) > 1:
            for value in distinct:
                _at_barrier(machine, cohort, np.flatnonzero(number == value), value, count, predicate)
            return False
        number = distinct[0]
    number = int(number)
    if number > 15:
        raise Fault("barrier", f"Barrier {number} does not exist", hint="barriers are numbered 0 to 15")
    # The common case in one step: all threads of all blocks of the batch stand here together.
    everyone = count is None
    if count is not None and count.__class__ is not np.ndarray:  # those that have ended do not arrive
        everyone = int(count) == L.shape.threads and machine.living == machine.slots * L.shape.threads
    if everyone and L.n == machine.living and predicate is None and barriers.idle(number):
        if machine.on.observers:
            machine.on.barrier_passed(cohort)
        return True
    check_count(count)
    barriers.arrive(L, number, 0 if count is None else count, predicate)
    barriers.park(cohort, number)
    barriers.release(number)
    return False


def _at_barrier(machine: Any, cohort: Cohort, at: Array, number: Any, count: Any, predicate: Any) -> None:
    """Those threads of a cohort wait that name one barrier. Queued again they would be joined with the others."""
    some = part(cohort, at, cohort.pc)
    mine = [x[at] if x.__class__ is np.ndarray else x for x in (count, predicate)]
    if barrier_gate(machine, some, number, *mine):
        some.passed = True
        machine.add(some)


def check_count(count: Any) -> None:
    """The number of threads of a barrier is a positive multiple of 32."""
    if count is None:
        return
    values = np.atleast_1d(np.asarray(count)).astype(np.int64)
    if ((values % 32 != 0) | (values == 0)).any():
        wrong = int(values[(values % 32 != 0) | (values == 0)][0])
        raise Fault("barrier", f"A barrier for {wrong} threads", hint="the number is a positive multiple of 32")


def barrier_arrive(machine: Any, L: Lanes, number: Any, count: Any) -> None:
    """`bar.arrive`: count the threads without waiting."""
    barriers: Barriers = machine.barriers
    check_count(count)
    for value in np.unique(np.atleast_1d(number)):
        at = np.flatnonzero(np.broadcast_to(number, (L.n,)) == value)
        part_of = L if len(at) == L.n else L.subset(at)
        wanted = count if count.__class__ is not np.ndarray else count[at]
        barriers.arrive(part_of, int(value), wanted, None)
        machine.on.barrier_arrived(part_of, int(value))
        barriers.release(int(value))
