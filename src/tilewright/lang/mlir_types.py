"""`T`: short names of MLIR types, `T.i32()`, `T.f32()`, `T.vector(4, T.f32())`."""

from __future__ import annotations

from typing import Any

from tilewright.base.dtypes import TABLE
from tilewright.ir import mlir, types

_NAMES = {
    "bool": "i1", "index": "index", "tf32": "tf32",
    **{f"{sign}i{width}": f"i{width}" for sign in "su" for width in (8, 16, 32, 64)},
    **{dtype.mlir: dtype.mlir for dtype in TABLE.values()},
}  # fmt: skip


class _Types:
    """Each name gives a function without arguments that gives the type."""

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"T has no type {name!r}")
        return lambda: types.parse(_NAMES[name])

    def vector(self, *dims_and_element: Any) -> Any:
        """`T.vector(4, T.f32())`."""
        *dims, element = dims_and_element
        return mlir.ir.VectorType.get([int(dim) for dim in dims], element)


T = _Types()
