"""The error of threads that cannot go on: where each of them waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import located, threads_of
from tilewright.targets.emu.loops import loop_of
from tilewright.targets.emu.ptx import Instruction
from tilewright.targets.emu.rules.barriers import pending_text

DEADLOCK = "Deadlock: no thread can go on", "some threads wait for others that have ended or wait elsewhere"
ENDLESS = (
    "Endless loop: no thread can go on, each comes back to a state it was in before",
    "does the loop change what its condition depends on? A value in memory must be written by a thread that still runs",
)
SHOWN = 8
"""Groups of threads that are named."""


class Waiting(NamedTuple):
    """Threads that wait; how often each block of their launch's code ran of late, by serial number; where they are,
    beside other devices."""

    cohort: Cohort
    ran: Mapping[int, int]
    where: str = ""


def deadlock(waiting: list[Waiting], kernel: str) -> EmulationError:
    """The error for threads that wait, those first that go round a loop without end; if all do, it is of that kind."""
    waiting = sorted(waiting, key=lambda one: one.cohort.spinning is None)
    values: dict[str, Any] = {"kernel": kernel}
    for number, one in enumerate(_one_of_each(waiting)[:SHOWN]):
        where = _waits_at(one.cohort, one.ran)
        threads = threads_of(one.cohort.L, None)
        text = f"line {where.line}: {where.text}" if where is not None else "the end of the kernel"
        values[f"wait {number}"] = (
            f"{one.where}{one.cohort.L.n} threads from block {threads['block']} thread {threads['thread']} at {text}"
        )
        if where is not None and where.op == "mbarrier" and one.cohort.mbarrier is not None:
            values[f"wait {number}"] += f"; {pending_text(*one.cohort.mbarrier)}"
    site = _waits_at(waiting[0].cohort, waiting[0].ran) if waiting else None
    message, hint = DEADLOCK
    if waiting and waiting[-1].cohort.spinning is not None:
        message, hint = ENDLESS
    return located(message, site, values=values, hint=hint, kind="deadlock")


def _one_of_each(waiting: list[Waiting]) -> list[Waiting]:
    """The same, one of each place before all others."""
    first = {one.where: number for number, one in reversed(list(enumerate(waiting)))}
    order = sorted(range(len(waiting)), key=lambda number: first[waiting[number].where] != number)
    return [waiting[number] for number in order]


def _waits_at(cohort: Cohort, ran: Mapping[int, int]) -> Instruction | None:
    """The instruction that threads wait at, or at which their loop goes round."""
    block = cohort.code.blocks[cohort.pc]
    loop = loop_of(cohort, ran) if cohort.spinning is not None else None
    return loop or block.gate_site or cohort.poll or block.first
