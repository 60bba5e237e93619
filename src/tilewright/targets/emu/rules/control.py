"""Barriers, traps and the like (PTX ISA 9.7.12, 9.7.13, 9.7.20). Branches are part of the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Lanes
from tilewright.targets.emu.ptx import Imm, Instruction
from tilewright.targets.emu.runtime import provide


@rule("bar", "barrier")
def barrier(c: BlockCoder, i: Instruction) -> None:
    """The gate has waited; `bar.red` takes its result, `bar.arrive` only counts."""
    if "warp" in i.mods:
        if c.owner.checks:
            mask = c.use(i.ops[0], "u32")
            c.effect("check_members(S, SITE, L, {0})", [mask])
            c.emit(f"S.on.warp_synced(L, {mask}, C)")
        return
    if "arrive" in i.mods and "cluster" not in i.mods:
        number, count = c.use(i.ops[0], "u32"), c.use(i.ops[1], "u32")
        c.effect("barrier_arrive(S, L, {0}, {1})", [number, count])
    elif "red" in i.mods:
        op = next(m for m in i.mods if m in ("popc", "and", "or"))
        kind = "u32" if op == "popc" else "pred"
        c.set(i.ops[0], kind, f"barrier_result(C, {op!r})")


@provide
def barrier_result(C: Any, op: str) -> Any:
    """The reduction over a barrier's threads: (number of true predicates, number of threads) by thread."""
    total, count = C.result[:, 0], C.result[:, 1]
    C.result = None
    if op == "popc":
        return total.astype(np.uint32)
    return total == count if op == "and" else total > 0


@rule("trap")
def trap(c: BlockCoder, i: Instruction) -> None:
    c.effect("trapped(SITE, L)", [])


@provide
def trapped(site: int, L: Lanes) -> None:
    hint = "an assertion of the kernel failed, or code ran that its compiler took for unreachable"
    raise Fault("trap", "The kernel trapped", site, np.arange(L.n), hint=hint)


@rule("brkpt", "pmevent", "nanosleep")
def ignored(c: BlockCoder, i: Instruction) -> None:
    if i.op == "nanosleep":
        c.emit("S.poll()")


@rule("setmaxnreg")
def registers(c: BlockCoder, i: Instruction) -> None:
    """Register counts have no meaning here, but there are rules for them (PTX ISA 9.7.20.5)."""
    count = i.ops[0].value if isinstance(i.ops[0], Imm) else 0
    if count not in range(24, 257, 8):
        raise c.fail("setmaxnreg takes a multiple of 8 from 24 to 256")
    if c.owner.checks:
        c.effect("whole_group(L, SITE)", [])


@provide
def whole_group(L: Lanes, site: int) -> None:
    """A fault unless all threads of each warpgroup are here; the last one of a block may have fewer than 128."""
    groups, counts = np.unique(L.slot * L.shape.stride + L.thread // 128, return_counts=True)
    if (counts < np.minimum(L.shape.threads - groups % L.shape.stride * 128, 128)).any():
        raise Fault("diverged", "setmaxnreg needs all threads of its warpgroup", site,
                    hint="some threads have ended, or took another path")  # fmt: skip


@rule("griddepcontrol")
def hints(c: BlockCoder, i: Instruction) -> None:
    """A grid starts when those before it have ended."""
