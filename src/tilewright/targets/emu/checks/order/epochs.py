"""Epochs: who touched a granule of memory, when, and by which instruction.

An epoch is 64 bits: clock (18) | block (20) | thread (11) | asynchronous (1) | site (14). Clocks are on top, so that
"not yet ordered by a block barrier" is one comparison. In marks of several accesses (`history.concurrent`), threads
from `SEVERAL` on stand for several threads: of one warp (its number in the place of theirs), `EVERY` for threads of a
block, block and thread all ones (`MANY`) for threads of several blocks. What does not fit a field is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.lanes import Array

SITE_BITS, THREAD_BITS, BLOCK_BITS, CLOCK_BITS = 14, 11, 20, 18
SITE_MASK = (1 << SITE_BITS) - 1
ASYNC_BIT = np.uint64(1 << SITE_BITS)
THREAD_SHIFT = SITE_BITS + 1
BLOCK_SHIFT = THREAD_SHIFT + THREAD_BITS
CLOCK_SHIFT = BLOCK_SHIFT + BLOCK_BITS
EVERY = (1 << THREAD_BITS) - 1
SEVERAL = 1 << (THREAD_BITS - 1)
BLOCK_MASK = (1 << BLOCK_BITS) - 1
EVERY_BITS = np.uint64(EVERY << THREAD_SHIFT)
MANY = np.uint64((1 << CLOCK_SHIFT) - (1 << THREAD_SHIFT))
WHO = MANY | ASYNC_BIT
BLOCK_FIELD = np.uint64(BLOCK_MASK << BLOCK_SHIFT)
MAX_CLOCK = (1 << CLOCK_BITS) - 2
ONE_TICK = np.uint64(1 << CLOCK_SHIFT)
WARP_BIT = np.uint64(SEVERAL << THREAD_SHIFT)
WARP_FIELD = BLOCK_FIELD | np.uint64((SEVERAL - 32) << THREAD_SHIFT)
MOST_SITES, MOST_BLOCKS, MOST_AGENTS = SITE_MASK, BLOCK_MASK, EVERY
"""Numbers from here on do not fit an epoch (the last of each has a meaning of its own)."""


def identity(block: Any, thread: Any) -> Any:
    """The bits that name a thread of a block."""
    return (block.astype(np.uint64) << np.uint64(BLOCK_SHIFT)) | (thread.astype(np.uint64) << np.uint64(THREAD_SHIFT))


def agent_epoch(clock: Any, block: Any, thread: Any, site: int) -> Array:
    """The epoch of an asynchronous agent."""
    check_limit("groups of asynchronous operations", int(np.max(clock)), MAX_CLOCK)
    check_limit("asynchronous operations of a block", int(np.max(thread)), MOST_AGENTS - 1)
    clocks = np.asarray(clock).astype(np.uint64) << np.uint64(CLOCK_SHIFT)
    word: Array = clocks | identity(np.asarray(block), np.asarray(thread)) | ASYNC_BIT | np.uint64(site & SITE_MASK)
    return word


def clock_of(word: Any) -> Any:
    """The clock in an epoch or an array of epochs."""
    return (word >> np.uint64(CLOCK_SHIFT)).astype(np.int64)


def block_of(word: Any) -> Any:
    """The block in an epoch or an array of epochs."""
    return ((word >> np.uint64(BLOCK_SHIFT)) & np.uint64(BLOCK_MASK)).astype(np.int64)


def thread_of(word: Any) -> Any:
    """The thread (or agent) in an epoch or an array of epochs."""
    return ((word >> np.uint64(THREAD_SHIFT)) & np.uint64(EVERY)).astype(np.int64)


def is_async(word: Any) -> Any:
    """Whether an epoch is an asynchronous agent's."""
    return (word & ASYNC_BIT) != 0


def site_of(word: Any) -> int:
    """The number of the instruction in an epoch."""
    return int(word) & SITE_MASK


def check_limit(what: str, count: int, most: int, site: int = -1) -> None:
    """A fault that names the limit, where the race check can count no further."""
    if count > most:
        raise Fault("limit", f"The race check has run out of room for {what}", site,
                    values={"at most": most}, hint=HINT)  # fmt: skip


HINT = "run this launch with checks=False, or check a smaller one: fewer blocks, fewer rounds"
