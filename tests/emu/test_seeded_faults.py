"""The emulator's verdicts on the seeded faults beside those of an H100, compute-sanitizer and a static verifier."""

from functools import cache

import pytest

from tests.emu import faults

QUICK = ("scan", "message", "cluster_exchange")
SLOW = [case.name for case in faults.CASES if case.name not in QUICK]
NAMES = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@cache
def verdicts(name):
    case = next(case for case in faults.CASES if case.name == name)
    return [faults.judge(mutant) for mutant in faults.mutants(case)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_harmful_on_a_gpu_is_reported_or_another_program(name):
    """A mutant that breaks no rule of memory and gives one result whatever the order is "other"."""
    rows = faults.recorded("sanitizer")
    bad = [v for v in verdicts(name) if faults.harmful(rows[name, v.mutant.what])]
    assert [v.mutant.what for v in bad if v.kind not in ("reported", "other")] == []
    silent = [v for v in bad if v.kind == "other"]
    assert [v.mutant.what for v in silent if faults.sanitized(rows[name, v.mutant.what])] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_the_static_verifier_proves_wrong_is_reported(name):
    rows = faults.recorded("sentryward")
    if rows[name, ""]["result"] != "race_free":
        assert faults.table_row(verdicts(name)[0].mutant.case, verdicts(name))[-1] == "–"
        return
    silent = [v.mutant.what for v in verdicts(name) if v.kind != "reported"]
    assert [what for what in silent if faults.refused(rows[name, what])] == []


def test_every_recorded_mutant_is_one_of_the_suite():
    known = {(case.name, "") for case in faults.CASES}
    known |= {(case.name, mutant.what) for case in faults.CASES for mutant in faults.mutants(case)}
    assert set(faults.recorded("sentryward")) == known
    assert set(faults.recorded("sanitizer")) == known


def test_the_correct_kernels_are_right_on_the_gpu():
    correct = [row for (_, change), row in faults.recorded("sanitizer").items() if not change]
    assert [row["output"] for row in correct] == ["right"] * 12
    objections = {(row["kernel"], tool) for row in correct for tool in faults.TOOLS if row[tool]}
    assert objections == faults.FALSE_ALARMS


def test_a_row_of_the_table():
    row = faults.table_row(faults.CASES[2], verdicts("scan"))
    assert row == ["`scan`", "two buffers", "9", "6", "1", "2", "0", *row[7:9], "5"]
    assert faults.compared(verdicts("scan")).total() == 9
