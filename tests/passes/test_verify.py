"""The verifier of stage `cute`: what each rule refuses, in which words, and that what is right passes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Pass, PassError, PassManager
from tilewright.base import settings
from tilewright.ir import mlir
from tilewright.ir.context import compile_context
from tilewright.ir.dialect import SPECS
from tilewright.ir.walk import operations
from tilewright.passes.annotate_loops import AnnotateLoops
from tilewright.passes.verify import verify
from tilewright.passes.verify.operation import Invalid
from tilewright.passes.verify.structure import grouped
from tilewright.passes.verify.table import RULES

# Abbreviations of types in the texts below.
_TYPES = {
    "TG": '!cute.tensor<f32, "gmem", "(4,8):(8,1)", 16 : i32>',
    "TD": '!cute.tensor<f32, "gmem", "(?,?):(?{i64},1)", 4 : i32>',
    "TR": '!cute.tensor<f32, "rmem", "(4):(1)", 16 : i32>',
    "TS": '!cute.tensor<f32, "smem", "(4):(1)", 16 : i32>',
    "TM": '!cute.tensor<i1, "rmem", "(4):(1)", 4 : i32>',
    "TW": '!cute.tensor<f32, "smem", "S<2,0,3> o 0 o (8,4):(4,1)", 16 : i32>',
    "TI": '!cute.tensor<i32, "gmem", "(4):(1)", 4 : i32>',
    "AH": '!cute.tensor<f16, "rmem", "((2,2,2),1,1):((1,2,4),8,8)", 16 : i32>',
    "BH": '!cute.tensor<f16, "rmem", "((2,2),1,1):((1,2),4,4)", 16 : i32>',
    "CF": '!cute.tensor<f32, "rmem", "((2,2),1,1):((1,2),4,4)", 16 : i32>',
    "PG": '!cute.ptr<f32, "gmem", 16 : i32>',
    "PR": '!cute.ptr<f32, "rmem", 16 : i32>',
    "V4": "vector<4xf32>",
}
_ARGUMENTS = {
    "%g": "TG", "%d": "TD", "%r": "TR", "%s": "TS", "%m": "TM", "%w": "TW", "%i": "TI", "%ah": "AH", "%bh": "BH",
    "%cf": "CF", "%pg": "PG", "%pr": "PR", "%v": "V4", "%a": "i32", "%b": "i64", "%f": "f32", "%h": "f16", "%z": "i1",
}  # fmt: skip


def _spelled(text: str) -> str:
    return re.sub(r"\b[A-Z][A-Z0-9]\b", lambda found: _TYPES.get(found[0], found[0]), text)


def _verify(body: str) -> None:
    """Verify a function with these operations."""
    arguments = ", ".join(f"{name}: {_spelled(type_)}" for name, type_ in _ARGUMENTS.items())
    text = f'func.func @f({arguments}) {{\n{_spelled(body)} loc("user.py":7:3)\nreturn\n}}'
    with compile_context():
        verify(mlir.ir.Module.parse(text).operation, "pass mine")


def _view(source, result, algebra, arguments, operands="", groups="0, 0, 0, 0", moves="pointer", width=32) -> str:
    types = ", ".join(_ARGUMENTS[name.strip()] for name in operands.split(",") if name.strip())
    return (
        f'%x = "cute.view"({", ".join([source, operands] if operands else [source])}) {{algebra = "{algebra}", '
        f'arguments = "{arguments}", moves = "{moves}", width = {width} : i32, operandSegmentSizes = array<i32: 1, '
        f"{groups}>}} : ({', '.join([_ARGUMENTS[source], types] if types else [_ARGUMENTS[source]])}) -> {result}"
    )


def _copy(src, dst, atom, pred="") -> str:
    names = ", ".join(name for name in (src, dst, pred) if name)
    types = ", ".join(_ARGUMENTS[name] for name in (src, dst, pred) if name)
    return f'"cute.copy"({names}) {{atom = "{atom}"}} : ({types}) -> ()'


def _load(source, coord, operands="", sizes="0, 0", result="f32") -> str:
    types = "".join(f", {_ARGUMENTS[name.strip()]}" for name in operands.split(",") if name.strip())
    names = f"{source}, {operands}" if operands else source
    return (
        f'%x = "cute.load"({names}) {{coord = "{coord}", operandSegmentSizes = array<i32: 1, {sizes}>}} : '
        f"({_ARGUMENTS[source]}{types}) -> {result}"
    )


def _tensor(pointer, result, operands="", sizes="0, 0") -> str:
    types = "".join(f", {_ARGUMENTS[name.strip()]}" for name in operands.split(",") if name.strip())
    names = f"{pointer}, {operands}" if operands else pointer
    return (
        f'%x = "cute.make_tensor"({names}) {{operandSegmentSizes = array<i32: 1, {sizes}>}} : '
        f"({_ARGUMENTS[pointer]}{types}) -> {result}"
    )


def _atomic(kind="addi", order="relaxed", scope="gpu", target="%i", value="%a", compared="", result="") -> str:
    extra = f", {compared}" if compared else ""
    types = f"{_ARGUMENTS[value]}{', ' + _ARGUMENTS[compared] if compared else ''}, {_ARGUMENTS[target]}"
    return (
        f'%x = "cute.atomic"({value}{extra}, {target}) {{coord = "0", kind = "{kind}", order = "{order}", '
        f'scope = "{scope}", operandSegmentSizes = array<i32: 1, {int(bool(compared))}, 1, 0, 0>}} : ({types}) -> '
        f"{result or _ARGUMENTS[value]}"
    )


def _gemm(d, a, b, c, atom="mma.sync{shape=16x8x16,a=f16,b=f16,c=f32}") -> str:
    names = (d, a, b, c)
    return f'"cute.gemm"({", ".join(names)}) {{atom = "{atom}"}} : ({", ".join(_ARGUMENTS[n] for n in names)}) -> ()'


def _one(operation, operands, result, /, **attributes) -> str:
    """An operation with one group of any number at most."""
    written = ", ".join(f"{key} = {value}" for key, value in attributes.items())
    types = ", ".join(_ARGUMENTS[operand] for operand in operands)
    start = "%x = " if result else ""
    return f'{start}"cute.{operation}"({", ".join(operands)}) {{{written}}} : ({types}) -> {result or "()"}'


def _t(layout, element="f32", space="gmem", align=16) -> str:
    return f'!cute.tensor<{element}, "{space}", "{layout}", {align} : i32>'


def _p(element="f32", space="gmem", align=16) -> str:
    return f'!cute.ptr<{element}, "{space}", {align} : i32>'


PTX = {"text": '"add.s32 $0, $1, 1;"', "constraints": '"=r,r"', "feature": '""'}
REDUCE = {"kind": '"addf"', "shape": "array<i32: 2, 2>", "profile": "array<i32: 1, 1>"}

GOOD = [
    _tensor("%pg", _t("(4,?):(?{i64},1)"), "%a, %b", "1, 1"),
    _tensor("%pg", _t("(0):(1)")),
    _view("%d", _t("(32,4):(?{i64},1)", align=4), "local_tile", "(32,4);(?{i64},0)", "%b, %b", "0, 1, 0, 1"),
    _view("%g", _t("8:1"), "slice", "(2,_)").replace('"8:1"', '"(8):(1)"'),
    _view("%g", _t("(8,8):(8,1)", "f16"), "recast", "16;32").replace("(8,8):(8,1)", "(4,16):(16,1)"),
    _view("%w", _t("S<2,0,3> o ? o (4):(1)", space="smem"), "slice", "(?,_)", "%a", "1, 0, 0, 0", "swizzle"),
    _load("%g", "(3,7)"), _load("%g", "31"), _load("%d", "(?,?{i64})", "%a, %b", "1, 1"),
    '"cute.store"(%f, %g) {coord = "0", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (f32, TG) -> ()',
    _one("load_tensor", ("%r",), "V4"), _one("store_tensor", ("%v", "%r"), ""), _one("fill", ("%f", "%g"), ""),
    _copy("%r", "%s", "universal"), _copy("%s", "%r", "universal{bits=128}"), _copy("%r", "%s", "universal", "%m"),
    _copy("%v", "%s", "universal{bits=64}"),
    _gemm("%cf", "%ah", "%bh", "%cf"),
    _atomic(), _atomic("casi", compared="%a"), _atomic("maxu", order="acq_rel", scope="cta"),
    _one("reduce", ("%v", "%f"), "f32", **REDUCE),
    _one("reduce", ("%v", "%f"), "vector<2xf32>", **REDUCE | {"profile": "array<i32: 0, 1>"}),
    _one("convert", ("%f",), "f16", source='"f32"', target='"f16"'),
    _one("approx", ("%f",), "f32", kind='"exp2"'),
    _one("join", ("%v", "%v"), "vector<8xf32>"),
    _one("ptx_value", ("%a",), "i32", **PTX),
    _one("index", (), "i32", name='"block_in_cluster_idx.z"'),
    _one("ptr_offset", ("%pg", "%a"), _p(align=4)), _one("ptr_cast", ("%pg",), _p("f16", "generic")),
    _one("iterator", ("%d",), _p(align=4)), _one("leaf", ("%d",), "i64", index="2 : i32"),
    _one("field", ("%pg",), _p("i8", align=8), offset="8 : i32", name='"tail"'),
    _one("alloc", (), _p(space="smem"), bytes="64 : i32"),
    _one("shuffle", ("%f", "%a", "%a"), "f32", kind='"bfly"', clamp="31 : i32"),
    _one("vote", ("%z", "%a"), "i32", kind='"ballot"'),
    _one("warp_reduce", ("%f",), "f32", kind='"maxf"', width="8 : i32"),
    _one("pin", ("%a", "%a"), "", name='"add.place[0]"', kind='"i32"'),
    _one("pin", (), "", name='"f.n"', kind='"constant 3"'),
    _one("profile", (), "", kind='"begin"', region='"load"'), _one("profile", (), "", kind='"kernel"', region='""'),
]  # fmt: skip


@pytest.mark.parametrize("body", GOOD)
def test_what_is_right_passes(body):
    _verify(body)


BAD = [
    # Types.
    (_one("ptr_cast", ("%pg",), _p("index")), "elements have a number type"),
    (_one("ptr_cast", ("%pg",), _p(space="tmem")), "there is no space 'tmem'"),
    (_one("ptr_cast", ("%pg",), _p(align=12)), "an alignment is a power of two of bytes"),
    (_one("ptr_cast", ("%pg",), _p(align=0)), "an alignment is a power of two of bytes"),
    (_tensor("%pg", _t("(4,8):(8")), "the layout cannot be read"),
    (_tensor("%pg", _t("(4,8):8")), "the layout cannot be read"),
    (_tensor("%pg", _t("4:1 x")), "the layout is not written as layouts are"),
    (_tensor("%pg", _t("(4, 8):(8, 1)")), "the layout is not written as layouts are"),
    (_tensor("%pg", _t("(4):(1@0)")), "offsets and strides in memory are integers"),
    (_tensor("%pg", _t("S<2,0,3> o (1,2) o (4):(1)")), "offsets and strides in memory are integers"),
    (_tensor("%pg", _t("(_):(1)")), "the layout cannot be read"),
    (_tensor("%pg", _t("(?{div=0}):(1)"), "%a", "1, 0"), "the layout cannot be read"),
    (_tensor("%pg", _t("T<2,0,3> o 0 o (4):(1)")), "the layout is not written as layouts are"),
    (_tensor("%pg", _t("S<2,0> o 0 o (4):(1)")), "the layout cannot be read"),
    (_tensor("%pg", _t("S<2,0,3> o 0 o S<2,0,3> o 0 o (4):(1)")), "the layout cannot be read"),
    (_tensor("%pg", _t("")), "the layout cannot be read"),
    (_tensor("%pg", _t("4")), "the layout"),
    (_tensor("%pg", _t("(-4):(1)")), "the layout cannot be read|an extent is negative"),
    # Addresses.
    (_tensor("%pg", _t("(?):(1)")), "layout has 1 leaves of 32 bits and 0 of 64, and the operands are 0 and 0"),
    (_tensor("%pg", _t("(4):(?)"), "%b", "0, 1"),
     "layout has 1 leaves of 32 bits and 0 of 64, and the operands are 0 and 1"),
    (_tensor("%pg", _t("(4):(1)", "f16")), "the elements are of another type"),
    (_tensor("%pg", _t("(4):(1)", space="smem")), "the space is another one"),
    (_tensor("%pg", _t("(4):(1)", align=32)), "an alignment to 32 bytes is not known"),
    ('%p = "cute.alloc"() {bytes = 12 : i32} : () -> PR\n%x = "cute.make_tensor"(%p) {operandSegmentSizes = '
     "array<i32: 1, 0, 0>} : (PR) -> TR", "the tensor reaches outside its allocation"),
    (f'%k = arith.constant 3 : i32\n%x = "cute.ptr_offset"(%pg, %k) : (PG, i32) -> {_p(align=16)}',
     "an alignment to 16 bytes is not known"),
    (_one("ptr_offset", ("%pg", "%h"), _p()), "the offset is an i32 or i64"),
    (_one("leaf", ("%d",), "i64", index="3 : i32"), "there is no leaf 3"),
    (_one("leaf", ("%d",), "i32", index="2 : i32"), "leaf 2 has 64 bits"),
    (_one("ptr_cast", ("%pg",), _p(space="smem")), "an address converts only to and from generic"),
    (_one("field", ("%pg",), _p("i8", align=16), offset="8 : i32", name='"t"'),
     "an alignment to 16 bytes is not known"),
    (_one("field", ("%pg",), _p("i8", "smem", 8), offset="8 : i32", name='"t"'),
     "a member lies in the space of its struct"),
    (_one("field", ("%pg",), _p("i8", align=8), offset="-8 : i32", name='"t"'), "the offset of a member is negative"),
    (_one("alloc", (), _p(), bytes="64 : i32"), "memory of a kernel is allocated in rmem or smem"),
    (_one("alloc", (), _p(space="smem"), bytes="0 : i32"), "an allocation has bytes"),
    (_one("alloc", (), _p(space="rmem"), bytes='"many"'), "attribute bytes is an integer"),
    (_one("smem_base", (), _p(), offset="0 : i32"), "shared memory is in smem"),
    (_one("smem_base", (), _p(space="smem"), offset="-16 : i32"), "the offset into shared memory is negative"),
    (_one("smem_base", (), _p(space="smem"), offset="8 : i32"), "an alignment to 16 bytes is not known"),
    (_one("int_to_ptr", ("%f",), _p()), "an address is an i32 or i64"),
    (_one("ptr_to_int", ("%pg",), "f32"), "an address is an i32 or i64"),
    # Views.
    (_view("%g", "TG", "local_tail", ""), "algebra 'local_tail' is not known"),
    (_view("%g", "TG", "slice", "(_,_)", moves="nowhere"), "moves 'nowhere' is not known"),
    (_view("%g", "TG", "slice", "(_,_)", width=16), "an offset is computed in 32 or 64 bits"),
    (_view("%g", "TG", "slice", "(_,"), "the arguments cannot be read"),
    (_view("%g", "TG", "slice", "( _,_)"), "the arguments are not written as layouts are"),
    (_view("%g", _t("(8):(1)"), "slice", "(?,_)"), "arguments has 1 leaves of 32 bits"),
    (_view("%d", _t("(4):(?)", align=4), "slice", "(0,_)"), "layout has 1 leaves of 32 bits"),
    (_view("%g", _t("(8):(1)", space="smem"), "slice", "(2,_)"), "a view lies in the space of its tensor"),
    (_view("%g", _t("(8):(1)", "i32"), "slice", "(2,_)"), "only a recast changes the type of elements"),
    (_view("%g", _t("(4,16):(16,1)", "f16"), "recast", "16;64"), "a recast is given the bits"),
    (_view("%g", _t("(8):(1)"), "slice", "(2,_,_)"), "slice has no result"),
    (_view("%g", _t("(8):(1)"), "local_tile", "(3,8)"), "local_tile has no result"),
    (_view("%g", _t("(8):(2)"), "slice", "(2,_)"), "the layout is not that of the view"),
    (_view("%g", _t("(4):(1)"), "slice", "(2,_)"), "the layout is not that of the view"),
    (_view("%g", _t("(2,8):(8,1)"), "local_tile", "(2,4);(1,0)"), "the layout is not that of the view"),
    (_view("%r", _t("1:0", space="rmem", align=4), "slice", "(4)"), "the coordinate is outside the tensor"),
    (_view("%g", _t("(8):(1)", align=32), "slice", "(2,_)"), "an alignment to 32 bytes is not known of the view"),
    (_view("%g", _t("(4):(8)", align=16), "slice", "(_,1)"), "an alignment to 16 bytes is not known of the view"),
    (_view("%g", _t("(8):(1)"), "slice", "(2,_)", moves="swizzle"), "the offset moves only inside a swizzle"),
    (_view("%w", _t("S<2,0,3> o 0 o (4):(1)", space="smem"), "slice", "(?,_)", "%a", "1, 0, 0, 0"),
     "under a swizzle the pointer moves by multiples of its period only"),
    (_view("%d", _t("(0,4):(?{i64},1)", align=4), "local_tile", "(0,4);(0,0)", "%b", "0, 0, 0, 1"),
     "local_tile has no result"),
    # Accesses.
    (_load("%g", "0", result="f16"), "the result is of another type than the tensor's elements"),
    (_load("%g", "(0,0,0)"), "the coordinate does not fit the tensor"),
    (_load("%g", "(0,_)"), "the coordinate does not fit the tensor"),
    (_load("%g", "(0,"), "the coordinate cannot be read"),
    (_load("%g", "(4,0)"), "the coordinate is outside the tensor"),
    (_load("%g", "-1"), "the coordinate is outside the tensor"),
    (_load("%g", "(?,?)", "%a", "1, 0"), "coord has 2 leaves of 32 bits and 0 of 64"),
    ('"cute.store"(%h, %g) {coord = "0", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (f16, TG) -> ()',
     "the value is of another type than the tensor's elements"),
    (_one("load_tensor", ("%r",), "vector<3xf32>"), "the result has 3 elements and the tensor 4"),
    (_one("load_tensor", ("%r",), "vector<4xf16>"), "the result is of another type"),
    (_one("store_tensor", ("%v", "%g"), ""), "the value has 4 elements and the tensor 32"),
    (_one("fill", ("%h", "%g"), ""), "the value is of another type"),
    (_one("fill", ("%f", "%d"), ""), "fill needs a tensor whose size is known"),
    (_atomic("addf"), "there is no atomic operation 'addf' of i32"),
    (_atomic("gaugei"), "there is no atomic operation 'gaugei'"),
    (_atomic("casi"), "cas compares with one number"),
    (_atomic(compared="%a"), "cas compares with one number"),
    (_atomic("addf", target="%r", value="%f"), "registers have no atomic operations"),
    (_atomic(result="i64"), "the old number is of the type of the value"),
    (_atomic(order="weak"), "order 'weak' is not known"),
    (_atomic(scope="world"), "scope 'world' is not known"),
    # Copies and products.
    (_copy("%r", "%s", "tma"), "there is no atom 'tma'"),
    (_copy("%r", "%s", "universal{bits=128"), "atom 'universal{bits=128' is not name{key=value,...}"),
    (_copy("%r", "%s", "universal{bits=48}"), "bits of atom universal is one of"),
    (_copy("%r", "%s", "universal{cache=global}"), "atom universal has no cache"),
    (_copy("%r", "%g", "universal"), "the source has 4 elements and the destination 32"),
    (_copy("%d", "%g", "universal"), "a copy needs a tensor whose size is known"),
    (_copy("%ah", "%r", "universal"), "a copy keeps the width of elements"),
    (_copy("%m", "%m", "universal", "%r"), "a predicate has Booleans"),
    (_copy("%r", "%s", "universal{bits=128}", "%m"), "a predicate of 4 entries does not fit a copy of 4 elements"),
    (_copy("%r", "%s", "cp.async{bits=32,cache=always}"), "cp.async copies from gmem or generic to smem"),
    (_copy("%g", "%s", "ldmatrix{num=4,transpose=0}"), "ldmatrix copies from smem to rmem"),
    (_copy("%s", "%r", "ldmatrix{num=3,transpose=0}"), "num of atom ldmatrix is one of 1, 2, 4"),
    (_copy("%s", "%r", "ldmatrix{num=2,transpose=0}"), "4 elements of rows and 4 of registers do not fit ldmatrix"),
    (_copy("%f", "%s", "universal"), "a register fragment as a value is a vector of numbers"),
    (_gemm("%cf", "%ah", "%bh", "%cf", "mma.sync{shape=16x8x32,a=f16,b=f16,c=f32}"),
     "there is no instruction for atom"),
    (_gemm("%cf", "%bh", "%bh", "%cf"), "the first mode of operand A is not what an instruction takes"),
    (_gemm("%ah", "%ah", "%bh", "%cf"), "operand D has elements of type f32 for this atom"),
    (_gemm("%g", "%ah", "%bh", "%cf"), "operand D lies in registers"),
    (_gemm("%i", "%i", "%i", "%i", "universal"), "the universal product multiplies floats"),
    # Values.
    (_one("reduce", ("%v", "%f"), "f32", **REDUCE | {"kind": '"addi"'}), "kind 'addi' does not fold f32"),
    (_one("reduce", ("%v", "%f"), "f32", **REDUCE | {"kind": '"avgf"'}), "kind 'avgf' is not known"),
    (_one("reduce", ("%v", "%f"), "f32", **REDUCE | {"shape": "array<i32: 2, 3>"}),
     "a vector of 4 elements, and a shape of 6"),
    (_one("reduce", ("%v", "%f"), "f32", **REDUCE | {"profile": "array<i32: 1, 2>"}),
     "the profile has a 1 for each mode"),
    (_one("reduce", ("%v", "%f"), "f32", **REDUCE | {"shape": '"2x2"'}), "attribute shape is an array of integers"),
    (_one("reduce", ("%v", "%h"), "f32", **REDUCE), "init is of the type of the elements"),
    (_one("reduce", ("%v", "%f"), "vector<4xf32>", **REDUCE | {"profile": "array<i32: 0, 1>"}),
     "the fold leaves 2 elements"),
    (_one("convert", ("%f",), "f16", source='"f32"', target='"bf16"'), "the result is not a bf16"),
    (_one("convert", ("%f",), "f16", source='"f99"', target='"f16"'), "source 'f99' is not known"),
    (_one("convert", ("%v",), "f16", source='"f32"', target='"f16"'), "a conversion keeps the number of elements"),
    (_one("approx", ("%f",), "f32", kind='"erf"'), "kind 'erf' is not known"),
    (_one("approx", ("%h",), "f16", kind='"exp2"'), "approximate functions take and give an f32"),
    (_one("join", ("%h", "%h"), "vector<2xf32>"), "the parts have elements of the result's type"),
    (_one("join", ("%v", "%v"), "vector<6xf32>"), "the parts have 8 elements"),
    (_one("join", ("%f",), "f32"), "parts join to a vector"),
    # Cooperation and PTX.
    (_one("index", (), "i32", name='"thread_idx.w"'), "name 'thread_idx.w' is not known"),
    (_one("index", (), "i64", name='"lane_idx"'), "an index is an i32"),
    (_one("barrier", ("%a",), "", kind='"arrive"'), "a barrier has one count of threads"),
    (_one("barrier", ("%a",), "", kind='"wait"'), "kind 'wait' is not known"),
    (_one("fence", (), "", scope='"world"', order='"acq_rel"'), "scope 'world' is not known"),
    (_one("fence", (), "", scope='"cta"', order='"weak"'), "order 'weak' is not known"),
    (_one("async_wait", (), "", groups="-1 : i32"), "the number of unfinished groups is negative"),
    (_one("shuffle", ("%f", "%a", "%a"), "i32", kind='"bfly"', clamp="31 : i32"),
     "the result is of the type of the value"),
    (_one("shuffle", ("%f", "%a", "%a"), "f32", kind='"bfly"', clamp="64 : i32"), "clamp has 5 bits of a lane"),
    (_one("shuffle", ("%pg", "%a", "%a"), "PG", kind='"bfly"', clamp="31 : i32"), "lanes hand on numbers"),
    (_one("vote", ("%z", "%a"), "i1", kind='"ballot"'), "this vote gives an i32"),
    (_one("warp_reduce", ("%f",), "f32", kind='"maxf"', width="12 : i32"), "groups of lanes have 1, 2, 4, 8, 16 or 32"),
    (_one("ptx_value", ("%a", "%a"), "i32", **PTX), "2 constraints for 1 results and 2 operands"),
    (_one("ptx_value", ("%a",), "i32", **PTX | {"constraints": '"r,=r"'}), "2 constraints for 1 results"),
    (_one("ptx_value", ("%a",), "i32", **PTX | {"constraints": '"=r,f"'}), "constraint 'f' is not that of the operand"),
    (_one("ptx_value", ("%a",), "i32", **PTX | {"constraints": '"=r,q"'}), "there is no constraint 'q'"),
    (_one("ptx_value", ("%a",), "i32", **PTX | {"feature": '"warp.drive"'}),
     "no feature of chips is called 'warp.drive'"),
    (_one("assert", ("%z",), "", message="1 : i32"), "attribute message is a string"),
    (_one("pin", ("%a",), "", name='"place"', kind='"i32"'), "a pin names FUNCTION.NAME and says what kind of value"),
    (_one("pin", ("%a",), "", name='"add.place"', kind='""'), "a pin names FUNCTION.NAME and says what kind of value"),
    (_one("pin", ("%a",), "", name='"add.{x}"', kind='"i32"'), "a pin names FUNCTION.NAME and says what kind of value"),
    (_one("profile", (), "", kind='"stop"', region='"load"'), "kind 'stop' is not known"),
    (_one("profile", (), "", kind='"begin"', region='""'), "a region that begins or ends has a name, and a whole"),
    (_one("profile", (), "", kind='"kernel"', region='"load"'), "a region that begins or ends has a name, and a whole"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "words"), BAD)
def test_what_breaks_a_rule_is_refused(body, words):
    with pytest.raises(PassError) as caught:
        _verify(body)
    error = caught.value
    name = re.findall(r'"(cute\.\w+)"', body)[-1]
    start = f"pass mine left {name} against the rules of the dialect: "
    assert error.message.startswith(start) and re.search(words, error.message.removeprefix(start)), error.message
    assert (error.location.file, error.location.line) == ("user.py", 7)
    assert name in error.values["operation"]


def test_the_operands_of_a_group_have_one_type():
    with compile_context():
        parts = [mlir.ir.Type.parse(text) for text in ("vector<4xf32>", "f32")]
        with pytest.raises(Invalid, match="the operands parts have one type"):
            grouped(SPECS["join"], parts, [mlir.ir.Type.parse("vector<5xf32>")], {})


def test_every_operation_has_a_verifier():
    assert set(RULES) == {f"cute.{name}" for name in SPECS}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('%x = "cute.copy_value"(%s, %m) {atom = "universal", operandSegmentSizes = array<i32: 1, 1, 0>} : '
         "(TS, TM) -> V4",
         "what the registers held is given where there is a predicate"),
        ('%x = "cute.copy_value"(%s, %m, %v) {atom = "universal", operandSegmentSizes = array<i32: 1, 1, 1>} : '
         "(TS, TM, V4) -> vector<8xf32>", "the source has 4 elements and the destination 8"),
        ('%x = "cute.gemm_value"(%v, %v, %v) {atom = "universal", extents = array<i32: 2, 2, 1>} : (V4, V4, V4) -> V4',
         "operand A has 2 elements"),
        ('%x = "cute.gemm_value"(%v, %v, %v) {atom = "universal", extents = array<i32: 2, 2>} : (V4, V4, V4) -> V4',
         "extents are the instructions along M, N and K"),
    ],
)  # fmt: skip
def test_fragments_as_values(text, words):
    good = text.replace("1, 1, 0>} : (TS, TM)", "1, 0, 0>} : (TS)").replace("(%s, %m)", "(%s)")
    good = good.replace("vector<8xf32>", "V4")
    good = re.sub(r"extents = array<[^>]*>", "extents = array<i32: 2, 2, 2>", good)
    _verify(good)
    with pytest.raises(PassError, match=words):
        _verify(text)


# Whole passes.


@cute.kernel
def rows_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    given, result = (cute.local_tile(t, (32, 4), (block, 0)) for t in (x, y))
    for _ in range(2):
        result[thread, None].store(given[thread, None].load())


@cute.jit
def rows(x: cute.Tensor, y: cute.Tensor):
    rows_kernel(x, y).launch(grid=(2, 1, 1), block=(32, 1, 1))


def _arrays():
    return np.arange(256, dtype=np.float32).reshape(64, 4), np.zeros((64, 4), np.float32)


def _broken_by(change):
    class Break(Pass):
        """Changes operations."""

        name = "break-rules"

        def run(self, module):
            change(operations(module))

    return Break()


def _compile(change, **given):
    return cute.compile(rows, *_arrays(), passes=[cutlass.before("annotate-loops", _broken_by(change))], **given)


def _first(found, name):
    return next(op for op in found if op.name == name)


def _again(op, operands, results=None, **attributes):
    given = {name: op.attributes[name] for name in op.attributes} | attributes
    with mlir.ir.InsertionPoint(op), op.location:
        types = results or [result.type for result in op.results]
        made = mlir.ir.Operation.create(op.name, results=types, operands=operands, attributes=given)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _drop_leaves(found):
    op = _first(found, "cute.make_tensor")
    _again(op, list(op.operands)[:1], operandSegmentSizes=mlir.ir.DenseI32ArrayAttr.get([1, 0, 0]))


def _shorten_vector(found):
    op = _first(found, "cute.load_tensor")
    op.results[0].set_type(mlir.ir.Type.parse("vector<3xf32>"))


def _swap_operands(found):
    op = _first(found, "cute.store_tensor")
    _again(op, list(op.operands)[::-1])


def _drop_operand(found):
    op = _first(found, "cute.store_tensor")
    _again(op, list(op.operands)[:1])


def _drop_attribute(found):
    del _first(found, "cute.view").attributes["algebra"]


def _wrong_segments(found):
    op = _first(found, "cute.view")
    op.attributes["operandSegmentSizes"] = mlir.ir.DenseI32ArrayAttr.get([1, 0, 0, 0, 0])


def _launch_less(found):
    op = _first(found, "gpu.launch_func")
    sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    place = sum(sizes[:-2])
    operands = list(op.operands)
    del operands[place]
    sizes[-2] -= 1
    _again(op, operands, operandSegmentSizes=mlir.ir.DenseI32ArrayAttr.get(sizes))


def _launch_nobody(found):
    op = _first(found, "gpu.launch_func")
    op.attributes["kernel"] = mlir.ir.SymbolRefAttr.get(["nobody", "nobody"])


def _launch_more_threads(found):
    block = _first(found, "gpu.launch_func").operands[3].owner.operation
    block.attributes["value"] = mlir.ir.Attribute.parse("64 : i32")


def _stand_still(found):
    op = _first(found, "scf.for")
    with mlir.ir.InsertionPoint(op), op.location:
        zero = mlir.ir.Operation.create(
            "arith.constant", results=[op.operands[2].type], attributes={"value": mlir.ir.Attribute.parse("0 : i32")}
        )
    op.operands[2] = zero.results[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_drop_leaves, "cute.make_tensor against the rules of the dialect: layout has 2 leaves of 32 bits and 1 of 64"),
        (
            _shorten_vector,
            "cute.load_tensor against the rules of the dialect: the result has 3 elements and the tensor 4",
        ),
        (_swap_operands, "cute.store_tensor against the rules of the dialect: operand tensor is a tensor"),
        (_drop_operand, "cute.store_tensor against the rules of the dialect: it has 1 operands"),
        (_drop_attribute, "cute.view against the rules of the dialect: attribute algebra is missing"),
        (_wrong_segments, "cute.view against the rules of the dialect: operandSegmentSizes do not divide"),
        (_launch_less, "gpu.launch_func against the rules of the dialect: the launch gives other arguments"),
        (_launch_nobody, "gpu.launch_func against the rules of the dialect: the launch names no kernel"),
        (_launch_more_threads, "gpu.launch_func against the rules of the dialect: the launch has another block"),
        (_stand_still, "scf.for against the rules of the dialect: the step of a loop is positive"),
    ],
)
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_pass_that_breaks_a_rule_is_named(change, words, everywhere):
    with settings.scope(verify=everywhere), pytest.raises(PassError) as caught:
        _compile(change)
    assert caught.value.message.startswith(f"pass break-rules left {words}"), caught.value.message
    assert caught.value.location.file == __file__ and "operation" in caught.value.values


def test_a_module_that_mlir_refuses_has_a_place_too():
    def use_before_definition(found):
        load = _first(found, "cute.load_tensor")
        load.move_after(_first(found, "cute.store_tensor"))

    with pytest.raises(PassError, match="pass break-rules left a module that is not valid") as caught:
        _compile(use_before_definition)
    assert caught.value.location.file == __file__ and "does not dominate" in caught.value.values["reason"]


def test_a_pass_manager_can_leave_it_out():
    with compile_context():
        module = mlir.ir.Module.parse(
            _spelled('func.func @f(%r: TR) {\n%x = "cute.load_tensor"(%r) : (TR) -> V4\nreturn\n}')
        )
        manager = PassManager([_broken_by(_shorten_vector)])
        manager.verify = False
        manager.run(module.operation)
        manager.verify = True
        with pytest.raises(PassError, match=r"pass break-rules left cute\.load_tensor"):
            manager.run(module.operation)


def test_passes_of_the_project_are_verified_with_the_setting_alone(monkeypatch):
    monkeypatch.setattr(AnnotateLoops, "run", lambda self, module: _shorten_vector(operations(module)))
    with settings.scope(verify=True), pytest.raises(PassError, match=r"pass annotate-loops left cute\.load_tensor"):
        cute.compile(rows, *_arrays())


def test_tests_run_with_the_verifier():
    assert settings.get("verify")
