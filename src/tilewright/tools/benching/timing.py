"""What calls take, interleaved: each round times each function once, so that all see the same clocks and heat.

On the device: before each call it reads memory beyond its L2 cache, which leaves lines in it that need no writing back,
then waits until the host has enqueued the call: what is timed is the device alone. On the host: series of calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ops.frameworks import torch

FLUSHED_L2 = 5
"""How often the L2 cache's size is read between two calls."""
CYCLES_PER_MICROSECOND = 2000
"""Of the device's clock, at least: H100 and B200 run at up to 1980 and 1965 MHz."""
HOST_MARGIN_US = 20.0
WORD, ALIGNED, COLUMNS = 4, 64, 16384
"""Bytes of a float32; words that parts of memory are aligned to; columns of the matrix whose rows are summed."""


@dataclass(frozen=True)
class Spread:
    """Percentiles of a call's device time, in microseconds."""

    p50_us: float
    p90_us: float

    def gbs(self, bytes_: int) -> float:
        """Gigabytes (10⁹) a second, if the call moves so many bytes."""
        return bytes_ / self.p50_us / 1e3


def spread(microseconds: list[float]) -> Spread:
    """The percentiles of a list, linear between its values as NumPy has it."""
    p50, p90 = np.percentile(microseconds, [50, 90])
    return Spread(float(p50), float(p90))


class L2:
    """Reads enough memory to replace what the L2 cache holds."""

    def __init__(self) -> None:
        size = FLUSHED_L2 * torch.cuda.get_device_properties(0).L2_cache_size
        self._memory = torch.zeros(size // 4, device="cuda")

    def flush(self) -> None:
        """Enqueue the read."""
        self._memory.amax()


def interleaved(
    functions: Mapping[str, Callable[[], object]], warmup: int, iterations: int, flush: Callable[[], None]
) -> dict[str, Spread]:
    """The device time of each function on the current stream."""
    waits = {name: _host_microseconds(function) for name, function in functions.items()}
    found: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(warmup + iterations):
        events = {name: _timed(function, waits[name], flush) for name, function in functions.items()}
        torch.cuda.synchronize()
        if number >= warmup:
            for name, (start, end) in events.items():
                found[name].append(start.elapsed_time(end) * 1e3)
    return {name: spread(times) for name, times in found.items()}


def _timed(function: Callable[[], object], host_us: float, flush: Callable[[], None]) -> tuple[Any, Any]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush()
    torch.cuda._sleep(int((host_us + HOST_MARGIN_US) * CYCLES_PER_MICROSECOND))
    start.record()
    function()
    end.record()
    return start, end


def _host_microseconds(function: Callable[[], object]) -> float:
    """What a call costs the host, when it does not wait for the device; the least of three."""
    times = []
    for _ in range(4):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        times.append((time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    return 1.5 * min(times[1:])


CALLS = 200
"""In a series on the host: fewer than the driver queues, so that the host never waits for the device."""


def on_host(functions: Mapping[str, Callable[[], object]], warmup: int, iterations: int) -> dict[str, Spread]:
    """What a call of each function takes on the host, from series of calls, each function's in turn."""
    found: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(warmup + iterations):
        for name, function in functions.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(CALLS):
                function()
            taken = time.perf_counter() - begin
            if number >= warmup:
                found[name].append(taken / CALLS * 1e6)
    torch.cuda.synchronize()
    return {name: spread(times) for name, times in found.items()}


def copy_functions(bytes_: int) -> dict[str, Callable[[], object]]:
    """What sets the roof: copies of half of `bytes_`, by the driver and by a kernel, and reads of all of it.

    The memory holds normal random numbers: what a device draws, and so its clock, depends on the bits that move.
    """
    half = -(-bytes_ // (2 * WORD * ALIGNED)) * ALIGNED  # words, rounded up: a roof is never flattered
    memory = torch.randn(-(-2 * half // COLUMNS) * COLUMNS, device="cuda")
    source, target, rows = memory[:half], memory[half : 2 * half], memory.view(-1, COLUMNS)
    return {
        "copy": lambda: target.copy_(source),
        "copy_kernel": lambda: torch.neg(source, out=target),
        "read": lambda: torch.sum(rows, -1),
    }
