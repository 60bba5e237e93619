"""Conversion of MLIR values from one number type to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.dtypes import TABLE, DType
from tilewright.hw import narrow_floats
from tilewright.ir import build
from tilewright.lang.numbers import arithmetic, wide_integers
from tilewright.lang.numbers.promotion import computes_wide

if TYPE_CHECKING:
    from mlir import ir


def convert(operand: ir.Value, source: DType, target: DType) -> ir.Value:
    """`operand` (scalar or vector) of type `source` as `target`.

    Integers wrap; floats round to nearest even, and become integers towards zero and clamped (`hw.saturation`).
    """
    if source == target:
        return operand
    result = arithmetic.same_shape(operand.type, target.mlir)
    if source.kind == "f" and target.kind == "f":
        return _float_to_float(operand, source, target, result)
    if computes_wide(source) or computes_wide(target):
        through = TABLE["f64" if target.name in _COARSE and source.width >= 32 else "f32"]
        return convert(convert(_sticky(operand, source, through), source, through), through, target)
    if target.kind == "b":
        return arithmetic.compare("ne", source.arithmetic_kind, operand, arithmetic.constant(0, operand.type))
    if source.kind == "f":
        return _operation(operand, source, target, result)
    if target.kind == "f" and source.width > 64:
        return _wide_to_float(operand, source, target)
    if target.kind == "f":
        operand = _within_half(operand, source) if target.name == "f16" else operand
        return build.value("arith.sitofp" if source.kind == "i" else "arith.uitofp", result, (operand,))
    return _int_to_int(operand, source, target, result)


_COARSE = ("tf32", narrow_floats.E8M0)  # hold numbers so great that Float32 has rounded them already
_EXACT = 53  # bits of an integer that Float64 holds


def _sticky(operand: ir.Value, source: DType, through: DType) -> ir.Value:
    """An integer that `through` holds exactly and that rounds to few bits as `operand` does: of great numbers the low
    bits are one, which is set if any was."""
    if source.kind not in "iu" or through.name != "f64" or source.width != 64:
        return operand
    low = source.width - _EXACT
    type_ = operand.type
    lost = arithmetic.binary("and", "i", operand, arithmetic.constant((1 << low) * 2 - 1, type_))
    zero = arithmetic.constant(0, type_)
    kept = arithmetic.binary("and", "i", operand, arithmetic.constant(-(1 << low) * 2, type_))
    bit = arithmetic.select(arithmetic.compare("ne", "i", lost, zero), arithmetic.constant(1 << low, type_), zero)
    size = arithmetic.absolute(source.arithmetic_kind, operand)
    small = arithmetic.compare("lt", "u", size, arithmetic.constant(1 << _EXACT, type_))
    return arithmetic.select(small, operand, arithmetic.binary("or", "i", kept, bit))


def _wide_to_float(operand: ir.Value, source: DType, target: DType) -> ir.Value:
    """An integer of 128 bits: its size without its low bits, of which the last one kept is set if any was, as a float;
    then times a power of two, which is exact."""
    negative = arithmetic.compare("lt", source.arithmetic_kind, operand, arithmetic.constant(0, operand.type))
    size = arithmetic.select(negative, arithmetic.negate("i", operand), operand)
    low, high = wide_integers.halves(size)
    exponent = _bit_length(high)
    amount = wide_integers.join(exponent, arithmetic.constant(0, low.type))
    kept = arithmetic.binary("shr", "u", size, amount)
    lost = arithmetic.compare("ne", "u", arithmetic.binary("shl", "u", kept, amount), size)
    odd = build.value("arith.extui", low.type, (lost,))
    rounded = convert(arithmetic.binary("or", "u", wide_integers.halves(kept)[0], odd), TABLE["u64"], target)
    half = arithmetic.binary("shr", "u", exponent, arithmetic.constant(1, low.type))
    rest = arithmetic.binary("sub", "u", exponent, half)
    for part in (half, rest):  # 2^64 is no Float16
        power = arithmetic.binary("shl", "u", arithmetic.constant(1, low.type), part)
        rounded = arithmetic.binary("mul", "f", rounded, convert(power, TABLE["u64"], target))
    return arithmetic.select(negative, arithmetic.negate("f", rounded), rounded)


_BEYOND_HALF = 131071  # infinite as a Float16; and all its bits are set, see below


def _within_half(operand: ir.Value, source: DType) -> ir.Value:
    """Clamped to what still is infinite: LLVM 22 takes a conversion of few significant bits for exact, however great
    the integer is, and with it drops the Float16 on the way to a wider float."""
    if source.width < 32:
        return operand
    kind = source.arithmetic_kind
    operand = arithmetic.binary("min", kind, operand, arithmetic.constant(_BEYOND_HALF, operand.type))
    if kind == "u":
        return operand
    return arithmetic.binary("max", kind, operand, arithmetic.constant(-_BEYOND_HALF, operand.type))


def _bit_length(number: ir.Value) -> ir.Value:
    """The position behind the highest bit set of 64, by halving."""
    zero = arithmetic.constant(0, number.type)
    length = zero
    for step in (32, 16, 8, 4, 2, 1):
        above = arithmetic.binary("shr", "u", number, arithmetic.constant(step, number.type))
        any_above = arithmetic.compare("ne", "u", above, zero)
        number = arithmetic.select(any_above, above, number)
        more = arithmetic.select(any_above, arithmetic.constant(step, number.type), zero)
        length = arithmetic.binary("add", "u", length, more)
    return arithmetic.binary("add", "u", length, number)  # 0 or 1 is left


def _int_to_int(operand: ir.Value, source: DType, target: DType, result: ir.Type) -> ir.Value:
    source_width = 1 if source.kind == "b" else source.width
    if source_width == target.width:
        return operand
    if source_width > target.width:
        return build.value("arith.trunci", result, (operand,))
    return build.value("arith.extsi" if source.kind == "i" else "arith.extui", result, (operand,))


def _operation(operand: ir.Value, source: DType, target: DType, result: ir.Type) -> ir.Value:
    """A conversion that targets do in their own ways."""
    names = {"source": build.string(source.name), "target": build.string(target.name)}
    return build.cute("convert", (result,), ((operand,),), **names).results[0]


_NATIVE_FLOATS = ("f16", "bf16", "f32", "f64")


def _float_to_float(operand: ir.Value, source: DType, target: DType, result: ir.Type) -> ir.Value:
    if source.name not in _NATIVE_FLOATS or target.name not in _NATIVE_FLOATS:
        return _operation(operand, source, target, result)
    if source.width < target.width:
        return build.value("arith.extf", result, (operand,))
    if source.width > target.width:
        return build.value("arith.truncf", result, (operand,))
    wide = convert(operand, source, TABLE["f32"])
    return convert(wide, TABLE["f32"], target)
