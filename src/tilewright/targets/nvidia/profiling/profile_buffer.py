"""The memory in which kernels record timed regions, and how it is read.

A kernel with timed regions has a variable of its own in global memory:

    u32 number of warps that asked for a record       16 bytes
    one record for each of the first `warps`:
      u64 grid                the launch
      u64 block               of the grid, x first
      u32 warp, u32 SM
      u64 begin, u64 begin    globaltimer in nanoseconds, and clock64
      u64 end, u64 end        the same
      u32 events, u32 done    events that there were, and whether the warp has ended (1)
      `events` times u64 u64  clock64, and number of the region << 1 | whether it ends

A warp takes the next free record when it begins, so a grid of any size and any number of launches may share the memory.
On a GPU the clock of each multiprocessor counts cycles for itself, and globaltimer, which all share, is coarse: the
pairs of both give the rate and where each clock began. On the emulator clock64 counts the instructions of the thread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.targets.profile import Profile, Span

SYMBOL: Final = "__tilewright_profile"
HEAD_BYTES: Final = 16
RECORD_HEAD_BYTES: Final = 64
EVENT_BYTES: Final = 16
IDLE: Final = 1 << 31
"""The number of events with which a warp without a record begins; as an unsigned number it never comes in bounds."""
_RECORD: Final = struct.Struct("<QQIIQQQQII")
_LONG_ENOUGH_NS: Final = 20_000
"""From here on, globaltimer (which steps by up to a microsecond) gives the rate of the clock."""


def record_bytes(events: int) -> int:
    """The size of a warp's record."""
    return RECORD_HEAD_BYTES + EVENT_BYTES * events


def total_bytes(warps: int, events: int) -> int:
    """The size of the memory."""
    return HEAD_BYTES + warps * record_bytes(events)


@dataclass(frozen=True)
class WarpRecord:
    """What a warp recorded: times are clock64's."""

    grid: int
    block: int
    warp: int
    processor: int
    begin_ns: int
    begin: int
    end_ns: int
    end: int
    events: tuple[tuple[int, int, bool], ...]
    lost: int

    @property
    def samples(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(globaltimer, clock64) at begin and end."""
        return (self.begin_ns, self.begin), (self.end_ns, self.end)


def read(memory: bytes, events: int) -> tuple[list[WarpRecord], int]:
    """The records of warps that have ended, and the number of warps that asked for one."""
    asked, size = struct.unpack_from("<I", memory)[0], record_bytes(events)
    held = min(asked, (len(memory) - HEAD_BYTES) // size)
    records = [_record(memory, HEAD_BYTES + size * number, events) for number in range(held)]
    return [record for record in records if record is not None], asked


def _record(memory: bytes, at: int, events: int) -> WarpRecord | None:
    *head, count, done = _RECORD.unpack_from(memory, at)
    if not done:
        return None
    words = struct.unpack_from(f"<{2 * min(count, events)}Q", memory, at + RECORD_HEAD_BYTES)
    found = tuple((clock, code >> 1, bool(code & 1)) for clock, code in zip(words[::2], words[1::2], strict=True))
    grid, block, warp, processor, begin_ns, begin, end_ns, end = head
    lost = max(count - events, 0)
    return WarpRecord(grid, block, warp, processor, begin_ns, begin, end_ns, end, found, lost)


def profile_of(kernel: str, regions: Sequence[str], records: Sequence[WarpRecord], asked: int, khz: int) -> Profile:
    """The records of a kernel as spans.

    Args:
        kernel: its name, under which each warp's whole time stands.
        regions: names by number.
        records: of all launches, in the order in which the warps began.
        asked: warps that asked for a record.
        khz: the rate of the clock where the records are too short to tell it; 0 on the emulator, where the clock counts
            instructions.
    """
    at = _nanoseconds(records, khz) if khz else (lambda _, clock: float(clock))
    launches = {grid: number for number, grid in enumerate(dict.fromkeys(record.grid for record in records))}
    spans = [span for record in records for span in _spans(kernel, regions, record, launches[record.grid], at)]
    lost = sum(record.lost for record in records)
    return Profile("ns" if khz else "instructions", tuple(spans), len(records), asked, lost)


def _nanoseconds(records: Sequence[WarpRecord], khz: int) -> Callable[[int, int], float]:
    """A function from (multiprocessor, clock64) to nanoseconds, 0 at the first warp's begin."""
    samples: dict[int, list[tuple[int, int]]] = {}
    for record in records:
        samples.setdefault(record.processor, []).extend(record.samples)
    rate = _rate(samples, khz)
    # Differences of whole numbers are exact; the numbers themselves are too great for floats.
    first = min((record.begin_ns for record in records), default=0)
    zeros = {key: min(clock for _, clock in found) for key, found in samples.items()}
    # globaltimer lags behind by up to a step, so the latest of the starts that samples give is the nearest.
    starts = {
        key: max(ns - first - (clock - zeros[key]) / rate for ns, clock in found) for key, found in samples.items()
    }

    def at(processor: int, clock: int) -> float:
        return starts[processor] + (clock - zeros[processor]) / rate - begin

    begin = 0.0
    begin = min((at(record.processor, record.begin) for record in records), default=0.0)
    return at


def _rate(samples: Mapping[int, Sequence[tuple[int, int]]], khz: int) -> float:
    """Cycles in a nanosecond."""
    longest, cycles = 0, 0
    for found in samples.values():
        first, last = min(found), max(found)
        if last[0] - first[0] > longest:
            longest, cycles = last[0] - first[0], last[1] - first[1]
    return cycles / longest if longest >= _LONG_ENOUGH_NS and cycles > 0 else khz / 1e6


def _spans(
    kernel: str, regions: Sequence[str], record: WarpRecord, launch: int, at: Callable[[int, int], float]
) -> Iterator[Span]:
    """The whole warp, then its regions in the order in which they begin."""

    def span(name: str, begin: int, end: int, depth: int) -> Span:
        times = at(record.processor, begin), at(record.processor, end)
        return Span(kernel, launch, record.block, record.warp, record.processor, name, *times, depth)

    found = [span(kernel, record.begin, record.end, 0)]
    open_: list[tuple[int, int]] = []
    for clock, region, ends in record.events:
        if not ends:
            open_.append((region, clock))
        elif open_:  # always, but where an event was lost
            number, begin = open_.pop()
            found.append(span(regions[number], begin, clock, len(open_) + 1))
    yield from sorted(found, key=lambda item: (item.begin, -item.end, item.depth))
