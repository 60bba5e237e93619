"""Making communicators: of a group of processes, of devices in one process, or of emulated devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.dist.algorithms import thresholds
from tilewright.dist.collectives import Communicator
from tilewright.dist.heap import EmulatedHeap
from tilewright.dist.places import Places, places
from tilewright.emulate import Devices

EMULATED_PART, EMULATED_LINES = 1 << 16, 1 << 14
"""Bytes that ranks of emulated devices send each other at a time, and in lines."""
PARTS = 1 << 27
"""Bytes of the heap of a GPU that are divided among the ranks that send to it."""
HEAP, SIGNALS = 1 << 26, 1024
EMULATED_HEAP = 1 << 20


def communicator(
    group: Any = None, *, heap: int = HEAP, signals: int = SIGNALS, timeout: float | None = None,
    part: int | None = None, lines: int | None = None,
) -> Communicator:  # fmt: skip
    """This process's rank in a group of torch.distributed, with its current CUDA device; all its ranks call this.

    Args:
        group: a process group; None for that of all processes.
        heap: bytes for what `empty` gives.
        signals: slots for `signal` and `wait`.
        timeout: the most seconds that a rank waits for another; default 30.
        part, lines: the most bytes that ranks send each other at a time, and in lines that carry their flags.

    Raises:
        ArgumentError: torch.distributed has not begun, or would use multicast.
    """
    from tilewright.dist import torch_heap  # PyTorch is optional

    made = _on_gpus(torch_heap.group_size(group), part, lines, signals)
    memory = torch_heap.symmetric_heap(group, made.free + heap)
    return Communicator(memory, made, made.free + heap, timeout, memory.nccl)


def communicators(
    devices: Devices | Sequence[int], *, heap: int | None = None, signals: int = SIGNALS, timeout: float | None = None,
    part: int | None = None, lines: int | None = None,
) -> list[Communicator]:  # fmt: skip
    """A communicator for each of several devices of this process: those of `tilewright.emulate.devices`, or CUDA
    devices by number, which reach each other's memory by peer access.

    The ranks' calls are queued by one thread, each on a stream of its own device; a device that has two ranks needs two
    streams. On emulated devices `timeout` is in seconds of 10**9 ticks of their clock, where a look at it takes 32.

    Raises:
        LaunchError: a device cannot reach another's memory.
    """
    if isinstance(devices, Devices):
        made = places(len(devices), part or EMULATED_PART, lines or EMULATED_LINES, signals)
        size = made.free + (EMULATED_HEAP if heap is None else heap)
        return [Communicator(one, made, size, timeout) for one in EmulatedHeap.of_all(devices, size)]
    from tilewright.dist import torch_heap  # PyTorch is optional

    made = _on_gpus(len(devices), part, lines, signals)
    size = made.free + (HEAP if heap is None else heap)
    return [Communicator(one, made, size, timeout) for one in torch_heap.peer_heaps(devices, size)]


def _on_gpus(world: int, part: int | None, lines: int | None, signals: int) -> Places:
    most = max(thresholds(world).lamport, 1 << 10)
    return places(world, part or PARTS // world, lines or most, signals)
