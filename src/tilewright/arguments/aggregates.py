"""Tuples, NamedTuples and dataclasses as arguments: some members are of run time, the others are baked in.

Python ints stay compile-time in parameters annotated `Shape`, `Coord` and the like, in dataclasses and in NamedTuples
of the JitArgument protocol, unless a field's annotation says otherwise; in other tuples they become Int32.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.base.interrupts import raised_by_signal
from tilewright.base.signature import TupleParam
from tilewright.lang.calls.annotations import keeps_ints
from tilewright.lang.calls.parameters import is_constexpr
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.numbers.numpy_scalars import to_python


@dataclass(frozen=True)
class Member:
    """An item of an aggregate. `name` is its path (`shape[1]`, `params.src`), `key` its index or field."""

    name: str
    key: Any
    value: Any
    annotation: Any
    static: bool


class Keywords(dict[str, Any]):
    """The arguments that `**kwargs` of a function took."""


def is_aggregate(value: Any) -> bool:
    """True for objects passed member by member."""
    if isinstance(value, (tuple, list, Keywords)):
        return True
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def members(name: str, value: Any, annotation: Any) -> Iterator[Member]:
    """The items of an aggregate, in order."""
    if isinstance(value, Keywords):
        yield from (Member(f"{name}.{key}", key, item, annotation, False) for key, item in value.items())
        return
    if isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", None)
        kinds = _hints(type(value)) if fields else {}
        keeps = keeps_ints(annotation)
        own = has_protocol(type(value))
        for number, item in enumerate(map(to_python, value)):
            kind = kinds.get(fields[number]) if fields else (annotation if keeps else None)
            static = _is_plain(item) and (keeps or (own and not _is_numeric(kind)))
            yield Member(f"{name}[{number}]", number, item, kind, is_constexpr(kind) or static)
        return
    kinds = _hints(type(value))
    for field in dataclasses.fields(value):
        item, kind = to_python(getattr(value, field.name)), kinds.get(field.name)
        static = is_constexpr(kind) or (_is_plain(item) and not _is_numeric(kind))
        yield Member(f"{name}.{field.name}", field.name, item, kind, static)


def has_protocol(cls: type) -> bool:
    """Whether a class implements the JitArgument protocol."""
    return all(hasattr(cls, name) for name in ("__c_pointers__", "__get_mlir_types__", "__new_from_mlir_values__"))


def _is_numeric(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Numeric)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception as error:
        if raised_by_signal(error):
            raise
        return dict(getattr(cls, "__annotations__", {}))


def member_at(value: Any, whole: str, name: str) -> Any:
    """The item of `value` whose path is `name`, where `value` has path `whole`."""
    step = name[len(whole) :]
    if isinstance(value, Keywords):
        return value[step[1:]]
    return getattr(value, step[1:]) if step.startswith(".") else value[int(step[1:-1])]


def fixed_members(value: Any, param: TupleParam, annotation: Any = None) -> dict[str, Any]:
    """Path to value of the members that are baked in."""
    runtime = {item.name: item for item in param.items}
    found: dict[str, Any] = {}
    for member in members(param.name, value, annotation):
        item = runtime.get(member.name)
        if item is None:
            found[member.name] = member.value
        elif isinstance(item, TupleParam) and is_aggregate(member.value):
            found |= fixed_members(member.value, item, member.annotation)
    return found


def check_fixed(param: TupleParam, value: Any, fixed: dict[str, Any]) -> None:
    """Refuse a value whose baked-in members are others than those compiled for; None stands for a `Constexpr` one."""
    if not is_aggregate(value):
        return
    runtime = {item.name: item for item in param.items}
    for member in members(param.name, value, None):
        item = runtime.get(member.name)
        if isinstance(item, TupleParam):
            check_fixed(item, member.value, fixed)
        elif item is None and member.name in fixed and not (member.value is None and is_constexpr(member.annotation)):
            check_constant(member.name, fixed[member.name], member.value)


def check_constant(name: str, compiled: Any, passed: Any) -> None:
    """Refuse a compile-time value that is another than the one compiled for; None stands for a `Constexpr` member."""
    if not _equal(compiled, passed) and not _equal_members(compiled, passed):
        raise ArgumentError(
            f"{name} is compile-time and differs from what was compiled",
            values={"compiled for": compiled, "passed": passed},
            hint="compile again for this value, or pass it as a number of the language such as cutlass.Int32",
        )


def _equal_members(compiled: Any, passed: Any) -> bool:
    """Whether two named tuples are equal but for `Constexpr` members that are passed as None."""
    if type(compiled) is not type(passed) or not is_aggregate(passed) or not hasattr(type(passed), "_fields"):
        return False
    ours, theirs = (list(members("", value, None)) for value in (compiled, passed))
    return len(ours) == len(theirs) and all(
        (b.value is None and is_constexpr(b.annotation)) or _equal(a.value, b.value)
        for a, b in zip(ours, theirs, strict=True)
    )


def _equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    try:
        return bool(left == right)
    except Exception as error:
        if raised_by_signal(error):
            raise
        return False
