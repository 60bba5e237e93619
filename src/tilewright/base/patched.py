"""Which modules of ours were changed from outside: `monkeypatch.setattr(tilewright.x, "f", mine)`.

The modules of a package that is watched note what is assigned to them after their import (assignments of their own code
go past this). The cache must know, for its keys name our functions by where they stand.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder of our sources."""

STARTED: Final = time.time_ns()
"""When this process began to load Tilewright. A file changed later may not be what the process runs."""

PATCHED: Final[dict[tuple[str, str], Any]] = {}
"""What stood at (module, name) before it was changed; an entry goes when that is put back."""

STATE: Final = {"changes": 0}
"""How many changes there were."""

_MISSING: Final = object()


class WatchedModule(ModuleType):
    """A module that notes what is assigned to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and self._is_told(name, value):
            watch(value)
        elif not name.startswith("__"):
            _note(self, name, value)
        super().__setattr__(name, value)

    def _is_told(self, name: str, value: ModuleType) -> bool:
        """True where the import system tells a package of its new module, which may have another name of its own."""
        return value.__name__ == f"{self.__name__}.{name}" or name not in vars(self)

    def __delattr__(self, name: str) -> None:
        _note(self, name, _MISSING)
        super().__delattr__(name)


def watch(module: ModuleType) -> None:
    """Watch a module from now on, and those that are imported below it."""
    if type(module) is ModuleType:
        module.__class__ = WatchedModule


def watch_package(name: str) -> None:
    """Watch a package while it is imported, with its modules that were imported before."""
    for known, module in list(sys.modules.items()):
        if known == name or known.startswith(f"{name}."):
            watch(module)


def _note(module: ModuleType, name: str, value: Any) -> None:
    before = vars(module).get(name, _MISSING)
    if value is before:
        return
    key = module.__name__, name
    STATE["changes"] += 1
    if key in PATCHED and PATCHED[key] is value:
        del PATCHED[key]
    else:
        PATCHED.setdefault(key, before)
