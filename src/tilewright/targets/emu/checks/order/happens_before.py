"""The service that knows what is ordered before what: one a batch, asked by all checkers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.observer import Batch, Observer
from tilewright.targets.emu.checks.order.barriers import BarrierOrder
from tilewright.targets.emu.checks.order.copies import CopyOrder
from tilewright.targets.emu.checks.order.epochs import (
    CLOCK_SHIFT,
    EVERY,
    SEVERAL,
    SITE_MASK,
    block_of,
    clock_of,
    is_async,
    thread_of,
)
from tilewright.targets.emu.checks.order.mbarriers import MbarrierOrder
from tilewright.targets.emu.checks.order.memory import MemoryOrder
from tilewright.targets.emu.checks.order.state import OrderState
from tilewright.targets.emu.checks.order.strength import CLUSTER, GPU, SYS, Strength
from tilewright.targets.emu.lanes import Array, Lanes


class HappensBefore(OrderState):
    """Hands out epochs, and says which accesses are ordered before what threads do now.

    `memory`, `barriers`, `mbarriers` and `copies` observe the events that order threads; each has its own state and
    moves the one set of `clocks`.
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        self.memory = MemoryOrder(batch, self)
        self.barriers = BarrierOrder(batch, self, self.memory)
        self.mbarriers = MbarrierOrder(batch, self, self.memory)
        self.copies = CopyOrder(batch, self.clocks)
        self.behind: tuple[Observer, ...] = (self.memory, self.barriers, self.mbarriers, self.copies)
        """The observers of the service: told of each event behind all checkers."""

    def unordered(self, lanes: Array, words: Array, strength: Strength, shared: bool) -> Array:
        """Which of some accesses, given by their epochs, neither happen before what `lanes` do now nor are harmless
        beside it, which is of a `strength`.

        `shared`: they are to shared memory.
        """
        block, thread, clock, asynchronous = block_of(words), thread_of(words), clock_of(words), is_async(words)
        several = (thread >= SEVERAL) & ~asynchronous
        left = ~self.clocks.knows_own(lanes, block, thread, clock, asynchronous, several)
        if strength.strong and np.count_nonzero(left):
            at = np.flatnonzero(left & ~several)
            left[at[self._morally_strong(lanes[at], block[at], words[at], strength)]] = False
        at = np.flatnonzero(left & ~several)
        if len(at):
            known = self.clocks.others.knows(lanes[at], block[at], thread[at], clock[at], asynchronous[at], shared)
            left[at[known]] = False
        if not self.batch.lockstep and np.count_nonzero(left):
            left &= ~self.same_warp(lanes, block, thread, asynchronous)
        return np.asarray(left)

    def floor(self, L: Lanes, each: int) -> Any:
        """The lowest epochs that the last barrier of each lane's block has not ordered: one for all, or `each` entries
        a lane."""
        clocks = self.clocks
        if clocks.level is not None:
            return np.uint64(clocks.level << CLOCK_SHIFT)
        known = clocks.known
        if clocks.slots == 1:
            return np.uint64((int(known[0]) + 1) << CLOCK_SHIFT)
        low = (known[L.slot] + 1).astype(np.uint64) << np.uint64(CLOCK_SHIFT)
        return np.repeat(low, each) if each > 1 else low

    def same_warp(self, lanes: Array, block: Array, thread: Array, asynchronous: Array) -> Array:
        """Whether accesses are of threads of the lanes' warps."""
        stride = self.batch.shape.stride
        own = (block == self.batch.identities[lanes // stride]) & ~asynchronous & (thread != EVERY)
        return np.asarray(own & (thread % SEVERAL // 32 == lanes % stride // 32))

    def _morally_strong(self, lanes: Array, block: Array, words: Array, strength: Strength) -> Array:
        """Which earlier accesses are strong too, of the same size, with scopes that include each other's threads."""
        sites, which = np.unique(words & np.uint64(SITE_MASK), return_inverse=True)
        earlier = [self.strength_at(int(site)) for site in sites]
        strong = np.array([a.strong and a.size == strength.size for a in earlier], bool)[which]
        scope = np.array([min(a.scope, strength.scope) for a in earlier], np.int64)[which]
        own = self.batch.identities[lanes // self.batch.shape.stride]
        near = (block == own) | (scope == SYS) | ((scope == GPU) & self.same_device(block))
        if self.batch.shape.cluster_blocks > 1 and CLUSTER in scope:
            near |= (scope == CLUSTER) & (self.cluster_of(own) == self.cluster_of(block))
        return np.asarray(strong & near)
