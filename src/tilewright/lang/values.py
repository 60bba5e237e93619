"""The MLIR values of an object, and the object of other values: the DynamicExpression protocol as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import leaves
from tilewright.lang.locations import user_location


def extract_mlir_values(obj: Any) -> list[Any]:
    """The machine values of an object, in order; none for a compile-time object."""
    values, _ = leaves.flatten(obj)
    return values


def new_from_mlir_values(obj: Any, values: Sequence[Any]) -> Any:
    """An object like `obj` of other machine values.

    Raises:
        CompileError: `obj` takes another number of values.
    """
    own, structure = leaves.flatten(obj)
    if len(own) != len(values):
        raise CompileError(f"{type(obj).__name__} takes {len(own)} values, got {len(values)}", location=user_location())
    return structure.build(iter(values))
