"""Which numbers a tensor takes unasked: those of its kind, which are rounded or wrap, and integers for floats."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Boolean, Numeric, as_numeric


def as_element(value: Any, dtype: type[Numeric]) -> Numeric:
    """The number as an element of `dtype`.

    Raises:
        CompileError: it is of a greater kind, or is known while compiling and no number of the integer type.
    """
    number = as_numeric(value)
    if not number.is_static:
        check_elements(type(number), dtype)
    elif not dtype.is_float and dtype(number).value != number.value:
        raise _refused(f"{number.value} is stored as {_an(dtype)}", type(number), dtype)
    return dtype(number)


def check_elements(source: type[Numeric], dtype: type[Numeric]) -> None:
    """Refuse numbers of `source` as elements of `dtype` where these are of a lesser kind.

    Raises:
        CompileError: a float for an integer, or a number for a Boolean.
    """
    if not _takes(dtype, source):
        raise _refused(f"{_an(source)} is stored as {_an(dtype)}", source, dtype)


def _takes(dtype: type[Numeric], source: type[Numeric]) -> bool:
    if source is dtype or source is Boolean:
        return True
    return dtype is not Boolean and (dtype.is_float or not source.is_float)


def _refused(message: str, source: type[Numeric], dtype: type[Numeric]) -> CompileError:
    return CompileError(
        f"{message}, which may change it",
        location=user_location(),
        values={"value": source, "element": dtype},
        hint=f"convert it where that is meant: `x.to({dtype})` or `{dtype}(x)`",
    )


def _an(dtype: type[Numeric]) -> str:
    return f"{'an' if str(dtype)[0] in 'AEIOU' and not str(dtype).startswith('Uint') else 'a'} {dtype}"
