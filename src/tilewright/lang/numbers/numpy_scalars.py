"""Numbers of NumPy where Python's may stand: they count as these, whatever their width."""

from __future__ import annotations

import sys
from typing import Any


def is_numpy_scalar(value: object) -> bool:
    """True for a number of NumPy or ml_dtypes, as an element of an array is."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return False
    kinds = (numpy.bool_, numpy.integer, numpy.floating)
    return isinstance(value, kinds) or type(value).__module__ == "ml_dtypes"


def to_python(value: Any) -> Any:
    """A number of NumPy, also in tuples and lists, as the one of Python; other values as they are."""
    if type(value) in (int, str, float, bool):
        return value
    if type(value) in (tuple, list):
        items = [to_python(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
    if not is_numpy_scalar(value):
        return value
    return value.item() if hasattr(value, "dtype") and value.dtype.kind in "biuf" else float(value)
