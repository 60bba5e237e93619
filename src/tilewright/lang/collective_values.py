"""What a collective is given: a number, a vector, or several of them, which share its barriers; and its operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.base.collectives import LOGIC, OPS, SPELLINGS, TYPES
from tilewright.base.dtypes import TABLE
from tilewright.base.errors import CompileError
from tilewright.lang.locations import calling_location
from tilewright.lang.numbers.numeric import BY_NAME, Boolean, Numeric, as_numeric, is_number
from tilewright.lang.tensors.tensor_ssa import TensorSSA

Rebuild = Callable[[list[Any]], Any]


def taken_apart(x: Any) -> tuple[list[Numeric], Rebuild]:
    """The numbers of `x`, and what makes such an object of as many others.

    Raises:
        CompileError: `x` is, or has in it, something else than numbers, vectors, tuples and lists, or a type of numbers
            that collectives do not take.
    """
    if isinstance(x, tuple | list):
        parts = [taken_apart(item) for item in x]
        counts = [len(found) for found, _ in parts]

        def rebuild(results: list[Any]) -> Any:
            source = iter(results)
            made = [make([next(source) for _ in range(count)]) for count, (_, make) in zip(counts, parts, strict=True)]
            return type(x)(made)

        return [number for found, _ in parts for number in found], rebuild
    if isinstance(x, TensorSSA):
        return [_taken(number) for number in x], lambda results: TensorSSA.from_elements(results).reshape(x.shape)
    if not is_number(x):
        raise CompileError(
            f"a collective takes numbers, not a {type(x).__name__}",
            location=calling_location(),
            hint="give a number, a vector (TensorSSA), or a tuple of them; of a tensor load what the thread holds: "
            "tensor[i], tensor.load()",
        )
    return [_taken(as_numeric(x))], lambda results: results[0]


def _taken(number: Numeric) -> Numeric:
    if type(number).facts.name not in TYPES:
        known = ", ".join(str(BY_NAME[name]) for name in TYPES)
        raise CompileError(
            f"collectives take no {type(number)}",
            location=calling_location(),
            hint=f"convert the number to one of {known}",
        )
    return number


def ops_of(x: Any, op: Any, numbers: Sequence[Numeric]) -> list[str]:
    """The operation on each number. `op` is one for all, or where `x` is a tuple one for each of its items.

    Raises:
        CompileError: there is no such operation, not on this type, or there are more or fewer than items.
    """
    if not isinstance(op, tuple | list):
        return [_op(op, type(number)) for number in numbers]
    count = len(x) if isinstance(x, tuple | list) else 1
    if not isinstance(x, tuple | list) or len(op) != count:
        raise CompileError(
            f"{len(op)} operations for {count} value{'' if count == 1 else 's'}",
            location=calling_location(),
            hint="give one operation for all, or one for each value of a tuple",
        )
    return [_op(kind, type(number)) for kind, item in zip(op, x, strict=True) for number in taken_apart(item)[0]]


def _op(op: Any, dtype: type[Numeric]) -> str:
    name = str(getattr(op, "value", op))
    name = SPELLINGS.get(name, name)
    if name not in OPS:
        raise CompileError(
            f"no collective folds with {op!r}", location=calling_location(), hint=f"op is one of {', '.join(OPS)}"
        )
    is_logic = name in LOGIC
    if (is_logic and TABLE[dtype.facts.name].kind == "f") or (dtype is Boolean and not is_logic):
        raise CompileError(
            f"{name} of a {dtype}",
            location=calling_location(),
            hint="and, or, xor take integers and Booleans; the others take integers and floats, a Boolean as Int32(x)",
        )
    return name
