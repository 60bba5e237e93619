"""What threads tell each other: rows of clocks, by block."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilewright.targets.emu.checks.members import whole_queue
from tilewright.targets.emu.lanes import Array

Knowledge = dict[int, Array]
"""What a release publishes: a row of clocks for each block. A row under `shared_only(block)` counts for accesses to
shared memory alone: it came by a fence with `.sync_restrict`."""


@dataclass(frozen=True)
class Publication:
    """What the value of a word carries to those that read it, by group: a scope and the block or cluster it is.

    `root` is the store that the read-modify-writes behind this value go back to; `publisher` the thread of the store.
    `fenced` is what other threads did before fences that stand in one order (`fences`).
    """

    root: object
    publisher: tuple[int, int]
    groups: dict[tuple[int, int], Knowledge]
    fenced: Knowledge = field(default_factory=dict)


def shared_only(block: int) -> int:
    """The key of what is known of a block as far as shared memory is concerned."""
    return -1 - block


def narrowed(known: Knowledge) -> Knowledge:
    """Knowledge that counts for shared memory alone."""
    out: Knowledge = {}
    for block, row in known.items():
        if block <= whole_queue(0):  # launches share no such memory
            continue
        out = together(out, {shared_only(block) if block >= 0 else block: row})
    return out


def together(a: Knowledge, b: Knowledge) -> Knowledge:
    """The union of two pieces of knowledge, neither of which changes."""
    out = dict(a)
    for block, row in b.items():
        old = out.get(block)
        out[block] = row if old is None or old is row else joined_rows(old, row)
    return out


def joined_rows(a: Array, b: Array) -> Array:
    """The larger of two rows, entry by entry; the shorter one counts as zeros beyond its end."""
    if len(a) < len(b):
        a, b = b, a
    out = a.copy()
    np.maximum(out[: len(b)], b, out=out[: len(b)])
    return out
