"""The commands of docs/explorer.md and of the part of docs/profiling.md on lines run, and say what the text says."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.tools import demo_kernels

DOCS = Path(__file__).resolve().parents[2] / "docs"
PROGRAM = "from tilewright.tools.cli import main; main()"


def commands(name, word):
    """The lines `tilewright WORD ...` of a page, but those that serve or need a GPU."""
    blocks = re.findall(r"```bash\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith(f"tilewright {word} ")]
    return [line for line in lines if "--serve" not in line]


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that the pages speak of."""
    shutil.copy(demo_kernels.__file__, tmp_path / "kernels.py")
    found = re.search(r"```python file=product.py\n(.*?)```", (DOCS / "explorer.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "product.py").write_text(found[1])
    return tmp_path


def run(line, folder):
    words = [word.strip("'") for word in line.split()[1:]]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_commands():
    assert len(commands("explorer.md", "explore")) == 4
    assert len(commands("profiling.md", "profile lines")) == 1


FIRST, *OTHERS = commands("explorer.md", "explore")


@pytest.mark.parametrize("line", [FIRST, *(pytest.param(line, marks=pytest.mark.slow) for line in OTHERS)])
def test_explore(line, folder):
    said = run(line, folder)
    (name,) = re.findall(r"wrote (\S+)\n", said)
    assert (folder / name).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_profile_lines(folder):
    (line,) = commands("profiling.md", "profile lines")
    said = run(line, folder).splitlines()
    text = (DOCS / "profiling.md").read_text(encoding="utf-8").partition(line)[2]
    shown = text.partition("```text\n")[2].partition("\n...")[0].splitlines()
    # Machine code differs a little with the assembler's version, and with it the estimates; counts do not.
    counted = [row for row in shown if "kernels.py:" in row]
    assert len(counted) == 3
    for row in counted:
        place, instructions = re.search(r"(kernels.py:\d+) +([\d,]+)", row).groups()
        (own,) = [other for other in said if f"{place} " in other]
        assert instructions in own
    assert shown[0] == said[0]
