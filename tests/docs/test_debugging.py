"""The sessions of docs/debugging.md: their commands run, and the debugger prints what the text says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import find_blocks, matches
from tilewright.tools.debugger.shell import HELP, Shell

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "debugging.md").read_text(encoding="utf-8")
BLOCKS = find_blocks(TEXT)
SESSIONS = [block for block in BLOCKS if block.words == ["console"]]
PROMPT = "(tilewright) "
MAIN = "from tilewright.tools.cli import main; main()"


@pytest.mark.parametrize("block", SESSIONS, ids=lambda block: f"line {block.line}")
def test_a_session_prints_what_the_text_says(block, tmp_path):
    for program in BLOCKS:
        if program.file:
            (tmp_path / program.file).write_text(program.text)
    first, *parts = block.text.split(PROMPT)
    command, _, said = first.partition("\n")
    lines = [part.partition("\n") for part in parts]
    words = command.removeprefix("$ tilewright ").split()
    typed = "".join(f"{line}\n" for line, _, _ in lines)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words], input=typed, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    printed = done.stdout.split(PROMPT)
    assert matches(said, printed[0]), printed[0]
    assert len(printed) == len(lines) + 1
    for (line, _, expected), actual in zip(lines, printed[1:], strict=True):
        assert matches(expected, actual), f"{line} prints\n{actual}"


def test_every_command_is_documented():
    commands = {name.removeprefix("do_") for name in vars(Shell) if name.startswith("do_") and len(name) > 5}
    for name in commands - {"bt", "bn", "bi", "rc", "si", "EOF", "help", "quit"}:
        assert re.search(rf"\b{name}\b", HELP) and re.search(rf"`[^`]*\b{name}\b", TEXT), name
