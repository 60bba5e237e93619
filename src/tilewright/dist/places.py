"""How a rank's heap is divided: flags, counters of calls, what others send, and what users allocate."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.kernels.exchanging import KINDS, Regions
from tilewright.lib.comm.node import SLOT_BYTES

ALIGNMENT = 256
BLOCKS = 256
LINE_RATE = 2
"""Bytes of a line for each byte of data."""


@dataclass(frozen=True)
class Places:
    """Offsets in bytes: of `slots`, `own_slots` and behind them `signals` for users; of `regions`; of `free` memory."""

    slots: int
    own_slots: int
    signals: int
    regions: Regions
    free: int


def aligned(offset: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def places(world: int, part: int, line_part: int, signals: int, blocks: int = BLOCKS) -> Places:
    """The division for `world` ranks that send each other up to `part` bytes at a time, `line_part` in lines."""
    own_slots = KINDS * blocks * world
    epochs = aligned(SLOT_BYTES * (own_slots + signals))
    lines = aligned(epochs + 2 * 4 * blocks)
    each_line = aligned(LINE_RATE * line_part)
    first = lines + 2 * world * each_line
    each = aligned(part)
    results = first + 2 * world * each
    regions = Regions(blocks, epochs, first, results, each, lines, each_line)
    return Places(0, own_slots, signals, regions, results + world * each)
