"""What warps would wait for: an estimate from machine code, latencies and the emulator's counts.

One warp alone is taken through the machine code from top to bottom, through loops several times (`sass_loops`). An
instruction is issued one cycle after the one before it, or later, when the registers that it reads are there: each has
a latency (`hw.latencies`). The cycles until then are put down to what made the register that comes last, and multiplied
by how many warps ran the instruction. Of the other resident warps one thing counts: all are taken to access memory at
the same time. Accesses are served in order, by shared memory one wavefront a cycle, by global memory at the
multiprocessor's share of its bandwidth; so an access waits for half of the other warps', and for all that they and the
warp itself asked for before. At its end a warp waits until its stores are out. What is left out: barriers, branches,
fetching code, full queues, and that other warps run meanwhile. Names of reasons are those of Nsight Compute ("Kernel
Profiling Guide", section "Statistical Sampler").
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilewright.hw.chips import WARP_THREADS
from tilewright.hw.latencies import Latencies
from tilewright.targets.nvidia.sass.blocks import Block, reachable
from tilewright.targets.nvidia.sass.listing import Instruction
from tilewright.targets.nvidia.sass.loops import visits
from tilewright.targets.nvidia.sass.machine_code import MachineCode
from tilewright.targets.nvidia.sass.registers import Registers
from tilewright.targets.nvidia.sass.table import space_of
from tilewright.tools.profiling.line_counts import Counts

LONG: Final = "long scoreboard"
SHORT: Final = "short scoreboard"
FIXED: Final = "wait"
TENSOR: Final = "math pipe"
DRAIN: Final = "drain"
ISSUED: Final = "selected"
REASONS: Final[Mapping[str, str]] = {
    LONG: "data of global or local memory",
    SHORT: "data of shared memory, shuffles, special functions, special registers",
    TENSOR: "tensor cores",
    FIXED: "results of arithmetic",
    DRAIN: "stores that are not out when the warp ends",
    ISSUED: "nothing: the instruction is issued",
}
"""What warps wait for, by Nsight Compute's name."""

_QUEUED: Final = frozenset(
    (
        "MUFU",
        "SHFL",
        "S2R",
        "S2UR",
        "POPC",
        "FLO",
        "I2F",
        "F2I",
        "VOTE",
        "MATCH",
        "REDUX",
        "R2UR",
        "LDC",
        "LDCU",
        "ULDC",
    )
)
_TENSOR: Final = frozenset(("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA"))
_STORES: Final = frozenset(("STG", "ST", "RED"))
_COPIES: Final = frozenset(("UTMALDG", "UBLKCP"))
_PENDING: Final = re.compile(r"DEPBAR\.LE SB0, 0x([0-9a-f]+)")


@dataclass(frozen=True)
class ChipTimes:
    """Latencies, and what warps share of a multiprocessor.

    Attributes:
        latencies: in cycles.
        missing: the share of sectors that come from beyond L2, 0 to 1.
        warps: warps that are resident; each access waits for those of half of the others.
        blocks: blocks that are resident.
        sector_cycles: cycles in which a multiprocessor gets its share of one sector of memory.
    """

    latencies: Latencies
    missing: float = 1.0
    warps: int = 1
    sector_cycles: float = 0.0
    blocks: int = 1


@dataclass
class _Pipe:
    """A part of the multiprocessor that serves requests in order: when it is done with those of before."""

    free: float = 0.0

    def enter(self, now: float, each: float, others: float) -> float:
        """Make a request that takes `each` cycles, as `others` do; when it is served, on average."""
        start = max(now, self.free)
        self.free = start + each * (1 + others)
        return start + each * (1 + others / 2)


@dataclass
class _Warp:
    """One warp on its way: the cycle, when each register is there and who makes it, copies and stores under way."""

    now: float = 0.0
    ready: dict[str, tuple[float, str]] = field(default_factory=dict)
    copies: float = 0.0
    groups: list[float] = field(default_factory=list)
    stores: float = 0.0
    memory: _Pipe = field(default_factory=_Pipe)
    shared: _Pipe = field(default_factory=_Pipe)


def stalls(
    code: MachineCode,
    ptx_lines: Mapping[int, int],
    counts: Mapping[int, Counts],
    chip: ChipTimes,
) -> dict[int, dict[str, float]]:
    """Estimated cycles of all warps by offset of the instruction and by reason.

    Args:
        code: a kernel's machine code.
        ptx_lines: the PTX line of each instruction, by offset.
        counts: the emulator's counts by PTX line.
        chip: its latencies, and what shares them.
    """
    warps = executions(code.instructions, ptx_lines, counts)
    blocks = reachable(code.blocks)
    weights = {block.number: _block_weight(block, warps) for block in blocks}
    warp = _Warp()
    found: dict[int, dict[str, float]] = {}
    for block, times in visits(blocks, weights):
        for item in block.instructions:
            line = counts.get(ptx_lines.get(item.offset, 0), Counts())
            reason, waited = _issue(item, code.registers.get(item.offset), warp, line, chip)
            if times:
                cycles = found.setdefault(item.offset, {})
                cycles[ISSUED] = cycles.get(ISSUED, 0.0) + times
                if waited:
                    cycles[reason] = cycles.get(reason, 0.0) + times * waited
    return found


def executions(
    instructions: Sequence[Instruction], ptx_lines: Mapping[int, int], counts: Mapping[int, Counts]
) -> dict[int, float]:
    """How many warps ran each instruction, by offset, about.

    A line of PTX that the assembler copied, as it unrolls loops, is shared evenly by its copies.
    """
    kinds = {item.offset: (ptx_lines.get(item.offset), item.mnemonic, item.modifiers) for item in instructions}
    copies = Counter(kinds.values())
    return {
        offset: counts[line].instructions / WARP_THREADS / copies[kind]
        for offset, kind in kinds.items()
        if (line := kind[0]) is not None and line in counts
    }


def _block_weight(block: Block, warps: Mapping[int, float]) -> float:
    """How many warps ran a block: what half of its instructions show at least, as some lines are copied unevenly."""
    shown = [warps[item.offset] for item in block.instructions if item.offset in warps]
    return statistics.median_high(shown) if shown else 0.0


def _issue(item: Instruction, used: Registers | None, warp: _Warp, line: Counts, chip: ChipTimes) -> tuple[str, float]:
    """Issue one instruction: what it waits for, and how many cycles."""
    needed = [warp.ready[name] for name in (used.reads if used else ()) if name in warp.ready]
    at, reason = max(needed, default=(0.0, FIXED))
    waits_for_copies = _copies_needed(item, warp)
    if waits_for_copies > at:
        at, reason = waits_for_copies, LONG
    if item.mnemonic == "EXIT" and not item.predicate and warp.stores > at:
        at, reason = warp.stores, DRAIN
    waited = max(at - warp.now, 0.0)
    warp.now += waited
    kind, done = _result(item, line, warp, chip)
    for name in used.writes if used else ():
        warp.ready[name] = (done, kind)
    if item.mnemonic in ("LDGSTS", *_COPIES):
        warp.copies = max(warp.copies, done)
    if item.mnemonic == "LDGDEPBAR":
        warp.groups.append(warp.copies)
    warp.now += 1
    return reason, waited


def _copies_needed(item: Instruction, warp: _Warp) -> float:
    """When the asynchronous copies are there that an instruction waits for; 0 where it waits for none."""
    pending = _PENDING.search(item.text)
    if pending:
        left = int(pending[1], 16)
        return warp.groups[-1 - left] if left < len(warp.groups) else 0.0
    return warp.copies if item.mnemonic == "SYNCS" and "TRYWAIT" in item.text else 0.0


def _result(item: Instruction, line: Counts, warp: _Warp, chip: ChipTimes) -> tuple[str, float]:
    """What users of an instruction's result wait for, and the cycle when it is there."""
    times, space, now = chip.latencies, space_of(item.mnemonic), warp.now
    requests = line.requests or 1
    others = chip.blocks - 1 if item.mnemonic in _COPIES else chip.warps - 1  # one thread of a block copies boxes
    stored = now
    if line.wavefronts and space is not None:  # copies from global memory write shared memory too
        stored = warp.shared.enter(now, line.wavefronts / requests, others) - 1
    if space in ("global", "generic"):
        served = warp.memory.enter(now, line.sectors / requests * chip.sector_cycles * chip.missing, others)
        if item.mnemonic in _STORES:
            warp.stores = max(warp.stores, served)
        return LONG, max(served, stored) + times.l2 + chip.missing * (times.memory - times.l2)
    if space == "local":
        return LONG, now + times.l1
    if space == "shared" or item.mnemonic in _QUEUED:
        return SHORT, stored + times.shared
    if item.mnemonic in _TENSOR:
        return TENSOR, now + times.tensor
    return FIXED, now + times.arithmetic
