"""Barriers, mbarriers and asynchronous copies of a block, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.rules.barriers import COUNT, PHASE, TX_BIAS, TX_MASK
from tilewright.tools.debugger.onlooker import CopyUnderWay, Onlooker


def onlooker_of(machine: Machine) -> Onlooker | None:
    """What the debugger has noted of a batch."""
    return next((observer for observer in machine.on.observers if isinstance(observer, Onlooker)), None)


def _slot(machine: Machine, block: int) -> int:
    return int(np.flatnonzero(machine.blocks == block)[0])


def states(machine: Machine, block: int) -> list[str]:
    """The barriers of a block at which threads wait, then its mbarriers, each in a line."""
    return [*_barriers(machine, block), *_mbarriers(machine, block)]


def _barriers(machine: Machine, block: int) -> Iterator[str]:
    slot = _slot(machine, block)
    for number, counts in machine.barriers.counts.items():
        if counts[slot]:
            expected = int(machine.barriers.expected[number][slot]) or int(machine.block_alive[slot])
            yield f"barrier {number}: {int(counts[slot])} of {expected} threads have arrived"


def _mbarriers(machine: Machine, block: int) -> Iterator[str]:
    onlooker = onlooker_of(machine)
    first = _slot(machine, block) * machine.sh.stride // 8
    words = machine.sh.view(np.dtype(np.uint64), 1)
    for index in sorted(onlooker.mbarriers) if onlooker is not None else ():
        if not 0 <= index - first < machine.sh.stride // 8:
            continue
        word = words[index]
        pending, expected = int(word & COUNT), int(word >> np.uint64(20) & COUNT)
        nbytes = int(word >> np.uint64(40) & TX_MASK) - TX_BIAS
        parity = int(bool(word & PHASE))
        yield (
            f"mbarrier at {8 * (index - first):#x}: phase of parity {parity} under way, {expected - pending} of "
            f"{expected} arrivals, {nbytes} bytes expected"
        )


def copies(machine: Machine, block: int) -> list[str]:
    """The asynchronous copies of a block that no one has waited for, each instruction's in a line."""
    onlooker = onlooker_of(machine)
    if onlooker is None:
        return []
    slot, stride = _slot(machine, block), machine.shape.stride
    lines = []
    for copy in onlooker.copies:
        mine = np.flatnonzero(copy.lanes // stride == slot)
        if len(mine):
            lines.append(_line(machine, onlooker, copy, mine))
    return lines


def _line(machine: Machine, onlooker: Onlooker, copy: CopyUnderWay, mine: np.ndarray) -> str:
    instruction = machine.launch.program.sites[copy.site]
    place = instruction.place
    where = f"{place.file.rpartition('/')[2]}:{place.line}" if place is not None else f"PTX line {instruction.line}"
    to = ""
    if copy.to is not None:
        inside = copy.to[mine] % machine.sh.stride
        to = f" to shared {int(inside.min()):#x}..{int(inside.max()) + copy.nbytes:#x}"
    first, last = (int(copy.lanes[mine[k]]) % machine.shape.stride for k in (0, -1))
    threads = f"of thread {first}" if len(mine) == 1 else f"each of {len(mine)} threads ({first} to {last})"
    return f"{copy.kind}{to}, {copy.nbytes} bytes {threads}, {_waits(machine, onlooker, copy, mine)}, {where}"


def _waits(machine: Machine, onlooker: Onlooker, copy: CopyUnderWay, mine: np.ndarray) -> str:
    """What a copy will be waited for by."""
    if copy.word >= 0:
        return f"counted by the mbarrier at {8 * copy.word % machine.sh.stride:#x}"
    now = onlooker.groups[copy.kind != "cp.async"][copy.lanes[mine]]
    behind = int((now - copy.group[mine]).min())
    return "not committed" if behind == 0 else f"committed, {behind - 1} later groups"
