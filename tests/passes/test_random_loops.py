"""Random loops: wishes of `cutlass.range` change nothing but speed."""

import pytest

from tests.passes.random_loops import differing

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.lang.control.ConstantConditionWarning")


@pytest.mark.parametrize("seed", range(16))
def test_wishes_change_nothing(seed):
    assert not differing(seed, range(0, 10, 3))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_wishes_change_nothing_in_many_programs(first):
    problems = [problem for seed in range(first, first + 20) for problem in differing(seed, range(10))]
    assert not problems, "\n".join(problems)
