"""Cohorts: threads at one program counter, with their registers.

Register values are immutable: a NumPy scalar (the same for all threads) or an array with one element a thread.
When a cohort splits, its parts keep the whole array and the picked positions (`Pending`) until the value is used;
when they meet again, untouched registers are the old arrays. Nothing is copied that no one reads.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.ptx import Instruction

FIRST_PATIENCE, MOST_PATIENCE = 4, 1024
MOST_STATES = 64


class Pending:
    """`base[picked]`, not yet computed."""

    __slots__ = ("base", "picked")

    def __init__(self, base: Array, picked: Array) -> None:
        self.base = base
        self.picked = picked

    def get(self) -> Array:
        value: Array = self.base[self.picked]
        return value


class Frame:
    """A suspended caller: where to go on, its registers, its local memory pointer, and the call."""

    __slots__ = ("call", "code", "pc", "registers", "sp")

    def __init__(self, code: Any, pc: int, registers: list[Any], sp: int, call: Any) -> None:
        self.code = code
        self.pc = pc
        self.registers = registers
        self.sp = sp
        self.call = call


class Cohort:
    """Threads that run together. `key` orders cohorts of a batch; `turn` postpones those that only wait, which
    `seen` (states at earlier polls) and `patience` (polls until the next look) find out; `poll` is what they repeat.
    `mbarrier`: what they last looked at in vain, the memory and the number of its word.
    `spinning`: how much the launch had changed when they were found to go round and round, None if they were not.
    `spent`: the instructions that each thread has executed, None where nobody counts them."""

    __slots__ = (
        "L", "R", "code", "frames", "mbarrier", "passed", "patience", "pc", "poll", "prefix", "result", "seen", "sp",
        "spent", "spinning", "turn",
    )  # fmt: skip

    def __init__(self, lanes: Lanes, code: Any, registers: list[Any]) -> None:
        self.L = lanes
        self.R = registers
        self.code = code
        self.pc = 0
        self.sp = 0
        self.turn = 0
        self.frames: tuple[Frame, ...] = ()
        self.prefix: tuple[int, ...] = ()
        self.passed = False
        self.result: Any = None
        self.seen: set[tuple[int, int, int]] = set()
        self.patience = FIRST_PATIENCE
        self.poll: Instruction | None = None
        self.mbarrier: tuple[Any, int] | None = None
        self.spinning: int | None = None
        self.spent: Array | None = None

    def spins(self, changes: int) -> bool:
        """Whether the cohort comes back to a state it was in when the launch had changed as much as now: it will again,
        until something changes."""
        if self.spinning != changes:
            self.spinning = changes if self.recurs(changes) else None
        return self.spinning is not None

    def recurs(self, changes: int = -1) -> bool:
        """Whether this is a state in which the cohort has polled before: then it does nothing but wait."""
        # Registers that no later block reads may differ for ever, and change nothing.
        digest = 0
        for number in self.code.blocks[self.pc].live:
            value = self.R[number]
            if value.__class__ is Pending:
                value = self.R[number] = value.get()
            digest = zlib.crc32(value.tobytes(), digest)
        state = (self.pc, digest, changes)
        if state in self.seen:
            self.patience = FIRST_PATIENCE
            return True
        if len(self.seen) >= MOST_STATES:
            self.seen.clear()
        self.seen.add(state)
        if len(self.seen) > 3:  # something changes each time: look less often
            self.patience = min(2 * self.patience, MOST_PATIENCE)
        return False

    @property
    def key(self) -> tuple[int, ...]:
        return (*self.prefix, self.code.blocks[self.pc].order)


def is_array(value: Any) -> bool:
    """Whether a register value differs by thread."""
    return value.__class__ is np.ndarray


class _Picker:
    """Makes `Pending` values for one part of a split; positions into one base are composed once."""

    def __init__(self, picked: Array) -> None:
        self.picked = picked
        self.composed: dict[int, tuple[Array, Array]] = {}

    def pick(self, value: Any) -> Any:
        if value.__class__ is np.ndarray:
            return Pending(value, self.picked)
        if value.__class__ is not Pending:
            return value
        known = self.composed.get(id(value.picked))
        if known is None:
            known = self.composed[id(value.picked)] = (value.picked, value.picked[self.picked])
        return Pending(value.base, known[1])


def part(cohort: Cohort, picked: Array, pc: int, everything: bool = False) -> Cohort:
    """The threads at positions `picked` (ascending), to go on at `pc` with the registers needed there (or all)."""
    picker = _Picker(picked)
    old = cohort.R
    registers: list[Any] = [None] * len(old)
    for number in range(len(old)) if everything else cohort.code.blocks[pc].live:
        registers[number] = picker.pick(old[number])
    piece = Cohort(cohort.L.subset(picked), cohort.code, registers)
    piece.pc, piece.sp, piece.turn, piece.prefix = pc, cohort.sp, cohort.turn, cohort.prefix
    piece.passed = cohort.passed
    if cohort.result is not None:
        piece.result = cohort.result[picked]
    if cohort.spent is not None:
        piece.spent = cohort.spent[picked]
    if cohort.frames:
        piece.frames = tuple(
            Frame(f.code, f.pc, [picker.pick(value) for value in f.registers], f.sp, f.call) for f in cohort.frames
        )
    return piece


class _Joiner:
    """Interleaves values of two lane sets into ascending lane order."""

    def __init__(self, a: Lanes, b: Lanes) -> None:
        self.na, self.nb = a.n, b.n
        self.n = a.n + b.n
        self.ordered = bool(a.ids[-1] < b.ids[0])
        if self.ordered:
            self.ids = np.concatenate((a.ids, b.ids))
        else:
            self.at_b = np.searchsorted(a.ids, b.ids) + np.arange(b.n)
            rest = np.ones(self.n, bool)
            rest[self.at_b] = False
            self.at_a = np.flatnonzero(rest)
            self.ids = self.arrays(a.ids, b.ids)
        self.joined: dict[tuple[int, int], tuple[Any, Any, Array]] = {}

    def arrays(self, a: Any, b: Any) -> Array:
        if self.ordered and a.__class__ is np.ndarray and b.__class__ is np.ndarray:
            return np.concatenate((a, b))
        model = a if a.__class__ is np.ndarray else b
        out = np.empty((self.n, *model.shape[1:]), model.dtype)
        if self.ordered:
            out[: self.na] = a
            out[self.na :] = b
        else:
            out[self.at_a] = a
            out[self.at_b] = b
        return out

    def join(self, a: Any, b: Any) -> Any:
        if a is b and a.__class__ is not np.ndarray and a.__class__ is not Pending:
            return a
        if a is None:
            return b if not is_array(b) and b.__class__ is not Pending else self.join(_zero_like(b), b)
        if b is None:
            return a if not is_array(a) and a.__class__ is not Pending else self.join(a, _zero_like(a))
        if a.__class__ is Pending and b.__class__ is Pending and a.base is b.base:
            return self._pending(a, b)
        if a.__class__ is Pending:
            a = a.get()
        if b.__class__ is Pending:
            b = b.get()
        if not is_array(a) and not is_array(b):
            if a.tobytes() == b.tobytes():
                return a
            a = np.full(self.na, a)
        return self.arrays(a, b)

    def _pending(self, a: Pending, b: Pending) -> Any:
        key = (id(a.picked), id(b.picked))
        known = self.joined.get(key)
        if known is None:
            picked = self.arrays(a.picked, b.picked)
            known = self.joined[key] = (a.picked, b.picked, picked)
        if len(known[2]) == len(a.base):
            return a.base
        return Pending(a.base, known[2])


def _zero_like(value: Any) -> Any:
    if value.__class__ is Pending:
        value = value.base
    if value.ndim > 1:
        return np.zeros(value.shape[1:], value.dtype)
    return value.dtype.type(0)


def joined(a: Cohort, b: Cohort) -> Cohort:
    """Two cohorts at the same place, as one."""
    joiner = _Joiner(a.L, b.L)
    registers: list[Any] = [None] * len(a.R)
    for number in a.code.blocks[a.pc].live:
        registers[number] = joiner.join(a.R[number], b.R[number])
    both = Cohort(Lanes(a.L.shape, joiner.ids, a.L.blocks), a.code, registers)
    both.pc, both.sp, both.prefix = a.pc, a.sp, a.prefix
    both.turn = max(a.turn, b.turn)
    both.passed = a.passed
    if a.result is not None and b.result is not None:
        both.result = joiner.arrays(a.result, b.result)
    if a.spent is not None and b.spent is not None:
        both.spent = joiner.arrays(a.spent, b.spent)
    both.frames = tuple(
        Frame(f.code, f.pc, [joiner.join(x, y) for x, y in zip(f.registers, g.registers, strict=True)], f.sp, f.call)
        for f, g in zip(a.frames, b.frames, strict=True)
    )
    return both
