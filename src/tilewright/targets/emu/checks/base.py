"""What all checks share: the state of a watched batch, accesses, and what becomes of a finding."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.clocks import Clocks, Knowledge, Publication
from tilewright.targets.emu.checks.fences import ProxyFences, SequentialFences
from tilewright.targets.emu.checks.rows import rows_of
from tilewright.targets.emu.checks.shadow import Shadow
from tilewright.targets.emu.checks.sites import CLUSTER, CTA, GPU, WEAK, Access, access_of
from tilewright.targets.emu.checks.stamps import CLOCK_SHIFT, HINT, MOST_BLOCKS
from tilewright.targets.emu.faults import Fault, located
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.ptx import Instruction

FALSE = np.bool_(False)


class Event:
    """One instruction's access to one memory: granules (`each` of them for every lane), stamps, floor, attributes."""

    def __init__(
        self, machine: Any, shadow: Shadow, site: int, L: Lanes, cells: Array, each: int, space: str, base: int
    ) -> None:
        self.shadow, self.site, self.L = shadow, site, L
        self.cells, self.each, self.space, self.base = cells, each, space, base
        self.access: Access = machine.access(site)
        self._machine = machine
        self._clocks: Clocks = machine.clocks
        self.alone: bool = space == "shared" and machine.shape.cluster_blocks == 1
        """Whether only threads of the lanes' own block can reach the memory."""

    @cached_property
    def mine(self) -> Array:
        """The stamps of the lanes, granule by granule."""
        mine: Array = self._machine.stamps(self.L, self.site)
        return np.repeat(mine, self.each) if self.each > 1 else mine

    @cached_property
    def rows(self) -> Array | None:
        """The rows of the shadow that the granules are (`rows`), None if they are not."""
        return rows_of(self.cells)

    @cached_property
    def distinct(self) -> bool:
        """Whether it is plain that no granule comes twice."""
        if self.rows is None:
            return False
        order = np.sort(self.rows)
        return not np.count_nonzero(order[1:] == order[:-1])

    @cached_property
    def floor(self) -> Any:
        """The lowest stamps that the last barrier of each lane's block has not ordered."""
        if self._clocks.level is not None:
            return np.uint64(self._clocks.level << CLOCK_SHIFT)
        known = self._clocks.known
        if self._clocks.slots == 1:
            return np.uint64((int(known[0]) + 1) << CLOCK_SHIFT)
        low = (known[self.L.slot] + 1).astype(np.uint64) << np.uint64(CLOCK_SHIFT)
        return np.repeat(low, self.each) if self.each > 1 else low


class Wgmma:
    """Matrix products in flight, by warpgroup: registers that they write, and read, with their group; groups committed;
    fences."""

    def __init__(self) -> None:
        self.flying: dict[int, dict[int, int]] = {}
        self.reading: dict[int, dict[int, int]] = {}
        self.committed: dict[int, int] = {}
        self.fenced: set[int] = set()


class Watch(Machine):
    """The state that all checks share, and what becomes of a finding."""

    def __init__(self, launch: Any, blocks: Array) -> None:
        super().__init__(launch, blocks)
        if self.shape.blocks > MOST_BLOCKS:
            raise located(f"The race check knows at most {MOST_BLOCKS} blocks", None, launch.kernel,
                          {"grid": self.shape.grid}, HINT, "limit")  # fmt: skip
        self.clocks = Clocks(self.slots, self.shape.stride, blocks)
        self.shared_shadow = Shadow(len(self.sh.bytes))
        self.ordered = launch.synchronises
        self.plain = not self.ordered and self.shape.cluster_blocks == 1
        """Whether nothing but barriers of whole blocks orders threads, and no block reaches another's shared memory."""
        self.unwritten: Any = FALSE
        self.sites: list[Instruction] = launch.program.sites
        self.attributes: dict[int, Access] = launch.attributes
        self.phases: dict[int, Array] = {}
        self.ended: dict[int, Array] = {}
        self.waiting: dict[tuple[int, int], Array] = {}
        self.arriving: dict[tuple[int, int], list[Array]] = {}
        self.waiting_foreign: dict[tuple[int, int], Knowledge] = {}
        self.arrived_foreign: dict[int, Knowledge] = {}
        self.arrived = np.zeros(len(self.alive), np.int64)
        self.met_in_cluster: dict[int, Knowledge] = {}
        self.levels = (CTA, CLUSTER, GPU) if launch.narrow else (GPU,)
        self.fenced_at = np.zeros((GPU + 1, len(self.alive)), np.int64)
        self.sequential = SequentialFences(self.clocks)
        self.fenced_shared = np.zeros(len(self.alive), np.int64)
        self.pending: dict[int, dict[Any, Publication]] = {}
        self.made: dict[int, list[int]] = {}
        self.made_known: dict[int, list[int]] = {}
        self.arrived_remote: dict[int, Knowledge] = {}
        self.proxies = ProxyFences(self.clocks)
        self.wgmma = Wgmma()
        self.accesses = 0
        """Accesses noted so far, of any threads."""
        self.met: tuple[Lanes | None, int] = None, 0
        """The threads that last met at a warp-wide instruction, and the accesses noted before."""

    def access(self, site: int) -> Access:
        """The attributes of a site, worked out once."""
        if site < 0:
            return WEAK
        found = self.attributes.get(site)
        if found is None:
            found = self.attributes[site] = access_of(self.sites[site])
        return found

    # Findings.

    def report(self, fault: Fault) -> None:
        """Raise a finding, or keep it and go on."""
        if self.launch.options.checks != "collect":
            raise fault
        cohort = self.current
        assert cohort is not None
        site = self.sites[fault.site] if fault.site >= 0 else None
        self.launch.collect(fault, self.error(fault, cohort, site))

    def tolerant(self, run: Callable[..., Any], L: Lanes, addr: Any, *rest: Any) -> Any:
        """Run an access; when findings are collected, the threads at fault are left out (None) and it goes on."""
        try:
            return run(L, addr, *rest)
        except Fault as fault:
            fault.of(L)
            if fault.kind not in ("bounds", "misaligned", "readonly"):
                raise
            self.report(fault)
            bad = np.arange(L.n) if fault.lanes is None else fault.lanes
        good = np.setdiff1d(np.arange(L.n), bad)
        if not len(good):
            return None
        part = addr[good] if addr.__class__ is np.ndarray else addr
        others = [x[good] if x.__class__ is np.ndarray and len(x) == L.n else x for x in rest]
        got = self.tolerant(run, L.subset(good), part, *others)
        if got is None:
            return None
        out = np.zeros((L.n, *np.shape(got)[1:]), got.dtype)
        out[good] = got
        if self.unwritten.__class__ is np.ndarray and len(self.unwritten) == len(good):
            missing = np.zeros((L.n, self.unwritten.shape[1]), bool)
            missing[good] = self.unwritten
            self.unwritten = missing
        return out


def unwritten(what: str, site: int, lanes: Array | None, among: Lanes) -> Fault:
    """The fault of a value never written that is used as `what`, by `lanes` (positions; None for all) of `among`."""
    article = "an" if what[0] in "aeiou" else "a"
    return Fault("uninitialised", f"A value that was never written is used as {article} {what}", site, lanes,
                 hint=UNWRITTEN, among=among)  # fmt: skip


UNWRITTEN = (
    "it comes from shared or local memory or a register tensor that nothing was written to (an accumulator without"
    " fill, for instance), or by shfl from a lane that takes no part in it"
)
