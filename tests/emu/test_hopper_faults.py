"""Hopper kernels with one mistake each: all are reported, at the right line; the correct ones are not."""

import pytest

from scripts import hopper_faults
from tests.emu.hopper.cases import CASES
from tilewright.base.errors import CompileError, EmulationError

SLIPS = [(case, slip) for case in CASES for slip in case.slips]
SEEDS = (0, 1, 2, 3)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_correct_kernel_has_no_finding(case):
    compiled = case.compile()
    for seed in SEEDS:
        case.run(compiled, seed)


@pytest.mark.parametrize(("case", "slip"), SLIPS, ids=[f"{case.name}, {slip.name}" for case, slip in SLIPS])
def test_a_mistake_is_reported_at_its_line(case, slip):
    if slip.compiled:
        with pytest.raises(CompileError, match=slip.words) as refused:
            case.compile(slip.name)
        _check_line(case, slip, refused.value)
        return
    compiled = case.compile(slip.name)
    for seed in (0, 3):
        with pytest.raises(EmulationError) as found:
            case.run(compiled, seed)
        assert found.value.kind in slip.kinds, found.value
        _check_line(case, slip, found.value)


def _check_line(case, slip, error):
    assert error.location is not None, error
    assert error.location.file == str(case.file) and error.location.line in case.lines(slip), error


@pytest.mark.parametrize(
    ("kernel", "name", "words"),
    [
        ("ring", "too few bytes", "waits for 0 of 1 arrivals, 512 bytes more than expected"),
        ("ring", "too many bytes", "waits for 0 of 1 arrivals and 1024 bytes"),
        ("gemm", "consumers", "waits for 4 of 8 arrivals"),
    ],
)
def test_a_deadlock_says_what_barriers_wait_for(kernel, name, words):
    case = next(case for case in CASES if case.name == kernel)
    with pytest.raises(EmulationError, match="no thread can go on") as found:
        case.run(case.compile(name), 0)
    assert words in str(found.value)


def test_the_page_has_every_mistake():
    """`python scripts/hopper_faults.py` writes the tables."""
    text = hopper_faults.PAGE.read_text(encoding="utf-8")
    assert hopper_faults.page(text) == text
