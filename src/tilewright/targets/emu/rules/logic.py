"""Moves, logic, shifts, bit fields, comparisons and selections (PTX ISA 9.7.1.x, 9.7.6 to 9.7.8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.coder import BlockCoder, rule
from tilewright.targets.emu.dtypes import DTYPE, UNSIGNED
from tilewright.targets.emu.lanes import Array
from tilewright.targets.emu.numerics import bits, floats
from tilewright.targets.emu.ptx import Imm, Instruction, Pair, Sink, Sym, Vec
from tilewright.targets.emu.ptx.ir import WIDTH
from tilewright.targets.emu.runtime import provide, provide_numeric

for _function in (
    bits.bfe,
    bits.bfi,
    bits.bmsk,
    bits.szext,
    bits.brev,
    bits.popc,
    bits.clz,
    bits.bfind,
    bits.fns,
    bits.prmt,
):
    provide_numeric(_function.__name__, _function)
provide_numeric("compare", floats.compare)

FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2"}


@rule("mov")
def mov(c: BlockCoder, i: Instruction) -> None:
    to, source = i.ops
    kind = i.type
    if isinstance(to, Vec):
        unpack(c, to, source, kind)
    elif isinstance(source, Vec):
        pack(c, to, source, kind)
    else:
        c.set(to, kind, c.use(source, kind))


def unpack(c: BlockCoder, to: Vec, source: Any, kind: str) -> None:
    """`mov.b64 {lo, hi}, x`: parts of a register, the lowest first."""
    total, count = WIDTH[kind], len(to.items)
    part = total // count
    if kind == "b128":
        value = c.use(source, "b128")
        for index, item in enumerate(to.items):
            c.set(item, "b64", f"{value}[:, {index}]")
        return
    value = c.use(source, f"b{total}")
    for index, item in enumerate(to.items):
        if isinstance(item, Sink):
            continue
        shifted = f"({value} >> {index * part})" if index else value
        c.set(item, f"b{part}", f"{shifted}.astype({UNSIGNED[part]})")


def pack(c: BlockCoder, to: Any, source: Vec, kind: str) -> None:
    """`mov.b64 x, {lo, hi}`."""
    total, count = WIDTH[kind], len(source.items)
    part = total // count
    if kind == "b128":
        a, b = (c.use(item, "b64") for item in source.items)
        c.set(to, "b128", f"rows128({a}, {b}, L.n)")
        return
    wide = UNSIGNED[total]
    pieces = []
    for index, item in enumerate(source.items):
        piece = f"{c.use(item, f'b{part}')}.astype({wide})"
        pieces.append(f"({piece} << {index * part})" if index else piece)
    c.set(to, f"b{total}", " | ".join(pieces))


@provide
def rows128(a: Any, b: Any, n: int) -> Array:
    out = np.empty((n, 2), np.uint64)
    out[:, 0], out[:, 1] = a, b
    return out


@rule("and", "or", "xor")
def logic(c: BlockCoder, i: Instruction) -> None:
    sign = SIGNS[i.op]
    a, b = (c.use(op, i.type) for op in i.ops[1:])
    settle(c, i, a, b)
    c.set(i.ops[0], i.type, f"{a} {sign} {b}")


def settle(c: BlockCoder, i: Instruction, a: str, b: str) -> None:
    """The mark of `and` and `or`: where one operand alone decides the result, the other's mark is void."""
    first, second = (c.taint_of(op) for op in i.ops[1:3])
    decided = {"and": "{} == 0", "or": "~{} == 0"}.get(i.op)
    if decided is None or first == second == "FALSE":
        return
    if i.type == "pred":
        decided = {"and": "~{}", "or": "{}"}[i.op]
    by_a, by_b = (f"(({decided.format(x)}) & ~{mark})" for x, mark in ((a, first), (b, second)))
    c.taint = f"({first} & ~{by_b}) | ({second} & ~{by_a})"


@rule("not")
def invert(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], i.type, f"~{c.use(i.ops[1], i.type)}")


@rule("cnot")
def cnot(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], i.type, f"({c.use(i.ops[1], i.type)} == 0).astype({DTYPE[i.type]})")


@rule("lop3")
def lop3(c: BlockCoder, i: Instruction) -> None:
    """Any function of three bits: the table of its eight values is an immediate."""
    result, ops = i.ops[0], i.ops[1:]
    table = ops[3]
    if not isinstance(table, Imm):
        raise c.fail("lop3 needs an immediate table")
    a, b, d = (c.use(op, "b32") for op in ops[:3])
    value = c.let(lop3_text(int(table.value), a, b, d))
    if isinstance(result, Pair):
        q = c.use(ops[4], "pred")
        join = "|" if "or" in i.mods else "&"
        c.set(result.first, "b32", value)
        c.set(result.second, "pred", f"({value} != 0) {join} {q}")
    else:
        c.set(result, "b32", value)


def lop3_text(table: int, a: str, b: str, d: str) -> str:
    """A sum of products; the common tables of two operators shorter."""
    short = {0xC0: f"{a} & {b}", 0x80: f"{a} & {b} & {d}", 0xFE: f"{a} | {b} | {d}", 0x96: f"{a} ^ {b} ^ {d}",
             0xEA: f"({a} & {b}) | {d}", 0xF8: f"{a} | ({b} & {d})", 0x6A: f"({a} & {b}) ^ {d}",
             0xCA: f"{d} ^ ({a} & ({b} ^ {d}))", 0xE8: f"({a} & {b}) | (({a} | {b}) & {d})"}  # fmt: skip
    if table in short:
        return short[table]
    terms = []
    for index in range(8):
        if table >> index & 1:
            bits = [name if index >> (2 - n) & 1 else f"~{name}" for n, name in enumerate((a, b, d))]
            terms.append("(" + " & ".join(bits) + ")")
    return " | ".join(terms) if terms else f"{a} & ~{a}"


@rule("shl", "shr")
def shift(c: BlockCoder, i: Instruction) -> None:
    """NumPy shifts by the width or more give 0 or the sign, as PTX wants."""
    kind = i.type
    a, amount = c.use(i.ops[1], kind), i.ops[2]
    dtype = DTYPE[kind]
    if isinstance(amount, Imm):
        by = str(min(int(amount.value) & 0xFFFFFFFF, 1 << 6))
        by = c.constant(int(by), dtype)
    elif dtype in ("u4",):
        by = c.use(amount, "u32")
    else:
        raw = c.use(amount, "u32")
        by = f"minimum({raw}, {c.constant(64, 'u4')}).astype({dtype})"
    c.set(i.ops[0], kind, f"{a} {'<<' if i.op == 'shl' else '>>'} {by}")


@rule("shf")
def funnel(c: BlockCoder, i: Instruction) -> None:
    """A 64-bit shift of {b, a}, of which the high (l) or low (r) half is the result."""
    a, b, by = (c.use(op, "u32") for op in i.ops[1:4])
    wrap = "wrap" in i.mods
    amount = f"({by} & 31)" if wrap else f"minimum({by}, {c.constant(32, 'u4')})"
    amount = c.let(f"{amount}.astype(u8)")
    pair = f"(({b}.astype(u8) << 32) | {a})"
    if "l" in i.mods:
        c.set(i.ops[0], "b32", f"(({pair} << {amount}) >> 32).astype(u4)")
    else:
        c.set(i.ops[0], "b32", f"({pair} >> {amount}).astype(u4)")


@rule("prmt")
def permute(c: BlockCoder, i: Instruction) -> None:
    mode = next((m for m in i.mods if m not in ("b32",)), "")
    a, b, d = (c.use(op, "b32") for op in i.ops[1:4])
    selector = i.ops[3]
    if isinstance(selector, Imm) and not mode:
        c.set(i.ops[0], "b32", permute_text(int(selector.value), a, b))
    else:
        c.set(i.ops[0], "b32", f"prmt({a}, {b}, {d}, {mode or None!r})")


def permute_text(selector: int, a: str, b: str) -> str:
    """Shifts and masks for a constant selector."""
    terms = []
    for byte in range(4):
        nibble = selector >> (4 * byte) & 0xF
        source, place = (b, nibble & 3) if nibble & 4 else (a, nibble & 3)
        if nibble & 8:
            value = f"((({source} >> {8 * place + 7}) & 1) * 255)"
        else:
            value = f"(({source} >> {8 * place}) & 255)"
        terms.append(f"({value} << {8 * byte})" if byte else value)
    return " | ".join(terms)


# Bit fields.


@rule("bfe")
def extract(c: BlockCoder, i: Instruction) -> None:
    a, start, length = c.use(i.ops[1], i.type), *(c.use(op, "u32") for op in i.ops[2:4])
    c.set(i.ops[0], i.type, f"bfe({a}, {start}, {length}, {i.type!r})")


@rule("bfi")
def insert(c: BlockCoder, i: Instruction) -> None:
    a, b = (c.use(op, i.type) for op in i.ops[1:3])
    start, length = (c.use(op, "u32") for op in i.ops[3:5])
    c.set(i.ops[0], i.type, f"bfi({a}, {b}, {start}, {length}, {i.type!r})")


@rule("bmsk")
def bit_mask(c: BlockCoder, i: Instruction) -> None:
    a, b = (c.use(op, "u32") for op in i.ops[1:3])
    c.set(i.ops[0], "b32", f"bmsk({a}, {b}, {'clamp' in i.mods})")


@rule("szext")
def sign_extend(c: BlockCoder, i: Instruction) -> None:
    a, n = c.use(i.ops[1], i.type), c.use(i.ops[2], "u32")
    c.set(i.ops[0], i.type, f"szext({a}, {n}, {i.type!r}, {'clamp' in i.mods})")


@rule("brev")
def reverse(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], i.type, f"brev({c.use(i.ops[1], i.type)}, {i.type!r})")


@rule("popc", "clz")
def count_bits(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], "u32", f"{i.op}({c.use(i.ops[1], i.type)}, {i.type!r})")


@rule("bfind")
def bfind(c: BlockCoder, i: Instruction) -> None:
    c.set(i.ops[0], "u32", f"bfind({c.use(i.ops[1], i.type)}, {i.type!r}, {'shiftamt' in i.mods})")


@rule("fns")
def fns(c: BlockCoder, i: Instruction) -> None:
    mask, base = (c.use(op, "b32") for op in i.ops[1:3])
    c.set(i.ops[0], "b32", f"fns({mask}, {base}, {c.use(i.ops[3], 's32')})")


# Comparisons and selections.

SIGNS = {"and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
            "hs": ">="}  # fmt: skip
_NEGATED = {"equ": "!=", "neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}


def comparison(c: BlockCoder, i: Instruction, kind: str, a: str, b: str) -> str:
    """The Boolean expression of a comparison."""
    op = next(m for m in i.mods if m in _COMPARE or m in _NEGATED or m in ("num", "nan"))
    if kind not in FLOATS:
        return f"({a} {_COMPARE[op]} {b})"
    if kind in ("f32", "f64") and "ftz" not in i.mods:
        if op == "ne":
            return f"({a} < {b}) | ({a} > {b})"
        if op in _COMPARE:
            return f"({a} {_COMPARE[op]} {b})"
        if op in _NEGATED and op not in ("equ", "neu"):
            return f"~({a} {_NEGATED[op]} {b})"
        if op == "neu":
            return f"({a} != {b})"
    return f"compare({op!r}, {a}, {b}, type={kind!r}, ftz={'ftz' in i.mods})"


@rule("setp")
def setp(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    a, b = (c.use(op, kind) for op in i.ops[1:3])
    result = i.ops[0]
    test = c.let(comparison(c, i, kind, a, b))
    if kind in ("f16x2", "bf16x2"):
        _packed_setp(c, i, test)
        return
    boolean = next((m for m in i.mods if m in ("and", "or", "xor")), "")
    sign = SIGNS.get(boolean, "")
    other = c.use(i.ops[3], "pred") if boolean else ""
    first = f"{test} {sign} {other}" if boolean else test
    if not isinstance(result, Pair):
        c.set(result, "pred", first)
        return
    second = f"~{test} {sign} {other}" if boolean else f"~{test}"
    both = (c.let(first), c.let(second))
    c.set(result.first, "pred", both[0])
    c.set(result.second, "pred", both[1])


def _packed_setp(c: BlockCoder, i: Instruction, test: str) -> None:
    result = i.ops[0]
    boolean = next((m for m in i.mods if m in ("and", "or", "xor")), "")
    sign = SIGNS.get(boolean, "")
    tail = f" {sign} {c.use(i.ops[3], 'pred')}" if boolean else ""
    assert isinstance(result, Pair)
    halves = [c.let(f"{test}[..., {n}][()]{tail}") for n in (0, 1)]  # a scalar where all threads have one
    c.set(result.first, "pred", halves[0])
    c.set(result.second, "pred", halves[1])


@rule("set")
def set_(c: BlockCoder, i: Instruction) -> None:
    to, kind = i.types
    a, b = (c.use(op, kind) for op in i.ops[1:3])
    test = comparison(c, i, kind, a, b)
    boolean = next((m for m in i.mods if m in ("and", "or", "xor")), "")
    if kind in ("f16x2", "bf16x2"):
        joined = f"joined({test}, {c.use(i.ops[3], 'pred')}, {boolean!r})" if boolean else test
        c.set(i.ops[0], to, f"set_packed({joined}, {to!r})")
        return
    if boolean:
        test = f"({test}) {SIGNS[boolean]} {c.use(i.ops[3], 'pred')}"
    c.set(i.ops[0], to, f"set_value({test}, {to!r})")


@provide
def set_value(test: Any, to: str) -> Any:
    """All ones, or 1.0 for float results."""
    if to == "f32":
        return test.astype(np.float32)
    if to in ("f16", "bf16"):
        one = np.uint16(0x3C00 if to == "f16" else 0x3F80)
        out = test.astype(np.uint16) * one
        return out.view(np.float16) if to == "f16" else out
    dtype = np.dtype(DTYPE[to])
    return (-test.astype(np.int64)).astype(dtype)


@provide
def joined(test: Any, other: Any, boolean: str) -> Any:
    """The two results of a packed comparison, each joined with a predicate."""
    functions = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    return functions[boolean](test, np.asarray(other)[..., None])


@provide
def set_packed(test: Any, to: str) -> Any:
    one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(to, 0xFFFF)
    low, high = (test[..., n].astype(np.uint32) * np.uint32(one) for n in (0, 1))
    return (low | (high << np.uint32(16))).view(DTYPE[to])


@rule("selp")
def selp(c: BlockCoder, i: Instruction) -> None:
    kind = i.type
    a, b = (c.use(op, kind) for op in i.ops[1:3])
    p = c.use(i.ops[3], "pred")
    c.choose(p, *i.ops[1:4])
    c.set(i.ops[0], kind, f"sel({p}, {a}, {b})")


@rule("slct")
def slct(c: BlockCoder, i: Instruction) -> None:
    to, kind = i.types
    a, b = (c.use(op, to) for op in i.ops[1:3])
    value = c.use(i.ops[3], kind)
    if kind == "f32" and "ftz" in i.mods:
        value = f"where(abs({value}) < {c.constant(2.0**-126, 'f4')}, {c.constant(0, 'f4')}, {value})"
    c.set(i.ops[0], to, f"sel({value} >= 0, {a}, {b})")


@rule("isspacep")
def isspacep(c: BlockCoder, i: Instruction) -> None:
    space = i.mods[0]
    c.set(i.ops[0], "pred", f"in_space({c.use(i.ops[1], 'u64')}, {space!r}, S, L)")


@rule("cvta")
def cvta(c: BlockCoder, i: Instruction) -> None:
    """Between a state space and generic addresses; global, const and param addresses are generic ones."""
    space = next(m for m in i.mods if m.split("::")[0] in ("global", "shared", "local", "const", "param"))
    windows = {"shared": 1 << 56, "local": 1 << 57}
    source = i.ops[1]
    if isinstance(source, Sym) and c.space_of(source.name) not in windows and space.split("::")[0] in windows:
        raise c.fail(f"{source.name} is not in .{space}")
    value = c.use(source, "u64")
    window = windows.get(space.split("::")[0])
    if window is None:
        c.set(i.ops[0], "u64", value)
    elif "to" in i.mods:
        c.set(i.ops[0], "u64", f"{value} - {c.constant(window, 'u8')}")
    else:
        c.set(i.ops[0], "u64", f"{value} + {c.constant(window, 'u8')}")
