"""Sizes and the import rules that the other tools cannot express.

Run from anywhere: `python scripts/check_structure.py`. Prints one line per finding and exits with 1 if there is any.
The limits are a ratchet: they go down, never up.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tilewright"
FILE_LINES = 800
FUNCTION_LINES = 100
KERNEL_LINES = 250
CHECKED = ("src", "tests", "bench", "scripts", "examples")

# Which parts of the package may import a heavy library, by first folder or file below the package.
ALLOWED_IMPORTERS = {
    "mlir": {"ir", "lang", "passes", "targets", "compiler"},
    "llvm": {"ir", "lang", "passes", "targets", "compiler"},
    "torch": {"dist", "ops", "tools"},
}
# Parts that stay free of the library altogether.
FORBIDDEN = {
    "numpy": {"base", "layout", "hw"},
    "ml_dtypes": {"base", "layout", "hw"},
    "tvm_ffi": {"base", "layout", "hw"},
}


def main() -> int:
    """Check every Python file of the repository; the exit status."""
    findings = [finding for folder in CHECKED for path in sorted((ROOT / folder).rglob("*.py"))
                for finding in check_file(path)]  # fmt: skip
    print("\n".join(findings) if findings else "structure: sizes and imports are in order")
    return 1 if findings else 0


def check_file(path: Path) -> Iterator[str]:
    """The findings about one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, filename=str(path))
    name = path.relative_to(ROOT)
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines, the limit is {FILE_LINES}: split it by topic"
    yield from (f"{name}:{finding}" for finding in function_sizes(tree))
    if path.is_relative_to(SOURCE):
        yield from (f"{name}:{finding}" for finding in import_rules(tree, path.relative_to(SOURCE)))


def function_sizes(tree: ast.Module) -> Iterator[str]:
    """Functions over the limit; a function decorated as a kernel has a higher one."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        limit = KERNEL_LINES if is_kernel(node) else FUNCTION_LINES
        if lines > limit:
            yield f"{node.lineno}: function {node.name} has {lines} lines, the limit is {limit}"


def is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator's last name is `kernel`."""
    heads = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return any(ast.unparse(head).rsplit(".", 1)[-1] == "kernel" for head in heads)


def import_rules(tree: ast.Module, place: Path) -> Iterator[str]:
    """Imports that a file of the package may not have, wherever in the file they stand."""
    part = place.parts[0].removesuffix(".py")
    for line, module in imported_modules(tree):
        library = module.split(".", 1)[0]
        if library in ALLOWED_IMPORTERS and part not in ALLOWED_IMPORTERS[library]:
            home = ", ".join(sorted(ALLOWED_IMPORTERS[library]))
            yield f"{line}: {part} may not import {library}; it belongs in {home}"
        if part in FORBIDDEN.get(library, ()):
            yield f"{line}: {part} may not import {library}"
        if part == "lang" and place.parts[1] != "nvgpu" and module.startswith("tilewright.lang.nvgpu"):
            yield f"{line}: the neutral part of lang may not import lang.nvgpu"


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of every imported module; `from a import b` gives `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


if __name__ == "__main__":
    sys.exit(main())
