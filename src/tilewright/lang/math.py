"""Mathematical functions on numbers and TensorSSAs.

Results are those of CUDA's libdevice; with `fastmath=True` or `approx=True` the approximate instructions are used where
they exist: in Float32 those of `nvcc -use_fast_math`, which take denormals as 0; that is what `ftz=True` asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.approx import rcp_approx
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.extremes import maximum, minimum
from tilewright.lang.numbers.numeric import Float32, as_numeric, common_type
from tilewright.lang.tensors.tensor_ssa import TensorSSA, full_like, where

_FAST = "#arith.fastmath<fast>"
_INFINITY = float("inf")


def _attributes(fastmath: Any, approx: bool = False, ftz: bool = False) -> dict[str, Any] | None:
    if not isinstance(fastmath, bool | int):
        raise CompileError(
            f"fastmath is True or False, not {type(fastmath).__name__}",
            location=user_location(),
            hint="the functions take one number (atan2 two), and fastmath=",
        )
    if ftz and not (fastmath or approx):
        raise CompileError(
            "ftz=True goes with approx=True",
            location=user_location(),
            hint="the exact functions keep denormals; approximate instructions take them as 0",
        )
    return {"fastmath": build.attribute(_FAST)} if fastmath or approx else None


def _unary(op: str, doc: str) -> Callable[..., Any]:
    def function(
        x: Any,
        fastmath: bool = False,
        approx: bool = False,
        ftz: bool = False,
        *,
        loc: object = None,
        ip: object = None,
    ) -> Any:
        return _mapped(op, x, _attributes(fastmath, approx, ftz))

    function.__doc__ = doc
    function.__name__ = op.rpartition(".")[2]
    return function


def _mapped(op: str, x: Any, attributes: dict[str, Any] | None = None) -> Any:
    if isinstance(x, TensorSSA):
        source = x if x.dtype.is_float else x.to(Float32)
        return source.mapped(lambda value: build.value(op, value.type, (value,), attributes))
    number = as_numeric(x)
    number = number if type(number).is_float else Float32(number)
    value = number.ir_value()
    return type(number).from_ir(build.value(op, value.type, (value,), attributes))


def _together(op: str, operands: tuple[Any, ...], attributes: dict[str, Any] | None) -> Any:
    """`op` of numbers of their common type, or of a vector and what becomes one like it."""
    vector = next((item for item in operands if isinstance(item, TensorSSA)), None)
    if vector is not None:
        like = vector if vector.dtype.is_float else vector.to(Float32)
        vectors = [item if isinstance(item, TensorSSA) else full_like(like, item) for item in operands]
        values = tuple(item.to(like.dtype).value for item in vectors)
        return like.mapped(lambda _: build.value(op, values[0].type, values, attributes))
    numbers = [as_numeric(item) for item in operands]
    cls = type(numbers[0])
    for number in numbers[1:]:
        cls = common_type(cls, type(number))
    cls = cls if cls.is_float else Float32
    values = tuple(cls(number).ir_value() for number in numbers)
    return cls.from_ir(build.value(op, values[0].type, values, attributes))


sqrt = _unary("math.sqrt", "Square root.")
rsqrt = _unary("math.rsqrt", "1 / sqrt(x).")
cbrt = _unary("math.cbrt", "Cube root.")
exp = _unary("math.exp", "e to the x.")
exp2 = _unary("math.exp2", "2 to the x.")
log = _unary("math.log", "Natural logarithm.")
log2 = _unary("math.log2", "Logarithm to base 2.")
log10 = _unary("math.log10", "Logarithm to base 10.")
sin = _unary("math.sin", "Sine of x in radians.")
cos = _unary("math.cos", "Cosine of x in radians.")
tan = _unary("math.tan", "Tangent of x in radians.")
acos = _unary("math.acos", "Arc cosine, in radians.")
asin = _unary("math.asin", "Arc sine, in radians.")
atan = _unary("math.atan", "Arc tangent, in radians.")
sinh = _unary("math.sinh", "Hyperbolic sine.")
cosh = _unary("math.cosh", "Hyperbolic cosine.")
tanh = _unary("math.tanh", "Hyperbolic tangent.")
asinh = _unary("math.asinh", "Inverse hyperbolic sine.")
acosh = _unary("math.acosh", "Inverse hyperbolic cosine.")
atanh = _unary("math.atanh", "Inverse hyperbolic tangent.")
erf = _unary("math.erf", "Error function.")
erfc = _unary("math.erfc", "1 - erf(x).")
floor = _unary("math.floor", "The greatest integer not above x.")
ceil = _unary("math.ceil", "The least integer not below x.")
round = _unary("math.round", "The nearest integer, of two the one away from 0.")
roundeven = _unary("math.roundeven", "The nearest integer, of two the even one.")
trunc = _unary("llvm.intr.trunc", "The integer towards 0.")


def atan2(y: Any, x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """Angle of the point (x, y), in radians."""
    return _together("math.atan2", (y, x), _attributes(fastmath))


def copysign(mag: Any, sign: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """The magnitude of the first with the sign of the second."""
    return _together("math.copysign", (mag, sign), _attributes(fastmath))


def pow(base: Any, exponent: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """The first to the power of the second."""
    return _together("math.powf", (base, exponent), _attributes(fastmath))


def fma(a: Any, b: Any, c: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """`a * b + c`, rounded once."""
    return _together("math.fma", (a, b, c), _attributes(fastmath))


def sincos(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> tuple[Any, Any]:
    """`(sin(x), cos(x))`."""
    return sin(x, fastmath), cos(x, fastmath)


def rcp(
    x: Any, fastmath: bool = False, approx: bool = False, ftz: bool = False, *, loc: object = None, ip: object = None
) -> Any:
    """`1 / x`, rounded; with `approx` one instruction of Float32, which takes denormals as 0 (`ftz`)."""
    _attributes(fastmath, approx, ftz)
    if not (fastmath or approx):
        return 1.0 / x
    if not isinstance(x, TensorSSA):
        return rcp_approx(x)
    return TensorSSA.from_elements([rcp_approx(item) for item in x.to(Float32)]).reshape(x.shape)


def abs(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """Absolute value of a float or an integer."""
    return (x if isinstance(x, TensorSSA) else as_numeric(x)).__abs__()


def absi(x: Any, *, loc: object = None, ip: object = None) -> Any:
    """Absolute value of an integer."""
    return abs(x)


def absf(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """Absolute value as a float."""
    return _mapped("math.absf", x, _attributes(fastmath))


def extreme(name: str, x: Any, y: Any, propagate_nan: bool) -> Any:
    """`min` or `max` of two numbers or of each two elements; a NaN gives the other, with `propagate_nan` NaN."""
    if isinstance(x, TensorSSA) or isinstance(y, TensorSSA):
        vector = x if isinstance(x, TensorSSA) else y
        if not vector.dtype.is_float:
            return where(x < y if name == "min" else x > y, x, y)
        long = "imum" if propagate_nan else "num"
        return _together(f"arith.{name}{long}f", (x, y), None)
    a, b = as_numeric(x), as_numeric(y)
    if not common_type(type(a), type(b)).is_float or not propagate_nan:
        return (minimum if name == "min" else maximum)(a, b)
    return _together(f"arith.{name}imumf", (a, b), None)


def isnan(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """Whether it is NaN, of each element."""
    source = _float(x)
    return source != source


def isinf(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """Whether it is an infinity, of each element."""
    return abs(_float(x)) == _INFINITY


def isfinite(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
    """Whether it is neither NaN nor an infinity, of each element."""
    return abs(_float(x)) < _INFINITY


def _float(x: Any) -> Any:
    if isinstance(x, TensorSSA):
        return x if x.dtype.is_float else x.to(Float32)
    number = as_numeric(x)
    return number if type(number).is_float else Float32(number)
