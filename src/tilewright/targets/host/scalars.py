"""Numbers from tvm-ffi's 64-bit int, bool and float to the machine type of a parameter, in LLVM IR."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.base.dtypes import TABLE
from tilewright.targets.host import abi
from tilewright.targets.host.irtext import Body

_INTEGERS = {f"{sign}{bits}": (sign == "i", bits) for sign in "iu" for bits in (4, 8, 16, 32, 64)}
_FLOATS = ("f16", "bf16", "tf32", "f32", "f64")

PASSABLE = frozenset(("bool", *_INTEGERS, *_FLOATS))
"""The types of numbers that are passed by value."""


@dataclass(frozen=True)
class Converted:
    """A converted number: two i1 checks (kind, range) and the leaf, all names of IR values."""

    is_kind: str
    in_range: str | None
    leaf: str
    expected: str
    hint: str = ""


def convert(body: Body, dtype: str, any_: str) -> Converted:
    """Write the conversion of the argument at `any_` to `dtype`."""
    if dtype == "bool":
        return _boolean(body, any_)
    if dtype in _INTEGERS:
        return _integer(body, dtype, any_)
    return _float(body, dtype, any_)


def _kinds(body: Body, any_: str, *kinds: int) -> list[str]:
    type_ = body.load("i32", any_)
    return [body.value(f"icmp eq i32 {type_}, {kind}") for kind in kinds]


def _boolean(body: Body, any_: str) -> Converted:
    is_bool, is_int = _kinds(body, any_, abi.BOOL, abi.INT)
    value = body.load("i64", any_, abi.ANY_VALUE)
    kind = body.value(f"or i1 {is_bool}, {is_int}")
    in_range = body.value(f"icmp ult i64 {value}, 2")
    return Converted(kind, in_range, body.value(f"trunc i64 {value} to i1"), "bool")


def _integer(body: Body, dtype: str, any_: str) -> Converted:
    signed, bits = _INTEGERS[dtype]
    is_int, is_bool, is_big = _kinds(body, any_, abi.INT, abi.BOOL, abi.BIGINT)
    kind = body.value(f"or i1 {is_int}, {is_bool}")
    value = body.load("i64", any_, abi.ANY_VALUE)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    expected = f"{dtype}, {low} to {high}"
    hint = "a float is never rounded to an integer by itself: convert it with int()"
    if dtype == "u64":
        return _unsigned64(body, any_, kind, is_big, value, expected)
    leaf = body.value(f"trunc i64 {value} to i{bits}") if bits < 64 else value
    in_range = None
    if bits < 64:
        back = body.value(f"{'sext' if signed else 'zext'} i{bits} {leaf} to i64")
        in_range = body.value(f"icmp eq i64 {back}, {value}")
    return Converted(kind, in_range, leaf, expected, hint)


def _unsigned64(body: Body, any_: str, is_small: str, is_big: str, value: str, expected: str) -> Converted:
    """From 2**63 on a u64 arrives as a big integer: a count of words, then the words, the upper one zero."""
    origin, big, after = body.block, body.label("big"), body.label("u64")
    body.do(f"br i1 {is_big}, label %{big}, label %{after}")
    body.start(big)
    cell = body.offset(body.load("ptr", any_, abi.ANY_VALUE), abi.OBJECT_HEADER)
    two = body.value(f"icmp eq i64 {body.load('i64', cell)}, 2")
    low = body.load("i64", cell, 8)
    high_place = body.value(f"select i1 {two}, i64 16, i64 8")
    high = body.load("i64", body.value(f"getelementptr i8, ptr {cell}, i64 {high_place}"))
    zero = body.value(f"icmp eq i64 {high}, 0")
    fits = body.value(f"and i1 {two}, {zero}")
    body.do(f"br label %{after}")
    body.start(after)
    positive = body.value(f"phi i1 [ true, %{origin} ], [ {fits}, %{big} ]")
    leaf = body.value(f"phi i64 [ {value}, %{origin} ], [ {low}, %{big} ]")
    kind = body.value(f"or i1 {is_small}, {is_big}")
    signed = body.value(f"icmp sge i64 {value}, 0")
    small = body.value(f"or i1 {signed}, {is_big}")
    return Converted(kind, body.value(f"and i1 {positive}, {small}"), leaf, expected)


def _float(body: Body, dtype: str, any_: str) -> Converted:
    is_float, is_int, is_bool = _kinds(body, any_, abi.FLOAT, abi.INT, abi.BOOL)
    whole = body.value(f"or i1 {is_int}, {is_bool}")
    kind = body.value(f"or i1 {is_float}, {whole}")
    integer, real = body.load("i64", any_, abi.ANY_VALUE), body.load("double", any_, abi.ANY_VALUE)
    type_ = TABLE[dtype].llvm
    if type_ in ("float", "double"):
        from_int = body.value(f"sitofp i64 {integer} to {type_}")
        from_real = real if type_ == "double" else body.value(f"fptrunc double {real} to float")
        return Converted(
            kind, None, body.value(f"select i1 {is_float}, {type_} {from_real}, {type_} {from_int}"), dtype
        )
    wide = body.value(f"sitofp i64 {integer} to double")
    value = body.value(f"select i1 {is_float}, double {real}, double {wide}")
    convert_ = {"half": "__tw_half", "bfloat": "__tw_bfloat"}[type_]
    bits = body.value(f"call i16 @{convert_}(double {value})")
    return Converted(kind, None, body.value(f"bitcast i16 {bits} to {type_}"), dtype)
