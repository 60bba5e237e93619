"""Accesses that memory cannot carry out, and to memory of functions that have returned."""

from __future__ import annotations

import numpy as np

from tilewright.targets.emu.checks.observer import Access, Observer
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array, Lanes


class Bounds(Observer):
    """Reports accesses out of bounds, misaligned ones and writes to read-only memory, and leaves their threads out.

    Memory refuses them in any case; without this checker that ends the launch, also where findings are collected.
    """

    def refused(self, fault: Fault, L: Lanes) -> Array | None:
        if fault.kind not in ("bounds", "misaligned", "readonly"):
            return None
        return self._left_out(fault, L)

    def before_local(self, access: Access) -> Array | None:
        """Local memory is there to the end of all frames that there have been: only those that run may be used."""
        end = self.batch.frame_end()
        if int(access.address.max()) + access.size <= end:
            return None
        fault = self.batch.local.beyond(access.site, access.L, access.address, access.shift, end)
        return self._left_out(fault, access.L)

    def _left_out(self, fault: Fault, L: Lanes) -> Array:
        self.batch.report(fault)
        return np.arange(L.n) if fault.lanes is None else fault.lanes
