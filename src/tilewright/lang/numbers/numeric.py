"""The number types of the language: `Int32`, `Float32`, `Boolean` and the rest.

A number holds either a Python number (outside tracing, or a literal not yet used) or an MLIR value. Operators on
MLIR values add operations; on Python numbers they compute at once, wrapped to the width of the type.

Integers also know a divisor of their value and, where it cannot be negative, an upper bound; the layout algebra and
the choice of division rest on these facts.
"""

from __future__ import annotations

import ctypes
import math
import operator
import warnings
from abc import ABCMeta
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from tilewright.base import notices
from tilewright.base.dtypes import TABLE, DType
from tilewright.base.errors import ArgumentError, CompileError
from tilewright.hw import narrow_floats
from tilewright.ir import build, mlir, types
from tilewright.ir.context import active as build_active
from tilewright.ir.context import holds_value
from tilewright.lang.diagnostics import hints
from tilewright.lang.locations import user_location
from tilewright.lang.numbers import arithmetic, polynomials
from tilewright.lang.numbers.conversion import convert
from tilewright.lang.numbers.exact_integer import ExactInteger, evaluated, unwidened
from tilewright.lang.numbers.integer_range import (
    ExtentProduct,
    result_bound,
    result_divisibility,
    result_extent_product,
    unless_wrapped,
    upper_bound,
)
from tilewright.lang.numbers.numpy_scalars import is_numpy_scalar, to_python
from tilewright.lang.numbers.promotion import computes_wide, promote, to_bytes
from tilewright.lang.numbers.rounding import EXPONENTS_OF_PRODUCTS, float_power, integer_power, power_by_products, wrap
from tilewright.lang.numbers.signatures import ClosedFloat, ClosedInteger, Division, Operator, Result

if TYPE_CHECKING:
    from mlir import ir


BY_NAME: dict[str, type[Numeric]] = {}
"""The classes of number types by short name."""


class NumericMeta(ABCMeta):
    """Type objects print as their name and carry the facts of the type."""

    facts: DType

    def __str__(cls) -> str:
        return cls.__name__

    @property
    def mlir_type(cls) -> ir.Type:
        return types.element(cls.facts.name)

    @property
    def is_integer(cls) -> bool:
        return cls.facts.kind in "iu"

    @property
    def is_float(cls) -> bool:
        return cls.facts.kind == "f"

    @property
    def signed(cls) -> bool:
        return cls.facts.kind in "if"

    @property
    def bytes(cls) -> int:
        """The bytes that a number takes; those of a byte or less take one."""
        return max(cls.facts.width // 8, 1)

    def is_same_kind(cls, other: type) -> bool:
        """Whether both are floats, or both are integers (Booleans are a kind of their own)."""
        return isinstance(other, NumericMeta) and (cls.is_float, cls.is_integer) == (other.is_float, other.is_integer)

    @property
    def zero(cls) -> int | float:
        """0, or 0.0 of floats; `Float` and `Integer` themselves have one too."""
        return 0.0 if issubclass(cls, Float) else 0

    @property
    def inf(cls) -> float:
        if not cls.is_float:
            raise CompileError(f"{cls.__name__} has no infinity", location=user_location())
        return math.inf

    @property
    def nan(cls) -> float:
        return math.nan

    @property
    def min(cls) -> int:
        """The least number of an integer type."""
        return cls.facts.min

    @property
    def max(cls) -> int:
        """The greatest number of an integer type."""
        return cls.facts.max


def _binary(name: str, fold: Callable[[Any, Any], Any]) -> tuple[Operator, Operator]:
    def forward(self: Numeric, other: object) -> Any:
        return operate(name, fold, self, other)

    def reflected(self: Numeric, other: object) -> Any:
        return operate(name, fold, other, self)

    return cast(Operator, forward), cast(Operator, reflected)


def _comparison(name: str, fold: Callable[[Any, Any], bool]) -> Result[Boolean]:
    def compare(self: Numeric, other: object) -> Any:
        return _compare(name, fold, self, other)

    return cast("Result[Boolean]", compare)


class _Width:
    """Bits of one number in memory, of a type as of its numbers."""

    def __get__(self, number: Numeric | None, cls: type[Numeric]) -> int:
        return cls.facts.width


def _article(dtype: type) -> str:
    """`an Int32`, `a Boolean`."""
    return f"an {dtype}" if str(dtype).startswith("Int") else f"a {dtype}"


class Numeric(metaclass=NumericMeta):
    """Base of all numbers. `value` is a Python number or an MLIR value; `literal` all digits of a written one."""

    facts: ClassVar[DType]
    width = _Width()
    value: Any
    literal: float | None = None
    __array_ufunc__ = None  # numbers of NumPy leave operators to this class

    def __init_subclass__(cls, dtype: str | None = None) -> None:
        """`dtype` is the short name of a number type, which the class becomes."""
        super().__init_subclass__()
        if dtype is not None:
            cls.facts = TABLE[dtype]
            BY_NAME[dtype] = cls

    def __init__(self, value: object = 0, *, loc: object = None, ip: object = None) -> None:
        if type(self) is Numeric:
            raise CompileError("Numeric is the base of the number types", hint="use Int32, Float32, ...")
        self.value = _payload(value, type(self))
        if not self.is_static:
            holds_value(self)

    @classmethod
    def from_ir(cls, value: ir.Value) -> Self:
        """The number that `value` holds; its MLIR type must be that of the class."""
        made = cls.__new__(cls)
        made.value = value
        holds_value(made)
        return made

    @property
    def dtype(self) -> type[Numeric]:
        return type(self)

    @property
    def is_static(self) -> bool:
        """True while a Python number is held."""
        return isinstance(self.value, (int, float))

    def ir_value(self, *, loc: object = None, ip: object = None) -> ir.Value:
        if self.is_static:
            return build.constant(self.value, type(self).mlir_type)
        return self.value

    def to(self, dtype: Any, *, loc: object = None, ip: object = None) -> Any:
        """This number as `dtype`: floats round to nearest even, to integers towards zero; integers wrap."""
        if dtype in (int, float, bool):
            if not self.is_static:
                raise CompileError(
                    f"{_article(type(self))} known only at run time becomes no {dtype.__name__} of Python",
                    location=user_location(),
                    hint="convert to a type of the language: .to(Int32), .to(Float32), .to(Boolean)",
                )
            return dtype(self.python())
        return number_type(dtype)(self)

    def bitcast(self, dtype: type[Numeric]) -> Any:
        """The same bits as a `dtype` of equal width."""
        if number_type(dtype).width != self.width:
            raise CompileError(
                f"bitcast from {type(self)} to {dtype}", location=user_location(), hint="both must have the same width"
            )
        return dtype.from_ir(build.value("arith.bitcast", dtype.mlir_type, (self.ir_value(),)))

    def python(self) -> Any:
        """The Python number held; an error on a value known only at run time."""
        if not self.is_static:
            place = user_location()
            raise CompileError(
                f"{_article(type(self))} known only at run time is used where Python needs a number",
                location=place,
                hint=hints.for_number("" if place is None else place.expression()),
            )
        return self.value

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return [self.ir_value()]

    def __get_mlir_types__(self) -> list[ir.Type]:
        return [type(self).mlir_type]

    def __c_pointers__(self) -> list[int]:
        """The address of the number, in memory that lives as long as this object."""
        self._cell = ctypes.create_string_buffer(to_bytes(self.python(), type(self).facts))
        return [ctypes.addressof(self._cell)]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> Self:
        return type(self).from_ir(values[0])

    __add__, __radd__ = _binary("add", operator.add)
    __sub__, __rsub__ = _binary("sub", operator.sub)
    __mul__, __rmul__ = _binary("mul", operator.mul)
    __truediv__, __rtruediv__ = cast("tuple[Division, Division]", _binary("truediv", operator.truediv))
    __floordiv__, __rfloordiv__ = _binary("floordiv", operator.floordiv)
    __mod__, __rmod__ = _binary("mod", operator.mod)
    __pow__, __rpow__ = _binary("pow", operator.pow)
    __and__, __rand__ = _binary("and", operator.and_)
    __or__, __ror__ = _binary("or", operator.or_)
    __xor__, __rxor__ = _binary("xor", operator.xor)
    __lshift__, __rlshift__ = _binary("shl", operator.lshift)
    __rshift__, __rrshift__ = _binary("shr", operator.rshift)
    __lt__ = _comparison("lt", operator.lt)
    __le__ = _comparison("le", operator.le)
    __gt__ = _comparison("gt", operator.gt)
    __ge__ = _comparison("ge", operator.ge)
    __eq__ = _comparison("eq", operator.eq)  # type: ignore[assignment]
    __ne__ = _comparison("ne", operator.ne)  # type: ignore[assignment]

    def __hash__(self) -> int:
        """That of the Python number, since they are equal; a number of run time is no key."""
        if not self.is_static:
            raise CompileError(
                f"{_article(type(self))} known only at run time is used as a key",
                location=user_location(),
                hint="keys of dictionaries and items of sets are known while tracing; compare it with `==`, or"
                " index a tensor",
            )
        return hash(self.value)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __neg__(self) -> Any:
        if type(self).facts.kind == "b":
            return -Int32(self)
        if narrow_floats.is_narrow(type(self).facts.name):
            return type(self)(-Float32(self))
        if self.is_static:
            return type(self)(-self.value)
        return type(self).from_ir(arithmetic.negate(type(self).facts.kind, self.value))

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Any:
        if self.is_static:
            return type(self)(abs(self.value))
        if narrow_floats.is_narrow(type(self).facts.name):
            return type(self)(abs(Float32(self)))
        return type(self).from_ir(arithmetic.absolute(type(self).facts.arithmetic_kind, self.value))

    def __invert__(self) -> Any:
        if type(self).is_float:
            raise CompileError(f"~ on a {type(self)}", location=user_location(), hint="~ takes integers and Booleans")
        if self.is_static:
            return type(self)(not self.value if type(self).facts.kind == "b" else ~self.value)
        return type(self).from_ir(arithmetic.invert(self.value))

    def __bool__(self) -> bool:
        if not self.is_static:
            raise CompileError(
                f"{_article(type(self))} known only at run time decides a Python branch",
                location=user_location(),
                hint="in @cute.jit and @cute.kernel functions with preprocess=True (the default) `if`, `while`, `and`, "
                "`or`, `not` and chains may depend on it: decorate a helper with @cute.jit; `match`, `sorted`, filters "
                "of comprehensions and operands with `:=` are Python's",
            )
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.python())

    def __float__(self) -> float:
        return float(self.python())

    def __index__(self) -> int:
        return operator.index(self.python())

    def __str__(self) -> str:
        return str(self.value) if self.is_static and not build_active() else "?"

    def __repr__(self) -> str:
        return f"{type(self)}({self.value if self.is_static else '?'})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Integer(Numeric, ExactInteger):
    """Base of the integers. `divisibility` divides the value; with a `bound` the value lies in 0 to `bound`.

    `plain` ones print `?` whatever their width: strides of tensors that were passed without `from_dlpack`.
    """

    divisibility: int = 1
    bound: int | None = None
    extent_product: ExtentProduct | None = None
    plain: bool = False

    def assuming(self, *, divisibility: int = 1, bound: int | None = None) -> Self:
        """The same number with facts about it."""
        made = type(self).from_ir(self.value) if not self.is_static else type(self)(self.value)
        made.divisibility = math.lcm(self.divisibility, divisibility)
        made.bound = self.bound if bound is None else bound
        made.extent_product, made.plain = self.extent_product, self.plain
        return made

    def widened(self) -> Integer:
        if self.width >= 64:
            return self
        return _converted(self, Int64)  # type: ignore[return-value]

    def same_as(self, other: object) -> bool:
        """True when both are known to be equal: the same MLIR value. An `Int32(8)` stands for a runtime value."""
        if self.is_static or not isinstance(other, Integer) or other.is_static:
            return self is other
        return bool(self.value == other.value) or (
            self.width != other.width and unwidened(self.value) == unwidened(other.value)
        )

    def quotient(self, divisor: Any) -> Any:
        """`self // divisor` where the program's own sums and products show that it leaves no rest, else None."""
        if self.is_static or not isinstance(divisor, Integer) or divisor.is_static:
            return None
        atoms = polynomials.Atoms()
        found = polynomials.quotient(atoms.terms(self.value), atoms.terms(divisor.value))
        return None if found is None else evaluated(found, atoms, type(self))

    @property
    def written(self) -> int | None:
        return int(self.value) if self.is_static else None

    def __str__(self) -> str:
        if self.is_static and not build_active():
            return str(self.value)
        return self.dynamic_text()

    def dynamic_text(self) -> str:
        """`?` with what is known of the value, as CuTe prints it."""
        facts = ["i64"] if self.width == 64 and not self.plain else []
        facts += [f"div={self.divisibility}"] if self.divisibility > 1 else []
        return f"?{{{' '.join(facts)}}}" if facts else "?"


class Float(Numeric):
    """Base of the floats."""


class Boolean(Numeric, dtype="bool"):
    """True or false; computes as Int32, stored as one byte."""


class Int4(Integer, dtype="i4"):
    """An integer of 4 bits (`i4`)."""


class Int8(Integer, dtype="i8"):
    """An integer of 8 bits (`i8`)."""


class Int16(Integer, dtype="i16"):
    """An integer of 16 bits (`i16`)."""


class Int32(Integer, ClosedInteger, dtype="i32"):
    """An integer of 32 bits (`i32`)."""


class Int64(Integer, ClosedInteger, dtype="i64"):
    """An integer of 64 bits (`i64`)."""


class Int128(Integer, dtype="i128"):
    """An integer of 128 bits (`i128`)."""


class Uint4(Integer, dtype="u4"):
    """An integer of 4 bits (`u4`)."""


class Uint8(Integer, dtype="u8"):
    """An integer of 8 bits (`u8`)."""


class Uint16(Integer, dtype="u16"):
    """An integer of 16 bits (`u16`)."""


class Uint32(Integer, ClosedInteger, dtype="u32"):
    """An integer of 32 bits (`u32`)."""


class Uint64(Integer, ClosedInteger, dtype="u64"):
    """An integer of 64 bits (`u64`)."""


class Uint128(Integer, dtype="u128"):
    """An integer of 128 bits (`u128`)."""


class Float16(Float, dtype="f16"):
    """A float of 16 bits (`f16`)."""


class BFloat16(Float, dtype="bf16"):
    """A float of 16 bits (`bf16`)."""


class TFloat32(Float, dtype="tf32"):
    """A float of 32 bits (`tf32`)."""


class Float32(Float, ClosedFloat, dtype="f32"):
    """A float of 32 bits (`f32`)."""


class Float64(Float, ClosedFloat, dtype="f64"):
    """A float of 64 bits (`f64`)."""


class Float8E4M3(Float, dtype="f8e4m3"):
    """A float of 8 bits (`f8e4m3`)."""


class Float8E5M2(Float, dtype="f8e5m2"):
    """A float of 8 bits (`f8e5m2`)."""


class Float8E4M3FN(Float, dtype="f8e4m3fn"):
    """A float of 8 bits (`f8e4m3fn`)."""


class Float8E4M3B11FNUZ(Float, dtype="f8e4m3b11fnuz"):
    """A float of 8 bits (`f8e4m3b11fnuz`)."""


class Float8E8M0FNU(Float, dtype="f8e8m0fnu"):
    """A float of 8 bits (`f8e8m0fnu`)."""


class Float6E3M2FN(Float, dtype="f6e3m2fn"):
    """A float of 6 bits (`f6e3m2fn`)."""


class Float6E2M3FN(Float, dtype="f6e2m3fn"):
    """A float of 6 bits (`f6e2m3fn`)."""


class Float4E2M1FN(Float, dtype="f4e2m1fn"):
    """A float of 4 bits (`f4e2m1fn`)."""


_BY_CLASS_NAME = {cls.__name__: cls for cls in BY_NAME.values()}


def dtype(name: str | type[Numeric]) -> type[Numeric]:
    """The number type called `name`: `Float16`, or short `f16`. A type stands for itself.

    Raises:
        ArgumentError: there is no such type (also a ValueError, as argparse expects).
    """
    if isinstance(name, type) and issubclass(name, Numeric):
        return name
    found = _BY_CLASS_NAME.get(name) or BY_NAME.get(name)
    if found is None:
        raise ArgumentError(f"no number type is called {name!r}", hint=f"types: {', '.join(_BY_CLASS_NAME)}")
    return found


def as_numeric(value: object) -> Numeric:
    """A Python number as Boolean, Int32 (a wider one where it needs it) or Float32; a number of the language as it is.

    A float remembers the digits that Float32 does not have, for an operation in another type.
    """
    if isinstance(value, Numeric):
        return value
    if isinstance(value, bool):
        return Boolean(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        number = Float32(value)
        number.literal = float(value)
        return number
    if is_numpy_scalar(value):
        return as_numeric(to_python(value))
    found = _from_mlir(value)
    if found is None:
        raise CompileError(
            f"expected a number, got {type(value).__name__}", location=user_location(), values={"value": value}
        )
    return found


def _integer(value: int) -> Numeric:
    for dtype in (Int32, Int64, Int128, Uint128):
        if dtype.min <= value <= dtype.max:
            return dtype(value)
    raise CompileError(
        "an integer of more than 128 bits",
        location=user_location(),
        values={"bits": value.bit_length()},
        hint="write it as a float, or wrap it to the type that it is for: Int64(x), Uint128(x)",
    )


def _held(number: Numeric) -> Any:
    """The Python number that it holds, all of a literal."""
    return number.value if number.literal is None else number.literal


def _both(left: object, right: object) -> tuple[Numeric, Numeric]:
    """Two operands as numbers; an integer literal of 64 bits beside a Uint64 is one."""
    a, b = as_numeric(left), as_numeric(right)
    if type(a) is Uint64 and isinstance(right, int) and Int64.max < right <= Uint64.max:
        b = Uint64(right)
    if type(b) is Uint64 and isinstance(left, int) and Int64.max < left <= Uint64.max:
        a = Uint64(left)
    return a, b


def is_number(value: object) -> bool:
    """True for what `as_numeric` takes, MLIR values apart."""
    return isinstance(value, (Numeric, bool, int, float)) or is_numpy_scalar(value)


def number_type(value: object) -> type[Numeric]:
    """`value`, if it is a number type, and `Float32` for `Float`; an error otherwise."""
    if value is Float:
        return Float32
    if isinstance(value, type) and issubclass(value, Numeric) and value not in _BASES:
        return value
    raise CompileError(
        f"expected a number type, got {value!r}",
        location=user_location(),
        hint="number types are Int32, Float32, Boolean, ...",
    )


_BASES = (Numeric, Integer, Float)


def common_type(left: type[Numeric], right: type[Numeric]) -> type[Numeric]:
    """The type in which an operator computes."""
    same = left is right and left is not Boolean and not computes_wide(left.facts)
    return left if same else BY_NAME[promote(left.facts, right.facts).name]


def from_mlir_type(type_: ir.Type) -> type[Numeric]:
    """The signed or float number type of an MLIR element type."""
    text = str(type_)
    for name, spelling in types.ELEMENT.items():
        if spelling == text and name != "tf32":
            return BY_NAME[name]
    raise CompileError(f"{text} is no number type", location=user_location())


def _from_mlir(value: object) -> Numeric | None:
    if not build_active() or not isinstance(value, mlir.ir.Value):
        return None
    return from_mlir_type(value.type).from_ir(value)


def _payload(value: object, cls: type[Numeric]) -> Any:
    if isinstance(value, Numeric):
        if not value.is_static:
            return convert(value.value, type(value).facts, cls.facts)
        return wrap(_held(value), cls.facts, type(value).width)
    if isinstance(value, (bool, int, float)):
        return wrap(value, cls.facts)
    if build_active() and isinstance(value, mlir.ir.Value):
        return value if value.type == cls.mlir_type else _payload(_from_mlir(value), cls)
    if is_numpy_scalar(value):
        return wrap(to_python(value), cls.facts)
    whole = python_int(value)
    if whole is not None:
        return wrap(whole, cls.facts)
    raise CompileError(
        f"{cls.__name__}() takes a number, got {type(value).__name__}",
        location=user_location(),
        values={"value": value},
    )


def python_int(value: object) -> int | None:
    """The integer that an integer of NumPy or the like stands for, else None."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


_INTEGER_ONLY = frozenset(("and", "or", "xor", "shl", "shr"))


def operate(name: str, fold: Callable[[Any, Any], Any], left: object, right: object) -> Any:
    """`left name right` as operators have it; `fold` computes it of Python's numbers."""
    if not is_number(left) or not is_number(right):
        return NotImplemented
    a, b = _both(left, right)
    if name in ("and", "or", "xor") and type(a) is Boolean and type(b) is Boolean:
        cls: type[Numeric] = Boolean
    else:
        cls = common_type(type(a), type(b))
    if name == "truediv" and not cls.is_float:
        cls = Float32
    if name in ("shl", "shr") and cls.is_integer:
        cls = type(a) if type(a) is not Boolean else Int32
    if name in _INTEGER_ONLY and cls.is_float:
        raise CompileError(f"`{name}` on {type(a)} and {type(b)}", location=user_location(), hint="it takes integers")
    if name in ("shl", "shr"):
        b = shift_amount(b, cls)
    if a.is_static and b.is_static:
        folded = _fold(name, fold, cls, _held(a), _held(b))
        if name == "mul" and isinstance(folded, Integer):
            folded.divisibility = max(_stated_divisor(left) * _stated_divisor(right), 1)
        return folded
    return _traced(name, cls, a, b)


def _stated_divisor(number: object) -> int:
    """What is known to divide a factor: an `Int32(8)` stands for a runtime value, a Python 8 for itself."""
    return abs(number) if type(number) is int else getattr(number, "divisibility", 1)


def shift_amount(amount: Numeric, cls: type[Numeric]) -> Numeric:
    """How far to shift a `cls`, as a `cls`: amounts too great for the type become its width, which shifts all out."""
    if amount.is_static:
        if amount.value < 0:
            raise CompileError(f"a shift by {amount.value}", location=user_location(), hint="shift the other way")
        return cls(min(int(amount.value), cls.width))
    if type(amount) is Boolean or amount.width <= cls.width:
        return _converted(amount, cls)
    limit = build.constant(cls.width, type(amount).mlir_type)
    return cls(type(amount).from_ir(arithmetic.binary("min", "u", amount.ir_value(), limit)))


def _fold(name: str, fold: Callable[[Any, Any], Any], cls: type[Numeric], left: Any, right: Any) -> Numeric:
    left, right = wrap(left, cls.facts), wrap(right, cls.facts)
    if name in ("shl", "shr") and right >= cls.width:
        return cls(-1 if name == "shr" and left < 0 else 0)
    try:
        if name == "pow":
            return _float_power(cls, left, right) if cls.is_float else cls(integer_power(left, right, cls.width))
        if name == "floordiv" and cls.is_float:
            quotient = cls(left / right).value
            return cls(math.floor(quotient) if math.isfinite(quotient) and quotient else quotient)
        return cls(fold(left, right))
    except ZeroDivisionError as error:
        if not cls.is_float:
            return divided_by_zero(cls, error)
        unknown = name == "mod" or left == 0 or math.isnan(left)
        return cls(math.nan if unknown else math.copysign(math.inf, math.copysign(1, left) * math.copysign(1, right)))


def _float_power(cls: type[Numeric], base: float, exponent: float) -> Numeric:
    """As the compiled program has it, see `arithmetic`."""
    if exponent not in EXPONENTS_OF_PRODUCTS or exponent < 2:
        return cls(float_power(base, exponent))
    facts = (cls if cls.width >= 32 else Float32).facts
    return cls(power_by_products(base, int(exponent), lambda a, b: wrap(a * b, facts)))


def division_by_zero() -> CompileError:
    """An integer is divided by a zero known at compile time."""
    return CompileError(
        "division by zero",
        location=user_location(),
        values={"divisor": "0, known while the program is compiled"},
        hint="where it cannot be reached, put it under `if cutlass.const_expr(...)`",
    )


class DivisionByZeroWarning(UserWarning):
    """A branch that run time decides divides an integer by a zero known at compile time."""


def divided_by_zero(cls: type[Numeric], cause: Exception | None = None) -> Numeric:
    """What an integer divided by a zero known at compile time gives: 0 in a branch, which may never be taken.

    Raises:
        CompileError: it is in no branch that run time decides.
    """
    if not _in_branch():
        raise division_by_zero() from cause
    place = user_location()
    notices.count()
    warnings.warn_explicit(
        "an integer is divided by a zero known at compile time, in a branch that run time decides: it gives 0 there",
        DivisionByZeroWarning,
        place.file if place else "",
        place.line if place else 0,
    )
    return cls(0)


def _in_branch() -> bool:
    """Whether the code that is built now is inside a branch that run time decides."""
    if not build_active():
        return False
    parent = mlir.ir.InsertionPoint.current.block.owner.operation
    while parent.name not in ("gpu.func", "func.func", "builtin.module"):
        if parent.name in ("scf.if", "scf.while"):
            return True
        parent = parent.parent.operation
    return False


def _traced(name: str, cls: type[Numeric], a: Numeric, b: Numeric) -> Numeric:
    if cls.is_integer and name in ("floordiv", "mod") and b.is_static and b.value == 0:
        return divided_by_zero(cls)
    if cls.is_integer and (kept := _identity(name, cls, a, b)) is not None:
        return kept
    left, right = _converted(a, cls), _converted(b, cls)
    low, high = upper_bound(left), upper_bound(right)
    kind = cls.facts.arithmetic_kind
    if name in ("floordiv", "mod", "shr") and low is not None and high is not None:
        kind = "u"
    result = cls.from_ir(arithmetic.binary(name, kind, left.ir_value(), right.ir_value()))
    if isinstance(result, Integer):
        result.divisibility = result_divisibility(name, left, right)
        result.bound = result_bound(name, low, high, right, cls.max)
        result.extent_product = unless_wrapped(result_extent_product(name, left, right), cls.max)
        result.plain = getattr(a, "plain", False) or getattr(b, "plain", False)
    return result


def _converted(number: Numeric, cls: type[Numeric]) -> Numeric:
    """The number as `cls`; what is known of it survives widening."""
    if type(number) is cls:
        return number
    made = cls(number)
    if isinstance(made, Integer) and isinstance(number, Integer) and cls.width > number.width:
        made.divisibility, made.bound = number.divisibility, upper_bound(number)
        made.extent_product = number.extent_product
    return made


def _identity(name: str, cls: type[Numeric], a: Numeric, b: Numeric) -> Numeric | None:
    """`x + 0`, `x - 0`, `x * 1`, `x // 1` are `x`; facts about it stay."""
    if b.is_static and type(a) is cls and b.value == (0 if name in ("add", "sub", "shl", "shr") else 1):
        if name in ("add", "sub", "mul", "floordiv", "shl", "shr"):
            return a
    if a.is_static and type(b) is cls and name in ("add", "mul") and a.value == (0 if name == "add" else 1):
        return b
    return None


def _compare(name: str, fold: Callable[[Any, Any], bool], left: object, right: object) -> Any:
    if not is_number(right):
        return NotImplemented
    a, b = _both(left, right)
    cls = Boolean if type(a) is Boolean and type(b) is Boolean else common_type(type(a), type(b))
    if a.is_static and b.is_static:
        return Boolean(fold(wrap(_held(a), cls.facts), wrap(_held(b), cls.facts)))
    left_value, right_value = cls(a).ir_value(), cls(b).ir_value()
    return Boolean.from_ir(arithmetic.compare(name, cls.facts.arithmetic_kind, left_value, right_value))
