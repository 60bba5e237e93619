"""What the parts of the happens-before service share: the clocks of a batch, and what instructions are in the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.observer import Batch
from tilewright.targets.emu.checks.order.clocks import Clocks
from tilewright.targets.emu.checks.order.epochs import HINT, MOST_BLOCKS, MOST_SITES, check_limit
from tilewright.targets.emu.checks.order.strength import (
    CLUSTER,
    CTA,
    GPU,
    SYS,
    WEAK,
    Strength,
    narrow_scopes,
    strength_of,
    synchronises,
)
from tilewright.targets.emu.faults import located
from tilewright.targets.emu.lanes import Array, Lanes, unflatten


class LaunchModel:
    """What the instructions of a launch are in the memory model.

    Raises:
        EmulationError: the launch has more blocks than epochs can name.
    """

    def __init__(self, batch: Batch) -> None:
        if batch.first_block + batch.shape.blocks > MOST_BLOCKS:
            raise located(f"The race check knows at most {MOST_BLOCKS} blocks", None, batch.kernel,
                          {"grid": batch.shape.grid}, HINT, "limit")  # fmt: skip
        self.synchronises = synchronises(batch.instructions)
        self.levels: tuple[int, ...] = (CTA, CLUSTER, GPU) if narrow_scopes(batch.instructions) else (GPU,)
        if batch.member is not None:
            self.synchronises, self.levels = True, (*self.levels, SYS)
        self.strengths: dict[int, Strength] = {}


class OrderState:
    """The clocks of a batch, and the epochs that they give its accesses."""

    def __init__(self, batch: Batch) -> None:
        model = batch.of_launch(LaunchModel)
        self.batch = batch
        self.clocks = Clocks(batch.slots, batch.shape.stride, batch.identities, batch.members)
        if batch.member is not None:
            for slot in range(batch.slots):
                self.clocks.others.tell_block(slot, batch.member.known)
        self.only_barriers = not model.synchronises
        """Whether nothing but barriers of whole blocks orders threads."""
        self.levels = model.levels
        """The scopes that the kernel names."""
        self.widest = model.levels[-1]
        """The scope that includes all threads there are: of the device, or of the system where it has several."""
        self.device = 0 if batch.member is None else batch.member.device
        self.handed_out = 0
        """How often epochs have been handed out."""
        self.rounds = 0
        """How often all blocks of the batch have had a barrier of all their threads."""
        self._strengths = model.strengths
        self._of_others: dict[int, Strength] = {}

    def epochs(self, L: Lanes, site: int) -> Array:
        """The epochs of what lanes do now."""
        mark = site + self.batch.first_site
        check_limit("memory instructions", mark + 1, MOST_SITES, site)
        self.handed_out += 1
        epochs = self.clocks.epoch
        everyone = L.n == len(epochs) and L.ids[0] == 0 and L.ids[-1] == L.n - 1  # one may come many times
        now = epochs if everyone else epochs.take(L.ids)
        marked: Array = now | np.uint64(mark)
        return marked

    def strength(self, site: int) -> Strength:
        """What an instruction is in the memory model, worked out once."""
        if site < 0:
            return WEAK
        found = self._strengths.get(site)
        if found is None:
            found = self._strengths[site] = strength_of(self.batch.sites[site])
        return found

    def strength_at(self, mark: int) -> Strength:
        """The same of an instruction as epochs name it: of another launch beside this one, perhaps."""
        batch = self.batch
        if batch.members is None or 0 <= mark - batch.first_site < len(batch.sites):
            return self.strength(mark - batch.first_site)
        if mark not in self._of_others:
            found = batch.members.instruction_at(mark)
            self._of_others[mark] = WEAK if found is None else strength_of(found)
        return self._of_others[mark]

    def same_device(self, block: Array) -> Any:
        """Whether blocks, as epochs name them, are of this launch's device."""
        members = self.batch.members
        return np.bool_(True) if members is None else members.devices_of(block) == self.device

    def set_strength(self, site: int, strength: Strength) -> None:
        """Say what an instruction is whose text does not tell."""
        self._strengths[site] = strength

    def cluster_of(self, block: Array) -> Array:
        """The number of the cluster that each block belongs to."""
        grid, cluster, first = self.batch.shape.grid, self.batch.shape.cluster, self.batch.first_block
        x, y, z = (p // c for p, c in zip(unflatten(block - first, grid), cluster, strict=True))
        return np.asarray(x + grid[0] * (y + grid[1] * z) + first)
