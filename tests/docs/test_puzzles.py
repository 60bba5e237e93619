"""The puzzles: solutions solve them, and what is unsolved, or solved in a wrong way, ends in a message that helps."""

import contextlib
import importlib.util
import io
import linecache
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.tools import puzzles

ROOT = Path(__file__).resolve().parents[2]
PUZZLES = sorted((ROOT / "examples" / "puzzles").glob("p*.py"))
SOLUTIONS = sorted((ROOT / "examples" / "puzzles" / "solutions").glob("p*.py"))


def number(path):
    return int(path.stem[1:3])


def of_scripts(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(text, name):
    """Run a program under a file name of its own; what it prints."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = types.ModuleType(name)
    sys.modules[name] = module
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(text, file, "exec"), module.__dict__)
    finally:
        del sys.modules[name]
    return printed.getvalue()


def test_there_are_twelve_with_hints_and_pictures():
    assert [number(path) for path in PUZZLES] == [number(path) for path in SOLUTIONS] == list(range(1, 13))
    for path in PUZZLES:
        text = path.read_text()
        assert text.startswith(f"# %% [markdown]\n# # Puzzle {number(path)}: ")
        assert re.search(r"^# Hints?[:,]", text, re.MULTILINE)
        assert "# ```text" in text or "_svg(" in text
        assert text.count("# Your code.") == 1


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_puzzle_is_its_solution_without_the_answer(path):
    """`python scripts/puzzles.py` writes it anew."""
    puzzle = (ROOT / "examples" / "puzzles" / path.name).read_text()
    assert puzzle == of_scripts("puzzles").without_answer(path.read_text())


@pytest.mark.parametrize("path", PUZZLES, ids=lambda path: path.stem)
def test_a_notebook_is_its_puzzle(path):
    pytest.importorskip("nbclient", reason="notebooks need nbclient")
    pytest.importorskip("jupytext", reason="notebooks need jupytext")
    nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")
    stored = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    cells = [(cell.cell_type, cell.source) for cell in of_scripts("notebooks").of_script(path).cells]
    assert cells == [(cell.cell_type, cell.source) for cell in stored.cells]


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_the_solution_solves_it(path):
    assert run(path.read_text(), path.stem) == f"Puzzle {number(path)} is solved.\n"


@pytest.mark.parametrize("path", PUZZLES, ids=lambda path: path.stem)
def test_what_is_unsolved_says_so(path):
    with pytest.raises(puzzles.Unsolved, match=f"^Puzzle {number(path)}(:| is not solved yet: )"):
        run(path.read_text(), path.stem)


WRONG = [
    (2, "if i < cute.size(x):", "if i >= 0:", EmulationError, "Out-of-bounds read of global memory"),
    (3, "row, column = block_y * 8 + y_in_block, block_x * 8 + x_in_block",
     "row, column = block_y * 8 + x_in_block, block_x * 8 + y_in_block", puzzles.Unsolved,
     "the result is right, with 127 sectors; it can be had with 90"),
    (4, "    cute.local_tile(y, (4,), (thread,)).store(-mine.load())",
     "    for k in (0, 1, 2, 3):\n        y[thread + 128 * k] = -x[thread + 128 * k]",
     puzzles.Unsolved, "the result is right, but it is meant to be had by ld.global.v4 and st.global.v4"),
    (5, "cute.arch.sync_threads()", "pass", EmulationError, "Race condition in shared memory access|never written"),
    (6, "range_constexpr(5)", "range_constexpr(4)", puzzles.Unsolved, r"y\[0\] is 120.0 and should be 496.0"),
    (7, "        cute.arch.sync_threads()\n", "", EmulationError, "Race condition in shared memory access"),
    (8, "    if thread < 32:\n        counts[thread] = 0\n", "", EmulationError, "never written"),
    (9, "    highest = cute.arch.warp_reduction_max(highest)\n", "", puzzles.Unsolved, "is not solved yet"),
    (10, "stride=(33, 1)", "stride=(36, 1)", puzzles.Unsolved, r"\d+ bank_conflicts; it can be had with 0"),
    (12, "cp_async_wait_group(STAGES - 2)", "cp_async_wait_group(STAGES - 1)", EmulationError, "asynchronous"),
]  # fmt: skip


@pytest.mark.parametrize(("puzzle", "right", "wrong", "error", "message"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_a_usual_mistake_is_named(puzzle, right, wrong, error, message):
    text = SOLUTIONS[puzzle - 1].read_text()
    assert right in text
    with pytest.raises(error, match=message) as raised:
        run(text.replace(right, wrong), f"wrong_{puzzle}")
    if error is not puzzles.Unsolved:
        assert raised.value.__notes__ == [f"Puzzle {puzzle} is not solved yet: the message above says what is wrong."]


def test_results_are_compared_place_by_place():
    expected = np.arange(6.0).reshape(2, 3)
    puzzles.compare(1, expected.astype(np.float32), expected, 0.0)
    almost = expected.copy()
    almost[1, 0] += 1e-3
    puzzles.compare(1, almost, expected, 1e-3)
    with pytest.raises(puzzles.Unsolved, match=r"y\[1, 0\] is 3.001 and should be 3.0 \(1 of 6 elements are wrong\)"):
        puzzles.compare(1, almost, expected, 1e-5)
    almost[0, 1] = np.nan
    with pytest.raises(puzzles.Unsolved, match=r"y\[0, 1\] is nan and should be 1.0 \(2 of 6"):
        puzzles.compare(1, almost, expected, 1e-5)
    with pytest.raises(puzzles.Unsolved, match=r"y\[0, 0\] was never written and should be 0.0"):
        puzzles.compare(1, np.full((2, 3), puzzles.NEVER), expected, 0.0)
