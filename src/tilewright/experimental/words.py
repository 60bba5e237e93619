"""Single numbers of 32 bits: their bits, bytes picked from two of them, two of them packed."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.experimental.enums import PermuteMode
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, Numeric, Uint32, as_numeric
from tilewright.lang.nvgpu.instructions import instruction


def mov_b32(value: Any, *, target_type: type[Numeric], loc: object = None, ip: object = None) -> Numeric:
    """The 32 bits of a number as a number of another type.

    Raises:
        CompileError: a type does not have 32 bits.
    """
    number = as_numeric(value)
    if number.width != 32 or target_type.width != 32:
        raise CompileError(
            "mov_b32 is between types of 32 bits",
            location=user_location(),
            values={"from": type(number), "to": target_type},
        )
    bits: Numeric = number.bitcast(target_type)
    return bits


def prmt(
    lo: Any,
    selector: Any,
    mode: PermuteMode = PermuteMode.DEFAULT,
    *,
    hi: Any = 0,
    loc: object = None,
    ip: object = None,
) -> Uint32:
    """Four bytes of the eight of `hi` and `lo`, picked by the nibbles of `selector` (PTX `prmt.b32`)."""
    operands = tuple(_word(item) for item in (lo, hi, selector))
    made = instruction(f"prmt.b32{mode.value} $0, $1, $2, $3;", operands, result=Int32, pure=True)
    return Uint32(made)


def _word(value: Any) -> Int32:
    """32 bits of a number, or of a Python int with or without sign."""
    return Int32(Uint32(value & 0xFFFFFFFF) if isinstance(value, int) else as_numeric(value))


def convert_and_pack_integer(
    high: Any, low: Any, to: Any, *, is_signed: bool = True, loc: object = None, ip: object = None
) -> Uint32:
    """Two Int32, held within 16 bits with or without sign, packed as `high`, `low` (PTX `cvt.pack.sat`).

    Raises:
        CompileError: `to` is no type of 16 bits.
    """
    if str(getattr(to, "mlir_type", to)) != "i16":
        raise CompileError(
            f"convert_and_pack_integer to {to}",
            location=user_location(),
            hint="it packs two numbers of 16 bits, T.i16()",
        )
    sign = "s" if is_signed else "u"
    text = f"cvt.pack.sat.{sign}16.s32 $0, $1, $2;"
    return Uint32(instruction(text, (_word(high), _word(low)), result=Int32, pure=True))
