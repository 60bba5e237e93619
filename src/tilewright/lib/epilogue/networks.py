"""networkx, imported with the first graph: that takes longer than importing all of the library of kernels."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """What networkx has under that name."""
    return getattr(importlib.import_module("networkx"), name)
