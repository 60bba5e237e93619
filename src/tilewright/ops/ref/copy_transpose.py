"""The transpose by its definition."""

from __future__ import annotations

from typing import Any


def copy_transpose(x: Any, tile_size: int | None = None) -> Any:
    """The last two dimensions exchanged; of PyTorch or NumPy."""
    return x.swapaxes(-1, -2)
