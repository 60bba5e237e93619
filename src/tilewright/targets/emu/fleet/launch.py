"""A launch of one device among several."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.checks import HappensBefore
from tilewright.targets.emu.checks.history.shadow import GlobalShadows
from tilewright.targets.emu.checks.members import whole_queue
from tilewright.targets.emu.checks.order.knowledge import Knowledge, together
from tilewright.targets.emu.checks.order.memory import Published
from tilewright.targets.emu.fleet.memory import FleetMemory
from tilewright.targets.emu.image import Image
from tilewright.targets.emu.lanes import Shape
from tilewright.targets.emu.launch import IDLE_TURNS, Launch
from tilewright.targets.emu.machine import Machine
from tilewright.targets.emu.memory import Buffer, GlobalMemory
from tilewright.targets.emu.monitor import Monitor
from tilewright.targets.emu.options import Options


class FleetLaunch(Launch):
    """A launch that shares memory, order and the turn with those of other devices; `device` is its number."""

    def __init__(
        self, image: Image, shape: Shape, params: bytes, smem: int, buffers: list[Buffer], options: Options,
        fleet: Any, device: int,
    ) -> None:  # fmt: skip
        self.fleet, self.device = fleet, device
        self.told_at_end: Knowledge = {}
        self.turns = 0
        self._image = image
        for function in image.functions():  # so that the program's instructions are all known
            image.function(function.name, None)
        super().__init__(image, shape, params, smem, buffers, options)

    @property
    def idle(self) -> int:
        """How often threads have done nothing but wait, one after another, whatever their device."""
        idle: int = self.fleet.idle
        return idle

    @idle.setter
    def idle(self, value: int) -> None:
        self.fleet.idle = value

    def make_memory(self, buffers: list[Buffer]) -> GlobalMemory:
        late = self.fleet.devices[self.device].late
        return FleetMemory(buffers, self.fleet.buffers(), bool(self.options.checkers), self._image, late)

    def enter(self, queue: int, turn: int, known: Knowledge) -> None:
        """Its turn in a queue has come, behind what is `known`."""
        state = self.fleet.state
        self.members = state.members
        self.member = self.members.add(self.kernel, self.shape, self._image.sites, self.device, queue, turn, known)
        self.observed[GlobalShadows] = state.shadows
        self.observed[Published] = state.published
        self.monitor = Monitor(self, self.bar, self.timeout)
        self.begin()

    def changes(self) -> int:
        return int(self.fleet.changes())

    def own_changes(self) -> int:
        """How much of that this launch has done."""
        return super().changes()

    def ended(self, machine: Machine) -> None:
        order = machine.batch.services.get(HappensBefore)
        if order is not None:
            self.told_at_end = together(self.told_at_end, order.clocks.others.of_all())

    def known_behind(self) -> Knowledge:
        """What is ordered before all that comes behind this launch in its queue."""
        assert self.member is not None
        assert self.members is not None
        mine = {whole_queue(self.member.queue): self.member.as_turn()}
        known = together(together(self.told_at_end, self.member.known), mine)
        return {key: row for key, row in known.items() if key < 0 or not self.members.covered(key, known)}

    def waited(self, machine: Machine) -> None:
        fleet = self.fleet
        fleet.idle += 1
        if fleet.idle <= IDLE_TURNS or fleet.idle <= 4 * fleet.ready():
            return
        if fleet.deliver():
            fleet.idle = 0
            return
        raise self.deadlock(machine)

    def deadlock(self, machine: Machine) -> EmulationError:
        found: EmulationError = self.fleet.deadlock(self.kernel)
        return found

    def place(self) -> dict[str, Any]:
        return {"device": self.device}
