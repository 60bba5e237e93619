"""Running the three kernels of a core in turns, each until it waits.

A circular buffer has one producer and one consumer, and kernels see each other through these alone. So the order of
turns changes nothing, and one order that gets stuck is proof of a deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.targets.tenstorrent.simulator.core import Core
from tilewright.targets.tenstorrent.simulator.faults import Fault
from tilewright.targets.tenstorrent.simulator.program import Program


def run_core(core: Core, programs: Sequence[Program], arguments: Mapping[str, Any]) -> None:
    """Run the kernels of one core to their ends.

    Raises:
        Fault: a rule is broken, or all kernels wait; it names role and line.
    """
    waiting: dict[str, Any] = {}
    running: list[tuple[Program, Iterator[Any]]] = [(item, item.start(core, dict(arguments))) for item in programs]
    while running:
        moved = False
        left = []
        for program, steps in running:
            before = waiting.get(program.role)
            if before is not None and not _ready(before):
                left.append((program, steps))
                continue
            moved = True
            waiting[program.role] = _advance(core, program, steps)
            if waiting[program.role] is not None:
                left.append((program, steps))
        running = left
        if running and not moved:
            raise _deadlock([program.role for program, _ in running], waiting)
    core.finish()


def _ready(wish: tuple[Any, str, int]) -> bool:
    buffer, way, count = wish
    return bool(buffer.has_room(count) if way == "room" else buffer.has_tiles(count))


def _advance(core: Core, program: Program, steps: Iterator[Any]) -> Any:
    """Run a kernel until it waits: for what, or None at its end."""
    core.calls = program
    try:
        return next(steps, None)
    except Fault as fault:
        fault.role = fault.role or program.role
        fault.location = fault.location or program.location(_operation(fault))
        raise


def _operation(fault: Fault) -> int:
    """The number of the operation that raised: the first argument of the method of the core."""
    trace = fault.__traceback__
    found = -1
    while trace is not None:
        at = trace.tb_frame.f_locals.get("at")
        found = at if isinstance(at, int) and found < 0 else found
        trace = trace.tb_next
    return found


def _deadlock(roles: Sequence[str], waiting: Mapping[str, Any]) -> Fault:
    """Every kernel that is left waits."""
    texts = {}
    for role in roles:
        buffer, way, count = waiting[role]
        have = buffer.pages - (buffer.pushed - buffer.popped) if way == "room" else buffer.pushed - buffer.popped
        what = f"room for {count} pages" if way == "room" else f"{count} pages"
        texts[role] = f"waits for {what} of {buffer.name}, which has {have} of {buffer.pages}"
    return Fault("deadlock: every kernel of the core waits", "push and pop as many pages as the other side", **texts)
