"""Two accesses that nothing orders, and the finding that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.history.footprint import Footprint
from tilewright.targets.emu.checks.history.hints import Pair, hint_for
from tilewright.targets.emu.checks.observer import Batch
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.epochs import SEVERAL, block_of, is_async, site_of, thread_of
from tilewright.targets.emu.faults import Fault, source_location
from tilewright.targets.emu.lanes import Array, unflatten

EARLY = "Error: Race condition in shared memory access: the block ends while in use"


@dataclass(frozen=True)
class Conflict:
    """The access `footprint` and, at its granule `position`, an earlier one with the epoch `before`.

    `now` and `then` say what they did, "read" or "written"; `lanes` are the positions of all threads in conflict.
    """

    footprint: Footprint
    position: int
    before: Any
    now: str
    then: str
    lanes: Array

    @property
    def asynchronous(self) -> bool:
        """Whether one of the two is an asynchronous operation."""
        return self.footprint.asynchronous or bool(is_async(self.before))

    def finding(self, batch: Batch, order: HappensBefore) -> Fault:
        """The finding: both instructions, both threads, what helps."""
        footprint, before = self.footprint, self.before
        values = earlier_access(batch, before)
        lane = self.position // footprint.each
        values["other thread"] = name_of(batch, before, self.then)
        address = footprint.base + footprint.shadow.offset(int(footprint.cells[self.position]))
        address = address if footprint.space == "global" else address % batch.shared.stride
        values["address"] = f"{address:#x} ({self.now} now, {self.then} before)"
        first = np.concatenate(([lane], self.lanes[self.lanes != lane]))
        message = f"Error: Race condition in {footprint.space} memory access"
        return Fault("race", message, footprint.site, first, values, hint_for(self._pair(batch, order)), footprint.L)

    def _pair(self, batch: Batch, order: HappensBefore) -> Pair:
        footprint, before = self.footprint, self.before
        lane = footprint.L.ids[self.position // footprint.each]
        where = block_of(before), thread_of(before)
        known = batch.instruction_at(site_of(before)) is not None
        return Pair(
            self.now, self.then, footprint.space, same_site=site_of(before) == footprint.site + batch.first_site,
            asynchronous=bool(is_async(before)),
            strong=footprint.strength.strong and known and order.strength_at(site_of(before)).strong,
            block=int(batch.identities[lane // batch.shape.stride]) == int(where[0]),
            device=bool(np.all(order.same_device(where[0]))),
            warp=bool(order.same_warp(np.array([lane]), *where, is_async(before))[0]),
        )  # fmt: skip


def earlier_access(batch: Batch, epoch: Any) -> dict[str, Any]:
    """The instruction of an epoch, for a finding."""
    earlier = batch.instruction_at(site_of(epoch))
    if earlier is None:
        return {}
    values: dict[str, Any] = {"other access": f"line {earlier.line}: {earlier.text}"}
    place = source_location(earlier.place)
    if place is not None:
        values["other source"] = str(place)
    return values


def name_of(batch: Batch, epoch: Any, before: str) -> str:
    """Whose epoch it is, in words."""
    if bool(is_async(epoch)):
        return "an asynchronous operation that was not waited for"
    if int(thread_of(epoch)) >= SEVERAL:
        return "several"
    number, thread = int(block_of(epoch)), int(thread_of(epoch))
    if batch.members is not None:
        return batch.members.name_of(number, thread)
    return f"block {unflatten(number, batch.shape.grid)}, thread {unflatten(thread, batch.shape.block)}"


def ended_in_use(batch: Batch, lane: int, epoch: Any, hint: str) -> Fault:
    """The finding of an access, given by its epoch, to shared memory of the lane's block, which has ended."""
    block = int(batch.blocks[lane // batch.shape.stride])
    values: dict[str, Any] = {"block that ends": unflatten(block, batch.shape.grid)}
    slots, thread = np.flatnonzero(batch.identities == block_of(epoch)), int(thread_of(epoch))
    if is_async(epoch) or thread >= SEVERAL or not len(slots):
        values["other thread"] = name_of(batch, epoch, "")
    else:
        lane = int(slots[0]) * batch.shape.stride + thread
    return Fault("race", EARLY, -1, None, values, hint, batch.lane(lane), batch.instruction_at(site_of(epoch)))
