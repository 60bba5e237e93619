"""Order by groups: who has waited for a group of copies, bulk stores or matrix products knows that they are done.

The operations of a thread (a warpgroup, for products) are agents, whose clocks count groups: its `cp.async`; its bulk
stores as they read their source ("bulk"), and as they write global memory ("stored"); its products ("wgmma").
"""

from __future__ import annotations

import numpy as np

from tilewright.base.lazy import cached_property
from tilewright.targets.emu.checks.observer import Access, Batch, Observer, warpgroups
from tilewright.targets.emu.checks.order.clocks import Clocks
from tilewright.targets.emu.checks.order.epochs import agent_epoch
from tilewright.targets.emu.lanes import Array, Lanes


class CopyOrder(Observer):
    """Counts groups, and tells threads that have waited for them."""

    def __init__(self, batch: Batch, clocks: Clocks) -> None:
        super().__init__(batch)
        self.clocks = clocks
        self._products: dict[int, int] = {}

    @cached_property
    def _groups(self) -> Array:
        """The groups of `cp.async` that each lane has committed."""
        return np.zeros(len(self.batch.alive), np.int64)

    @cached_property
    def _bulk_groups(self) -> Array:
        """The groups of bulk stores that each lane has committed."""
        return np.zeros(len(self.batch.alive), np.int64)

    # Epochs.

    def copy_epochs(self, site: int, L: Lanes) -> Array:
        """The epochs of the `cp.async` that threads issue now."""
        return agent_epoch(
            self._groups[L.ids] + 1, self.batch.identities[L.slot], L.thread, self.batch.first_site + site
        )

    def bulk_epoch(self, what: str, site: int, one: Lanes) -> Array:
        """The epoch of what a thread's store in its current bulk group does: "bulk" or "stored"."""
        lane, slot = int(one.ids[0]), int(one.slot[0])
        column = self.clocks.agent(slot, (what, lane))
        return agent_epoch(int(self._bulk_groups[lane]) + 1, self.batch.identities[slot],
                           column - self.batch.shape.stride, self.batch.first_site + site)  # fmt: skip

    def product_epoch(self, site: int, group: int) -> Array:
        """The epoch of the product that a warpgroup issues now."""
        slot = 128 * group // self.batch.shape.stride
        column = self.clocks.agent(slot, ("wgmma", group))
        return agent_epoch(self._products.get(group, 0) + 1, self.batch.identities[slot],
                           column - self.batch.shape.stride, self.batch.first_site + site)  # fmt: skip

    # Events.

    def copy_written(self, access: Access) -> None:
        for slot in np.unique(access.L.slot):
            self.clocks.detail(int(slot))

    def copies_committed(self, L: Lanes, bulk: bool) -> None:
        (self._bulk_groups if bulk else self._groups)[L.ids] += 1

    def copies_awaited(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        if bulk:
            reached = self._bulk_groups[L.ids] - count
            self._know_stores("bulk", L, reached)
            if not read:
                self._know_stores("stored", L, reached)
            return
        groups = self._groups[L.ids]
        self._know_groups(L, groups + 1 if everything else np.maximum(groups - count, 0))

    def copies_arriving(self, L: Lanes) -> None:
        """The arrival tells of all copies so far: the next ones are another group."""
        self._know_groups(L, self._groups[L.ids] + 1)
        self._groups[L.ids] += 1

    def wgmma_committed(self, site: int, L: Lanes) -> None:
        for group in warpgroups(L):
            self._products[group] = self._products.get(group, 0) + 1

    def wgmma_awaited(self, site: int, L: Lanes, count: int) -> None:
        for group in warpgroups(L):
            done = self._products.get(group, 0) - count
            slot = 128 * group // self.batch.shape.stride
            column = self.clocks.agent(slot, ("wgmma", group))
            threads = L.thread[L.ids // 128 == group]
            matrix = self.clocks.detail(slot)
            matrix[threads, column] = np.maximum(matrix[threads, column], max(done, 0))

    # Knowledge.

    def _know_stores(self, what: str, L: Lanes, reached: Array) -> None:
        for lane, clock in zip(L.ids.tolist(), reached.tolist(), strict=True):
            slot, thread = divmod(lane, self.batch.shape.stride)
            if (what, lane) in self.clocks.agents.get(slot, {}):
                column = self.clocks.agent(slot, (what, lane))
                matrix = self.clocks.detail(slot)
                matrix[thread, column] = max(int(matrix[thread, column]), clock)

    def _know_groups(self, L: Lanes, reached: Array) -> None:
        for slot in np.unique(L.slot):
            here = L.slot == slot
            threads = L.thread[here]
            matrix = self.clocks.detail(int(slot))
            column = self.batch.shape.stride + threads
            matrix[threads, column] = np.maximum(matrix[threads, column], reached[here])
