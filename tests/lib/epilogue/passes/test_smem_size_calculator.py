"""Shared memory for staging."""

import numpy as np
import pytest

from tests.lib.epilogue.passes.cases import graph, whole, zeros
from tilewright.epilogue import EpilogueError, PassSharedMemoryBudget, max


def function(accum, C, aux, row, column):
    D = accum + C + aux + row + column
    most = max(accum, dim=1)
    return D, most


EXAMPLES = {
    "C": whole(dtype=np.float16), "aux": whole(dtype=np.float32), "row": whole(8, dtype=np.float16),
    "column": whole(16, 1, dtype=np.float32), "most": zeros(2, 1, 8, dtype=np.float16), "D": zeros(dtype=np.float16),
}  # fmt: skip


def test_bytes_by_tile():
    """C and D of halves share a place; the reduction is kept in the type in which it is computed."""
    dag = graph(function, EXAMPLES, (PassSharedMemoryBudget, {"tiles": [(64, 32)]}))
    tile = 64 * 32
    assert dag.smem_bytes == {(64, 32): 2 * tile + 4 * tile + 32 * 2 + 64 * 4 + 32 * 4}


@pytest.mark.parametrize("cc, kilobytes", [(80, 163), (90, 227)])
def test_the_capacity_is_the_architecture_s(cc, kilobytes):
    whole_tiles = {"tiles": [(64, 32)], "reserved": kilobytes * 1024 - 2048 * 6 - 448}
    assert graph(function, EXAMPLES, (PassSharedMemoryBudget, whole_tiles), cc=cc).smem_bytes
    whole_tiles["reserved"] += 1
    with pytest.raises(EpilogueError, match="The epilogue consumes too much shared memory") as caught:
        graph(function, EXAMPLES, (PassSharedMemoryBudget, whole_tiles), cc=cc)
    assert f"tile 64 x 32  12736 bytes of {kilobytes * 1024}" in str(caught.value)


def test_tiles_that_do_not_fit_are_left_out():
    dag = graph(function, EXAMPLES, (PassSharedMemoryBudget, {"capacity": 100_000}))
    assert list(dag.smem_bytes) == [(64, 128), (128, 128)]
