"""Programs that show a compiled function. They stand above the compiler, which loads them by name."""

from __future__ import annotations

import importlib
from typing import Any, Final

VIEWERS: Final = {"explore": "tilewright.tools.explorer.explore:explore"}
"""From the name of a method to `module:function`."""


def viewer(name: str) -> Any:
    """The function of a viewer, imported now."""
    module, _, function = VIEWERS[name].partition(":")
    return getattr(importlib.import_module(module), function)
