"""Arithmetic on MLIR values: scalars, vectors and tiles alike.

Each function takes operands already of one type and `kind`: `i` signed, `u` unsigned, `f` float. Integer division and
remainder follow Python (towards minus infinity); shifts by the width or more give what an unbounded shift gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.context import current
from tilewright.lang.contraction import contraction
from tilewright.lang.numbers import wide_integers
from tilewright.lang.numbers.rounding import EXPONENTS_OF_PRODUCTS, power_by_products

if TYPE_CHECKING:
    from mlir import ir

_PLAIN = {
    "add": {"i": "arith.addi", "u": "arith.addi", "f": "arith.addf"},
    "sub": {"i": "arith.subi", "u": "arith.subi", "f": "arith.subf"},
    "mul": {"i": "arith.muli", "u": "arith.muli", "f": "arith.mulf"},
    "and": {"i": "arith.andi", "u": "arith.andi"},
    "or": {"i": "arith.ori", "u": "arith.ori"},
    "xor": {"i": "arith.xori", "u": "arith.xori"},
    "min": {"i": "arith.minsi", "u": "arith.minui", "f": "arith.minnumf"},
    "max": {"i": "arith.maxsi", "u": "arith.maxui", "f": "arith.maxnumf"},
    "truediv": {"f": "arith.divf"},
}
_CONTRACTED = frozenset(("arith.addf", "arith.subf", "arith.mulf"))
_COMPARE = {
    "i": {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5},
    "u": {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9},
    "f": {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13},  # ordered, but `ne` is true for NaN, as in Python
}


def binary(name: str, kind: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """`left name right`; name is add sub mul truediv floordiv mod and or xor shl shr min max pow."""
    plain = _PLAIN.get(name, {}).get(kind)
    if plain is not None:
        return build.value(plain, left.type, (left, right), contraction() if plain in _CONTRACTED else None)
    return _SPECIAL[name](kind, left, right)


def compare(name: str, kind: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """`left name right` as i1 (or a vector of i1); name is eq ne lt le gt ge."""
    op = "arith.cmpf" if kind == "f" else "arith.cmpi"
    predicate = build.i64(_COMPARE[kind][name])
    return build.value(op, same_shape(left.type, "i1"), (left, right), {"predicate": predicate})


def select(condition: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    """`left` where `condition`, else `right`."""
    return build.value("arith.select", left.type, (condition, left, right))


def negate(kind: str, operand: ir.Value) -> ir.Value:
    """`-operand`."""
    if kind == "f":
        return build.value("arith.negf", operand.type, (operand,))
    return build.value("arith.subi", operand.type, (constant(0, operand.type), operand))


def invert(operand: ir.Value) -> ir.Value:
    """All bits of an integer flipped."""
    return build.value("arith.xori", operand.type, (operand, constant(-1, operand.type)))


def absolute(kind: str, operand: ir.Value) -> ir.Value:
    """The absolute value; the least signed integer stays as it is."""
    if kind == "u":
        return operand
    if kind == "f":
        return build.value("math.absf", operand.type, (operand,))
    return build.value("arith.maxsi", operand.type, (operand, negate(kind, operand)))


def constant(number: int | float, type_: ir.Type) -> ir.Value:
    """A scalar constant, or a vector or tile of it."""
    return build.splat(number, type_) if types.is_shaped(type_) else build.constant(number, type_)


def same_shape(type_: ir.Type, element: str) -> ir.Type:
    """Element type `element` (MLIR spelling) in the shape of `type_`, a vector or tile where that is one."""

    def make() -> ir.Type:
        if types.is_shaped(type_):
            shape = "x".join(str(extent) for extent in type_.shape)
            kind = "vector" if isinstance(type_, mlir.ir.VectorType) else "tensor"
            return types.parse(f"{kind}<{shape}x{element}>")
        return types.parse(element)

    return current().cached(("same_shape", type_, element), make)


def constant_of(operand: ir.Value) -> int | None:
    """The number that an `arith.constant` of integers holds, in all its elements, else None."""
    owner = operand.owner
    if getattr(owner, "name", "") != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, mlir.ir.DenseIntElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, mlir.ir.IntegerAttr) else None


def float_constant_of(operand: ir.Value) -> float | None:
    """The number that an `arith.constant` of floats holds, in all its elements, else None."""
    owner = operand.owner
    name = getattr(owner, "name", "")
    if name == "vector.broadcast":
        return float_constant_of(owner.operands[0])
    if name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, mlir.ir.DenseFPElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, mlir.ir.FloatAttr) else None


def _width(type_: ir.Type) -> int:
    element = type_.element_type if types.is_shaped(type_) else type_
    return element.width


def _floordiv(kind: str, left: ir.Value, right: ir.Value) -> ir.Value:
    if kind == "f":
        return _floor(build.value("arith.divf", left.type, (left, right)))
    if kind == "u":
        return build.value("arith.divui", left.type, (left, right))
    divisor = constant_of(right)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        amount = constant(divisor.bit_length() - 1, left.type)
        return build.value("arith.shrsi", left.type, (left, amount))
    if divisor == -1:  # LLVM's division by it has no result for the least number
        return negate(kind, left)
    if _width(left.type) > 64:
        return _floordiv_wide(left, right)
    return build.value("arith.floordivsi", left.type, (left, right))


def _floordiv_wide(left: ir.Value, right: ir.Value) -> ir.Value:
    """Of 128 bits: MLIR's own expansion adds 2^64 - 1 where it means -1."""
    quotient = build.value("arith.divsi", left.type, (left, right))
    inexact = compare("ne", "i", binary("mul", "i", quotient, right), left)
    zero = constant(0, left.type)
    signs = build.value("arith.xori", inexact.type, (compare("lt", "i", left, zero), compare("lt", "i", right, zero)))
    below = build.value("arith.andi", inexact.type, (inexact, signs))
    return binary("sub", "i", quotient, build.value("arith.extui", left.type, (below,)))


def _mod(kind: str, left: ir.Value, right: ir.Value) -> ir.Value:
    if kind == "u":
        return build.value("arith.remui", left.type, (left, right))
    divisor = constant_of(right) if kind == "i" else None
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return build.value("arith.andi", left.type, (left, constant(divisor - 1, left.type)))
    if divisor == -1:
        return constant(0, left.type)
    op = "arith.remf" if kind == "f" else "arith.remsi"
    remainder = build.value(op, left.type, (left, right))
    zero = constant(0, left.type)
    wrong_sign = build.value(
        "arith.xori",
        same_shape(left.type, "i1"),
        (compare("lt", kind, remainder, zero), compare("lt", kind, right, zero)),
    )
    adjust = build.value(
        "arith.andi", wrong_sign.type, (wrong_sign, compare("ne", kind, remainder, zero))
    )  # a zero remainder keeps
    result = select(adjust, binary("add", kind, remainder, right), remainder)
    if kind == "f":  # a zero has the divisor's sign, as in Python
        return build.value("math.copysign", left.type, (result, right))
    return result


def _shift(op: str, kind: str, left: ir.Value, right: ir.Value) -> ir.Value:
    width = _width(left.type)
    amount = constant_of(right)
    if amount is not None and 0 <= amount < width:
        return build.value(op, left.type, (left, right))
    limit = constant(width - 1, left.type)
    if width > 64:
        bounded = build.value("arith.minui", left.type, (right, limit))
        shifted = wide_integers.shift(op, left, bounded)
        outside = compare("lt", "u", limit, right)
        return shifted if op == "arith.shrsi" else select(outside, constant(0, left.type), shifted)
    if op == "arith.shrsi":
        return build.value(op, left.type, (left, build.value("arith.minui", left.type, (right, limit))))
    if width > 32:  # LLVM 22 drops the comparison below and keeps the low 32 bits of the amount
        right = build.value("arith.minui", left.type, (right, constant(width, left.type)))
    inside = compare("le", "u", right, limit)
    return select(inside, build.value(op, left.type, (left, right)), constant(0, left.type))


def _power(kind: str, left: ir.Value, right: ir.Value) -> ir.Value:
    if kind == "f":
        return _float_power(left, right)
    exponent = constant_of(right)
    if exponent is not None and exponent >= 0:
        return _power_of(left, exponent)
    return _integer_power(kind, left, right)


def _float_power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """Small whole exponents, if they are constants, by products: exact to 1.5 units in the last place, which the
    general function does not promise; 16-bit numbers in 32 bits, rounded once."""
    whole = float_constant_of(exponent)
    if whole not in EXPONENTS_OF_PRODUCTS:
        return build.value("math.powf", base.type, (base, exponent))
    if whole in (0, 1):
        return base if whole else constant(1.0, base.type)
    if whole == -1:
        return build.value("arith.divf", base.type, (constant(1.0, base.type), base))
    wide = base if _width(base.type) >= 32 else build.value("arith.extf", same_shape(base.type, "f32"), (base,))
    result = power_by_products(wide, int(whole), lambda a, b: binary("mul", "f", a, b))
    return result if wide is base else build.value("arith.truncf", base.type, (result,))


def _power_of(base: ir.Value, exponent: int) -> ir.Value:
    """A power with a constant exponent, by squaring."""
    result = None if exponent else constant(1, base.type)
    while exponent:
        if exponent & 1:
            result = base if result is None else binary("mul", "i", result, base)
        exponent >>= 1
        if exponent:
            base = binary("mul", "i", base, base)
    return result


def _integer_power(kind: str, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """By squaring, a step for each bit of the exponent; a negative exponent gives 0, except for bases 1 and -1."""
    one, zero = constant(1, base.type), constant(0, base.type)
    result, square = one, base
    for bit in range(_width(base.type)):
        mask = constant(1 << bit, base.type)
        isset = compare("ne", "i", build.value("arith.andi", base.type, (exponent, mask)), zero)
        result = select(isset, binary("mul", "i", result, square), result)
        square = binary("mul", "i", square, square)
    if kind == "u":
        return result
    size = absolute(kind, base)
    vanishes = build.value(
        "arith.andi", isset.type, (compare("lt", "i", exponent, zero), compare("ne", "i", size, one))
    )
    return select(vanishes, zero, result)


def _floor(operand: ir.Value) -> ir.Value:
    return build.value("math.floor", operand.type, (operand,))


_SPECIAL = {
    "floordiv": _floordiv,
    "mod": _mod,
    "shl": lambda kind, left, right: _shift("arith.shli", kind, left, right),
    "shr": lambda kind, left, right: _shift("arith.shrsi" if kind == "i" else "arith.shrui", kind, left, right),
    "pow": _power,
}
