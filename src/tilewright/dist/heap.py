"""What a communicator needs of the memory that its ranks share; and that of emulated devices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np

from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.emulate import Device, Devices
from tilewright.targets.emu import current_fleet

EMULATED_TICKS = 1 << 22
"""For how many ticks a wait lasts on emulated devices, where each look at the clock is 32."""


class Heap(ABC):
    """One rank's heap, and where those of the others begin (`bases`). It is full of zeros at first."""

    target: ClassVar[str]
    rank: int
    world: int
    bases: tuple[int, ...]
    record: int
    """The address of a word that kernels leave when a wait ends without success; 0 until then."""

    @abstractmethod
    def view(self, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        """A tensor in the heap."""

    @abstractmethod
    def nothing(self) -> Any:
        """A tensor of Int32 on the device, without elements."""

    @abstractmethod
    def new(self, like: Any, shape: Sequence[int]) -> Any:
        """A tensor of the same type as another, in memory of this rank alone."""

    @abstractmethod
    def check(self, tensor: Any) -> None:
        """Refuse a tensor that is not on this rank's device.

        Raises:
            ArgumentError: it is not.
        """

    @abstractmethod
    def read_record(self) -> int:
        """What kernels have left there."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all that was queued has been done.

        Raises:
            Exception: a kernel failed.
        """

    def on(self) -> AbstractContextManager[Any]:
        """What is called inside runs on this rank's device, whatever its arguments."""
        return nullcontext()

    def ticks(self, seconds: float | None) -> int | None:
        """A time-out in ticks of the device's clock; None for the usual one."""
        return None


class EmulatedHeap(Heap):
    """On one of several emulated devices."""

    target = "emu"

    def __init__(self, rank: int, devices: Sequence[Device], memories: Sequence[Any]) -> None:
        self.rank, self.world = rank, len(devices)
        self._device, self._memory = devices[rank], memories[rank]
        self.bases = tuple(int(memory.ctypes.data) for memory in memories)
        self._record = self._device.zeros(1, np.int64)
        self.record = int(self._record.ctypes.data)

    @classmethod
    def of_all(cls, devices: Devices, nbytes: int) -> list[EmulatedHeap]:
        """A heap of so many bytes on each device."""
        memories = [device.zeros(nbytes, np.uint8) for device in devices]
        return [cls(rank, devices, memories) for rank in range(len(devices))]

    def view(self, offset: int, shape: Sequence[int], dtype: Any) -> Any:
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        return self._memory[offset : offset + count * kind.itemsize].view(kind).reshape(shape)

    def nothing(self) -> Any:
        return self._memory[:0].view(np.int32)

    def new(self, like: Any, shape: Sequence[int]) -> Any:
        return self._device.empty(tuple(shape), like.dtype)

    def check(self, tensor: Any) -> None:
        if not isinstance(tensor, np.ndarray) or (tensor.size and not self._device.owns(int(tensor.ctypes.data))):
            raise ArgumentError(
                f"rank {self.rank} works on device {self._device.number}, and the array is elsewhere",
                hint=f"devices[{self._device.number}].array(values) puts it there",
            )

    def read_record(self) -> int:
        return int(self._record[0])

    def synchronize(self) -> None:
        self._device.fleet.synchronize()

    def on(self) -> AbstractContextManager[Any]:
        if current_fleet() is not self._device.fleet:
            raise ArgumentError(
                "this communicator's emulated devices are not open",
                hint="call it inside `with emulate.devices(...)`, of the devices that it was made for",
            )
        return self._device

    def ticks(self, seconds: float | None) -> int | None:
        return EMULATED_TICKS if seconds is None else max(int(seconds * 1e9), 1)


def timed_out(error: BaseException) -> bool:
    """Whether an error may come of a wait that ended without success."""
    return not isinstance(error, EmulationError) or error.kind == "trap"
