"""Writes `__all__` into the modules of the public face, so that editors and type checkers complete `cute.*`.

A module of the face exports every public name it imports from the package or defines. `--check` writes nothing and
fails where a list is out of date. Run after a name is added: `python scripts/list_exports.py`.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "tilewright"
BLOCK = re.compile(r"\n+__all__ = \[\n.*?\]  # fmt: skip\n", re.DOTALL)


def face() -> list[Path]:
    """The modules whose names users reach as attributes."""
    names = ["cute/*.py", "cute/nvgpu/*.py", "utils/__init__.py", "pipeline/__init__.py", "torch.py", "cuda.py"]
    return [PACKAGE / "face.py", *(path for name in names for path in sorted(PACKAGE.glob(name)))]


def exports(text: str) -> list[str]:
    """The public names of a module."""
    names: set[str] = set()
    body = ast.parse(text).body
    late = [node for item in body if isinstance(item, ast.If) for node in item.body]  # under TYPE_CHECKING
    for node in [*body, *late]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilewright"):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return sorted(name for name in names if not name.startswith("_"))


def with_exports(text: str) -> str:
    """The text of a module with its `__all__` at the end."""
    plain = BLOCK.sub("\n", text).rstrip("\n") + "\n"
    rows = textwrap.wrap(" ".join(f'"{name}",' for name in exports(plain)), 116)
    body = "".join(f"    {row}\n" for row in rows)
    gap = "\n\n" if isinstance(ast.parse(plain).body[-1], (ast.FunctionDef, ast.ClassDef)) else "\n"
    return f"{plain}{gap}__all__ = [\n{body}]  # fmt: skip\n"


def main() -> None:
    """Rewrite or check the lists."""
    stale = [path for path in face() if with_exports(path.read_text()) != path.read_text()]
    for path in stale:
        if "--check" not in sys.argv:
            path.write_text(with_exports(path.read_text()))
        print(path.relative_to(PACKAGE.parents[1]))
    sys.exit(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    main()
