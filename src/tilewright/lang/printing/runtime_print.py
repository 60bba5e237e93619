"""Printing and assertions of the running program, on host and device."""

from __future__ import annotations

import re
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, layout_text
from tilewright.lang import leaves, trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import (
    Boolean,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
    is_number,
)
from tilewright.lang.printing.format_strings import FLOAT, INTEGER, PLAIN, Place, fill, misfit
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor, map_leaves
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import ComposedLayout, Layout


def printf(*args: Any, end: str = "\n", loc: object = None, ip: object = None) -> None:
    """Print at run time: `printf("x = {}", x)` or C's notation `printf("x = %d", x)`, or values alone.

    Layouts, coordinates and tensors print as CuTe prints them, with their runtime values. A line ends by itself. `%s`
    prints any value as `{}` does; an integer in a place for a float is converted.

    Raises:
        CompileError: a float in a place for an integer, a text in one for a number, another number of values than
            places, a conversion that there is not.
    """
    trace.current()
    values = list(args)
    text = values.pop(0) if values and isinstance(values[0], str) else " ".join("{}" for _ in values)
    pieces, operands = _format(text, values)
    build.emit("gpu.printf", (), operands, {"format": build.string(pieces + end)})


def _format(text: str, values: list[Any]) -> tuple[str, list[Any]]:
    operands: list[Any] = []
    queue = list(values)

    def convert(place: Place) -> str:
        if not queue:
            raise CompileError(
                "printf has more placeholders than values", location=user_location(), values={"format": text}
            )
        return _conversion(queue.pop(0), place, operands)

    result = fill(text, convert)
    if queue:
        raise CompileError(
            f"printf has {len(queue)} values without a placeholder", location=user_location(), values={"format": text}
        )
    return result, operands


def _conversion(value: Any, place: Place, operands: list[Any]) -> str:
    """The C conversion for a value; what it needs goes to `operands`."""
    value = map_leaves(_as_number, value) if isinstance(value, tuple) else _as_number(value)
    if is_number(value):
        return _number(as_numeric(value), place, operands)
    if isinstance(value, Pointer):
        return _pointer(value, place, operands)
    if isinstance(value, TensorSSA):
        return "(" + ",".join(_number(value[index], place, operands) for index in range(value.size)) + ")"
    if isinstance(value, tuple) and value and all(map(is_number, value)):
        return "(" + ",".join(_number(as_numeric(item), place, operands) for item in value) + ")"
    if not place.free and not (place.kind == "c" and isinstance(value, str) and len(value) == 1):
        raise misfit(place, f"the text {value!r}" if isinstance(value, str) else f"a {type(value).__name__}")
    if isinstance(value, (Layout, ComposedLayout, tuple)):
        return structured(value, operands)
    if isinstance(value, Tensor):
        body = _conversion(value.iterator, PLAIN, operands)
        return f"tensor({body} o {structured(value.layout, operands)})"
    return place.text(str(value))


def _pointer(value: Pointer, place: Place, operands: list[Any]) -> str:
    address = Int64(value.toint())
    if place.kind and place.kind in INTEGER:
        return _number(address, place, operands)
    if not place.free and place.kind != "p":
        raise misfit(place, "a pointer")
    operands.append(address.ir_value())
    return "0x%016llx"


def _as_number(value: Any) -> Any:
    """MLIR values as numbers of the language."""
    return as_numeric(value) if leaves.is_dynamic(value) else value


def structured(value: Any, operands: list[Any]) -> str:
    """A layout, coordinate or integer with its runtime leaves as conversions; their values go to `operands`."""
    text, leaves32, leaves64 = layout_text.encode(value)
    queues = {32: iter(leaves32), 64: iter(leaves64)}

    def replace(match: re.Match[str]) -> str:
        leaf = next(queues[64 if "i64" in match.group() else 32])
        operands.append(leaf.ir_value())
        return "%lld" if leaf.width == 64 else "%d"

    return re.sub(r"\?(?:\{[^}]*\})?", replace, text.replace("%", "%%"))


def number_conversion(number: Numeric, flags: str, operands: list[Any]) -> str:
    """`%f`, `%d`, `%lld` or `%u` with `flags` (`% `, say) in front; the value goes to `operands`."""
    mark = _number(number, PLAIN, operands)
    if mark.endswith("u") and flags.endswith(" "):  # C knows no room for a sign where there is none
        return " " + mark
    return mark.replace("%", flags, 1)


def _number(number: Numeric, place: Place, operands: list[Any]) -> str:
    """An integer in a place for floats is converted; a float in one for integers is an error."""
    cls = type(number)
    if cls.is_float and not place.free and place.kind not in FLOAT:
        raise misfit(place, f"a {cls}")
    if cls.is_float or place.kind in tuple(FLOAT):
        wide = number if cls in (Float32, Float64) else Float32(number) if cls.is_float else Float64(number)
        operands.append(wide.ir_value())
        return place.conversion("f" if place.free else place.kind)
    if cls.width > 64:
        raise misfit(place, f"a {cls}, which has more than 64 bits")
    wide, signed = _integer(number)
    operands.append(wide.ir_value())
    if place.kind == "p":
        operands[-1] = Int64(number).ir_value()
        return "0x%016llx"
    if place.kind == "c":
        operands[-1] = Int32(number).ir_value()
        return place.conversion("c", precise=False)
    kind = place.kind if place.kind in tuple("uoxX") else "d" if signed else "u"
    return place.conversion(kind, long=wide.width == 64, precise=not place.free)


def _integer(number: Numeric) -> tuple[Numeric, bool]:
    """The number in 32 or 64 bits, and whether it has a sign."""
    if type(number) is Boolean:
        return Int32(number), True
    signed, wide = type(number).signed, number.width > 32
    if signed:
        return (Int64(number) if wide else Int32(number)), True
    return (Uint64(number) if wide else Uint32(number)), False


def assert_(condition: Any, message: str = "", *, loc: object = None, ip: object = None) -> None:
    """Stop the program with `message` when `condition` is false at run time.

    On the device it is checked only with `EnableAssertions`; on the host always: the call raises `LaunchError`.
    """
    program = trace.current()
    number = Boolean(as_numeric(condition))
    place = user_location()
    text = message or "assertion failed"
    if number.is_static:
        if not number.value:
            raise CompileError(text, location=place)
        return
    if program.side == "device" and not program.assertions:
        return
    where = f"{text} ({place})" if place is not None else text
    build.cute("assert", (), ((number.ir_value(),),), message=build.string(where))
