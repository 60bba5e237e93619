"""Facts on the number types: widths, kinds, limits, promotion.

Promotion follows C++ where CuTe does: a float type wins over integers; of two floats or two integers the wider wins;
at equal width unsigned wins over signed, and two different 16-bit floats meet in Float32. Floats of 8 bits and fewer
and TFloat32 compute as Float32, Booleans as Int32.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from tilewright.hw import narrow_floats

Kind = Literal["b", "i", "u", "f"]


@dataclass(frozen=True)
class DType:
    """A number type. `name` is the short name (`f32`), `kind` one of b (Boolean), i, u, f; `width` in bits."""

    name: str
    kind: Kind
    width: int

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory; sub-byte types are packed, see `width`."""
        return max(self.width // 8, 1)

    @property
    def arithmetic_kind(self) -> str:
        """`i`, `u` or `f`, as `lang.arithmetic` names it."""
        return "u" if self.kind == "b" else self.kind

    @property
    def min(self) -> int:
        """The least number of an integer type."""
        return -(1 << (self.width - 1)) if self.kind == "i" else 0

    @property
    def max(self) -> int:
        """The greatest number of an integer type."""
        return (1 << (self.width - (self.kind == "i"))) - 1


_WIDTHS = (4, 8, 16, 32, 64, 128)
TABLE: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("bool", "b", 8),
        *(DType(f"i{width}", "i", width) for width in _WIDTHS),
        *(DType(f"u{width}", "u", width) for width in _WIDTHS),
        DType("f16", "f", 16),
        DType("bf16", "f", 16),
        DType("tf32", "f", 32),
        DType("f32", "f", 32),
        DType("f64", "f", 64),
        *(DType(n, "f", 8) for n in ("f8e4m3", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e8m0fnu")),
        DType("f6e3m2fn", "f", 6),
        DType("f6e2m3fn", "f", 6),
        DType("f4e2m1fn", "f", 4),
    )
}


def computes_wide(dtype: DType) -> bool:
    """True for floats that operators take as Float32: those of 8 bits and fewer, and TFloat32."""
    return narrow_floats.is_narrow(dtype.name) or dtype.name == "tf32"


def promote(left: DType, right: DType) -> DType:
    """The type in which `left op right` is computed."""
    if left == right and not computes_wide(left):
        return TABLE["i32"] if left.kind == "b" else left
    if "f" in (left.kind, right.kind):
        return _promote_float(left, right)
    left, right = (TABLE["i32"] if dtype.kind == "b" else dtype for dtype in (left, right))
    if left.width != right.width:
        return left if left.width > right.width else right
    return left if left.kind == "u" else right


def _promote_float(left: DType, right: DType) -> DType:
    floats = [dtype for dtype in (left, right) if dtype.kind == "f"]
    if len(floats) == 2 and left.width == right.width:
        return TABLE["f32"]
    wider = max(floats, key=lambda dtype: dtype.width)
    return TABLE["f32"] if computes_wide(wider) else wider


_STRUCT = {"f16": "<e", "f32": "<f", "tf32": "<f", "f64": "<d"}


def to_bytes(value: float, dtype: DType) -> bytes:
    """A Python number as it lies in memory, little-endian."""
    if dtype.kind != "f":
        return int(value).to_bytes(dtype.bytes, "little", signed=dtype.kind == "i")
    if dtype.name in _STRUCT:
        return struct.pack(_STRUCT[dtype.name], value)
    if dtype.name == "bf16":
        return struct.pack("<f", value)[2:]  # rounded already
    return bytes([narrow_floats.encode(value, dtype.name)])
