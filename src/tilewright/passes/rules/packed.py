"""Elements of 4 bits: two share a byte, the one of even offset in its low half.

Runs of an even number of them move as whole bytes. A single one is read from its byte, and written by reading, changing
and writing the byte: threads that write both halves of one byte must be ordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.ir.context import current
from tilewright.ir.int_value import IntValue, materialize
from tilewright.ir.vectors import cast
from tilewright.passes.lowering import gep

if TYPE_CHECKING:
    from mlir import ir

_NARROW = ("i4", "f4E")


def is_packed(element: ir.Type) -> bool:
    """True for element types of 4 bits."""
    return bool(current().cached(("packed", element), lambda: str(element).startswith(_NARROW)))


def half(offset: IntValue | int) -> IntValue | int:
    """The bytes of `offset` elements.

    Raises:
        CompileError: it is not known to be even: an address points to a byte.
    """
    even = offset % 2 == 0 if isinstance(offset, int) else offset.divisibility % 2 == 0
    if not even:
        raise CompileError(
            "an address of elements of 4 bits would lie inside a byte",
            values={"offset": f"{offset} elements"},
            hint="slice and tile so that offsets are even: `cute.assume(index, divby=2)` tells that an index is",
        )
    return offset // 2


def advance(pointer: ir.Value, offset: IntValue | int) -> ir.Value:
    """The address `offset` elements on."""
    index = half(offset)
    wide = isinstance(index, int) or index.width == 64
    return gep(pointer, materialize(index, 64 if wide else 32), types.parse("i8"))


def load_one(pointer: ir.Value, offset: Any, element: ir.Type) -> ir.Value:
    """The element at any offset."""
    place, shift = _byte(pointer, offset)
    i8, i4 = types.parse("i8"), types.parse("i4")
    byte = build.value("llvm.load", i8, (place,), {"alignment": build.i64(1)})
    return cast(build.value("arith.trunci", i4, (build.value("arith.shrui", i8, (byte, shift)),)), element)


def store_one(value: ir.Value, pointer: ir.Value, offset: Any) -> None:
    """Write the element at any offset; the other half of its byte stays."""
    place, shift = _byte(pointer, offset)
    i8 = types.parse("i8")
    byte = build.value("llvm.load", i8, (place,), {"alignment": build.i64(1)})
    keep = build.value("arith.shli", i8, (build.constant(0x0F, i8), shift))
    kept = build.value("arith.andi", i8, (byte, build.value("arith.xori", i8, (keep, build.constant(-1, i8)))))
    code = build.value("arith.extui", i8, (cast(value, types.parse("i4")),))
    changed = build.value("arith.ori", i8, (kept, build.value("arith.shli", i8, (code, shift))))
    build.emit("llvm.store", (), (changed, place), {"alignment": build.i64(1)})


def _byte(pointer: ir.Value, offset: Any) -> tuple[ir.Value, ir.Value]:
    """The address of the byte that holds an element, and how far the element is shifted in it."""
    i8, i64 = types.parse("i8"), types.parse("i64")
    index = materialize(offset, 64)
    place = gep(pointer, build.value("arith.shrsi", i64, (index, build.constant(1, i64))), i8)
    odd = build.value("arith.andi", i64, (index, build.constant(1, i64)))
    shift = build.value("arith.trunci", i8, (build.value("arith.shli", i64, (odd, build.constant(2, i64))),))
    return place, shift
