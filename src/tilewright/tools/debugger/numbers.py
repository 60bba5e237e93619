"""Numbers from bits: element types by the compiler's names of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.targets.emu.lanes import Array

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    **{f"{letter}{width}": np.dtype(f"{kind}{width}") for letter, kind in (("i", "int"), ("u", "uint"))
       for width in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype(np.float32),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3), "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz), "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e8m0fnu": np.dtype(ml_dtypes.float8_e8m0fnu),
}  # fmt: skip


def decoded(name: str, words: Array) -> Array | None:
    """The numbers whose bits are the low ones of 64-bit `words`, None for a type that is no number here."""
    dtype = DTYPES.get(name)
    if dtype is None:
        return None
    if dtype.kind == "b":
        return words.astype(bool)
    found: Array = words.astype(f"u{dtype.itemsize}").view(dtype)
    return found


def changed(name: str, before: bytes, now: bytes) -> str:
    """What has become of the numbers of type `name` in some bytes, in words."""
    dtype = DTYPES[name]
    old, new = np.frombuffer(before, dtype), np.frombuffer(now, dtype)
    at = np.flatnonzero(np.frombuffer(before, f"u{dtype.itemsize}") != np.frombuffer(now, f"u{dtype.itemsize}"))
    if len(new) == 1:
        return f"{shown(old[0])} -> {shown(new[0])}" if len(at) else f"{shown(new[0])}, as before"
    return f"{len(at)} of {len(new)} elements have changed"


def shown(value: Any) -> str:
    """A number as text: whole numbers also in hexadecimal where they are large."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if np.asarray(value).dtype.kind in "iu":
        return str(int(value)) + (f" ({int(value):#x})" if abs(int(value)) > 255 else "")
    return f"{float(value):.9g}"
