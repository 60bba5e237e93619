"""Steps drawn for the tests."""

from __future__ import annotations

import random

from tilewright.tools.fuzzing.drawing import Drawing
from tilewright.tools.fuzzing.forms import families
from tilewright.tools.fuzzing.steps import step_of


def steps_of(exchange, seed):
    """An exchange twice, its names different."""
    draw = Drawing(random.Random(seed))
    return tuple(exchange(draw) for _ in range(2))


def one_of_each(family):
    """A step for every form of a family."""
    draw = Drawing(random.Random(family))
    return [step_of(draw, form) for row in families()[family] for form in row]
