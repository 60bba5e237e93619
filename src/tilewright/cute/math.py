"""`cute.math`: functions on numbers and TensorSSAs."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.lang.math import (
    abs,
    absf,
    absi,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    copysign,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp2,
    floor,
    fma,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    pow,
    rcp,
    round,
    roundeven,
    rsqrt,
    sin,
    sincos,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tilewright.lang.nvgpu.extremes import clamp, max, min

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "abs", "absf", "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clamp",
    "copysign", "cos", "cosh", "erf", "erfc", "exp", "exp2", "floor", "fma", "isfinite", "isinf", "isnan", "log",
    "log10", "log2", "max", "min", "pow", "rcp", "round", "roundeven", "rsqrt", "sin", "sincos", "sinh", "sqrt", "tan",
    "tanh", "trunc",
]  # fmt: skip
