"""Conversions of floats of 8 bits and fewer, in integer arithmetic: the same bits on every target.

Encoding rounds to nearest even and saturates, as PTX's `cvt.rn.satfinite` does. Formats: `hw.narrow_floats`. All work
is on 32-bit patterns; other float types pass through float32, from float64 with rounding to odd, so that no number is
rounded twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.hw.narrow_floats import E8M0, FORMATS, TF32_DROPPED, Format, is_narrow
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.ir.locations import source_location
from tilewright.ir.vectors import like
from tilewright.passes.lowering import LoweringContext, Rules
from tilewright.passes.rules import float_to_int

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_F32_BIAS, _F32_MANTISSA = 127, 23
_INFINITY, _QUIET_NAN, _ABSOLUTE = 0x7F800000, 0x7FFFFFFF, 0x7FFFFFFF
NATIVE = ("f16", "bf16", "f32", "f64")


@rules.lowers("convert")
def _convert(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    source, target = text_of(op, "source"), text_of(op, "target")
    if float_to_int.is_integer(target):
        return [float_to_int.convert(op.operands[0], source, target)]
    for name in (source, target):
        if name not in NATIVE and not is_narrow(name) and name != "tf32":
            raise CompileError(f"no conversion from {source} to {target}", location=source_location(op.location))
    return [convert(op.operands[0], source, target)]


def convert(value: ir.Value, source: str, target: str) -> ir.Value:
    """A float or vector of type `source` as `target`, at least one of them narrow."""
    wide = from_narrow(value, source) if is_narrow(source) else to_f32(value, source)
    if target == "tf32":
        return to_tf32(wide)
    return to_narrow(wide, target) if is_narrow(target) else from_f32(wide, target)


def to_f32(value: ir.Value, source: str) -> ir.Value:
    """A native float as float32; float64 rounds to odd, which the next rounding cannot tell from the exact number."""
    if source in ("f32", "tf32"):
        return value
    result = like(value, "f32")
    if source != "f64":
        return build.value("arith.extf", result, (value,))
    nearest = build.value("arith.truncf", result, (value,))
    back = build.value("arith.extf", value.type, (nearest,))
    bits = _bits(nearest, 32)
    exact = _compare_float(1, back, value)  # ordered and equal
    too_far = _compare_float(2, _magnitude(back), _magnitude(value))
    toward_zero = _select(too_far, _op("subi", bits, _number(1, bits)), bits)
    odd = _op("ori", toward_zero, _number(1, bits))
    unchanged = _op("ori", exact, _compare_float(14, value, value))  # equal, or NaN
    return build.value("arith.bitcast", result, (_select(unchanged, bits, odd),))


def _magnitude(value: ir.Value) -> ir.Value:
    return build.value("math.absf", value.type, (value,))


def from_f32(value: ir.Value, target: str) -> ir.Value:
    """A float32 as a native float."""
    if target == "f32":
        return value
    name = "arith.extf" if target == "f64" else "arith.truncf"
    return build.value(name, like(value, target), (value,))


def to_tf32(value: ir.Value) -> ir.Value:
    """A float32 rounded to 10 bits of fraction, ties away from zero, as `cvt.rna.tf32` does."""
    bits = _bits(value, 32)
    rounded = _op("addi", bits, _number(1 << (TF32_DROPPED - 1), bits))
    kept = _op("andi", rounded, _number(-(1 << TF32_DROPPED), bits))
    number = build.value("arith.bitcast", value.type, (kept,))
    return _select(_compare_float(14, value, value), value, number)


def to_narrow(value: ir.Value, target: str) -> ir.Value:
    """A float32 (scalar or vector) in a narrow format."""
    bits = _bits(value, 32)
    code = _encode_power(bits) if target == E8M0 else _encode(bits, FORMATS[target])
    return _from_code(code, target)


def from_narrow(value: ir.Value, source: str) -> ir.Value:
    """A narrow float (scalar or vector) as float32, exactly."""
    code = _to_code(value, source)
    bits = _decode_power(code) if source == E8M0 else _decode(code, FORMATS[source])
    return build.value("arith.bitcast", like(value, "f32"), (bits,))


def _encode(bits: ir.Value, form: Format) -> ir.Value:
    dropped = _F32_MANTISSA - form.mantissa
    magnitude = _op("andi", bits, _number(_ABSOLUTE, bits))
    code = _select(
        _compare(6, magnitude, _number((1 - form.bias + _F32_BIAS) << _F32_MANTISSA, bits)),
        _rounded_denormal(magnitude, form),
        _rounded_normal(magnitude, form, dropped),
    )
    code = _op("minui", code, _number(form.largest, bits))
    sign = _op("shli", _op("shrui", bits, _number(31, bits)), _number(form.exponent + form.mantissa, bits))
    signed = _op("ori", code, sign)
    if form.special == "fnuz":
        signed = _select(_compare(0, code, _number(0, bits)), code, signed)
    return _select(_compare(8, magnitude, _number(_INFINITY, bits)), _number(_nan_code(form), bits), signed)


def _nan_code(form: Format) -> int:
    if form.special == "fnuz":
        return form.sign
    return form.largest if form.special == "none" else form.sign - 1


def _rounded_normal(magnitude: ir.Value, form: Format, dropped: int) -> ir.Value:
    """Add half a unit, less one where the last bit kept is even, cut off, and re-bias the exponent."""
    last = _op("andi", _op("shrui", magnitude, _number(dropped, magnitude)), _number(1, magnitude))
    half = _op("addi", last, _number((1 << (dropped - 1)) - 1, magnitude))
    kept = _op("shrui", _op("addi", magnitude, half), _number(dropped, magnitude))
    return _op("subi", kept, _number((_F32_BIAS - form.bias) << form.mantissa, magnitude))


def _rounded_denormal(magnitude: ir.Value, form: Format) -> ir.Value:
    """Adding a float whose unit is the least number of the format rounds in hardware; its low bits are the code."""
    exponent = 1 - form.bias - form.mantissa + _F32_MANTISSA
    anchor = (exponent + _F32_BIAS) << _F32_MANTISSA
    f32 = _shaped(magnitude, "f32")
    anchor_float = build.value("arith.bitcast", f32, (_number(anchor, magnitude),))
    value = build.value("arith.bitcast", f32, (magnitude,))
    total = build.value("arith.addf", f32, (value, anchor_float))
    return _op("subi", build.value("arith.bitcast", magnitude.type, (total,)), _number(anchor, magnitude))


def _encode_power(bits: ir.Value) -> ir.Value:
    """The nearest power of two, ties upwards; NaN for negative numbers."""
    rounded = _op("shrui", _op("addi", bits, _number(0x400000, bits)), _number(_F32_MANTISSA, bits))
    below = build.value("arith.extui", bits.type, (_compare(9, bits, _number(0x600000, bits)),))
    code = _select(_compare(6, bits, _number(0x800000, bits)), below, rounded)
    code = _op("minui", code, _number(254, bits))
    minus_zero = _compare(0, bits, _number(-(1 << 31), bits))
    code = _select(minus_zero, _number(0, bits), code)
    bad = _op("andi", _compare(8, bits, _number(_INFINITY, bits)), _not(minus_zero))
    return _select(bad, _number(255, bits), code)


def _decode(code: ir.Value, form: Format) -> ir.Value:
    magnitude = _op("andi", code, _number(form.sign - 1, code))
    f32 = _shaped(code, "f32")
    small = build.value("arith.bitcast", f32, (_op("shli", magnitude, _number(_F32_MANTISSA - form.mantissa, code)),))
    scale = _number((2 * _F32_BIAS - form.bias) << _F32_MANTISSA, code)
    scaled = build.value("arith.mulf", f32, (small, build.value("arith.bitcast", f32, (scale,))))
    bits = build.value("arith.bitcast", code.type, (scaled,))
    if form.special == "ieee":
        fraction = _op("andi", magnitude, _number((1 << form.mantissa) - 1, code))
        special = _op(
            "ori", _op("shli", fraction, _number(_F32_MANTISSA - form.mantissa, code)), _number(_INFINITY, code)
        )
        bits = _select(_compare(8, magnitude, _number(form.largest, code)), special, bits)
    if form.special == "nan":
        bits = _select(_compare(8, magnitude, _number(form.largest, code)), _number(_QUIET_NAN, code), bits)
    sign = _op("shrui", code, _number(form.exponent + form.mantissa, code))
    signed = _op("ori", bits, _op("shli", sign, _number(31, code)))
    if form.special == "fnuz":
        return _select(_compare(0, code, _number(form.sign, code)), _number(_QUIET_NAN, code), signed)
    return signed


def _decode_power(code: ir.Value) -> ir.Value:
    bits = _op("shli", code, _number(_F32_MANTISSA, code))
    bits = _select(_compare(0, code, _number(0, code)), _number(0x400000, code), bits)  # 2^-127 is a denormal
    return _select(_compare(0, code, _number(255, code)), _number(_QUIET_NAN, code), bits)


# Small words over scalars and vectors alike.


def _shaped(value: ir.Value, element: str) -> ir.Type:
    if not isinstance(value.type, mlir.ir.VectorType):
        return types.parse(element)
    return types.parse(f"vector<{value.type.shape[0]}x{element}>")


def _number(number: int, model: ir.Value) -> ir.Value:
    signed = number - (1 << 32) if number >= 1 << 31 else number
    if isinstance(model.type, mlir.ir.VectorType):
        return build.splat(signed, model.type)
    return build.constant(signed, model.type)


def _op(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
    return build.value(f"arith.{name}", left.type, (left, right))


def _not(flag: ir.Value) -> ir.Value:
    true = build.splat(1, flag.type) if isinstance(flag.type, mlir.ir.VectorType) else build.constant(1, flag.type)
    return _op("xori", flag, true)


def _compare(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    """`arith.cmpi`: 0 eq, 6 ult, 8 ugt, 9 uge."""
    return build.value("arith.cmpi", _shaped(left, "i1"), (left, right), {"predicate": build.i64(predicate)})


def _compare_float(predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
    """`arith.cmpf`: 1 oeq, 2 ogt, 14 uno."""
    return build.value("arith.cmpf", _shaped(left, "i1"), (left, right), {"predicate": build.i64(predicate)})


def _select(condition: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return build.value("arith.select", left.type, (condition, left, right))


def _bits(value: ir.Value, width: int) -> ir.Value:
    return build.value("arith.bitcast", _shaped(value, f"i{width}"), (value,))


def _width(name: str) -> int:
    if name == E8M0:
        return 8
    form = FORMATS[name]
    return form.exponent + form.mantissa + 1


def _to_code(value: ir.Value, name: str) -> ir.Value:
    return build.value("arith.extui", _shaped(value, "i32"), (_bits(value, _width(name)),))


def _from_code(code: ir.Value, name: str) -> ir.Value:
    narrow = build.value("arith.trunci", _shaped(code, f"i{_width(name)}"), (code,))
    return build.value("arith.bitcast", like(code, name), (narrow,))
