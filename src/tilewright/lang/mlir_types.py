"""`T`: short names of MLIR types, `T.i32()`, `T.f32()`, `T.vector(4, T.f32())`."""

from __future__ import annotations

from typing import Any

from tilewright.ir import mlir, types

_NAMES = {
    "bool": "i1", "index": "index", "si8": "i8", "si16": "i16", "si32": "i32", "si64": "i64",
    "ui8": "i8", "ui16": "i16", "ui32": "i32", "ui64": "i64",
    **{f"i{width}": f"i{width}" for width in (1, 4, 8, 16, 32, 64, 128)},
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "f32": "f32", "f64": "f64",
    "f8E5M2": "f8E5M2", "f8E4M3": "f8E4M3", "f8E4M3FN": "f8E4M3FN", "f8E4M3B11FNUZ": "f8E4M3B11FNUZ",
    "f8E8M0FNU": "f8E8M0FNU", "f6E3M2FN": "f6E3M2FN", "f6E2M3FN": "f6E2M3FN", "f4E2M1FN": "f4E2M1FN",
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
