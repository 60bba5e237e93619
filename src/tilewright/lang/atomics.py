"""Atomic operations on memory: `atomic_add` and its kin read, change and write a number in one step.

`ptr` is a Pointer to global or shared memory, a tensor, or an MLIR value of type `!llvm.ptr`. `sem` is `relaxed` (the
default), `acquire`, `release` or `acq_rel`; `scope` is `cta`, `cluster`, `gpu` (the default) or `sys`: PTX ISA 9.0,
"Memory Consistency Model".
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.accesses import as_pointer, check_order, stored_type
from tilewright.lang.control.generate import if_generate
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
)

_INTEGERS = (Int32, Uint32, Int64, Uint64)
_FLOATS = (Float16, BFloat16, Float32, Float64)
_TYPES: dict[str, tuple[type[Numeric], ...]] = {
    "add": (*_INTEGERS, *_FLOATS),
    **dict.fromkeys(("and", "or", "xor", "min", "max"), _INTEGERS),
    **dict.fromkeys(("exch", "cas"), (*_INTEGERS, Float32, Float64)),
    **dict.fromkeys(("inc", "dec"), (Int32, Uint32)),
}


def atomic_add(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Add `val` to the number at `ptr` and give the old one. Integers of 32 and 64 bits, floats of 16 to 64."""
    return _atomic("add", ptr, val, sem, scope)


def atomic_and(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Keep the bits that `val` has too; gives the old integer."""
    return _atomic("and", ptr, val, sem, scope)


def atomic_or(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Set the bits of `val`; gives the old integer."""
    return _atomic("or", ptr, val, sem, scope)


def atomic_xor(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Flip the bits of `val`; gives the old integer."""
    return _atomic("xor", ptr, val, sem, scope)


def atomic_min(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Keep the lesser number, as the type of `val` compares them; gives the old one. Floats as `atomic_fmin`."""
    return _extreme("min", ptr, val, sem, scope, None)


def atomic_max(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Keep the greater number, as the type of `val` compares them; gives the old one. Floats as `atomic_fmax`."""
    return _extreme("max", ptr, val, sem, scope, None)


def atomic_fmin(
    ptr: Any,
    val: Any,
    *,
    sign_bit: bool | None = None,
    sem: Any = None,
    scope: Any = None,
    loc: object = None,
    ip: object = None,
) -> Float32:
    """Keep the lesser Float32 and give the old one. `sign_bit`, where known, says whether `val` has one.

    It compares bits as integers: -0.0 is below 0.0, and a NaN lies beyond the infinity of its sign.
    """
    return _extreme("min", ptr, _float(val), sem, scope, sign_bit)


def atomic_fmax(
    ptr: Any,
    val: Any,
    *,
    sign_bit: bool | None = None,
    sem: Any = None,
    scope: Any = None,
    loc: object = None,
    ip: object = None,
) -> Float32:
    """Keep the greater Float32 and give the old one; numbers compare as in `atomic_fmin`."""
    return _extreme("max", ptr, _float(val), sem, scope, sign_bit)


def atomic_exch(
    ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None
) -> Any:
    """Write `val` and give the old number, of 32 or 64 bits."""
    return _atomic("exch", ptr, val, sem, scope)


def atomic_cas(
    ptr: Any,
    cmp: Any,
    val: Any,
    *,
    sem: Any = None,
    scope: Any = None,
    loc: object = None,
    ip: object = None,
) -> Any:
    """Write `val` where the number at `ptr` has the bits of `cmp`; gives the old number, of 32 or 64 bits."""
    return _atomic("cas", ptr, val, sem, scope, cmp)


def atomic_inc(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Add 1, or start again at 0 where the number is `val` or more (as unsigned numbers); gives the old one."""
    return _atomic("inc", ptr, val, sem, scope)


def atomic_dec(ptr: Any, val: Any, *, sem: Any = None, scope: Any = None, loc: object = None, ip: object = None) -> Any:
    """Subtract 1, or start again at `val` where the number is 0 or more than `val` (unsigned); gives the old one."""
    return _atomic("dec", ptr, val, sem, scope)


FOLDS = ("add", "min", "max", "and", "or", "xor", "inc", "dec")


def fold(op: str, ptr: Any, number: Numeric, sem: Any, scope: Any) -> Any:
    """One of `FOLDS` by its name; gives the old number."""
    return _extreme(op, ptr, number, sem, scope, None) if op in ("min", "max") else _atomic(op, ptr, number, sem, scope)


def _atomic(kind: str, ptr: Any, val: Any, sem: Any, scope: Any, cmp: Any = None) -> Any:
    name = f"atomic_{kind}"
    trace.device(name)
    check_order(sem, scope, name)
    number = _operand(name, ptr, val)
    cls = type(number)
    if cls not in _TYPES[kind]:
        known = ", ".join(str(item) for item in _TYPES[kind])
        raise CompileError(f"{name} of a {cls}", location=user_location(2), values={"types": known})
    pointer = as_pointer(ptr, cls)
    machine = _integer_of(cls) if kind in ("exch", "cas") else cls
    compared = () if cmp is None else (_bits(_operand(name, ptr, cmp, cls), machine).ir_value(),)
    tensor = pointer.recast(machine).as_tensor()
    groups = ((_bits(number, machine).ir_value(),), compared, (tensor,), (), ())
    arithmetic = "u" if kind in ("inc", "dec") else machine.facts.arithmetic_kind
    old = build.cute(
        "atomic",
        (machine.mlir_type,),
        groups,
        kind=build.string(kind + arithmetic),
        coord=build.string("0"),
        order=build.string(sem or "relaxed"),
        scope=build.string(scope or "gpu"),
    ).results[0]
    return _bits(machine.from_ir(old), cls)


def _extreme(kind: str, ptr: Any, val: Any, sem: Any, scope: Any, sign_bit: bool | None) -> Any:
    name = f"atomic_{kind}"
    trace.device(name)
    number = _operand(name, ptr, val)
    if type(number) is not Float32:
        return _atomic(kind, ptr, number, sem, scope)
    opposite = {"min": "max", "max": "min"}[kind]  # of numbers below zero the greater bits are the lesser float
    pointer, bits = as_pointer(ptr, Float32), number.bitcast(Int32)

    def negative() -> Any:
        return _atomic(opposite, pointer, Uint32(bits), sem, scope)

    def positive() -> Any:
        return _atomic(kind, pointer, bits, sem, scope)

    if sign_bit is None:
        old = if_generate(bits < 0, negative, positive, (), [Int32])
    else:
        old = Int32(negative() if sign_bit else positive())
    return old.bitcast(Float32)


def _float(val: Any) -> Float32:
    number = as_numeric(val)
    if type(number) is not Float32 and not isinstance(val, (int, float)):
        raise CompileError(f"an atomic fmin or fmax of a {type(number)}", location=user_location(2), hint="use Float32")
    return Float32(number)


def _operand(name: str, ptr: Any, val: Any, cls: type[Numeric] | None = None) -> Numeric:
    """`val` as a number: a Python number in the type of the memory, a typed one as it is, if it fits."""
    stored = cls or stored_type(ptr)
    if stored is not None and isinstance(val, (bool, int, float)):
        if isinstance(val, float) and not stored.is_float and not val.is_integer():
            raise CompileError(
                f"{name} of {val} on memory of {stored}", location=user_location(3), hint="write a whole number"
            )
        return stored(val)
    number = as_numeric(val)
    if stored is None or type(number) is stored:
        return number
    same_kind = type(number).is_float == stored.is_float or not (name == "atomic_add" or type(number).is_float)
    if type(number).width == stored.width and same_kind and type(number).facts.kind != "b":
        return number
    raise CompileError(
        f"{name} of a {type(number)} on memory of {stored}",
        location=user_location(3),
        hint=f"convert the value: {stored}(value)",
    )


def _integer_of(cls: type[Numeric]) -> type[Numeric]:
    return cls if cls.is_integer else {32: Uint32, 64: Uint64}[cls.width]


def _bits(number: Numeric, cls: type[Numeric]) -> Numeric:
    if type(number) is cls:
        return number
    if cls.is_float or type(number).is_float:
        return number.bitcast(cls)
    return cls(number)
