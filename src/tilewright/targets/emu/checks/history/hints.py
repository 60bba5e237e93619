"""What helps against a race: it depends on who the two threads are, and on what they did."""

from __future__ import annotations

from dataclasses import dataclass

WAIT = "wait for the asynchronous operation (its group or its mbarrier) before this access"
READ_ONLY = "read it by a plain load (no .nc, no __ldg), or write it in a launch before this one"
SCOPE = (
    "both are atomic, volatile or relaxed, but a scope is too narrow or their sizes differ: give both the scope gpu "
    "and one size"
)
WARP = "put bar.warp.sync (cute.arch.sync_warp) between the two accesses"
BLOCK = "put a barrier between the two accesses"
SAME_PLACE = (
    "let each thread write a place of its own, or combine the values by an atomic; a barrier helps only where the two "
    "writes are of different rounds of a loop"
)
CLUSTER = "put a cluster barrier (barrier.cluster.arrive and wait) between the two accesses"
SYSTEM = (
    "both are atomic, volatile or relaxed, but threads of two devices see each other's accesses in scope sys only, and "
    "their sizes are equal: give both the scope sys"
)
DEVICES = (
    "nothing orders the two devices: write the data, then release a flag, and acquire it before the data is used, both "
    "in scope sys; before a buffer is written again, let its readers say by a flag of theirs that they are done"
)
BLOCKS = (
    "no barrier of a block orders two blocks: combine the values by atomics, let each block write elements of its own, "
    "split the kernel into two launches, or meet at a barrier of the whole grid"
)


@dataclass(frozen=True)
class Pair:
    """Two accesses that race: what they did and to which memory; whether at the same instruction, the earlier one by an
    asynchronous operation (`asynchronous`), both strong, of one device, in one block, in one warp."""

    now: str
    before: str
    space: str
    same_site: bool
    asynchronous: bool
    strong: bool
    device: bool
    block: bool
    warp: bool


def hint_for(pair: Pair) -> str:
    """The hint for a race."""
    if pair.asynchronous:
        return WAIT
    if pair.now == "read by .nc":
        return READ_ONLY
    if pair.strong:
        return SCOPE if pair.device else SYSTEM
    if not pair.device:
        return DEVICES
    if not pair.block:
        return CLUSTER if pair.space == "shared" else BLOCKS
    if pair.same_site and (pair.now, pair.before) == ("written", "written"):
        return SAME_PLACE
    return WARP if pair.warp else BLOCK
