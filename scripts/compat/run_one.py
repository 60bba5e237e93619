"""Run one public source unchanged through the drop-in: `run_one.py [--emulated] FILE ARGS...`.

FILE is a script, a notebook (`.ipynb`, its cells one after the other) or `FILE::pytest` for a test file (without its
conftest, which asks for an old pytest). With `--emulated`, PyTorch's device `cuda` stands for the CPU. A notebook takes
`--replace OLD NEW`: sizes for a GPU become ones for the emulator. Ends with status 0, or with the error as its last
line.
"""

from __future__ import annotations

import ast
import json
import linecache
import re
import runpy
import sys
import types
from pathlib import Path

import cuda_on_cpu
import pytest

import tilewright.dropin  # noqa: F401  (makes `import cutlass` resolve)


def _run_notebook(path: Path, arguments: list[str]) -> None:
    old, new = arguments[1:] if arguments[:1] == ["--replace"] else ("", "")
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            _run_cell(source.replace(old, new) if old else source, f"<cell {number} of {path.name}>", vars(module))


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
    sys.argv = [str(path), *arguments[1:]]
    if path.suffix == ".ipynb":
        _run_notebook(path, arguments[1:])
    elif re.search(r"^from \.", path.read_text(), re.MULTILINE):  # a part of the package that its folder is
        sys.path.insert(0, str(path.parent.parent))
        runpy.run_module(f"{path.parent.name}.{path.stem}", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(path), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
