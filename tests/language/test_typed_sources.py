"""Functions that come from no file: `exec`, `python -c`, Python's prompt."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import CompileError

TEXT = """
@cute.kernel
def negate_kernel(x: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    if x[t] > LIMIT:
        x[t] = -x[t]

@cute.jit
def negate(x: cute.Tensor):
    negate_kernel(x).launch(grid=1, block=8)
"""
PROGRAM = f"import numpy as np\nimport tilewright.cute as cute\nLIMIT = 3\n{TEXT}\n"
PROGRAM += "x = np.arange(8, dtype=np.int32)\nnegate(x)\nprint('sum', x.sum())\n"
SUM = 0 + 1 + 2 + 3 - 4 - 5 - 6 - 7


def negated(names):
    x = np.arange(8, dtype=np.int32)
    names["negate"](x)
    return x.sum()


def run_text(text, names):
    exec(text, names)
    return names


def test_exec_of_a_text_in_a_variable():
    assert negated(run_text(TEXT, {"cute": cute, "LIMIT": 3})) == SUM
    assert negated(run_text(TEXT.replace("> LIMIT", "> 8"), {"cute": cute})) == 28  # the same names, another text


def test_exec_of_an_indented_text_and_of_code():
    indented = textwrap.indent(TEXT, "    ")
    names = {"cute": cute, "LIMIT": 3}
    exec(textwrap.dedent(indented), names)
    assert negated(names) == SUM
    code = compile(TEXT, "made.py", "exec")
    assert negated(run_text(code, {"cute": cute, "LIMIT": 3, "text": TEXT})) == SUM


def test_an_error_names_the_line_of_the_text():
    with pytest.raises(CompileError) as error:
        negated(run_text(TEXT.replace("x[t] > LIMIT", "x[t] > LIMITS"), {"cute": cute, "LIMIT": 3}))
    assert (error.value.location.file, error.value.location.line) == ("<string>", 5)


def test_a_text_that_nobody_kept():
    names = {"cute": cute, "LIMIT": 3}
    exec(compile(TEXT.replace("negate_kernel", "".join(["gone", "_kernel"])), "gone.py", "exec"), names)
    with pytest.raises(CompileError, match="the source of `negate` is not available") as error:
        negated(names)
    assert "in a variable" in error.value.hint


def test_python_c():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100)
    assert done.stdout == f"sum {SUM}\n", done.stderr


def test_the_prompt():
    """Lines typed into a terminal; a blank one ends each definition."""
    lines = [line if line else "\n" for line in PROGRAM.splitlines()]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-q"], {**os.environ, "PYTHON_BASIC_REPL": "1", "TERM": "dumb"})
    for line in lines:
        os.write(terminal, line.encode() + b"\n")
    os.write(terminal, b"exit()\n")
    printed, end = "", time.monotonic() + 100
    while f"sum {SUM}" not in printed and "Error" not in printed and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                printed += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # the child has ended
                break
    os.close(terminal)
    os.waitpid(child, 0)
    assert f"sum {SUM}" in printed, printed
