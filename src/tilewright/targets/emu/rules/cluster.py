"""Thread block clusters (PTX ISA 9.7.9.24, 9.7.13.4): mapa, getctarank, barrier.cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.dtypes import DTYPE
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import CLUSTER_SHIFT, SHARED_WINDOW
from tilewright.targets.emu.ptx import Instruction, Sym
from tilewright.targets.emu.runtime import provide

INSIDE = (1 << CLUSTER_SHIFT) - 1


@rule("mapa")
def mapa(c: BlockCoder, i: Instruction) -> None:
    """The address of the same variable in another block of the cluster."""
    kind, dtype = i.type, DTYPE[i.type]
    generic = not any(m.startswith("shared") for m in i.mods)
    source = i.ops[1]
    text = c.use(source, kind)
    if generic and kind == "u64" and isinstance(source, Sym):
        text = c.let(f"{text} + {c.constant(SHARED_WINDOW, dtype)}")
    rank = c.use(i.ops[2], "u32")
    c.effect(f"mapped(SITE, L, {{0}}, {{1}}, {generic})", [text, rank], [(i.ops[0], kind)])


@provide
def mapped(site: int, L: Lanes, addr: Any, rank: Any, generic: bool) -> Any:
    if (rank >= L.shape.cluster_blocks).any():
        bad = int(np.atleast_1d(rank).max())
        raise Fault("cluster", "mapa with a rank outside the cluster", site,
                    values={"rank": bad, "cluster": f"{L.shape.cluster_blocks} blocks"})  # fmt: skip
    kind = addr.dtype.type
    if generic and addr.dtype.itemsize == 4:
        hint = "mapa.shared::cluster.u32, or mapa.u64"
        raise Fault("operand", "A generic address does not fit in 32 bits", site, hint=hint, among=L)
    inner = addr & kind(INSIDE)
    base = kind(SHARED_WINDOW) if generic else kind(0)
    return inner | ((rank.astype(addr.dtype) + kind(1)) << kind(CLUSTER_SHIFT)) | base


@rule("getctarank")
def getctarank(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    c.set(i.ops[0], "u32", f"rank_of({c.use(i.ops[1], kind)}, L)")


@provide
def rank_of(addr: Any, L: Lanes) -> Array:
    shifted = ((addr >> addr.dtype.type(CLUSTER_SHIFT)) & addr.dtype.type(0xFF)).astype(np.int64)
    return np.where(shifted == 0, L.cluster_rank(), shifted - 1).astype(np.uint32)


@rule("barrier.cluster.arrive")
def arrive(c: BlockCoder, i: Instruction) -> None:
    c.effect(f"cluster_arrive(S, C, L, {'relaxed' in i.mods})", [])


@rule("barrier.cluster.wait")
def wait(c: BlockCoder, i: Instruction) -> None:
    """The gate has waited."""
    c.emit("S.on.cluster_waited(L)")


class ClusterBarriers:
    """One barrier for each cluster of a batch. `phase` counts completed phases; `token` the phase a thread is in."""

    def __init__(self, machine: Any, slots: int, size: int) -> None:
        self.machine = machine
        self.size = size
        self.phase = np.zeros(slots // size, np.int64)
        self.count = np.zeros(slots // size, np.int64)
        self.token = np.full(slots * machine.shape.stride, -1, np.int64)
        self.parked: list[Cohort] = []

    def living(self) -> Array:
        alive: Array = self.machine.block_alive.reshape(-1, self.size).sum(axis=1)
        return alive

    def arrive(self, L: Lanes) -> None:
        cluster = L.slot // self.size
        if (self.token[L.ids] >= 0).any():
            raise Fault("barrier", "barrier.cluster.arrive twice without a wait between",
                        lanes=np.flatnonzero(self.token[L.ids] >= 0))  # fmt: skip
        self.token[L.ids] = self.phase[cluster]
        self.count += np.bincount(cluster, minlength=len(self.phase))
        self.settle()

    def settle(self) -> None:
        """End the phases whose living threads have all arrived, and let the waiting ones go."""
        done = (self.count > 0) & (self.count >= self.living())
        if not done.any():
            return
        self.machine.on.cluster_completed(np.flatnonzero(done))
        self.phase[done] += 1
        self.count[done] = 0
        parked, self.parked = self.parked, []
        for cohort in parked:
            self.machine.add(cohort)


@provide
def cluster_arrive(S: Any, C: Cohort, L: Lanes, relaxed: bool) -> None:
    S.on.cluster_arriving(L, relaxed)
    S.clusters.arrive(L)
    S.progress()


@provide
def cluster_gate(S: Any, C: Cohort) -> bool:
    """Let the threads through whose cluster's phase has ended."""
    barriers: ClusterBarriers = S.clusters
    token = barriers.token[C.L.ids]
    if (token < 0).any():
        raise Fault("barrier", "barrier.cluster.wait without an arrive before", lanes=np.flatnonzero(token < 0))
    waits = barriers.phase[C.L.slot // barriers.size] <= token
    if not waits.any():
        barriers.token[C.L.ids] = -1
        return True
    if waits.all():
        barriers.parked.append(C)
        return False
    S.park_part(C, waits, barriers.parked)
    return False
