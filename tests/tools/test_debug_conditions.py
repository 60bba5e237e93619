"""Conditions of breakpoints against NumPy."""

import numpy as np
import pytest

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.lanes import Lanes, Shape
from tilewright.tools.debugger.conditions import holds

LANES = Lanes(Shape((4, 1, 1), (16, 4, 1)), np.arange(128), np.array([2, 3]))
THREAD, BLOCK = np.tile(np.arange(64), 2), np.repeat([2, 3], 64)
X = np.linspace(-1, 1, 128, dtype=np.float32)
R = np.arange(128, dtype=np.uint32)
VALUES = {"x": X, "%r1": R, "%rd$2": R.astype(np.uint64), "k": np.full(128, 3)}
CASES = {
    "thread == 5": THREAD == 5,
    "thread == 5 and block == 3": (THREAD == 5) & (BLOCK == 3),
    "not thread or warp == 1": (THREAD == 0) | (THREAD >= 32),
    "0 <= x < 0.5": (X >= 0) & (X < 0.5),
    "lane < 2 and not (x > 0)": (THREAD % 32 < 2) & (X <= 0),
    "tid.x == 3 and tid.y == 2": THREAD == 35,
    "%r1 - 5 < 0": R < 5,
    "%rd$2 == 7 and k == 3": R == 7,
    "abs(x) > 0.9": np.abs(X) > 0.9,
    "k": np.ones(128, bool),
    "max(thread, 60) == 60": THREAD <= 60,
}


@pytest.mark.parametrize("text", CASES)
def test_conditions(text):
    np.testing.assert_array_equal(holds(text, LANES, VALUES.__getitem__), np.flatnonzero(CASES[text]))


@pytest.mark.parametrize("text", ["thread ==", "x = 3", "import os", "", "1 +"])
def test_what_is_no_expression(text):
    with pytest.raises(ArgumentError, match="is no condition"):
        holds(text, LANES, VALUES.__getitem__)


@pytest.mark.parametrize("text", ["x.shape[7] > 0", "tid.w == 1", "x[400] > 0", "thread @ 3 > 0"])
def test_what_cannot_be_evaluated(text):
    with pytest.raises(ArgumentError, match="cannot be evaluated here"):
        holds(text, LANES, VALUES.__getitem__)
