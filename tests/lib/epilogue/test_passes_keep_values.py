"""Random epilogues: after every pass the graph evaluates to what it did before, and to what Python itself computes; so
does the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.epilogue.programs import Program, check
from tilewright import epilogue
from tilewright.epilogue import DEFAULT_PASSES, EVTPassManager, PassDAG2Tree, PassNoOpElimination, parse

PASSES = (*DEFAULT_PASSES, PassNoOpElimination, PassDAG2Tree)


@pytest.mark.parametrize("first", range(0, 300, 20))
def test_every_pass_keeps_what_a_graph_computes(first):
    for seed in range(first, first + 20):
        program = Program(seed)
        expected = program.expected()
        outputs = {name: np.zeros(np.shape(value), np.float32) for name, value in expected.items()}
        dag = parse(program.text, {**program.arrays, **outputs}, cc=(80, 90)[seed % 2])
        check(dag.evaluate(**program.arrays), expected, f"as written, seed {seed}\n{program.text}")
        for one in PASSES:
            EVTPassManager(dag, [one])()
            found = dag.evaluate(**program.arrays)
            check(found, expected, f"after {one.__name__}, seed {seed}\n{program.text}")


def test_the_programs_are_worth_testing():
    """Together they have every kind of node, more than twenty nodes at times, and layouts that dissolve."""
    programs = [Program(seed) for seed in range(300)]
    text = "\n".join(program.text for program in programs)
    for word in ("permute", "reshape", "sum(", "max(", "min(", "relu", "identity", ">", "/ 1"):
        assert word in text
    assert sum(len(program.lines) > 12 for program in programs) > 20
    assert sum("permute(v" in program.text or "permute(accum" in program.text for program in programs) > 50


def run_kernels(seeds):
    for seed in seeds:
        program = Program(seed)
        expected = program.expected()
        outputs = {name: np.zeros(np.shape(value), np.float32) for name, value in expected.items()}
        kernel = epilogue.compile(program.text, {**program.arrays, **outputs})
        found = kernel(**program.arrays)
        check(found, expected, f"of the kernel, seed {seed}\n{program.text}")


def test_kernels_compute_the_same(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")
    run_kernels(range(12))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(12, 252, 40))
def test_more_kernels_compute_the_same(first, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")
    run_kernels(range(first, first + 40))
