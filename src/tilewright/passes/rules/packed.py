"""Elements of 4 and 6 bits: element `i` takes the bits from `i` times its width on, the lowest of a byte first.

So two elements of 4 bits share a byte, and four of 6 bits three bytes. Runs of an even number of 4-bit ones move as
whole bytes. Any other element is read from the one or two bytes that it lies in, and written by reading, changing and
writing them: threads that write to one byte must be ordered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.ir.context import current
from tilewright.ir.int_value import IntValue, materialize
from tilewright.ir.vectors import cast
from tilewright.passes.lowering import gep

if TYPE_CHECKING:
    from mlir import ir

_WIDTHS = {"i4": 4, "f4E": 4, "f6E": 6}


def bits_of(element: ir.Type) -> int:
    """The bits of an element type that is no whole number of bytes; 0 of others."""

    def find() -> int:
        return next((bits for start, bits in _WIDTHS.items() if str(element).startswith(start)), 0)

    return int(current().cached(("packed", element), find))


def is_packed(element: ir.Type) -> bool:
    """True for element types of 4 and 6 bits."""
    return bits_of(element) > 0


def _bytes_of(offset: IntValue | int, bits: int) -> IntValue | int:
    """The bytes of `offset` elements.

    Raises:
        CompileError: they are not known to be whole: an address points to a byte.
    """
    group = 8 // math.gcd(bits, 8)  # elements that fill whole bytes
    whole = offset % group == 0 if isinstance(offset, int) else offset.divisibility % group == 0
    if not whole:
        raise CompileError(
            f"an address of elements of {bits} bits would lie inside a byte",
            values={"offset": f"{offset} elements"},
            hint=f"slice and tile so that offsets are multiples of {group}: `cute.assume(index, divby={group})` tells"
            " that an index is",
        )
    return offset // group * (group * bits // 8)


def advance(pointer: ir.Value, offset: IntValue | int, element: ir.Type) -> ir.Value:
    """The address `offset` elements on."""
    index = _bytes_of(offset, bits_of(element))
    wide = isinstance(index, int) or index.width == 64
    return gep(pointer, materialize(index, 64 if wide else 32), types.parse("i8"))


def load_one(pointer: ir.Value, offset: Any, element: ir.Type) -> ir.Value:
    """The element at any offset; `element` may be the integer type of its bits."""
    place = _Place.of(pointer, offset, int(element.width))
    word = place.read()
    shifted = build.value("arith.shrui", word.type, (word, place.shift))
    return cast(build.value("arith.trunci", types.parse(f"i{place.bits}"), (shifted,)), element)


def store_one(value: ir.Value, pointer: ir.Value, offset: Any) -> None:
    """Write the element at any offset; other bits of its bytes stay."""
    bits = int(value.type.width)
    place = _Place.of(pointer, offset, bits)
    i16 = types.parse("i16")
    mask = build.value("arith.shli", i16, (build.constant((1 << bits) - 1, i16), place.shift))
    code = build.value("arith.extui", i16, (cast(value, types.parse(f"i{bits}")),))
    place.write(build.value("arith.shli", i16, (code, place.shift)), mask)


@dataclass(frozen=True)
class _Place:
    """The bytes that an element lies in: the address of the first and, where it may lie in two, of the last; and how
    far the element is shifted in the 16-bit word that they make."""

    first: ir.Value
    last: ir.Value | None
    shift: ir.Value
    bits: int

    @classmethod
    def of(cls, pointer: ir.Value, offset: Any, bits: int) -> _Place:
        i64 = types.parse("i64")
        start = build.value("arith.muli", i64, (materialize(offset, 64), build.constant(bits, i64)))
        low = build.value("arith.andi", i64, (start, build.constant(7, i64)))
        shift = build.value("arith.trunci", types.parse("i16"), (low,))
        last = None
        if 8 % bits:
            end = build.value("arith.addi", i64, (start, build.constant(bits - 1, i64)))
            last = _byte_at(pointer, end)
        return cls(_byte_at(pointer, start), last, shift, bits)

    def read(self) -> ir.Value:
        word = _read(self.first)
        if self.last is None:
            return word
        return build.value("arith.ori", word.type, (word, self._raised(_read(self.last))))

    def _raised(self, byte: ir.Value) -> ir.Value:
        return build.value("arith.shli", byte.type, (byte, build.constant(8, byte.type)))

    def write(self, code: ir.Value, mask: ir.Value) -> None:
        """Change the bits of `mask`; the last byte is read after the first is written: it may be the same."""
        _change(self.first, code, mask)
        if self.last is not None:
            eight = build.constant(8, code.type)
            upper = (build.value("arith.shrui", code.type, (word, eight)) for word in (code, mask))
            _change(self.last, *upper)


def _byte_at(pointer: ir.Value, bit: ir.Value) -> ir.Value:
    byte = build.value("arith.shrsi", bit.type, (bit, build.constant(3, bit.type)))
    return gep(pointer, byte, types.parse("i8"))


def _read(address: ir.Value) -> ir.Value:
    byte = build.value("llvm.load", types.parse("i8"), (address,), {"alignment": build.i64(1)})
    return build.value("arith.extui", types.parse("i16"), (byte,))


def _change(address: ir.Value, code: ir.Value, mask: ir.Value) -> None:
    keep = build.value("arith.xori", mask.type, (mask, build.constant(-1, mask.type)))
    kept = build.value("arith.andi", mask.type, (_read(address), keep))
    changed = build.value("arith.ori", mask.type, (kept, code))
    byte = build.value("arith.trunci", types.parse("i8"), (changed,))
    build.emit("llvm.store", (), (byte, address), {"alignment": build.i64(1)})
