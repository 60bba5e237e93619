"""Element types of epilogues: from those of NumPy and of any framework with DLPack to the language's, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.lang.numbers.numeric import BY_NAME, Float32, Numeric

_NUMPY: dict[str, Any] = {
    "bool": np.bool_,
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "tf32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
_BY_NUMPY = {np.dtype(dtype): name for name, dtype in reversed(_NUMPY.items())}
# The names that PyTorch gives its types, where they are not NumPy's.
_SPELLINGS = {"float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "bfloat16": "bf16", "half": "f16", "bool": "bool"}


def numpy_dtype(element: type[Numeric]) -> np.dtype[Any]:
    """The NumPy type that holds an element.

    Raises:
        EpilogueError: NumPy and ml_dtypes have none, as for types below a byte.
    """
    if element.facts.name not in _NUMPY:
        raise EpilogueError(
            f"epilogues have no {element} tensors", hint=f"they have {', '.join(str(BY_NAME[name]) for name in _NUMPY)}"
        )
    dtype: np.dtype[Any] = np.dtype(_NUMPY[element.facts.name])
    return dtype


def element_of(dtype: Any) -> type[Numeric]:
    """The element type that a `dtype` of the language, of NumPy or of PyTorch stands for.

    Raises:
        EpilogueError: it stands for none.
    """
    if isinstance(dtype, type) and issubclass(dtype, Numeric):
        return dtype
    text = str(dtype).rsplit(".", 1)[-1]
    if text in _SPELLINGS:
        return BY_NAME[_SPELLINGS[text]]
    try:
        return BY_NAME[_BY_NUMPY[np.dtype(text if type(dtype).__module__ == "torch" else dtype)]]
    except (TypeError, KeyError):
        raise EpilogueError(
            f"epilogues have no tensors of type {dtype}",
            hint=f"they have {', '.join(str(BY_NAME[name]) for name in _NUMPY)}",
        ) from None


def limits(element: type[Numeric]) -> tuple[float, float]:
    """The least and the greatest finite number of an element type."""
    dtype = numpy_dtype(element)
    if element.facts.kind == "b":
        return 0.0, 1.0
    info: Any = np.iinfo if element.facts.kind in "iu" else ml_dtypes.finfo
    facts = info(dtype)
    return float(facts.min), float(facts.max)


def scalar_element(value: Any) -> type[Numeric]:
    """The element type of a scalar of Python or NumPy; Python's numbers are Float32, as EVT has it."""
    return Float32 if isinstance(value, int | float) and not isinstance(value, np.generic) else element_of(value.dtype)


def converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Elements converted as a store converts them.

    Floats round to the nearest, of two to the even one. As integers and 8-bit floats they saturate at the limits of the
    type. NaN is 0 as an integer, but only its highest bit is set where either type has 64 bits (PTX ISA, `cvt`).
    Integers become others by their low bits.
    """
    if array.dtype == dtype or dtype == np.bool_ or array.dtype.kind in "iub":
        return array.astype(dtype)
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            whole = np.rint(array.astype(np.float64))
            # The limits of 64 bits are no float64: what lies beyond them is set apart.
            made = np.where((whole >= info.min) & (whole < float(info.max) + 1), whole, 0).astype(dtype)
            made = np.where(whole < info.min, info.min, np.where(whole >= float(info.max) + 1, info.max, made))
            of_64_bits = 8 in (array.dtype.itemsize, dtype.itemsize)
            highest = np.array(1 << (8 * dtype.itemsize - 1), np.uint64).astype(dtype)
            return np.where(np.isnan(whole), highest if of_64_bits else dtype.type(0), made).astype(dtype)
        if dtype.itemsize == 1:
            finfo: Any = ml_dtypes.finfo
            least, greatest = float(finfo(dtype).min), float(finfo(dtype).max)
            wide = array.astype(np.float64)
            return np.where(np.isnan(wide), wide, np.clip(wide, least, greatest)).astype(dtype)
        return array.astype(dtype)
