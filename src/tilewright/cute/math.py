"""`cute.math`: functions on numbers and TensorSSAs."""

from tilewright.lang.math import (
    absf,
    acos,
    asin,
    atan,
    atan2,
    ceil,
    copysign,
    cos,
    erf,
    exp,
    exp2,
    floor,
    log,
    log2,
    log10,
    pow,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
)

__all__ = [
    "absf", "acos", "asin", "atan", "atan2", "ceil", "copysign", "cos", "erf", "exp", "exp2", "floor", "log", "log10",
    "log2", "pow", "rsqrt", "sin", "sqrt", "tan", "tanh",
]  # fmt: skip
