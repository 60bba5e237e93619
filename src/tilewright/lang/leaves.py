"""Values as leaves: what a region of run time can carry.

A structure describes a Python value by its shape and the types of its machine values (leaves). `structure_of` gives
the one that a loop carries, `common` the one in which two arms of a branch meet. A structure turns any value that fits
it into leaves, and leaves back into a value; a value that does not fit raises `TypeChange`.

Classes take part through the protocol `__extract_mlir_values__` / `__new_from_mlir_values__`. A class whose objects
of one class may differ in static parts (a layout) also has `__tw_structure__() -> Hashable`, equal for objects that
may replace each other; its `str` is shown when they may not. Where one object knows more than another, as of an
alignment, `__tw_meet__(other)` gives what both know, and `__tw_as__(weaker)` the object as one of that type; both may
give None.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.base.interrupts import raised_by_signal
from tilewright.ir import mlir
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Numeric, as_numeric, common_type

if TYPE_CHECKING:
    from mlir import ir

Values = list["ir.Value"]


class TypeChange(Exception):
    """A value does not fit a structure: `path` inside it (`[0].x`), and what was expected and found."""

    def __init__(self, expected: str, found: str, path: str = "") -> None:
        super().__init__(f"{path or 'value'}: {expected}, then {found}")
        self.expected = expected
        self.found = found
        self.path = path


def has_protocol(value: object) -> bool:
    """True for objects whose class implements the DynamicExpression protocol."""
    cls = type(value)
    return hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__")


def is_literal(value: object) -> bool:
    """True for Python numbers."""
    return isinstance(value, (bool, int, float)) and type(value).__module__ in ("builtins", "numpy")


def is_number(value: object) -> bool:
    """True for numbers of Python and of the language."""
    return isinstance(value, Numeric) or is_literal(value)


def is_dynamic(value: object) -> bool:
    """True for a number known only at run time."""
    if isinstance(value, Numeric):
        return not value.is_static
    return type(value).__module__.startswith("mlir.") and isinstance(value, mlir.ir.Value)


def holds_runtime(value: Any) -> bool:
    """True when a value known only at run time is in `value`."""
    if isinstance(value, Numeric) or is_dynamic(value):
        return is_dynamic(value)
    if has_protocol(value):
        return bool(extract(value))
    return is_aggregate(value) and any(holds_runtime(item) for item in split(value).values())


def describe(value: object) -> str:
    """The type of a value as the user would write it."""
    if isinstance(value, tuple | list) and len(value) <= 8:
        inside = ", ".join(describe(item) for item in value)
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(type(value), "__tw_structure__"):
        return f"{type(value).__name__} {value}"
    return type(value).__name__


def same(a: Any, b: Any) -> bool:
    """True when `b` can stand for `a` with no trace in the program: identical, or equal constants."""
    if a is b:
        return True
    if type(a) is not type(b) or getattr(type(a), "__tw_undefined__", False):
        return False
    if isinstance(a, Numeric) and isinstance(b, Numeric):
        return a.value is b.value or (a.is_static == b.is_static and _same_payload(a.value, b.value))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, int | float | str | bytes | complex):
        return _same_payload(a, b)
    if has_protocol(a) or dataclasses.is_dataclass(a):
        return False
    try:
        return (a == b) is True
    except Exception as error:  # a user's __eq__ may raise anything; then they are not the same
        if raised_by_signal(error):
            raise
        return False


def _same_payload(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.copysign(1, a) == math.copysign(1, b) and (a == b or (math.isnan(a) and math.isnan(b)))
    return bool(a == b)


class Structure:
    """Base: `values(value)` are the leaves of a value that fits, `build(leaves)` the value that leaves make."""

    def values(self, value: Any) -> Values:
        raise NotImplementedError

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Static(Structure):
    """A value of compile time: it may not change."""

    value: Any

    def values(self, value: Any) -> Values:
        if not same(self.value, value):
            raise TypeChange(describe(self.value), describe(value))
        return []

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        return self.value


class Rebound(Exception):
    """Another object took the place of a held one."""


@dataclasses.dataclass(frozen=True)
class Held(Structure):
    """An object that stays itself; what changes inside it is carried elsewhere."""

    value: Any

    def values(self, value: Any) -> Values:
        if value is not self.value:
            raise Rebound
        return []

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        return self.value


@dataclasses.dataclass(frozen=True)
class Number(Structure):
    """A number of type `dtype`. With `promote` numbers of other types are converted to it."""

    dtype: type[Numeric]
    promote: bool = False

    def values(self, value: Any) -> Values:
        value = _plain(value)
        if isinstance(value, Numeric) and type(value) is not self.dtype and not self.promote:
            raise TypeChange(str(self.dtype), describe(value))
        if not is_number(value) or (is_literal(value) and not _literal_fits(value, self.dtype)):
            raise TypeChange(str(self.dtype), describe(value))
        return [self.dtype(value).ir_value()]

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        return self.dtype.from_ir(next(leaves))


def _literal_fits(value: Any, dtype: type[Numeric]) -> bool:
    """True when Python's number is one of `dtype`: no fraction lost, no truth value made of a count."""
    if isinstance(value, bool):
        return True
    if dtype is Boolean:
        return False
    if isinstance(value, int):
        return dtype.is_float or dtype.min <= value <= dtype.max
    return dtype.is_float


@dataclasses.dataclass(frozen=True)
class Raw(Structure):
    """An MLIR value of a user of the low level."""

    type: ir.Type

    def values(self, value: Any) -> Values:
        found = value.type if is_dynamic(value) and not isinstance(value, Numeric) else None
        if found != self.type:
            raise TypeChange(str(self.type), describe(value) if found is None else str(found))
        return [value]

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        return next(leaves)


@dataclasses.dataclass
class Object(Structure):
    """An object of the DynamicExpression protocol, rebuilt by `template`; `count` is set by the first value."""

    template: Any
    count: int | None = None

    def values(self, value: Any) -> Values:
        if type(value) is not type(self.template):
            raise TypeChange(describe(self.template), describe(value))
        if _static_part(value) != _static_part(self.template):
            value = _adapted(value, self.template)
        found = extract(value)
        if self.count is None:
            self.count = len(found)
        if len(found) != self.count:
            raise TypeChange(f"{describe(self.template)} of {self.count} values", f"one of {len(found)}")
        return found

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        count = len(extract(self.template)) if self.count is None else self.count
        return self.template.__new_from_mlir_values__([next(leaves) for _ in range(count)])


def _adapted(value: Any, template: Any) -> Any:
    """`value` as one of the type of `template`, which knows less of it."""
    adapt = getattr(type(value), "__tw_as__", None)
    adapted = None if adapt is None else adapt(value, template)
    if adapted is None:
        raise TypeChange(describe(template), describe(value))
    return adapted


def _met(a: Any, b: Any) -> Any:
    """An object that knows what both `a` and `b` know; `a` where they have no such thing."""
    meet = getattr(type(a), "__tw_meet__", None)
    met = None if meet is None or _static_part(a) == _static_part(b) else meet(a, b)
    return a if met is None else met


def weakened(structure: Structure, value: Any) -> Structure | None:
    """The structure that fits `value` too where an object knows less after an iteration; None where none does."""
    if isinstance(structure, Object) and type(value) is type(structure.template):
        met = _met(structure.template, value)
        return None if _static_part(met) == _static_part(structure.template) else Object(met)
    if not isinstance(structure, Aggregate) or type(value) is not type(structure.template):
        return None
    found = split(value)
    if found.keys() != structure.items.keys():
        return None
    weaker = {key: weakened(item, found[key]) for key, item in structure.items.items()}
    if all(item is None for item in weaker.values()):
        return None
    return Aggregate(structure.template, {key: weaker[key] or item for key, item in structure.items.items()})


def _static_part(value: Any) -> Any:
    part = getattr(type(value), "__tw_structure__", None)
    return None if part is None else part(value)


@dataclasses.dataclass(frozen=True)
class Aggregate(Structure):
    """A tuple, list, dict, NamedTuple or dataclass. `split` gives its items by key, `make` builds it from items."""

    template: Any
    items: Mapping[Any, Structure]

    def values(self, value: Any) -> Values:
        if type(value) is not type(self.template):
            raise TypeChange(describe(self.template), describe(value))
        found = split(value)
        if found.keys() != self.items.keys():
            raise TypeChange(describe(self.template), describe(value))
        leaves: Values = []
        for key, structure in self.items.items():
            leaves += _inside(key, self.template, structure.values, found[key])
        return leaves

    def build(self, leaves: Iterator[ir.Value]) -> Any:
        return make(self.template, {key: structure.build(leaves) for key, structure in self.items.items()})


def _inside(key: Any, template: Any, compute: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return compute(*arguments)
    except TypeChange as change:
        step = f".{key}" if dataclasses.is_dataclass(template) else f"[{key!r}]"
        raise TypeChange(change.expected, change.found, step + change.path) from None


def is_aggregate(value: object) -> bool:
    """True for containers that are carried item by item."""
    if isinstance(value, tuple | list | dict):
        return True
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def split(value: Any) -> dict[Any, Any]:
    """The items of an aggregate by index, key or field."""
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)}


def make(template: Any, items: Mapping[Any, Any]) -> Any:
    """An aggregate like `template` of other items."""
    if isinstance(template, dict):
        return {**items}
    if isinstance(template, tuple) and hasattr(template, "_fields"):
        return type(template)(*items.values())
    if isinstance(template, tuple | list):
        return type(template)(items.values())
    made = object.__new__(type(template))
    for name, item in {**getattr(template, "__dict__", {}), **items}.items():
        object.__setattr__(made, name, item)
    return made


def structure_of(value: Any, hold: Container[int] = ()) -> Structure:
    """The structure that a loop keeps: Python numbers become Int32 (Int64 where they need it), Float32, Boolean.

    Objects whose id is in `hold` keep their identity.
    """
    if id(value) in hold:
        return Held(value)
    if isinstance(value, Numeric):
        return Number(type(value))
    if is_literal(value):
        return Number(type(as_numeric(value)))
    if is_dynamic(value):
        return Raw(value.type)
    if has_protocol(value):
        return Object(value)
    if is_aggregate(value):
        return Aggregate(value, {key: structure_of(item, hold) for key, item in split(value).items()})
    return Static(value)


def common(a: Any, b: Any) -> Structure:
    """The structure in which the values of two arms meet; raises TypeChange where there is none."""
    if same(a, b):
        return Static(a)
    a, b = _plain(a), _plain(b)
    if is_number(a) and is_number(b):
        return Number(_common_dtype(a, b), promote=True)
    if has_protocol(a) and type(a) is type(b):
        return Object(_met(a, b))
    if is_aggregate(a) and type(a) is type(b) and split(a).keys() == split(b).keys():
        left, right = split(a), split(b)
        return Aggregate(a, {key: _inside(key, a, common, left[key], right[key]) for key in left})
    if is_dynamic(a) and is_dynamic(b) and not isinstance(a, Numeric):
        return Raw(a.type)
    raise TypeChange(describe(a), describe(b))


def _plain(value: Any) -> Any:
    """A member of an enumeration of integers as the integer that it is: two arms may choose different ones."""
    return int(value) if isinstance(value, enum.IntEnum) else value


def _common_dtype(a: Any, b: Any) -> type[Numeric]:
    """Typed arms must agree; beside a typed arm a Python number adapts; two Python numbers promote."""
    typed = {type(value) for value in (a, b) if isinstance(value, Numeric)}
    if len(typed) == 2:
        raise TypeChange(describe(a), describe(b))
    literals = [value for value in (a, b) if is_literal(value)]
    if not typed:
        first, second = (type(as_numeric(value)) for value in literals)
        return first if first is second else common_type(first, second)
    dtype = typed.pop()
    if all(_literal_fits(value, dtype) for value in literals):
        return dtype
    other = Float32 if isinstance(literals[0], float) else type(as_numeric(literals[0]))
    return common_type(dtype, Int32 if other is Boolean else other)


def size(structure: Structure) -> int:
    """How many leaves the structure has."""
    if isinstance(structure, Aggregate):
        return sum(size(item) for item in structure.items.values())
    if isinstance(structure, Object):
        return structure.count or 0
    return 0 if isinstance(structure, Static | Held) else 1


def settle(structure: Structure, before: Any, results: Sequence[ir.Value], changed: Sequence[bool]) -> Any:
    """The value after a loop: parts of `before` none of whose leaves changed stay, the others are built anew."""
    if not any(changed):
        return before
    if not isinstance(structure, Aggregate):
        return structure.build(iter(results))
    parts, start = {}, 0
    old = split(before)
    for key, item in structure.items.items():
        end = start + size(item)
        parts[key] = settle(item, old[key], results[start:end], changed[start:end])
        start = end
    return make(before, parts)


def flatten(value: Any) -> tuple[Values, Structure]:
    """The leaves of a value and the structure that rebuilds it: `structure.build(iter(leaves))`."""
    structure = structure_of(value)
    return structure.values(value), structure


def extract(value: Any) -> Values:
    """The MLIR values of any value of the language, in order."""
    if has_protocol(value):
        return list(value.__extract_mlir_values__())
    if is_aggregate(value):
        return [leaf for item in split(value).values() for leaf in extract(item)]
    if is_literal(value):
        return []
    return [value] if is_dynamic(value) else []


def rebuild(value: Any, leaves: Sequence[ir.Value]) -> Any:
    """A value like `value` made of other leaves, in the order of `extract`."""
    remaining = iter(leaves)
    return _rebuild(value, remaining)


def _rebuild(value: Any, leaves: Iterator[ir.Value]) -> Any:
    if has_protocol(value):
        return Object(value).build(leaves)
    if is_aggregate(value):
        return make(value, {key: _rebuild(item, leaves) for key, item in split(value).items()})
    return next(leaves) if is_dynamic(value) else value


def extract_mlir_values(obj: Any) -> list[Any]:
    """The machine values of an object, in order; none for Python numbers and other objects of compile time."""
    return extract(obj)


def new_from_mlir_values(obj: Any, values: Sequence[Any]) -> Any:
    """An object like `obj` of other machine values.

    Raises:
        CompileError: `obj` takes another number of values.
    """
    own = len(extract(obj))
    if own != len(values):
        raise CompileError(f"{type(obj).__name__} takes {own} values, got {len(values)}", location=user_location())
    return rebuild(obj, values)
