"""The functions of the C library that compiled host code may call, by name."""

from __future__ import annotations

import ctypes
import functools

from tilewright.base.errors import CompileError

_MEMORY = "memcpy memmove memset memcmp bcmp strlen snprintf vsnprintf"
_MATH = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 logb modf nearbyint nextafter pow remainder rint
    round roundeven sin sincos sinh sqrt tan tanh tgamma trunc
"""
# 128-bit arithmetic (libgcc); the conversions of 16-bit floats are our own (`llvm/halves.ll`).
_RUNTIME = """
    __divti3 __modti3 __udivti3 __umodti3 __multi3 __ashlti3 __ashrti3 __lshrti3
    __floattisf __floattidf __floatuntisf __floatuntidf __fixsfti __fixdfti __fixunssfti
    __fixunsdfti __popcountdi2
"""

ALLOWED = frozenset((*f"{_MEMORY} {_MATH} {_RUNTIME}".split(), *(f"{name}f" for name in _MATH.split())))
"""All names that `address_of` knows; one may still be absent from an old C library."""


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    found = []
    for name in ("libc.so.6", "libm.so.6", "libgcc_s.so.1", None):  # None: the process itself
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            continue
    return tuple(found)


@functools.cache
def address_of(name: str) -> int:
    """The address of the C function `name`.

    Raises:
        CompileError: host code may not call it, or the C library has none of that name.
    """
    hint = "host code may call its own functions and those of the C and math libraries"
    if name not in ALLOWED:
        raise CompileError(f"host code refers to an unknown symbol {name!r}", hint=hint)
    for library in _libraries():
        if (function := getattr(library, name, None)) is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise CompileError(f"the C library of this machine has no function {name!r}", hint=hint)
