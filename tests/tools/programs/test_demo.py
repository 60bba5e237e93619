"""The demonstration: right results, complete tables, and a wrong kernel is noticed."""

import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from tilewright.tools import demo

STAGES = ("python", "cute", "nvvm", "llvm", "ptx", "cubin", "sass")


def run(**options):
    stream = io.StringIO()
    right = demo.run(Console(file=stream, width=80), target="emu", **options)
    return right, stream.getvalue()


def test_all_kernels_are_right_and_every_figure_is_printed():
    right, text = run(arch="sm_90a")
    assert right
    assert "Compiled for sm_90a, ran on the PTX emulator" in text
    assert all(f"\n {stage} " in text for stage in STAGES)
    assert all(case.title in text for case in demo.CASES)
    assert "wrong" not in text and "missing" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("case", demo.CASES, ids=[case.title for case in demo.CASES])
def test_errors_are_within_their_bounds(case):
    outcome = demo.run_case(case, target="emu")
    assert outcome.error <= outcome.allowed
    assert outcome.executor.occupancy(block=case.block).blocks_per_sm > 0


def test_integers_are_exact():
    assert demo.run_case(demo.CASES[-1], target="emu").error == 0


def test_a_wrong_result_is_reported(monkeypatch):
    case = demo.CASES[0]

    def problem(generator):
        right = case.problem(generator)
        return dataclasses.replace(right, exact=right.exact + 1)

    monkeypatch.setattr(demo, "CASES", (dataclasses.replace(case, problem=problem),))
    right, text = run()
    assert not right
    assert "wrong: 1" in text


def test_an_output_that_is_not_written_is_wrong(monkeypatch):
    case = demo.CASES[0]
    monkeypatch.setattr(demo.cute, "compile", lambda *a, **k: lambda *arguments: None)
    outcome = demo.run_case(case)
    assert outcome.error == np.inf
    assert not outcome.right


def test_problems_exercise_the_guards():
    add, plain, layouts, tree = (case.problem(np.random.default_rng(0)) for case in demo.CASES)
    assert len(add.exact) % demo.kernels.ADD_THREADS != 0
    assert plain.arguments[0].shape[1] == 4096
    assert layouts.arguments[0].shape[1] % demo.kernels.LAYOUT_THREADS != 0
    assert len(tree.arguments[0]) % demo.kernels.TREE_THREADS != 0
