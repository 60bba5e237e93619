"""`import cutlass` resolves to Tilewright.

`python -m tilewright.dropin SCRIPT ARGS` and `python -m tilewright.dropin -m MODULE ARGS` run sources that cannot be
changed; `import tilewright.dropin` first does the same inside a program.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tilewright.base.errors import CompileError

# Modules whose place here differs from their place in CuTe DSL.
_ELSEWHERE = {
    "cutlass.base_dsl.compiler": "tilewright.compat.compiler",
    "cutlass.base_dsl.utils.logger": "tilewright.compat.logger",
}
_PACKAGES = ("cutlass.base_dsl", "cutlass.base_dsl.utils")


class _Loader(importlib.abc.Loader):
    """Gives the Tilewright module that stands for a `cutlass` module."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name in _PACKAGES:
            made = ModuleType(spec.name)
            made.__path__ = []
            return made
        made = importlib.import_module(_ours(spec.name))
        self._own_spec = made.__spec__
        return made

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already, under its own name, and keeps its own spec."""
        if module.__name__ not in _PACKAGES:
            module.__spec__ = self._own_spec


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `cutlass` and what is below it, where Tilewright has it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "cutlass" and not fullname.startswith("cutlass."):
            return None
        if fullname in _PACKAGES:
            return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)
        if importlib.util.find_spec(_ours(fullname)) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader())


def _ours(name: str) -> str:
    return _ELSEWHERE.get(name) or "tilewright" + name.removeprefix("cutlass")


def install() -> None:
    """Make `import cutlass` resolve to Tilewright from now on.

    Raises:
        CompileError: the closed package is imported already.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get("cutlass")
    if loaded is not None and not loaded.__name__.startswith("tilewright"):
        raise CompileError(
            "cutlass is imported already, from elsewhere",
            values={"file": getattr(loaded, "__file__", "?")},
            hint="import tilewright.dropin before it",
        )
    sys.meta_path.insert(0, _Finder())


def main(arguments: Sequence[str]) -> None:
    """Run a script or module with `cutlass` resolved to Tilewright."""
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        sys.exit("usage: python -m tilewright.dropin (SCRIPT | -m MODULE) [ARGS]")
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    runpy.run_path(arguments[0], run_name="__main__")


install()

if __name__ == "__main__":
    main(sys.argv[1:])
