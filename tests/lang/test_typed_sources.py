"""Functions that come from no file: `exec`, `python -c`, standard input, prompts, cells of notebooks, doctests."""

from __future__ import annotations

import ast
import doctest
import linecache
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import textwrap
import time
import zipfile

import numpy as np
import pytest

import tilewright.cute as cute
from tilewright import CompileError
from tilewright.lang.rewrite import code_equality

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


def run(*command, stdin=None, **options):
    done = subprocess.run(
        [sys.executable, *command], stdin=stdin, capture_output=True, text=True, timeout=100, check=False, **options
    )
    return done.stdout, done.stderr


def test_standard_input_from_a_file(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for arguments in (["-"], []):
        with (tmp_path / "program.py").open() as file:
            printed, errors = run(*arguments, stdin=file)
        assert printed == f"sum {SUM}\n", errors


def test_standard_input_from_a_pipe_says_what_works():
    printed, errors = run("-", input=PROGRAM)
    assert printed == ""
    assert "the source of `negate` is not available" in errors and "what came through a pipe is gone" in errors


def test_a_console_of_python():
    printed, errors = run("-m", "code", "-q", input=PROGRAM.replace("\n\n", "\n\n\n"))
    assert f"sum {SUM}" in printed, errors


def test_exec_of_a_file_by_name(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(TEXT)
    names = {"cute": cute, "LIMIT": 3}
    exec(pathlib.Path(file).read_text(), names)
    assert negated(names) == SUM
    name = str(file)
    names = {"cute": cute, "LIMIT": 3}
    exec(open(name).read(), names)  # noqa: SIM115
    assert negated(names) == SUM


def test_a_zip_file(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "library.zip", "w") as archive:
        archive.writestr("negate_of_a_zip.py", f"import tilewright.cute as cute\nLIMIT = 3\n{TEXT}")
    monkeypatch.syspath_prepend(tmp_path / "library.zip")
    import negate_of_a_zip  # type: ignore[import-not-found]

    assert negated(vars(negate_of_a_zip)) == SUM


def test_a_doctest():
    lines = [f"... {line}" if line[:1].isspace() or line.startswith("def ") else f">>> {line}"
             for line in PROGRAM.splitlines() if line]  # fmt: skip
    text = "\n".join([*lines, f"sum {SUM}", ""])
    example = doctest.DocTestParser().get_doctest(text, {}, "of a kernel", None, None)
    assert doctest.DocTestRunner(verbose=False).run(example) == (0, len(example.examples))


def run_cell(text, names, number=[0]):  # noqa: B006
    """As a notebook does: one code object for each statement, the last one as at a prompt; lines in `linecache`."""
    number[0] += 1
    file = f"<ipython-input-{number[0]}-0123456789ab>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    *first, last = ast.parse(text).body
    for statement in first:
        exec(compile(ast.Module([statement], []), file, "exec", dont_inherit=True), names)
    exec(compile(ast.Interactive([last]), file, "single", dont_inherit=True), names)


def test_the_first_example_of_the_readme_as_a_cell(capsys):
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    (text, printed) = re.search(r"```python\n(.*?)```\s*```text output\n(.*?)```", readme, re.DOTALL).groups()
    run_cell(text, {})
    assert capsys.readouterr().out == printed


IN_A_BLOCK = "if True:\n" + textwrap.indent(PROGRAM, "    ")
OF_IMPORTED_NAMES = """
import math
import numpy as np
import tilewright as cutlass, tilewright.cute as cute
from tilewright.cute import arch
@cute.kernel
def negate_kernel(x: cute.Tensor):
    class Steps:
        count = cutlass.Int32(1)
        def of(self, arch):
            return cute.size(arch.layout) * self.count
    double = lambda y: math.floor(2.0) * Steps().of(y)
    t = arch.thread_idx()[0]
    if x[t] > math.floor(3.5):
        for i in cutlass.range(double(x) // cute.size(x.layout), unroll=math.gcd(1, 2)):
            x[t] = x[t] - x[t] if i == 0 else -math.floor(1.0) * (t)
@cute.jit
def negate(x: cute.Tensor): negate_kernel(x).launch(grid=1, block=8)
x = np.arange(8, dtype=np.int32); negate(x); print('sum', x.sum())
"""
A_METHOD = PROGRAM.replace("@cute.jit\ndef negate(x", "class Host:\n  @cute.jit\n  def negate(self, x")
A_METHOD = A_METHOD.replace("    negate_kernel(x).l", "      negate_kernel(x).l").replace(
    "\nnegate(x)", "\nHost().negate(x)"
)


@pytest.mark.parametrize("text", [PROGRAM, IN_A_BLOCK, OF_IMPORTED_NAMES, A_METHOD])
def test_a_cell_that_imports_defines_and_calls(text, capsys):
    run_cell(text, {})
    assert capsys.readouterr().out == f"sum {SUM}\n"


def test_cells_that_define_the_same_names_again(capsys):
    names = {}
    run_cell(PROGRAM, names)
    run_cell(TEXT.replace("> LIMIT", "> 8"), names)
    run_cell("x = np.arange(8, dtype=np.int32)\nnegate(x)\nprint('sum', x.sum())", names)
    assert capsys.readouterr().out == f"sum {SUM}\nsum 28\n"


def function_code(text):
    module = compile(text, "<text>", "exec")
    return next(code_equality.inside(module))


BODY = """
def f(x, n):
    if n > 1:
        x.get(n, key=1)
    while n < 5:
        n += mod.load(x, [i + 1 for i in x])
    return lambda y: mod.store(y, 1.0)
"""


def test_code_of_calls_that_python_compiles_in_two_ways():
    assert code_equality.same(function_code("import mod, x\n" + BODY), function_code(BODY))
    nested = function_code("def outer():\n" + textwrap.indent(BODY, "    "))
    assert code_equality.same(next(code_equality.inside(nested)), function_code("import y, mod" + BODY))


@pytest.mark.parametrize(
    ("old", "new"),
    [("key=", "keys="), ("key=1", "key=True"), ("> 1", ">= 1"), ("get(", "got("), ("+ 1", "+ 2"), ("1.0", "1"),
     ("mod.load", "mods.load"), ("(x, n)", "(x, n=2)"), ("while", "if"), ("x.get(n, key=1)", "x.get(n); key = 1"),
     ("    return", "        return"), ("lambda y: mod.store(y", "lambda z: mod.store(z"), ("n += mod", "n -= mod")],
)  # fmt: skip
def test_code_of_an_edited_text_is_another(old, new):
    assert old in BODY
    edited = BODY.replace(old, new)
    same = code_equality.same(function_code("import mod, x\n" + BODY), function_code(edited))
    assert same == (old == "(x, n)")  # defaults stay with the function
