"""The lesser and the greater of two numbers, with what NVIDIA's instructions add: denormals as 0, NaN, magnitudes."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.math import extreme
from tilewright.lang.numbers.extremes import maximum, minimum
from tilewright.lang.numbers.numeric import Float32, Numeric, as_numeric, common_type
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.tensor_ssa import TensorSSA


def fmax(
    a: Any,
    b: Any,
    *,
    abs: bool = False,
    nan: bool = False,
    ftz: bool = False,
    loc: object = None,
    ip: object = None,
) -> Numeric:
    """The greater of two floats; a NaN gives the other.

    Of Float32, `nan` gives NaN where one is, `ftz` takes denormals as 0, and `abs` gives the greater magnitude with the
    product of the signs (sm_86).
    """
    return _extreme("max", a, b, abs, nan, ftz)


def fmin(
    a: Any,
    b: Any,
    *,
    abs: bool = False,
    nan: bool = False,
    ftz: bool = False,
    loc: object = None,
    ip: object = None,
) -> Numeric:
    """The lesser of two floats; a NaN gives the other. Options are those of `fmax`."""
    return _extreme("min", a, b, abs, nan, ftz)


def _extreme(name: str, a: Any, b: Any, abs: bool, nan: bool, ftz: bool) -> Numeric:
    left, right = _floats(a, b)
    if not (abs or nan or ftz):
        return maximum(left, right) if name == "max" else minimum(left, right)
    if type(left) is not Float32:
        raise CompileError(
            f"f{name} of {type(left)} with abs, nan or ftz", location=user_location(3), hint="they go with Float32"
        )
    marks = f"{'.ftz' if ftz else ''}{'.NaN' if nan else ''}{'.xorsign.abs' if abs else ''}"
    feature = "min.xorsign" if abs else "min.NaN" if nan else ""
    return instruction(f"{name}{marks}.f32 $0, $1, $2;", (left, right), result=Float32, feature=feature, pure=True)


def _floats(a: Any, b: Any) -> tuple[Numeric, Numeric]:
    left, right = as_numeric(a), as_numeric(b)
    cls = common_type(type(left), type(right))
    cls = cls if cls.is_float else Float32
    return cls(left), cls(right)


# The same of `cute.math`, which takes vectors too.


def min(
    x: Any, y: Any, propagate_nan: bool = False, ftz: bool = False, *, loc: object = None, ip: object = None
) -> Any:
    """The lesser of two numbers or of each two elements; a NaN gives the other, with `propagate_nan` NaN."""
    return _choose("min", x, y, propagate_nan, ftz)


def max(
    x: Any, y: Any, propagate_nan: bool = False, ftz: bool = False, *, loc: object = None, ip: object = None
) -> Any:
    """The greater of two numbers or of each two elements; a NaN gives the other, with `propagate_nan` NaN."""
    return _choose("max", x, y, propagate_nan, ftz)


def _choose(name: str, x: Any, y: Any, propagate_nan: bool, ftz: bool) -> Any:
    if not ftz:
        return extreme(name, x, y, propagate_nan)
    if isinstance(x, TensorSSA) or isinstance(y, TensorSSA):
        raise CompileError(f"{name} of vectors with ftz=True", location=user_location(3), hint="use numbers")
    a, b = as_numeric(x), as_numeric(y)
    if not common_type(type(a), type(b)).is_float:
        return extreme(name, a, b, propagate_nan)
    return _extreme(name, a, b, abs=False, nan=propagate_nan, ftz=True)


def clamp(
    x: Any,
    lo: Any,
    hi: Any,
    fastmath: bool = False,
    propagate_nan: bool = False,
    ftz: bool = False,
    *,
    loc: object = None,
    ip: object = None,
) -> Any:
    """`max(lo, min(x, hi))`."""
    return max(min(x, hi, propagate_nan, ftz), lo, propagate_nan, ftz)
