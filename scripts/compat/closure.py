"""The names of CuTe DSL that a public file needs to run: its own, and those of the functions and classes it reaches.

A file's code runs as a whole; of another module of its repository only the functions, classes and module variables
that are reached by name, and what these reach in turn. Imports alone are no need: sources import the names of every
chip and use those of one.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ROOTS = {"cutlass.cute": "cute", "cutlass.pipeline": "pipeline"}
_FOLDERS = ("", "examples/python/CuTeDSL")


@dataclass
class Module:
    """A parsed file: what its imports call (`alias` to dotted name), and its top-level definitions by name."""

    path: Path
    package: str
    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)


class Closure:
    """The reach of files of one repository; modules are parsed once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[Path, Module | None] = {}

    def names(self, inside: str) -> set[str]:
        """The canonical names that a file of the repository needs, such as `cute.arch.barrier`."""
        path = self._folder / inside
        module = self._module(path)
        if module is None:
            return set()
        found: set[str] = set()
        seen: set[tuple[Path, str]] = set()
        waiting: list[tuple[Module, ast.AST]] = [
            (module, node) for node in module.tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))
        ]
        while waiting:
            where, node = waiting.pop()
            for name in _chains(node):
                for target, definition in self._reached(where, name, path.parent, found):
                    if (target.path, definition) not in seen:
                        seen.add((target.path, definition))
                        waiting += [(target, item) for item in target.definitions[definition]]
        return found

    def _reached(self, module: Module, chain: str, folder: Path, found: set[str]) -> Iterator[tuple[Module, str]]:
        """Definitions that `a.b.c` of a module leads to; a name of CuTe DSL goes to `found`."""
        first, _, rest = chain.partition(".")
        if first in module.definitions:
            yield module, first
        dotted = f"{module.aliases[first]}.{rest}".rstrip(".") if first in module.aliases else ""
        if dotted.partition(".")[0] == "cutlass":
            found.add(_canonical(dotted))
        elif dotted:
            yield from self._local(dotted, folder)

    def _local(self, dotted: str, folder: Path) -> Iterator[tuple[Module, str]]:
        """The definition of the repository that a dotted name ends in."""
        parts = dotted.split(".")
        for length in range(len(parts) - 1, 0, -1):
            for root in (folder, *(self._folder / name for name in _FOLDERS)):
                base = root.joinpath(*parts[:length])
                for path in (base.with_suffix(".py"), base / "__init__.py"):
                    module = self._module(path)
                    if module is None:
                        continue
                    name = parts[length]
                    if name in module.definitions:
                        yield module, name
                        return
                    if name in module.aliases and module.aliases[name] != dotted:
                        yield from self._local(".".join([module.aliases[name], *parts[length + 1 :]]), path.parent)
                        return

    def _module(self, path: Path) -> Module | None:
        if path not in self._modules:
            self._modules[path] = _parsed(path, self._folder) if path.is_file() else None
        return self._modules[path]


def _parsed(path: Path, folder: Path) -> Module:
    package = ".".join(path.relative_to(folder).parent.parts)
    module = Module(path, package, ast.parse(_source(path)))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                module.aliases[item.asname or item.name.partition(".")[0]] = (
                    item.name if item.asname else item.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for item in node.names:
                module.aliases[item.asname or item.name] = f"{base}.{item.name}".lstrip(".")
    for statement in module.tree.body:
        for name in _defined(statement):
            module.definitions.setdefault(name, []).append(statement)
    return module


def _source(path: Path) -> str:
    if path.suffix != ".ipynb":
        return path.read_text()
    cells = [cell["source"] for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell) for cell in cells).splitlines()
    return "\n".join("pass" if line.lstrip().startswith(("%", "!")) else line for line in lines)


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _chains(node: ast.AST) -> Iterator[str]:
    """The names and attribute chains `a.b.c` in a piece of code, each as long as it is; not those of parameters."""
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        item, bound = waiting.pop()
        chain = _chain(item)
        if chain and chain.partition(".")[0] not in bound:
            yield chain
        elif not chain:
            inside = bound
            if isinstance(item, (ast.FunctionDef, ast.Lambda)):
                given = item.args
                inside |= {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
            waiting += [(part, bound if part in getattr(item, "decorator_list", ()) else inside)
                        for part in ast.iter_child_nodes(item)]  # fmt: skip


def _chain(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _chain(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _canonical(dotted: str) -> str:
    for root, short in _ROOTS.items():
        if dotted == root or dotted.startswith(f"{root}."):
            return short + dotted[len(root) :]
    return dotted
