"""Proxies: asynchronous instructions see what ordinary stores wrote to shared memory only behind a proxy fence."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.granules import pieces
from tilewright.targets.emu.checks.history import History
from tilewright.targets.emu.checks.history.conflict import earlier_access, name_of
from tilewright.targets.emu.checks.observer import Batch, GroupRead, Observer
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import block_of, clock_of, is_async, thread_of
from tilewright.targets.emu.checks.order.fences import FenceClocks, FenceLog
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.tensors import runs
from tilewright.targets.emu.tensormap import TensorMap

MESSAGE = "Error: Race condition in shared memory access across proxies"
HINT = "put fence.proxy.async after the stores, or after the barrier in the thread that reads"


class Proxies(Observer):
    """Keeps the last proxy fences of each thread, and reports asynchronous reads that none stands before.

    A read sees a store if such a fence lies between them (PTX ISA 8.9.4, base causality across proxies): after the
    store, in a thread that knows of it, and before the read, whose thread knows of the fence.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._history = batch.service(History)
        self._clocks = batch.service(HappensBefore).clocks
        self._own = FenceClocks(self._clocks)
        self._fences = FenceLog(self._clocks)

    def fence(self, L: Lanes, scope: str, kind: str) -> None:
        if kind == "async":
            self._own.add(L)
            self._fences.add(L)

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signal: int | None
    ) -> None:
        if from_space == "shared":
            self._read(site, one, *pieces(self.batch.shared_offset(site, one, start), count))

    def tensor_stored(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], source: int, order: Array
    ) -> None:
        offset = self.batch.shared_offset(site, one, source)
        for first, count in runs(order):
            self._read(site, one, *pieces(offset + first, count))

    def wgmma_read(self, reads: list[GroupRead]) -> None:
        for read in reads:
            self._read(read.site, read.one, read.offsets, read.step)

    def _read(self, site: int, one: Lanes, offsets: Array, step: int) -> None:
        """An asynchronous instruction of a thread reads shared memory at offsets, `step` bytes at each."""
        cells, each = self._history.shared.granules(offsets, step)
        epochs = self._history.shared.writes.take(cells)
        own = block_of(epochs) == self.batch.identities[int(one.slot[0])]
        bad = np.flatnonzero((epochs != 0) & ~is_async(epochs) & own)
        if len(bad):
            bad = bad[~self.covers(int(one.ids[0]), thread_of(epochs[bad]), clock_of(epochs[bad]))]
        if not len(bad):
            return
        epoch = epochs[bad[0]]
        values = earlier_access(self.batch, epoch)
        values["other thread"] = name_of(self.batch, epoch, "written")
        many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
        self.batch.report(Fault("race", MESSAGE, site, bad // each, values, HINT, many))

    def covers(self, lane: int, threads: Array, clocks: Array) -> Array:
        """Whether a fence lies between stores of threads of a lane's block, at some clocks, and what it does now."""
        slot, thread = divmod(lane, self._clocks.stride)
        known = self._clocks.of_block(lane)[: self._clocks.stride]
        known[thread] = self._clocks.clock[lane]
        ends = self._own.of(slot * self._clocks.stride + threads)
        fine = np.asarray(np.logical_or.reduce((ends >= clocks) & (ends <= known[threads]), 0))
        for members, passed, row in self._fences.of(slot):
            if (known[members] >= passed).any():
                fine |= clocks <= row[threads]
        return fine
