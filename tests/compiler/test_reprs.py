"""What a console and a notebook show of compiled functions, their stages and reports."""

import re

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright.emulate import observe


@cute.kernel
def twice_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * 2.0


@cute.jit
def twice(x: cute.Tensor):
    twice_kernel(x).launch(grid=1, block=cute.size(x))


@pytest.fixture(scope="module")
def compiled():
    return cute.compile(twice, np.ones(64, np.float32), target="emu", options="--gpu-arch sm_90a")


def test_a_compiled_function(compiled):
    stages = "python cute nvvm llvm ptx cubin sass"
    assert repr(compiled) == f"<twice, compiled for sm_90a, runs on emu; stages {stages}>"
    assert repr(compiled.stages) == f"<stages of twice: {stages}; read one as stages['sass']>"


def test_its_report_is_the_table(compiled):
    assert repr(compiled.report()) == str(compiled.report())
    assert re.search(r"^registers +\d+$", repr(compiled.report()), re.MULTILINE)


def test_the_report_of_a_launch(compiled):
    with observe(counters=True) as reports:
        compiled(np.ones(64, np.float32))
    shown = repr(reports[0])
    assert re.fullmatch(
        r"<\w*twice\w*: 1 blocks, 64 threads, [\d,]+ instructions, 16 sectors, 0 bank conflicts; ok>", shown
    )
    with observe() as reports:
        compiled(np.ones(64, np.float32))
    assert "sectors" not in repr(reports[0])
