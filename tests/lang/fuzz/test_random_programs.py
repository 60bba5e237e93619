"""Random programs: compiled ones give what plain Python gives with the language's numbers."""

import pytest

from tests.lang.fuzz.generator import Generator
from tests.lang.fuzz.harness import survey
from tests.lang.fuzz.wide import WideGenerator

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.lang.control.ConstantConditionWarning")


def check(seeds, budget, target, kind=Generator):
    count, problems = survey(seeds, budget, target, kind)
    assert not problems, "\n".join(problems)
    assert count == len(seeds)


@pytest.mark.parametrize("first", range(0, 180, 30))
def test_random_programs(first):
    check(range(first, first + 30), 6, "emu")


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_random_programs_with_more_of_the_language(first):
    check(range(first, first + 30), 6, "emu", WideGenerator)


@pytest.mark.parametrize("kind", [Generator, WideGenerator])
def test_random_programs_on_the_host(kind):
    check(range(24), 6, "host", kind)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 120))
def test_many_random_programs(first):
    check(range(first, min(first + 120, 15_000)), 14, "emu")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 25_000, 120))
def test_many_random_programs_with_more_of_the_language(first):
    check(range(first, min(first + 120, 25_000)), 8, "emu", WideGenerator)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Generator, WideGenerator])
@pytest.mark.parametrize("first", range(30_000, 31_000, 120))
def test_many_random_programs_on_the_host(first, kind):
    check(range(first, min(first + 120, 31_000)), 14, "host", kind)
