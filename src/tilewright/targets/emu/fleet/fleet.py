"""Several emulated devices: launches queue by stream, and run all together when someone synchronises.

One scheduler gives each launch that is at the head of a queue a turn, so that kernels which wait for each other's flags
make progress. The next launch of a queue begins when the one before it has ended, and is ordered after it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, EmulationError, TilewrightError
from tilewright.targets.emu.checks.members import Members
from tilewright.targets.emu.checks.order.memory import Published
from tilewright.targets.emu.deadlock import Waiting, deadlock
from tilewright.targets.emu.fleet.late import LateWrites
from tilewright.targets.emu.fleet.launch import FleetLaunch
from tilewright.targets.emu.fleet.memory import FleetShadows
from tilewright.targets.emu.image import Program, aligned_bytes
from tilewright.targets.emu.launch import SLICE, findings_of, prepare
from tilewright.targets.emu.memory import Buffer
from tilewright.targets.emu.recording import add_report
from tilewright.targets.emu.report import Report

MOST = 64
SLICES = (1, 2, 3, 4, 6, 8, 16, 64, SLICE)
"""The most basic blocks that a launch runs in one turn; with a seed, one of these at random."""
DOUBLED = 256
"""Turns after which that number doubles, so that long kernels are not cut up for ever."""
ALIGNMENT = 256
DELIVERED = 1 / 16
"""The probability that a turn ends with all devices seeing what was written so far."""


class Device:
    """One of several emulated devices. Inside `with device:` it runs the calls whose arguments are on no device."""

    def __init__(self, fleet: Fleet, number: int, late: LateWrites) -> None:
        self.fleet, self.number, self.late = fleet, number, late
        self.buffers: list[Buffer] = []
        self._memory: list[np.ndarray] = []

    def empty(self, shape: int | Sequence[int], dtype: Any) -> Any:
        """An array in this device's memory, which all devices see; it holds a pattern, since nobody has written it."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = np.dtype(dtype)
        count = int(np.prod(sizes, dtype=np.int64))
        memory = aligned_bytes(max(count * kind.itemsize, 1), ALIGNMENT)
        memory[:] = 0xA5
        self._memory.append(memory)
        self.buffers.append(Buffer(int(memory.ctypes.data), memory.nbytes, True, f"memory of device {self.number}"))
        return memory[: count * kind.itemsize].view(kind).reshape(sizes)

    def array(self, values: Any, dtype: Any = None) -> Any:
        """A new array in this device's memory with the values of another."""
        source = np.asarray(values, dtype)
        made = self.empty(source.shape, source.dtype)
        made[...] = source
        return made

    def zeros(self, shape: int | Sequence[int], dtype: Any) -> Any:
        """A new array of zeros in this device's memory."""
        made = self.empty(shape, dtype)
        made[...] = np.zeros((), made.dtype)
        return made

    def owns(self, address: int) -> bool:
        """Whether an address is in its memory."""
        return any(buffer.address <= address < buffer.end for buffer in self.buffers)

    def __enter__(self) -> Device:
        self.fleet.chosen.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.fleet.chosen.pop()

    def __repr__(self) -> str:
        return f"emulated device {self.number} of {len(self.fleet.devices)}"


class State:
    """What the checks know since all devices were last idle."""

    def __init__(self) -> None:
        self.members = Members()
        self.shadows = FleetShadows()
        self.published = Published()
        self.kept: list[Any] = []
        """What has an address that the history may name."""


class Queue:
    """The launches of a stream that have not ended; `known` is ordered before the next one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.turns = 0
        self.known: dict[int, Any] = {}
        self.launches: deque[tuple[FleetLaunch, Callable[[TilewrightError], None]]] = deque()
        self.running: FleetLaunch | None = None


class Fleet:
    """`count` devices, the launches queued on them, and the scheduler. `seed` varies the order of all that happens."""

    def __init__(self, count: int, seed: int, late: bool) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.devices = [Device(self, number, LateWrites(self.random, late)) for number in range(count)]
        self.chosen = [self.devices[0]]
        self.reports: list[Report] = []
        self.idle = 0
        self._changed = 0
        self._last = -1  # the queue that had the last turn
        self._reset()

    def _reset(self) -> None:
        """All devices are idle."""
        self.state = State()
        self.queues: dict[tuple[int, int], Queue] = {}

    def buffers(self) -> list[Buffer]:
        """The memory of all devices."""
        return [buffer for device in self.devices for buffer in device.buffers]

    def device_of(self, addresses: Sequence[int]) -> Device:
        """The device in whose memory addresses lie, the chosen one if they are in none's.

        Raises:
            ArgumentError: they are in the memory of several.
        """
        owners = {device.number for address in addresses for device in self.devices if device.owns(address)}
        if len(owners) > 1:
            raise ArgumentError(
                "the arguments are on several devices", values={"devices": ", ".join(map(str, sorted(owners)))},
                hint="pass arrays of one device, and addresses of the others' memory as numbers",
            )  # fmt: skip
        return self.devices[owners.pop()] if owners else self.chosen[-1]

    # Launches.

    def next_seed(self) -> int:
        """The seed of one more launch; 0 where the order is not varied."""
        return int(self.random.integers(1, 1 << 30)) * 2 + self.seed % 2 if self.seed else 0

    def enqueue(
        self, device: Device, stream: int, keep: Any, failed: Callable[[TilewrightError], None], program: Program,
        *launch: Any, **options: Any,
    ) -> None:  # fmt: skip
        """A launch (see `emu.launch`) is to run behind the others of its stream.

        What is at the addresses that `keep` has must stay there; `failed` adds to an error what it does not know.

        Raises:
            ArgumentError: the launch is not possible.
        """
        make = partial(FleetLaunch, fleet=self, device=device.number)
        made = prepare(program, *launch, make=make, **options)
        assert isinstance(made, FleetLaunch)
        key = device.number, stream
        queue = self.queues.setdefault(key, Queue(len(self.queues)))
        queue.launches.append((made, failed))
        self.state.kept.append((made.workspace, made.params, keep))

    def synchronize(self) -> None:
        """Run all that is queued on all devices.

        Raises:
            EmulationError: a kernel did something undefined, or none can go on. What was queued is gone then.
        """
        self.idle = 0
        try:
            while queue := self._next():
                self._turn(queue)
        finally:
            self.deliver()
            self._reset()

    def _next(self) -> Queue | None:
        """The queue whose turn it is; what is at the head of the queues has begun."""
        for queue in self.queues.values():
            if queue.running is None and queue.launches:
                queue.turns += 1
                queue.running = queue.launches[0][0]
                queue.running.enter(queue.number, queue.turns, queue.known)
                self.idle = 0
        busy = [queue for queue in self.queues.values() if queue.running is not None]
        if not busy:
            return None
        if self.seed:
            return busy[int(self.random.integers(len(busy)))]
        chosen = next((queue for queue in busy if queue.number > self._last), busy[0])
        self._last = chosen.number
        return chosen

    def _turn(self, queue: Queue) -> None:
        launch, failed = queue.running, queue.launches[0][1]
        assert launch is not None
        if self.seed:
            some = SLICES[int(self.random.integers(len(SLICES)))]
            launch.slice = min(some << launch.turns // DOUBLED, SLICE)
            launch.turns += 1
        try:
            with findings_of(launch), launch.told():
                more = launch.turn()
        except TilewrightError as error:
            failed(error)
            raise
        if not more:
            self._end(queue, launch)
        elif self.random.random() < DELIVERED and self.deliver():
            self.idle = 0

    def _end(self, queue: Queue, launch: FleetLaunch) -> None:
        queue.launches.popleft()
        queue.running = None
        queue.known = launch.known_behind()
        self._changed += launch.own_changes() + 1
        self.devices[launch.device].late.deliver()
        self.idle = 0
        self.reports.append(launch.report())
        add_report(self.reports[-1])

    # Asked by launches.

    def running(self) -> list[FleetLaunch]:
        """The launches under way."""
        return [queue.running for queue in self.queues.values() if queue.running is not None]

    def changes(self) -> int:
        """A number that grows whenever anything happens that can end a loop of any thread."""
        return self._changed + sum(launch.own_changes() for launch in self.running())

    def ready(self) -> int:
        """Groups of threads that may run."""
        return sum(len(machine.ready) for launch in self.running() for machine in launch.under_way())

    def deliver(self) -> bool:
        """All devices see what the others have written. Whether there was anything on its way."""
        found = [device.late.deliver() for device in self.devices]
        self._changed += any(found)
        return any(found)

    def deadlock(self, kernel: str) -> EmulationError:
        """The error for devices none of which can go on."""
        waiting = [
            Waiting(cohort, launch.monitor.ran(), f"device {launch.device}: ")
            for launch in self.running()
            for machine in launch.under_way()
            for cohort in machine.waiting()
        ]
        return deadlock(waiting, kernel)


class _Current(threading.local):
    def __init__(self) -> None:
        self.fleets: list[Fleet] = []


_current = _Current()


def current_fleet() -> Fleet | None:
    """The devices that this thread's calls run on; None where each call runs by itself."""
    return _current.fleets[-1] if _current.fleets else None


class Devices(Sequence[Device]):
    """What `emulate.devices` gives: the devices by number.

    Raises:
        ArgumentError: `count` is not between 1 and `MOST`.
    """

    def __init__(self, count: int, seed: int | None = None, late: bool | None = None) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST:
            raise ArgumentError(f"{count} emulated devices", hint=f"1 to {MOST}")
        chosen = settings.get("seed") if seed is None else seed
        self._fleet = Fleet(count, chosen, chosen % 2 == 1 if late is None else late)

    def __getitem__(self, number: Any) -> Any:
        return self._fleet.devices[number]

    def __len__(self) -> int:
        return len(self._fleet.devices)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._fleet.devices)

    @property
    def reports(self) -> list[Report]:
        """What the launches that have ended found and counted, in the order in which they ended."""
        return self._fleet.reports

    def synchronize(self) -> None:
        """Run all that is queued, on all devices. Until then arrays stay as they were.

        Raises:
            EmulationError: a kernel did something undefined, or none can go on. What was queued is gone then.
        """
        self._fleet.synchronize()

    def __enter__(self) -> Devices:
        _current.fleets.append(self._fleet)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            _current.fleets.remove(self._fleet)
