"""Rules from `cute` to `nvvm` for copies and products of tiles: cp.async, ldmatrix, stmatrix, mma.sync.

Semantics: PTX ISA 9.0, "cp.async", "ldmatrix", "stmatrix", "mma". Instructions are LLVM's NVVM intrinsics, which the
optimiser knows to need all threads of the warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.hw.atoms import mma_sync
from tilewright.ir import build, types
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.atom_text import AtomText
from tilewright.layout import size
from tilewright.passes.lowering import LoweringContext, Rules
from tilewright.passes.rules.copying import (
    MOVERS,
    ROW_HINT,
    Moves,
    Side,
    Target,
    in_memory,
    lower_copy,
    lower_copy_value,
    read_word,
    required_width,
    write_word,
)
from tilewright.passes.rules.gemm import PRODUCTS, Piece, Product, Words, lower_gemm, lower_gemm_value
from tilewright.passes.rules.memory import element_bytes, place_address
from tilewright.targets.nvidia.lowering import intrinsics
from tilewright.targets.nvidia.lowering.hinted_copies import copy_async, move_universal_hinted
from tilewright.targets.nvidia.lowering.rules import use

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
ROW_BITS = 128
WORD_BITS = 32


def intrinsic(name: str, operands: Sequence[ir.Value], result: ir.Type | None = None) -> ir.Value | None:
    """A call of LLVM's intrinsic `name`."""
    attributes = {
        "intrin": build.string(name),
        "op_bundle_sizes": build.i32_array([]),
        "operandSegmentSizes": build.i32_array([len(operands), 0]),
    }
    op = build.emit("llvm.call_intrinsic", () if result is None else (result,), operands, attributes)
    return None if result is None else op.results[0]


def _members(value: ir.Value, count: int, type_: ir.Type) -> Words:
    """The fields of a struct; a single value stands for itself."""
    if count == 1:
        return [value]
    return [
        build.value("llvm.extractvalue", type_, (value,), {"position": build.attribute(f"array<i64: {number}>")})
        for number in range(count)
    ]


def _struct(count: int, type_: str) -> ir.Type:
    return types.parse(type_ if count == 1 else f"!llvm.struct<({', '.join([type_] * count)})>")


def _move_async(src: Side, dst: Target, atom: AtomText, per_predicate: int, context: LoweringContext) -> Moves:
    """cp.async: one instruction for each 4, 8 or 16 bytes. A false predicate makes it read nothing, write zeros."""
    use("cp.async", "cp.async", context)
    bits = atom.number("bits", element_bytes(src.info.element) * 8)
    width = required_width(bits, src, dst)
    cache = "cg" if atom.parameters.get("cache") == "global" else "ca"
    name, masked = (intrinsics.cp_async(cache, bits // 8, masked=mask) for mask in (False, True))
    prefetched = atom.number("l2")
    if prefetched:
        use("ld.L2::128B", f"cp.async with L2::{prefetched}B", context)

    def start(operands: Words) -> None:
        if prefetched:
            copy_async(f"cp.async.{cache}.shared.global.L2::{prefetched}B", bits // 8, operands)
        else:
            intrinsic(masked if len(operands) > 2 else name, operands)

    def addresses(number: int) -> Words:
        return [place_address(in_memory(view), number * width) for view in (dst, src)]

    def emit(number: int) -> None:
        start(addresses(number))

    def emit_if(number: int, condition: ir.Value) -> None:
        word = types.parse("i32")
        whole, none = build.constant(bits // 8, word), build.constant(0, word)
        read = build.value("arith.select", word, (condition, whole, none))
        start([*addresses(number), read])

    return Moves(int(size(src.layout)) // width, emit, emit_if)


def _rows(view: Side | Target) -> tuple[int, int]:
    """(elements of a row, number of instructions) of the side that holds the addresses of rows."""
    row = required_width(ROW_BITS, view, hint=ROW_HINT)
    return row, int(size(view.layout)) // row


def _move_ldmatrix(src: Side, dst: Target, atom: AtomText, per_predicate: int, context: LoweringContext) -> Moves:
    """ldmatrix: the row's address from the source, registers to the destination."""
    use("ldmatrix", "ldmatrix", context)
    count = atom.number("num")
    name = intrinsics.matrix("ldmatrix", count, bool(atom.number("transpose")))
    row, instructions = _rows(src)
    each = WORD_BITS // (element_bytes(dst.info.element) * 8)
    word = types.parse("i32")

    def emit(number: int) -> None:
        address = place_address(in_memory(src), number * row)
        loaded = intrinsic(name, (address,), _struct(count, "i32"))
        for place, value in enumerate(_members(loaded, count, word)):
            write_word(dst, (number * count + place) * each, value, WORD_BITS)

    return Moves(instructions, emit)


def _move_stmatrix(src: Side, dst: Target, atom: AtomText, per_predicate: int, context: LoweringContext) -> Moves:
    """stmatrix: registers from the source, the row's address from the destination."""
    use("stmatrix", "stmatrix", context)
    count = atom.number("num")
    name = intrinsics.matrix("stmatrix", count, bool(atom.number("transpose")))
    row, instructions = _rows(dst)
    each = WORD_BITS // (element_bytes(src.info.element) * 8)
    word = types.parse("i32")

    def emit(number: int) -> None:
        address = place_address(in_memory(dst), number * row)
        words = [read_word(src, (number * count + place) * each, word, WORD_BITS) for place in range(count)]
        intrinsic(name, (address, *words))

    return Moves(instructions, emit)


_MOVERS = {
    **MOVERS,
    "universal": move_universal_hinted,
    "cp.async": _move_async,
    "ldmatrix": _move_ldmatrix,
    "stmatrix": _move_stmatrix,
}


@rules.lowers("copy")
def _copy(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return lower_copy(op, context, _MOVERS)


@rules.lowers("copy_value")
def _copy_value(op: ir.Operation, context: LoweringContext) -> list[ir.Value] | None:
    return lower_copy_value(op, context, _MOVERS)


@rules.lowers("async_commit")
def _async_commit(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("cp.async", "cp.async.commit_group", context)
    build.emit("nvvm.cp.async.commit.group")
    return []


@rules.lowers("async_wait")
def _async_wait(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("cp.async", "cp.async.wait_group", context)
    build.emit("nvvm.cp.async.wait.group", (), (), {"n": build.i32(number_of(op, "groups"))})
    return []


# How LLVM's intrinsics take a register of each PTX type.
_WORD = {
    "f16": ("vector<2xf16>", 32), "f32": ("f32", 32), "f64": ("f64", 64),
    **dict.fromkeys(("bf16", "tf32", "s8", "u8", "s32", "e4m3", "e5m2"), ("i32", 32)),
}  # fmt: skip


def _fragment(type_: str, values: int) -> Piece:
    word, bits = _WORD[type_]
    return Piece(values * mma_sync.BITS[type_] // bits, word, bits)


def _mma_sync(atom: AtomText, view: Side, context: LoweringContext) -> Product:
    """mma.sync of the form that the atom names."""
    m, n, k = map(int, atom.parameters["shape"].split("x"))
    key = (m, n, k), atom.parameters["a"], atom.parameters["b"], atom.parameters["c"]
    form = mma_sync.FORMS.get(key)
    if form is None:
        raise CompileError(f"no instruction for MMA atom {atom}")
    use(form.feature, f"mma.sync.{form.name}", context)
    a, b, c = (
        _fragment(type_, int(size(layout, mode=[1])))
        for type_, layout in ((form.a_type, form.a), (form.b_type, form.b), (form.c_type, form.c))
    )
    name, result = intrinsics.mma(form), _struct(c.words, c.type)

    def multiply(left: Words, right: Words, sums: Words) -> Words:
        value = intrinsic(name, (*left, *right, *sums), result)
        return _members(value, c.words, types.parse(c.type))

    return Product(a, b, c, multiply)


_PRODUCTS = {**PRODUCTS, "mma.sync": _mma_sync}


@rules.lowers("gemm")
def _gemm(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return lower_gemm(op, context, _PRODUCTS)


@rules.lowers("gemm_value")
def _gemm_value(op: ir.Operation, context: LoweringContext) -> list[ir.Value] | None:
    return lower_gemm_value(op, context, _PRODUCTS)


# Approximate functions: PTX names.
_APPROX = {
    "rcp": "rcp.approx.ftz.f32", "rsqrt": "rsqrt.approx.ftz.f32", "sqrt": "sqrt.approx.ftz.f32",
    "exp2": "ex2.approx.ftz.f32", "log2": "lg2.approx.ftz.f32", "sin": "sin.approx.ftz.f32",
    "cos": "cos.approx.ftz.f32", "tanh": "tanh.approx.f32",
}  # fmt: skip


@rules.lowers("approx")
def _approx(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return [approximate(text_of(op, "kind"), op.operands[0], context)]


def approximate(kind: str, value: ir.Value, context: LoweringContext) -> ir.Value:
    """The approximate instruction for a function of an f32: rcp rsqrt sqrt exp2 log2 sin cos tanh."""
    name = _APPROX[kind]
    if name == "tanh.approx.f32":
        use(name, name, context)
    attributes = {
        "asm_string": build.string(f"{name} $0, $1;"),
        "constraints": build.string("=f,f"),
        "asm_dialect": build.i64(0),
    }
    return build.value("llvm.inline_asm", value.type, (value,), attributes)
