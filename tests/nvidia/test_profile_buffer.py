"""Records of timed regions as a GPU leaves them: clocks of multiprocessors that began at different times, a coarse
timer for all."""

from __future__ import annotations

import struct

import pytest

from tilewright.targets.nvidia.profiling.profile_buffer import HEAD_BYTES, profile_of, read, record_bytes, total_bytes

RATE = 1.755  # cycles in a nanosecond
STEP = 1024  # nanoseconds
STARTED = {0: -3_000_000_017, 5: 123_456_789, 7: 0}  # when each multiprocessor's clock was 0, in ns
EVENTS = 6


def timer(ns):
    return 1_764_000_000_123_456_789 + int(ns // STEP * STEP)  # of 2025: floats of this size are 256 apart


def clock(processor, ns):
    return round((ns - STARTED[processor]) * RATE) + 10**10


def record(processor, block, warp, begin, regions, end):
    """The bytes of a warp that begins and ends at these times (ns); `regions` are (number, begin, end)."""
    words = [(clock(processor, at), number << 1 | ends) for number, *times in regions for ends, at in enumerate(times)]
    head = struct.pack(
        "<QQIIQQQQII", 77, block, warp, processor, timer(begin), clock(processor, begin), timer(end),
        clock(processor, end), len(words), 1,
    )  # fmt: skip
    body = b"".join(struct.pack("<QQ", *pair) for pair in words)
    return (head + body).ljust(record_bytes(EVENTS), b"\0")


def memory(records, asked=None):
    made = struct.pack("<I", len(records) if asked is None else asked).ljust(HEAD_BYTES, b"\0") + b"".join(records)
    return made.ljust(total_bytes(8, EVENTS), b"\0")


def test_clocks_become_one_time():
    warps = [(0, 0), (5, 1), (7, 2), (0, 3), (5, 4), (7, 5)]
    begins = [4000 + 7_130.0 * n for n in range(6)]
    made = memory([
        record(sm, block, block % 2, begin, [(0, begin + 500, begin + 900), (1, begin + 1000, begin + 90_000)],
               begin + 95_000)
        for (sm, block), begin in zip(warps, begins, strict=True)
    ])  # fmt: skip
    records, asked = read(made, EVENTS)
    found = profile_of("kernel", ["load", "math"], records, asked, khz=1_000_000)  # the timer knows better than khz
    assert found.unit == "ns" and (found.warps, found.asked, found.lost) == (6, 6, 0)
    for (sm, block), begin in zip(warps, begins, strict=True):
        whole, load, math = [span for span in found.spans if span.block == block]
        assert [span.name for span in (whole, load, math)] == ["kernel", "load", "math"] and whole.processor == sm
        # Lengths are as good as the rate, which the timer's step spoils by 1 in 100; where a warp begins, by a step.
        assert load.length == pytest.approx(400, rel=0.02) and math.length == pytest.approx(89_000, rel=0.02)
        assert whole.begin == pytest.approx(begin - begins[0], abs=2 * STEP + 0.02 * 100_000)


def test_short_records_take_the_rate_that_is_known():
    records, asked = read(memory([record(0, 0, 0, 5000, [(0, 5100, 5400)], 6000)]), EVENTS)
    found = profile_of("kernel", ["load"], records, asked, khz=int(RATE * 1e6))
    assert [round(span.length) for span in found.spans] == [1000, 300]


def test_warps_without_a_record_and_warps_that_did_not_end():
    whole = record(0, 0, 0, 0, [], 100)
    unfinished = bytearray(whole)
    unfinished[60] = 0
    records, asked = read(memory([whole, bytes(unfinished)], asked=4000), EVENTS)
    assert len(records) == 1 and asked == 4000


def test_events_that_found_no_room():
    full = bytearray(record(0, 0, 0, 0, [(0, 10, 20), (0, 30, 40), (0, 50, 60)], 100))
    full[56:60] = struct.pack("<I", 11)
    records, _ = read(memory([bytes(full)]), EVENTS)
    assert len(records[0].events) == EVENTS and records[0].lost == 5


def test_launches_are_told_apart():
    other = bytearray(record(0, 0, 0, 200, [], 300))
    other[:8] = struct.pack("<Q", 78)
    records, asked = read(memory([record(0, 0, 0, 0, [], 100), bytes(other)]), EVENTS)
    assert [span.launch for span in profile_of("kernel", [], records, asked, 10**6).spans] == [0, 1]
