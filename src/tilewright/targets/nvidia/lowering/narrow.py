"""Conversions to and from e4m3 and e5m2 by the chip's own instructions (`cvt`, sm_89 and up), two numbers at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.hw.features import supports
from tilewright.hw.narrow_floats import is_narrow
from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.accessors import text_of
from tilewright.ir.vectors import extract, insert, like
from tilewright.passes.lowering import LoweringContext, Rules
from tilewright.passes.rules import narrow
from tilewright.passes.rules.float_to_int import is_integer
from tilewright.targets.nvidia.lowering import float_to_int
from tilewright.targets.nvidia.lowering.rules import use

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_NAMES = {"f8e4m3fn": "e4m3x2", "f8e5m2": "e5m2x2"}


@rules.lowers("convert")
def _convert(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    source, target = text_of(op, "source"), text_of(op, "target")
    value = op.operands[0]
    if is_integer(target):
        return [float_to_int.convert(value, source, target)]
    if target in _NAMES and supports("cvt.f8x2", context.facts["arch"]):
        use("cvt.f8x2", "cvt.rn.satfinite", context)
        wide = narrow.from_narrow(value, source) if is_narrow(source) else narrow.to_f32(value, source)
        return [_by_pairs(wide, like(wide, target), lambda low, high: _pack(low, high, _NAMES[target]))]
    if source in _NAMES and target in narrow.NATIVE and supports("cvt.f16x2.f8x2", context.facts["arch"]):
        use("cvt.f16x2.f8x2", "cvt.rn.f16x2", context)
        halves = _by_pairs(value, like(value, "f16"), lambda low, high: _unpack(low, high, _NAMES[source]))
        return [_from_half(halves, target)]
    return [narrow.convert(value, source, target)]


def _by_pairs(value: ir.Value, result: ir.Type, convert: object) -> ir.Value:
    """`convert(low, high)` on each pair of elements; it gives a vector of two."""
    if not isinstance(value.type, mlir.ir.VectorType):
        return extract(convert(value, value), 0)  # type: ignore[operator]
    whole = vectors.poison(result)
    count = value.type.shape[0]
    for index in range(0, count, 2):
        low = extract(value, index)
        high = extract(value, index + 1) if index + 1 < count else low
        pair = convert(low, high)  # type: ignore[operator]
        for step in range(min(2, count - index)):
            whole = insert(whole, extract(pair, step), index + step)
    return whole


def _pack(low: ir.Value, high: ir.Value, name: str) -> ir.Value:
    code = _asm(f"cvt.rn.satfinite.{name}.f32 $0, $1, $2;", "=h,f,f", "i16", (high, low))
    element = "f8E4M3FN" if name.startswith("e4m3") else "f8E5M2"
    return _bitcast_vector(code, f"vector<2x{element}>")


def _bitcast_vector(code: ir.Value, type_: str) -> ir.Value:
    bytes_ = build.value("llvm.bitcast", types.parse("vector<2xi8>"), (code,))
    return build.value("arith.bitcast", types.parse(type_), (bytes_,))


def _unpack(low: ir.Value, high: ir.Value, name: str) -> ir.Value:
    i8, i16 = types.parse("i8"), types.parse("i16")
    parts = [build.value("arith.extui", i16, (build.value("arith.bitcast", i8, (part,)),)) for part in (low, high)]
    shifted = build.value("arith.shli", i16, (parts[1], build.constant(8, i16)))
    code = build.value("arith.ori", i16, (parts[0], shifted))
    halves = _asm(f"cvt.rn.f16x2.{name} $0, $1;", "=r,h", "i32", (code,))
    return build.value("llvm.bitcast", types.parse("vector<2xf16>"), (halves,))


def _asm(text: str, constraints: str, result: str, operands: tuple[ir.Value, ...]) -> ir.Value:
    attributes = {
        "asm_string": build.string(text), "constraints": build.string(constraints), "asm_dialect": build.i64(0)
    }  # fmt: skip
    return build.value("llvm.inline_asm", types.parse(result), operands, attributes)


def _from_half(value: ir.Value, target: str) -> ir.Value:
    """Half holds all numbers of both formats, so what follows is exact, or rounds once."""
    if target == "f16":
        return value
    wide = build.value("arith.extf", like(value, "f32"), (value,))
    return narrow.from_f32(wide, target)
