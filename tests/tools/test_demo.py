"""What `tilewright demo` runs and prints."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console

from tilewright.tools import demo


@pytest.fixture(scope="module")
def printed(module_cache):
    console = Console(file=StringIO(), width=100, color_system=None)
    assert demo.run(console, target="emu", arch="sm_90a")
    return console.file.getvalue()


def test_every_kernel_has_its_figures(printed):
    assert printed.startswith("Compiled for sm_90a, ran on the PTX emulator")
    results = printed[printed.index("Results:") :]
    assert "registers spills shared occupancy limited by" in results
    for case, shared in (("vector add", 0), ("row sum", 128), ("with layouts", 128), ("block sum", 1024)):
        (row,) = re.findall(rf"^ {case} .*$", results, re.MULTILINE)
        assert re.search(rf" \d+ +0 B +{shared} B +100 % warps", row), row


def test_every_stage_is_there(printed):
    stages = printed[: printed.index("Results:")]
    for stage in ("python", "cute", "nvvm", "llvm", "ptx", "cubin", "sass"):
        assert re.search(rf"^ {stage} ", stages, re.MULTILINE), stage


def test_a_warm_and_a_cached_compilation_stand_beside_the_cold_one(printed):
    """What loads MLIR once is in the first column of the first row alone, and a cached call compiles nothing."""
    rows = {name: re.findall(rf"^ {name} (.*)$", printed, re.MULTILINE) for name in ("first call", "again", "cached")}
    times = {name: [float(cell) for cell in line.split()] for name, (line,) in rows.items()}
    assert [len(cells) for cells in times.values()] == [4, 4, 4]
    assert sum(times["cached"]) < sum(times["again"])
    assert sum(times["cached"]) < sum(times["first call"])
