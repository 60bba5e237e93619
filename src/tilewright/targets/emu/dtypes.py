"""PTX types and the NumPy types that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPE = {
    "pred": "p", "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2", "bf16": "u2",
    "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4", "f16x2": "u4", "bf16x2": "u4", "tf32": "f4", "u16x2": "u4",
    "s16x2": "u4", "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8", "f32x2": "u8", "b128": "q", "e4m3x2": "u2",
    "e5m2x2": "u2", "ue8m0x2": "u2", "e2m1x2": "u1", "e2m3x2": "u2", "e3m2x2": "u2", "e4m3x4": "u4", "e5m2x4": "u4",
    "e4m3": "u1", "e5m2": "u1",
}  # fmt: skip
"""The NumPy type that holds each PTX type; `p` is bool, `q` a row of two uint64."""

NUMPY: dict[str, Any] = {
    "p": np.dtype(bool),
    **{f"{k}{n}": np.dtype(f"{k}{n}") for k in "ui" for n in (1, 2, 4, 8)},
    **{f"f{n}": np.dtype(f"f{n}") for n in (2, 4, 8)},
}
UNSIGNED = {8: "u1", 16: "u2", 32: "u4", 64: "u8"}
SIGNED = {8: "i1", 16: "i2", 32: "i4", 64: "i8"}


def bits_of(dtype: str) -> int:
    """The width of a NumPy type; 1 for predicates."""
    return 1 if dtype == "p" else 128 if dtype == "q" else 8 * int(dtype[1])


def make_constant(value: Any, dtype: str) -> Any:
    """A NumPy scalar; integers are wrapped to the width."""
    kind = NUMPY[dtype]
    if kind.kind == "f":
        with np.errstate(all="ignore"):
            return kind.type(value)
    bits = 8 * kind.itemsize
    wrapped = int(value) & (1 << bits) - 1
    return np.frombuffer(wrapped.to_bytes(kind.itemsize, "little"), kind)[0]
