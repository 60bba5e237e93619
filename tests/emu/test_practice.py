"""Kernels as the field writes them: no finding in the correct ones, the right one in the broken ones."""

import numpy as np
import pytest

from tests.emu.practice.blocks import BLOCKS
from tests.emu.practice.copies import COPIES
from tests.emu.practice.unwritten import UNWRITTEN
from tests.emu.practice.warps import WARPS
from tilewright.base.errors import EmulationError

PAIRS = [*COPIES, *BLOCKS, *WARPS, *UNWRITTEN]
SLIPS = [(pair, slip) for pair in PAIRS for slip in pair.slips()]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_the_correct_kernel_has_no_finding(pair):
    for seed in range(4):
        result = pair.run(pair.text(), seed)
        if pair.wanted is not None:
            np.testing.assert_array_equal(result[: len(pair.wanted)], pair.wanted)


@pytest.mark.parametrize(("pair", "slip"), SLIPS, ids=[slip.what for _, slip in SLIPS])
def test_the_broken_kernel_is_reported(pair, slip):
    """At seed 0, where all threads start at once, with the line and the thread; else with one of the kinds."""
    for seed in (0, 3):
        with pytest.raises(EmulationError) as caught:
            pair.run(slip.text, seed)
        error = caught.value
        kinds = {*slip.kinds, "uninitialised"} if "race" in slip.kinds else set(slip.kinds)
        assert error.kind in kinds, error
        if seed == 0:
            assert slip.line in str(error)
            assert slip.thread in str(error.values.get("thread")), error
