"""The numbers of the language in plain Python: what a program must compute, worked out without the compiler.

A `Num` is an exact Python number of one of the language's types. Integers wrap, floats are rounded to nearest even
after each operation. `scope` gives the names that a program finds: with it, Python runs the text that is compiled.
"""

from __future__ import annotations

import builtins
import math
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

LANES = 32


@dataclass(frozen=True)
class Type:
    """A number type: `kind` is b, i, u or f; floats have `precision` bits (the hidden one too) and a least exponent."""

    name: str
    kind: str
    width: int
    precision: int = 0
    least: int = 0  # the exponent of the smallest denormal

    def __call__(self, value: Any) -> Num:
        if isinstance(value, Num):
            value = value.value
        return Num(self, self.fit(value))

    def fit(self, value: Any) -> Any:
        if self.kind == "b":
            return bool(value)
        if self.kind == "f":
            return round_float(value, self)
        bits = int(value) & ((1 << self.width) - 1)
        return bits - (1 << self.width) if self.kind == "i" and bits >> (self.width - 1) else bits


def round_float(value: Any, type_: Type) -> float:
    """The nearest number of the type, ties to even; too great ones are infinite."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    step = Fraction(2) ** max(exponent - type_.precision + 1, type_.least)
    rounded = round(exact / step) * step
    if abs(rounded) >= Fraction(2) ** (3 - type_.least - type_.precision):
        return math.copysign(math.inf, exact)
    return math.copysign(float(rounded), exact)


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
INT32, INT64, FLOAT32 = TYPES["Int32"], TYPES["Int64"], TYPES["Float32"]


def promote(a: Type, b: Type) -> Type:
    """The type in which an operator computes."""
    if "f" in (a.kind, b.kind):
        if a == b:
            return a
        floats = sorted((item for item in (a, b) if item.kind == "f"), key=lambda item: item.width)
        return FLOAT32 if len(floats) == 2 and floats[0].width == floats[1].width else floats[-1]
    a, b = (INT32 if item.kind == "b" else item for item in (a, b))
    if a.width != b.width:
        return max(a, b, key=lambda item: item.width)
    return a if a.kind == "u" else b


def lift(value: Any) -> Num:
    """A literal as the language takes it."""
    if isinstance(value, Num):
        return value
    if isinstance(value, bool):
        return BOOLEAN(value)
    if isinstance(value, int):
        return INT32(value) if -(1 << 31) <= value < 1 << 31 else INT64(value)
    return FLOAT32(value)


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
        return NotImplemented if isinstance(other, Vec) else compute(name, self, lift(other))

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

    def __repr__(self) -> str:
        return f"{self.type.name}({self.value})"


def _vector_operator(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Vec, other: Any) -> Vec:
        return Vec([compute(name, a, b) for a, b in zip(self.items, self.pair(other), strict=True)])

    def reflected(self: Vec, other: Any) -> Vec:
        return Vec([compute(name, b, a) for a, b in zip(self.items, self.pair(other), strict=True)])

    return forward, reflected


def _vector_comparison(name: str) -> Callable[..., Any]:
    def compare(self: Vec, other: Any) -> Vec:
        return Vec([getattr(a, name)(b) for a, b in zip(self.items, self.pair(other), strict=True)])

    return compare


class Vec:
    """A TensorSSA: some numbers of one type. A literal takes that type where the kind allows it."""

    def __init__(self, items: Sequence[Num]) -> None:
        self.items = list(items)

    @property
    def type(self) -> Type:
        return self.items[0].type

    def pair(self, other: Any) -> list[Num]:
        if isinstance(other, Vec):
            return other.items
        if not isinstance(other, Num) and (self.type.kind == "f" or isinstance(other, int)) and self.type != BOOLEAN:
            other = self.type(other)
        return [lift(other)] * len(self.items)

    __add__, __radd__ = _vector_operator("add")
    __sub__, __rsub__ = _vector_operator("sub")
    __mul__, __rmul__ = _vector_operator("mul")
    __truediv__, __rtruediv__ = _vector_operator("truediv")
    __floordiv__, __rfloordiv__ = _vector_operator("floordiv")
    __mod__, __rmod__ = _vector_operator("mod")
    __and__, __rand__ = _vector_operator("and")
    __or__, __ror__ = _vector_operator("or")
    __xor__, __rxor__ = _vector_operator("xor")
    __lshift__, __rlshift__ = _vector_operator("shl")
    __rshift__, __rrshift__ = _vector_operator("shr")
    __lt__, __le__ = _vector_comparison("__lt__"), _vector_comparison("__le__")
    __gt__, __ge__ = _vector_comparison("__gt__"), _vector_comparison("__ge__")
    __eq__, __ne__ = _vector_comparison("__eq__"), _vector_comparison("__ne__")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Vec:
        return Vec([-item for item in self.items])

    def __invert__(self) -> Vec:
        return Vec([~item for item in self.items])

    def __abs__(self) -> Vec:
        return Vec([abs(item) for item in self.items])

    def __getitem__(self, index: Any) -> Num:
        return self.items[int(index)]

    def to(self, type_: Type) -> Vec:
        return Vec([type_(item) for item in self.items])

    def reduce(self, name: str, start: Any, profile: int = 0) -> Num:
        total = self.type(start)
        for item in self.items:
            if name in ("max", "min"):
                total = (max if name == "max" else min)(total, item, key=lambda number: number.value)
            else:
                total = compute(name, total, item)
        return total


class Memory:
    """A tensor: NumPy memory for real, a list in the model; `view` keeps one row."""

    def __init__(self, type_: Type, shape: tuple[int, ...]) -> None:
        self.type, self.shape = type_, shape
        self.items: list[Any] = [None] * math.prod(shape)
        self.base, self.count = 0, math.prod(shape)

    def _place(self, index: Any) -> int:
        coord = index if isinstance(index, tuple) else (index,)
        place = 0
        for extent, part in zip(self.shape, coord, strict=True):
            assert 0 <= int(part) < extent, f"index {index} of shape {self.shape}"
            place = place * extent + int(part)
        return self.base + place

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and index[-1] is None:
            row = Memory(self.type, self.shape[1:])
            row.items, row.base = self.items, self.base + int(index[0]) * self.shape[1]
            return row
        item = self.items[self._place(index)]
        assert item is not None, "read before written"
        return item

    def __setitem__(self, index: Any, value: Any) -> None:
        self.items[self._place(index)] = self.type(lift(value))

    def load(self) -> Vec:
        return Vec([self[i] for i in range(self.count)])

    def store(self, value: Any) -> None:
        items = value.items if isinstance(value, Vec) else [lift(value)] * self.count
        for place, item in enumerate(items):
            self.items[self.base + place] = self.type(item)

    fill = store

    @classmethod
    def of(cls, type_: Type, array: np.ndarray) -> Memory:
        made = cls(type_, array.shape)
        made.items = [type_(item) for item in array.reshape(-1).tolist()]
        return made


class Warp:
    """What the threads of a warp do together; each runs in a thread of Python's."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(LANES)
        self.slots: list[Any] = [None] * LANES
        self.shared: dict[int, Memory] = {}
        self.local = threading.local()

    def exchange(self, value: Num, source: Callable[[int], int]) -> Num:
        lane = self.local.lane
        self.slots[lane] = value
        self.barrier.wait()
        result = self.slots[source(lane)]
        self.barrier.wait()
        return result

    def total(self, value: Num) -> Num:
        self.slots[self.local.lane] = value
        self.barrier.wait()
        result = value.type(sum(item.value for item in self.slots))
        self.barrier.wait()
        return result

    def allocate(self, type_: Type, shape: tuple[int, ...]) -> Memory:
        """Shared memory: the n-th allocation of each thread is the same memory."""
        number = self.local.allocations = self.local.allocations + 1
        return self.shared.setdefault(number, Memory(type_, shape))


def _range(*bounds: Any) -> Iterator[Num]:
    numbers = [lift(bound) for bound in bounds]
    type_ = numbers[0].type
    for number in numbers[1:]:
        type_ = promote(type_, number.type)
    return (type_(item) for item in builtins.range(*(int(number.value) for number in numbers)))


def _pick(better: Callable[[Num, Num], Num]) -> Callable[..., Num]:
    def pick(first: Any, *rest: Any) -> Num:
        result = first
        for item in rest:
            type_ = promote(result.type, item.type)
            result = type_(item) if better(item, result) else type_(result)
        return result

    return pick


def _where(condition: Vec, left: Vec, right: Vec) -> Vec:
    type_ = promote(left.type, right.type) if left.type != right.type else left.type
    return Vec([type_(a if c else b) for c, a, b in zip(condition.items, left.items, right.items, strict=True)])


def _identity(function: Any) -> Any:
    return function


def check_type(value: Any, name: str) -> Any:
    """The value, if it is a number of type `name`."""
    assert value.type.name == name, f"{value} is no {name}"
    return value


def scope(warp: Warp) -> dict[str, Any]:
    """The names of a program, for plain Python."""
    arch = SimpleNamespace(
        thread_idx=lambda: (INT32(warp.local.lane), INT32(0), INT32(0)),
        lane_idx=lambda: INT32(warp.local.lane),
        sync_threads=warp.barrier.wait,
        shuffle_sync_bfly=lambda value, offset: warp.exchange(value, lambda lane: lane ^ offset),
        shuffle_sync=lambda value, lane: warp.exchange(value, lambda _: int(lane)),
        warp_reduction_sum=warp.total,
    )
    cute = SimpleNamespace(
        jit=_identity, arch=arch, where=_where,
        ReductionOp=SimpleNamespace(ADD="add", MUL="mul", MAX="max", MIN="min", AND="and", OR="or", XOR="xor"),
    )  # fmt: skip
    return {
        **TYPES, "cute": cute, "range": _range, "range_constexpr": builtins.range, "const_expr": _identity,
        "min": _pick(lambda item, best: item < best), "max": _pick(lambda item, best: item > best),
        "check_type": check_type, "registers": lambda type_, count: Memory(type_, (count,)),
        "shared": lambda type_, shape: warp.allocate(type_, shape),
    }  # fmt: skip
