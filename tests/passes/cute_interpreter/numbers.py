"""Arithmetic of `arith` and `math` on Python integers and NumPy floats; vectors are lists."""

from __future__ import annotations

import numpy as np

from tests.passes.cute_interpreter.memory import NUMPY, UNWRITTEN, Undefined
from tests.passes.cute_interpreter.program import vector_type


def width_of(element: str) -> int:
    return 64 if element == "index" else int(element[1:])


def wrapped(number: int, element: str) -> int:
    """The integer in two's complement; Booleans are 0 and 1."""
    width = width_of(element)
    number &= (1 << width) - 1
    return number - (1 << width) if width > 1 and number >> (width - 1) else number


def unsigned(number: int, element: str) -> int:
    return number & ((1 << width_of(element)) - 1)


def constant(value, type_: str):
    count, element = vector_type(type_)
    if count:
        return [constant(item, element) for item in value]
    if element in ("f16", "f32", "f64"):
        return NUMPY[element](value)
    return wrapped(int(value), element)


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _signed_quotient(a: int, b: int, t: str) -> int:
    if b == -1 and a == -(1 << (width_of(t) - 1)):
        raise Undefined("overflow of a division")
    return _quotient(a, b)


def _shift(amount: int, t: str) -> int:
    amount = unsigned(amount, t)
    if amount >= width_of(t):
        raise Undefined("shift beyond the width")
    return amount


def _floor(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    return a // b


INTEGERS = {
    "addi": lambda a, b, t: a + b,
    "subi": lambda a, b, t: a - b,
    "muli": lambda a, b, t: a * b,
    "andi": lambda a, b, t: a & b,
    "ori": lambda a, b, t: a | b,
    "xori": lambda a, b, t: a ^ b,
    "divsi": _signed_quotient,
    "remsi": lambda a, b, t: a - _signed_quotient(a, b, t) * b,
    "divui": lambda a, b, t: _quotient(unsigned(a, t), unsigned(b, t)),
    "remui": lambda a, b, t: unsigned(a, t) - _quotient(unsigned(a, t), unsigned(b, t)) * unsigned(b, t),
    "floordivsi": lambda a, b, t: _floor(a, b),
    "ceildivsi": lambda a, b, t: -_floor(-a, b),
    "shli": lambda a, b, t: a << _shift(b, t),
    "shrsi": lambda a, b, t: a >> _shift(b, t),
    "shrui": lambda a, b, t: unsigned(a, t) >> _shift(b, t),
    "maxsi": lambda a, b, t: max(a, b),
    "minsi": lambda a, b, t: min(a, b),
    "maxui": lambda a, b, t: max(a, b, key=lambda n: unsigned(n, t)),
    "minui": lambda a, b, t: min(a, b, key=lambda n: unsigned(n, t)),
}

FLOATS = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
    "maximumf": lambda a, b: np.maximum(a, b),
    "minimumf": lambda a, b: np.minimum(a, b),
    "maxnumf": lambda a, b: np.fmax(a, b),
    "minnumf": lambda a, b: np.fmin(a, b),
}

_UNARY = {"arith.negf": lambda a: -a, "math.absf": abs, "math.sqrt": np.sqrt, "math.floor": np.floor}

_SIGNED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_ORDERED = {1: "__eq__", 2: "__gt__", 3: "__ge__", 4: "__lt__", 5: "__le__", 6: "__ne__"}


def compare(name: str, predicate: int, a, b, element: str) -> int:
    """`arith.cmpi` and `arith.cmpf`."""
    if name == "cmpi":
        if predicate >= len(_SIGNED):
            a, b, predicate = unsigned(a, element), unsigned(b, element), predicate - 4
        return int(getattr(a, _SIGNED[predicate])(b))
    if predicate in (0, 15):
        return int(predicate == 15)
    nan = bool(np.isnan(a) or np.isnan(b))
    if predicate in (7, 14):
        return int(nan == (predicate == 14))
    if predicate < 7:
        return int(not nan and bool(getattr(a, _ORDERED[predicate])(b)))
    return int(nan or bool(getattr(a, _ORDERED[predicate - 7])(b)))


def _to_integer(value, element: str, signed: bool) -> int:
    if not np.isfinite(value):
        raise Undefined("conversion out of range")
    number, width = int(value), width_of(element)
    low, high = (-(1 << (width - 1)), 1 << (width - 1)) if signed else (0, 1 << width)
    if not low <= number < high:
        raise Undefined("conversion out of range")
    return wrapped(number, element)


def cast(name: str, value, source: str, target: str):
    """Conversions between numbers."""
    if name in ("extsi", "trunci", "index_cast"):
        if name == "extsi" and source == "i1":
            value = -value
        return wrapped(value, target)
    if name in ("extui", "index_castui"):
        return wrapped(unsigned(value, source), target)
    if name in ("extf", "truncf"):
        return NUMPY[target](value)
    if name in ("sitofp", "uitofp"):
        if name == "sitofp" and source == "i1":
            value = -value
        return NUMPY[target](unsigned(value, source) if name == "uitofp" else value)
    if name in ("fptosi", "fptoui"):
        return _to_integer(value, target, name == "fptosi")
    if name == "bitcast":
        found = np.array([value]).astype(NUMPY[source]).view(NUMPY[target])[0]
        return int(found) if target.startswith("i") else found
    raise NotImplementedError(f"arith.{name}")


def evaluate(op, values: list):
    """The result of an operation of `arith` or `math`."""
    name = op.name.partition(".")[2]
    count, element = vector_type(op.types[0])
    source = vector_type(op.operand_types[0])[1] if op.operand_types else element
    if op.name == "arith.constant":
        return constant(op.attributes["value"], op.types[0])
    if name == "select":
        if isinstance(values[0], list):
            return [UNWRITTEN if a is UNWRITTEN else b if a else c for a, b, c in zip(*values, strict=True)]
        return UNWRITTEN if values[0] is UNWRITTEN else values[1] if values[0] else values[2]

    def one(*parts):
        if UNWRITTEN in parts:
            return UNWRITTEN
        if name in INTEGERS:
            return wrapped(INTEGERS[name](*parts, element), element)
        if name in FLOATS:
            return FLOATS[name](*parts)
        if name in ("cmpi", "cmpf"):
            return compare(name, op.attributes["predicate"], *parts, source)
        if op.name in _UNARY:
            return NUMPY[element](_UNARY[op.name](*parts))
        if op.name == "math.fma":
            return fused(*parts, element)
        return cast(name, *parts, source, element)

    with np.errstate(all="ignore"):
        return [one(*parts) for parts in zip(*values, strict=True)] if count else one(*values)


def fused(a, b, c, element: str):
    """a * b + c rounded once: exact in float64 for the small numbers of the tests, else refused."""
    if element != "f32":
        raise NotImplementedError(f"math.fma of {element}")
    exact = np.float64(a) * np.float64(b)
    return np.float32(exact + np.float64(c))


FOLDS = {
    **{f"{name}{kind}": f"{name}i" for name in ("add", "mul", "and", "or", "xor") for kind in "iu"},
    **{f"{name}{kind}": f"{name}{'s' if kind == 'i' else 'u'}i" for name in ("max", "min") for kind in "iu"},
    "addf": "addf", "mulf": "mulf", "maxf": "maxnumf", "minf": "minnumf",
}  # fmt: skip


def fold(kind: str, a, b, element: str):
    """Two values combined by a kind of `cute.reduce`."""
    name = FOLDS[kind]
    with np.errstate(all="ignore"):
        return wrapped(INTEGERS[name](a, b, element), element) if name in INTEGERS else FLOATS[name](a, b)
