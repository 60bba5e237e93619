"""Random programs: compiled ones give what plain Python gives with the language's numbers."""

import pytest

from tests.language.fuzz.harness import disagreements

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.lang.control.ConstantConditionWarning")
TOGETHER = 6  # programs of one kernel


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_random_programs(first):
    for seed in range(first, first + 30, TOGETHER):
        assert not disagreements(range(seed, seed + TOGETHER), 6, "emu")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 120))
def test_many_random_programs(first):
    for seed in range(first, min(first + 120, 15_000), TOGETHER):
        assert not disagreements(range(seed, min(seed + TOGETHER, 15_000)), 14, "emu")


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_programs_on_the_host(first):
    for seed in range(first, first + 20, TOGETHER):
        assert not disagreements(range(seed, min(seed + TOGETHER, first + 20)), 6, "host")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30_000, 31_000, 120))
def test_many_random_programs_on_the_host(first):
    for seed in range(first, min(first + 120, 31_000), TOGETHER):
        assert not disagreements(range(seed, min(seed + TOGETHER, 31_000)), 14, "host")
