"""Random programs: compiled ones do what Python does."""

from __future__ import annotations

import random

import pytest

from tests.lang.control import programs
from tests.lang.control.harness import compiled

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.lang.control.ConstantConditionWarning")


def check(seed: int, statements: int) -> None:
    text = programs.Generator(seed, statements).program()
    fn = programs.load(text, f"<random program {seed}>")
    native = compiled(fn)
    inputs = random.Random(seed)
    for _ in range(8):
        arguments = tuple(inputs.randint(-20, 20) for _ in range(3))
        assert native(*arguments) == fn(*arguments), f"{arguments}\n{text}"


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_programs(first):
    for seed in range(first, first + 20):
        check(seed, 6)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, 250))
def test_many_random_programs(first):
    for seed in range(first, first + 250):
        check(seed, 24)
