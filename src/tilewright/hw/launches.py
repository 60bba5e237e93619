"""What to do about a launch that no chip takes: one hint for each limit that it breaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.hw.chips import MAX_BLOCK_DIM, MAX_GRID_DIM

NOTHING: Final = "where there is nothing to do, skip the launch"
NEGATIVE: Final = "an extent is negative: look at the difference or the quotient that it comes from"
ALONG_X: Final = (
    "give the longest axis to x, which takes 2147483647 blocks, or let each block do several tiles in a loop"
)
LOOP: Final = "let each block do several tiles in a loop"
NO_THREADS: Final = "a block has at least one thread along each axis"
FEWER: Final = "use more blocks of fewer threads"
NOT_ALONG_Z: Final = "give z at most 64 threads, and x or y the rest"
SMALL_CLUSTER: Final = (
    "a cluster of up to 8 blocks runs on every chip that has clusters, more only where the device can place them"
)
NO_CLUSTER: Final = "a cluster has at least one block along each axis; leave cluster= out to launch without"
WHOLE_CLUSTERS: Final = "round the grid up to a multiple of the cluster and guard the blocks beyond the end"


def grid_hint(grid: Sequence[int]) -> str:
    """What helps where a grid has too few or too many blocks along an axis."""
    if min(grid) < 1:
        return NEGATIVE if min(grid) < 0 else NOTHING
    return LOOP if grid[0] > MAX_GRID_DIM[0] else ALONG_X


def block_hint(block: Sequence[int]) -> str:
    """What helps where a block has too few or too many threads."""
    if min(block) < 1:
        return NEGATIVE if min(block) < 0 else NO_THREADS
    threads = block[0] * block[1] * block[2]
    return NOT_ALONG_Z if threads <= MAX_BLOCK_DIM[0] and block[2] > MAX_BLOCK_DIM[2] else FEWER


def cluster_hint(cluster: Sequence[int]) -> str:
    """What helps where a cluster has too few or too many blocks."""
    return NO_CLUSTER if min(cluster) < 1 else SMALL_CLUSTER
