"""Circles of imports among the modules of the package.

Run from anywhere: `python scripts/check_circles.py`. Prints one line per circle and exits with 1 if there is any.
Every import counts, wherever it stands: one in a function, under `if TYPE_CHECKING`, or by `import_module` of a written
name hides a circle but does not break it. A package's `__init__` counts only where a name is imported from it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"

# Circles still to be broken, by folder: a row goes when its circle does.
PENDING = ("tilewright.targets.emu.",)

Graph = Mapping[str, frozenset[str]]


def main() -> int:
    """Print the circles; the exit status."""
    found = [circle for circle in circles(import_graph(SOURCE)) if not circle[0].startswith(PENDING)]
    print("\n".join(" <-> ".join(circle) for circle in found) or "imports: no circles")
    return 1 if found else 0


def import_graph(source: Path) -> Graph:
    """The modules below `source`, each with those of them that it imports."""
    files = {module_name(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}
    return {name: frozenset(imports(path, files)) - {name} for name, path in files.items()}


def module_name(place: Path) -> str:
    """`a/b.py` is `a.b`, and `a/__init__.py` is `a`."""
    parts = place.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules in `known` that a file names; `from a import b` names `a.b` where that is a module, else `a`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in (inner if inner in known else node.module,) if name in known)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            yield from (name for name in names if name in known)


def circles(graph: Graph) -> list[list[str]]:
    """The sets of modules that reach each other, sorted.

    They are the strongly connected components of more than one module: Tarjan, "Depth-first search and linear graph
    algorithms", 1972.
    """
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        path.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in path:
                lowest[module] = min(lowest[module], index[other])
        if lowest[module] == index[module]:
            start = path.index(module)
            if len(path) - start > 1:
                found.append(sorted(path[start:]))
            del path[start:]

    for module in graph:
        if module not in index:
            visit(module)
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
