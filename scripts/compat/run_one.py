"""Run one public source unchanged through the drop-in: `run_one.py [--emulated] FILE ARGS...`.

FILE is a script, a notebook (`.ipynb`, its cells one after the other) or `FILE::pytest` for a test file (without its
conftest, which asks for an old pytest). With `--emulated`, PyTorch's device `cuda` stands for the CPU. Notebooks and
scripts take `--replace OLD NEW`, several times: sizes for a GPU become ones for the emulator. Ends with status 0, or
with the error as its last line.
"""

from __future__ import annotations

import ast
import json
import linecache
import re
import runpy
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path

import cuda_on_cpu
import pytest

import tilewright.dropin  # noqa: F401  (makes `import cutlass` resolve)


def _run_notebook(path: Path, replaced: Sequence[tuple[str, str]]) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            source = _replaced("".join(cell["source"]), replaced)
            _run_cell(source, f"<cell {number} of {path.name}>", vars(module))


def _replaced(source: str, pairs: Sequence[tuple[str, str]]) -> str:
    for old, new in pairs:
        source = source.replace(old, new)
    return source


def _run_script(path: Path, replaced: Sequence[tuple[str, str]]) -> None:
    """Run a script; with replacements a copy of it, whose lines Python's own tools find."""
    if not replaced:
        runpy.run_path(str(path), run_name="__main__")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(_replaced(path.read_text(), replaced))
        runpy.run_path(str(copy), run_name="__main__")


def _taken(arguments: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The replacements at the head of the arguments, and the rest."""
    pairs = []
    while arguments[:1] == ["--replace"]:
        pairs.append((arguments[1], arguments[2]))
        arguments = arguments[3:]
    return pairs, arguments


def _run_cell(source: str, name: str, namespace: dict[str, object]) -> None:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec", dont_inherit=True), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), namespace)
        if value is not None:
            print(repr(value))


def main(arguments: list[str]) -> int:
    """Run what the arguments say; gives the exit status."""
    if arguments[0] == "--emulated":
        cuda_on_cpu.install()
        arguments = arguments[1:]
    name, _, runner = arguments[0].partition("::")
    path = Path(name).resolve()
    sys.path.insert(0, str(path.parent))
    if runner == "pytest":
        return int(pytest.main(["-q", "-x", "--noconftest", "-p", "no:cacheprovider", str(path), *arguments[1:]]))
    replaced, rest = _taken(arguments[1:])
    sys.argv = [str(path), *rest]
    if path.suffix == ".ipynb":
        _run_notebook(path, replaced)
    elif re.search(r"^from \.", path.read_text(), re.MULTILINE):  # a part of the package that its folder is
        sys.path.insert(0, str(path.parent.parent))
        runpy.run_module(f"{path.parent.name}.{path.stem}", run_name="__main__", alter_sys=True)
    else:
        _run_script(path, replaced)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
