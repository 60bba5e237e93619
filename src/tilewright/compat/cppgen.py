"""`cutlass_cppgen`, of which the epilogue trees are here: its `epilogue` and its `backend.evt`."""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """The module of epilogues, when it is asked for."""
    if name == "epilogue":
        return importlib.import_module("tilewright.epilogue")
    raise AttributeError(f"module 'cutlass_cppgen' has no attribute {name!r}")
