"""How number types meet: promotion, and numbers as they lie in memory.

Promotion follows C++ where CuTe does: a float type wins over integers; of two floats or two integers the wider wins;
at equal width unsigned wins over signed, and two different 16-bit floats meet in Float32. Floats of 8 bits and fewer
and TFloat32 compute as Float32, Booleans as Int32.
"""

from __future__ import annotations

import struct

from tilewright.base.dtypes import TABLE, DType
from tilewright.hw import narrow_floats


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
