"""The numbers of the language in plain Python: what a program must compute, worked out without the compiler.

A `Num` is an exact Python number of one of the language's types. Integers wrap, floats are rounded to nearest even
after each operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Type:
    """A number type: `kind` is b, i, u or f; floats have `precision` bits (the hidden one too) and a least exponent.

    A float type with a `greatest` number has no infinity: what is beyond becomes that number.
    """

    name: str
    kind: str
    width: int
    precision: int = 0
    least: int = 0  # the exponent of the smallest denormal
    greatest: float = math.inf

    @property
    def wide(self) -> bool:
        """Whether it computes as Float32."""
        return self.kind == "f" and (self.width <= 8 or self.name == "TFloat32")

    def __call__(self, value: Any) -> Num:
        if isinstance(value, Num):
            if value.type.kind == "f" and self.kind in "iu":
                return Num(self, clamp(value.value, value.type, self))
            value = value.value
        return Num(self, self.fit(value))

    def fit(self, value: Any) -> Any:
        if self.kind == "b":
            return bool(value)
        if self.kind == "f":
            rounded = round_float(value, self)
            return math.copysign(min(abs(rounded), self.greatest), rounded) if rounded == rounded else rounded
        if isinstance(value, float):
            return clamp(value, FLOAT32, self)
        bits = int(value) & ((1 << self.width) - 1)
        return bits - (1 << self.width) if self.kind == "i" and bits >> (self.width - 1) else bits


def round_float(value: Any, type_: Type) -> float:
    """The nearest number of the type; too great ones are infinite."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    step = Fraction(2) ** max(exponent - type_.precision + 1, type_.least)
    rounded = _nearest(size / step, type_) * step
    if math.isinf(type_.greatest) and rounded >= Fraction(2) ** (3 - type_.least - type_.precision):
        return -math.inf if exact < 0 else math.inf
    return math.copysign(float(rounded), exact)


def _nearest(number: Fraction, type_: Type) -> int:
    """Ties go to the even one, of TFloat32 to the greater one."""
    return math.floor(number + Fraction(1, 2)) if type_.name == "TFloat32" else round(number)


def clamp(value: float, source: Type, target: Type) -> int:
    """A float as an integer: towards zero, and into the range; a NaN is 0 or has only the highest bit."""
    low = -(1 << (target.width - 1)) if target.kind == "i" else 0
    high = (1 << (target.width - (target.kind == "i"))) - 1
    if math.isnan(value):
        top = low if target.kind == "i" else 1 << (target.width - 1)
        return top if 64 in (source.width, target.width) else 0
    return int(max(min(value, high), low)) if math.isfinite(value) else (high if value > 0 else low)


FLOATS = {
    "Float16": Type("Float16", "f", 16, 11, -24),
    "BFloat16": Type("BFloat16", "f", 16, 8, -133),
    "Float32": Type("Float32", "f", 32, 24, -149),
    "Float64": Type("Float64", "f", 64, 53, -1074),
}
INTEGERS = {
    f"{prefix}{width}": Type(f"{prefix}{width}", kind, width)
    for prefix, kind in (("Int", "i"), ("Uint", "u"))
    for width in (8, 16, 32, 64)
}
BOOLEAN = Type("Boolean", "b", 8)
TYPES: dict[str, Type] = {**INTEGERS, **FLOATS, "Boolean": BOOLEAN}
NARROW = {
    "TFloat32": Type("TFloat32", "f", 32, 11, -136),
    "Float8E4M3FN": Type("Float8E4M3FN", "f", 8, 4, -9, 448.0),
    "Float8E5M2": Type("Float8E5M2", "f", 8, 3, -16, 57344.0),
    "Int4": Type("Int4", "i", 4),
    "Uint4": Type("Uint4", "u", 4),
    "Int128": Type("Int128", "i", 128),
    "Uint128": Type("Uint128", "u", 128),
}
ALL_TYPES = TYPES | NARROW
INT32, INT64, FLOAT32 = TYPES["Int32"], TYPES["Int64"], TYPES["Float32"]


def promote(a: Type, b: Type) -> Type:
    """The type in which an operator computes."""
    if "f" in (a.kind, b.kind):
        if a == b:
            return FLOAT32 if a.wide else a
        floats = sorted((item for item in (a, b) if item.kind == "f"), key=lambda item: item.width)
        if floats[-1].wide or (len(floats) == 2 and floats[0].width == floats[1].width):
            return FLOAT32
        return floats[-1]
    a, b = (INT32 if item.kind == "b" else item for item in (a, b))
    if a.width != b.width:
        return max(a, b, key=lambda item: item.width)
    return a if a.kind == "u" else b


def lift(value: Any) -> Num:
    """A literal as the language takes it: a float is a Float32 with all its digits, for another type."""
    if isinstance(value, Num):
        return value
    if isinstance(value, bool):
        return BOOLEAN(value)
    if isinstance(value, int):
        return INT32(value) if -(1 << 31) <= value < 1 << 31 else INT64(value)
    return Num(FLOAT32, value)


def _fmod(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or b == 0 else math.fmod(a, b)


def _divide(a: float, b: float) -> Any:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a) * math.copysign(1, b)
    if math.isinf(a) or math.isinf(b):
        return a / b
    return Fraction(a) / Fraction(b) if a else a / b


def _exactly(fold: Callable[[Any, Any], Any]) -> Callable[[float, float], Any]:
    """On finite numbers other than zeros exactly, so that only one rounding takes place."""

    def compute(a: float, b: float) -> Any:
        if not math.isfinite(a) or not math.isfinite(b):
            return fold(a, b)
        exact = fold(Fraction(a), Fraction(b))
        return exact if exact else fold(a, b)  # the sign of a zero

    return compute


def _float_floordiv(a: float, b: float, type_: Type) -> float:
    quotient = type_.fit(_divide(a, b))
    return quotient if not math.isfinite(quotient) or quotient == 0 else math.copysign(math.floor(quotient), quotient)


def _float_mod(a: float, b: float, type_: Type) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    rest = _fmod(a, b)
    rest = type_.fit(_exactly(operator.add)(rest, b)) if rest and (rest < 0) != (b < 0) else rest
    return rest if math.isnan(rest) else math.copysign(rest, b)


def _shift(a: int, amount: int, type_: Type, left: bool) -> int:
    """From the width on, and by negative amounts, nothing is left but the sign."""
    if not 0 <= amount < type_.width:
        return -1 if a < 0 and not left else 0
    return a << amount if left else a >> amount


def compute(name: str, a: Num, b: Num) -> Num:
    """`a name b` in the common type."""
    if name in ("and", "or", "xor") and a.type == b.type == BOOLEAN:
        return BOOLEAN(_INTEGER[name](a.value, b.value))
    type_ = promote(a.type, b.type)
    if name in ("shl", "shr"):
        type_ = a.type if a.type != BOOLEAN else INT32
    if name == "truediv" and type_.kind != "f":
        type_ = FLOAT32
    x, y = type_.fit(a.value), type_.fit(b.value)
    if name in ("shl", "shr"):
        return type_(_shift(x, int(b.value), type_, name == "shl"))
    if type_.kind != "f":
        return type_(_INTEGER[name](x, y))
    if name == "floordiv":
        return Num(type_, _float_floordiv(x, y, type_))
    if name == "mod":
        return Num(type_, _float_mod(x, y, type_))
    return type_(_divide(x, y) if name == "truediv" else _exactly(_FLOAT[name])(x, y))


_FLOAT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_INTEGER = {
    **_FLOAT, "floordiv": operator.floordiv, "mod": operator.mod, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor,
}  # fmt: skip


def _operator(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Num, other: Any) -> Any:
        return NotImplemented if hasattr(other, "items") else compute(name, self, lift(other))

    def reflected(self: Num, other: Any) -> Any:
        return compute(name, lift(other), self)

    return forward, reflected


def _comparison(fold: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def compare(self: Num, other: Any) -> Num:
        b = lift(other)
        type_ = promote(self.type, b.type)
        return BOOLEAN(fold(type_.fit(self.value), type_.fit(b.value)))

    return compare


class Num:
    """An exact Python number `value` of `type`."""

    def __init__(self, type_: Type, value: Any) -> None:
        self.type, self.value = type_, value

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("truediv")
    __floordiv__, __rfloordiv__ = _operator("floordiv")
    __mod__, __rmod__ = _operator("mod")
    __and__, __rand__ = _operator("and")
    __or__, __ror__ = _operator("or")
    __xor__, __rxor__ = _operator("xor")
    __lshift__, __rlshift__ = _operator("shl")
    __rshift__, __rrshift__ = _operator("shr")
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Num:
        return INT32(-int(self.value)) if self.type == BOOLEAN else self.type(-self.value)

    def __invert__(self) -> Num:
        return self.type(not self.value if self.type == BOOLEAN else ~self.value)

    def __abs__(self) -> Num:
        return self.type(abs(self.value))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def to(self, type_: Type) -> Num:
        return type_(self)

    def bitcast(self, type_: Type) -> Num:
        return decode(encode(self), type_)

    def __repr__(self) -> str:
        return f"{self.type.name}({self.value})"


_FORMATS = {
    "Float16": np.float16, "BFloat16": ml_dtypes.bfloat16, "Float32": np.float32, "Float64": np.float64,
    "TFloat32": np.float32, "Float8E4M3FN": ml_dtypes.float8_e4m3fn, "Float8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def encode(number: Num) -> int:
    """The bits of a number, not negative."""
    if number.type.kind != "f":
        return int(number.value) & ((1 << number.type.width) - 1)
    return int.from_bytes(np.array(number.value, _FORMATS[number.type.name]).tobytes(), "little")


def decode(bits: int, type_: Type) -> Num:
    """The number with such bits."""
    if type_.kind != "f":
        return type_(bits)
    stored = np.frombuffer(bits.to_bytes(type_.width // 8, "little"), _FORMATS[type_.name])
    return Num(type_, float(stored[0]))
