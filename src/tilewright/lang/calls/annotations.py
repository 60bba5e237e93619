"""Names of the language for annotations: what a parameter holds. `Shape` and the like keep Python ints compile-time."""

from __future__ import annotations

import inspect
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class IntTuple:
    """Annotation: an integer or a nested tuple of integers. Its Python ints are compile-time, numbers of the language
    are not."""


class Shape(IntTuple):
    """Annotation: extents."""


class Stride(IntTuple):
    """Annotation: strides."""


class Coord(IntTuple):
    """Annotation: a coordinate; None keeps a mode."""


class Tile(IntTuple):
    """Annotation: a tile: extents, or layouts by mode."""


class GridConstant(Generic[T]):
    """Annotation: `GridConstant[TensorMap]`, a parameter of a kernel that lies in its constant memory, by value."""


Tiler = Tile
XTuple = IntTuple


def keeps_ints(annotation: Any) -> bool:
    """True for annotations under which Python ints are compile-time."""
    return inspect.isclass(annotation) and issubclass(annotation, IntTuple)
