"""Random programs on a device: without contraction the results of plain Python, with it those of the emulator.

All disagreements are told, with seeds and expressions.
"""

import pytest

from tests.lang.fuzz.generator import Generator
from tests.lang.fuzz.harness import contracted_differently, disagreements, survey
from tests.lang.fuzz.wide import WideGenerator

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.lang.control.ConstantConditionWarning")


def check(request, seeds, budget, kind, share, compare=disagreements):
    """Half of the time that `--random-programs-seconds` allows, or what `share` says."""
    seconds = request.config.getoption("--random-programs-seconds") * share
    count, problems = survey(seeds, budget, "cuda", kind, seconds=seconds, compare=compare)
    request.config.get_terminal_writer().line(f" {count} of {len(seeds)} programs of {kind.__name__}")
    assert not problems, f"{count} programs, {len(problems)} problems\n" + "\n".join(problems)


@pytest.mark.parametrize("kind", [Generator, WideGenerator])
def test_random_programs(request, kind):
    check(request, range(300), 6, kind, 0.5)


@pytest.mark.parametrize("kind", [Generator, WideGenerator])
def test_random_programs_with_contraction(request, kind):
    check(request, range(1000, 1300), 6, kind, 0.5, contracted_differently)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Generator, WideGenerator])
def test_many_random_programs(request, kind):
    check(request, range(10_000, 15_000), 14, kind, 10.0)
