"""Where each thread of a launch stands, and what its registers hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.code import CodeBlock
from tilewright.targets.emu.cohort import Cohort, Pending
from tilewright.targets.emu.lanes import Array, Lanes, unflatten
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.ptx import Instruction
from tilewright.tools.debugger.plan import Focus, Triple


@dataclass(frozen=True)
class Standing:
    """Threads that stand before instruction `index` of a block of code.

    `names` and `values` have the registers that the block has used so far, as its function's local variables; those of
    threads that are not in the middle of a block are all in the cohort. `state` says what they do.
    """

    machine: Machine
    cohort: Cohort
    index: int = 0
    state: str = "stand here"
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lanes(self) -> Lanes:
        return self.cohort.L

    @property
    def block(self) -> CodeBlock:
        found: CodeBlock = self.cohort.code.blocks[self.cohort.pc]
        return found

    @property
    def instruction(self) -> Instruction | None:
        """The instruction that comes next."""
        body = self.block.body
        return body[self.index] if self.index < len(body) else self.block.last

    def registers(self) -> list[str]:
        """The registers that hold something."""
        live = set(self.block.live)
        kept = [name for name, number in self.cohort.code.numbers.items() if number in live]
        known = [name for name in {**self.names, **dict.fromkeys(kept)} if not name.startswith("%taint")]
        return sorted((name for name in known if self.value(name) is not None), key=_numbered)

    def value(self, name: str) -> Any:
        """A register's value: one for all threads, or an array by thread; None where it holds nothing."""
        if name in self.names:
            value = self.values[self.names[name]]
        elif name in self.cohort.code.numbers:
            value = self.cohort.R[self.cohort.code.numbers[name]]
        else:
            return None
        return value.get() if value.__class__ is Pending else value

    def by_lane(self, name: str) -> Array:
        """A register's values, one for each thread.

        Raises:
            ArgumentError: it holds nothing here.
        """
        value = self.value(name)
        if value is None:
            raise ArgumentError(f"register {name} holds nothing here", hint="`registers` lists those that do")
        return np.broadcast_to(value, (self.lanes.n,)) if np.ndim(value) == 0 else np.asarray(value)

    def position(self, focus: Focus) -> int | None:
        """The place of a thread among these, None where it is not one of them."""
        at = np.flatnonzero((self.lanes.thread == focus.thread) & (self.lanes.block == focus.block))
        return int(at[0]) if len(at) else None

    def first(self) -> Focus:
        """The first thread."""
        return Focus(int(self.lanes.block[0]), int(self.lanes.thread[0]))


def _numbered(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def others(machine: Machine, current: Cohort) -> Iterator[Standing]:
    """The threads of a batch that do not run at the moment."""
    for group in machine.ready.values():
        for cohort in group:
            yield Standing(machine, cohort, state="will go on")
    for cohort in machine.parked.values():
        yield Standing(machine, cohort, state="wait for others of their warp")
    for number, group in machine.barriers.parked.items():
        for cohort in group:
            yield Standing(machine, cohort, state=f"wait at barrier {number}")
    for cohort in machine.clusters.parked:
        yield Standing(machine, cohort, state="wait at the barrier of their cluster")
    for _, _, cohort in machine.late:
        if cohort is not current:
            yield Standing(machine, cohort, state="have not started")


def everyone(here: Standing) -> Iterator[Standing]:
    """All threads of the launch that have begun and have not ended, those at `here` first."""
    yield here
    yield from others(here.machine, here.cohort)
    for machine in here.machine.launch.under_way():
        if machine is not here.machine:
            yield from others(machine, here.cohort)


def find(here: Standing, focus: Focus) -> Standing | None:
    """Where a thread stands; None where it has ended or not begun."""
    return next((standing for standing in everyone(here) if standing.position(focus) is not None), None)


def triple(focus: Focus, machine: Machine) -> tuple[Triple, Triple]:
    """A thread's block and itself as (x, y, z)."""
    block, thread = unflatten(focus.block, machine.shape.grid), unflatten(focus.thread, machine.shape.block)
    return (block[0], block[1], block[2]), (thread[0], thread[1], thread[2])
