"""examples/tutorial/part1.py: every subcommand, as a user starts it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "examples" / "tutorial" / "part1.py"


def part1(*arguments, start=("-m", "tilewright.dropin")):
    done = subprocess.run(
        [sys.executable, *start, str(SCRIPT), *arguments], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("command", ["simple_launch", "stream"])
def test_commands_that_only_succeed(command):
    assert part1(command) == ["Success!"]


@pytest.mark.parametrize("command", ["compare_torch_initial", "compare_torch_initial_cached"])
def test_comparisons_print_two_times(command):
    ours, theirs = part1(command)
    assert ours.startswith("  cute dsl reduce sum: ") and " ms" in ours
    assert "kernel sum: " in theirs and theirs.endswith(" ms")


def test_static_layout_names_both_shapes():
    text = "\n".join(part1("static_shapes"))
    assert "1024" in text and "32" in text


def test_one_compilation_takes_both_shapes():
    assert part1("dynamic") == ["compilations: 1", "Success!"]


def test_one_compilation_for_each_number_of_columns():
    assert part1("middle") == ["compilations: 2", "Success!"]


def test_layout_form():
    assert part1("layout") == ["layout: (32,1):(1,0)", "tiler: (32,)", "Success!"]


def test_with_the_command_run():
    start = ("-c", "from tilewright.tools.cli import main; main()", "run")
    assert part1("simple_launch", start=start) == ["Success!"]


def test_without_torch():
    program = (
        "import sys\n"
        "sys.modules['torch'] = None  # makes `import torch` fail\n"
        "from tilewright.tools.cli import main\n"
        "main()\n"
    )
    assert part1("simple_launch", start=("-c", program, "run")) == ["Success!"]
