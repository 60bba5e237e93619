"""Mathematical functions on numbers and TensorSSAs.

Results are those of CUDA's libdevice; with `fastmath=True` the approximate instructions are used where they exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang.locations import user_location
from tilewright.lang.numeric import Float32, as_numeric, common_type
from tilewright.lang.tensor_ssa import TensorSSA

_FAST = "#arith.fastmath<fast>"


def _attributes(fastmath: Any) -> dict[str, Any] | None:
    if not isinstance(fastmath, bool | int):
        raise CompileError(
            f"fastmath is True or False, not {type(fastmath).__name__}",
            location=user_location(),
            hint="the functions take one number (atan2 two), and fastmath=",
        )
    return {"fastmath": build.attribute(_FAST)} if fastmath else None


def _unary(op: str, doc: str) -> Callable[..., Any]:
    def function(x: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
        attributes = _attributes(fastmath)
        if isinstance(x, TensorSSA):
            source = x if x.dtype.is_float else x.to(Float32)
            return source.mapped(lambda value: build.value(op, value.type, (value,), attributes))
        number = as_numeric(x)
        number = number if type(number).is_float else Float32(number)
        value = number.ir_value()
        return type(number).from_ir(build.value(op, value.type, (value,), attributes))

    function.__doc__ = doc
    function.__name__ = op.partition(".")[2]
    return function


def _binary(op: str, doc: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, fastmath: bool = False, *, loc: object = None, ip: object = None) -> Any:
        attributes = _attributes(fastmath)
        if isinstance(x, TensorSSA):
            other = y if isinstance(y, TensorSSA) else x * 0 + y
            return x.mapped(lambda value: build.value(op, value.type, (value, other.to(x.dtype).value), attributes))
        a, b = as_numeric(x), as_numeric(y)
        cls = common_type(type(a), type(b))
        cls = cls if cls.is_float else Float32
        left, right = cls(a).ir_value(), cls(b).ir_value()
        return cls.from_ir(build.value(op, left.type, (left, right), attributes))

    function.__doc__ = doc
    function.__name__ = op.partition(".")[2]
    return function


sqrt = _unary("math.sqrt", "Square root.")
rsqrt = _unary("math.rsqrt", "1 / sqrt(x).")
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
tanh = _unary("math.tanh", "Hyperbolic tangent.")
erf = _unary("math.erf", "Error function.")
floor = _unary("math.floor", "The greatest integer not above x.")
ceil = _unary("math.ceil", "The least integer not below x.")
absf = _unary("math.absf", "Absolute value.")
atan2 = _binary("math.atan2", "Angle of the point (y, x), in radians: atan2(y, x).")
copysign = _binary("math.copysign", "The magnitude of the first with the sign of the second.")
pow = _binary("math.powf", "The first to the power of the second.")
