"""Tensor maps that a kernel changes: the copy engine reads them through a proxy of its own.

What threads wrote to a map in global memory is seen by copies once the writer has released it (`fence.proxy.tensormap`
with `.release`, or `tensormap.cp_fenceproxy`) and the block that copies has acquired it at its address (PTX ISA 9.0,
8.9.4 and "membar/fence").
"""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.history import History
from tilewright.targets.emu.checks.history.conflict import earlier_access, name_of
from tilewright.targets.emu.checks.observer import Batch, Observer
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import block_of, clock_of, thread_of
from tilewright.targets.emu.checks.order.fences import FenceClocks
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.tensormap import SIZE

MESSAGE = "Error: Race condition on a tensor map across proxies"
RELEASE = "release the map in the thread that changed it: fence.proxy.tensormap::generic.release"
ACQUIRE = "acquire the map before the copy, in the thread that starts it: fence.proxy.tensormap::generic.acquire"


class TensorMaps(Observer):
    """Keeps who has released maps, and which writes of a map each block has acquired."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self._history = batch.service(History)
        self._released = FenceClocks(batch.service(HappensBefore).clocks)
        self._acquired: dict[tuple[int, int], Array] = {}

    def fence(self, L: Lanes, scope: str, kind: str) -> None:
        if kind == "tensor map":
            self._released.add(L)

    def map_acquired(self, site: int, L: Lanes, addresses: Array) -> None:
        for slot, address in {*zip(L.slot.tolist(), addresses.tolist(), strict=True)}:
            one = L.subset(np.flatnonzero(L.slot == slot)[:1])
            self._acquired[slot, address] = self._writes(site, one, address)

    def map_read(self, site: int, one: Lanes, address: int) -> None:
        writes = self._writes(site, one, address, checked=True)
        if not len(writes):
            return
        acquired = self._acquired.get((int(one.slot[0]), address), writes[:0])
        missing = np.flatnonzero(~self._are_released(writes))
        hint = RELEASE
        if not len(missing):
            missing, hint = np.flatnonzero(~np.isin(writes, acquired)), ACQUIRE
        if len(missing):
            epoch = writes[missing[0]]
            values = {**earlier_access(self.batch, epoch), "other thread": name_of(self.batch, epoch, "written")}
            self.batch.report(Fault("race", MESSAGE, site, None, values, hint, one))

    def _writes(self, site: int, one: Lanes, address: int, checked: bool = False) -> Array:
        """The epochs of the writes to a map; `checked` as a read by the thread of what is ordered before it."""
        found = [np.empty(0, np.uint64)]
        words = np.arange(address, address + SIZE, 4, dtype=np.uint64)
        for now in self._history.global_by(site, one, words, 4):
            if checked:
                self._history.detector.check_read(now)
            found.append(np.unique(now.shadow.writes.take(now.cells)))
        epochs: Array = np.concatenate(found)
        return epochs[epochs != 0]

    def _are_released(self, epochs: Array) -> Array:
        """Whether the threads of writes have released them; of blocks that run elsewhere nothing is known."""
        fine = np.ones(len(epochs), bool)
        marks = zip(block_of(epochs), thread_of(epochs), clock_of(epochs), strict=True)
        for at, (block, thread, clock) in enumerate(marks):
            slots = np.flatnonzero(self.batch.identities == block)
            if len(slots) and thread < self.batch.shape.threads:
                ends = self._released.of(np.array([int(slots[0]) * self.batch.shape.stride + int(thread)]))
                fine[at] = bool((ends >= max(int(clock), 1)).any())
        return fine
