"""Universal copies with hints: PTX loads and stores whose qualifiers LLVM has no words for.

`ld.global{.nc}{.L1::priority}{.L2::bytes}` and `st.global{.L1::priority}` (PTX ISA 9.0, "ld", "ld.global.nc", "st").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.atom_text import AtomText
from tilewright.layout import size
from tilewright.passes.lowering import LoweringContext, TensorView
from tilewright.passes.rules.copying import Moves, Side, Target, move_universal, read_run, universal_width, write_run
from tilewright.passes.rules.memory import element_bits, fits_vectors, memory_type, place_address
from tilewright.targets.nvidia.lowering.rules import use

if TYPE_CHECKING:
    from mlir import ir

_REGISTERS = {8: ("h", "i16"), 16: ("h", "i16"), 32: ("r", "i32"), 64: ("l", "i64")}


def move_universal_hinted(
    src: Side, dst: Target, atom: AtomText, per_predicate: int, context: LoweringContext
) -> Moves:
    """Loads and stores, those of global memory as the hints of the atom say."""
    hints = atom.parameters.keys() & {"l1", "l2", "invariant"}
    if not hints:
        return move_universal(src, dst, atom, per_predicate, context)
    width = universal_width(src, dst, atom, per_predicate)
    loads, stores = _hinted(src, width), _hinted(dst, width) and "l1" in hints
    _use(atom, context)
    load, store = f"ld.global{_qualifiers(atom)}", f"st.global{_priority(atom)}"

    def emit(number: int) -> None:
        start = number * width
        if loads and isinstance(src, TensorView):
            value = _load(src, start, width, load, pure="invariant" in hints)
        else:
            value = read_run(src, start, width)
        if stores and isinstance(dst, TensorView):
            _store(value, dst, start, width, store)
        else:
            write_run(dst, start, width, value)

    return Moves(int(size(src.layout)) // width, emit)


def copy_async(opcode: str, size: int, operands: Sequence[ir.Value]) -> None:
    """`opcode` of `size` bytes from operand 1, in global memory, to operand 0, in shared memory; operand 2, if it is
    there, says how many bytes are read."""
    to, source, *read = operands
    places = [build.value("llvm.ptrtoint", types.parse(type_), (end,)) for type_, end in (("i32", to), ("i64", source))]
    masked = ", $2" if read else ""
    _asm(f"{opcode} [$0], [$1], {size}{masked};", "r,l,r" if read else "r,l", (*places, *read), None, pure=False)


def _hinted(view: Side | Target, width: int) -> bool:
    """True where the elements of an instruction lie in global memory as one number of 8 to 128 bits."""
    if not isinstance(view, TensorView) or view.info.space != "gmem":
        return False
    bits = width * element_bits(view.info.element)
    return bits in (8, 16, 32, 64, 128) and (width == 1 or fits_vectors(view, width))


def _use(atom: AtomText, context: LoweringContext) -> None:
    if "l1" in atom.parameters:
        kind = "no_allocate" if atom.parameters["l1"] == "no_allocate" else "evict_last"
        use(f"ld.L1::{kind}", f"an access with L1::{atom.parameters['l1']}", context)
    if "l2" in atom.parameters:
        use("ld.L2::128B", f"a load with L2::{atom.parameters['l2']}B", context)


def _priority(atom: AtomText) -> str:
    return f".L1::{atom.parameters['l1']}" if "l1" in atom.parameters else ""


def _qualifiers(atom: AtomText) -> str:
    nc = ".nc" if "invariant" in atom.parameters else ""
    return nc + _priority(atom) + (f".L2::{atom.parameters['l2']}B" if "l2" in atom.parameters else "")


def _form(bits: int) -> tuple[int, str, str, str]:
    """Words of an instruction of `bits` bits, the end of its opcode, the constraint and the type of a word."""
    words = 2 if bits == 128 else 1
    constraint, type_ = _REGISTERS[bits // words]
    return words, (".v2" if words > 1 else "") + f".b{bits // words}", constraint, type_


def _load(view: TensorView, start: int, width: int, opcode: str, *, pure: bool) -> ir.Value:
    """The elements from `start` on as `read_run` gives them."""
    element = memory_type(view.info.element)
    bits = width * element_bits(view.info.element)
    words, end, constraint, type_ = _form(bits)
    operands = "{$0, $1}, [$2]" if words > 1 else "$0, [$1]"
    results = types.parse(type_ if words == 1 else f"!llvm.struct<({type_}, {type_})>")
    outputs = ",".join([f"={constraint}"] * words)
    made = _asm(f"{opcode}{end} {operands};", f"{outputs},l", (_address(view, start),), results, pure=pure)
    assert made is not None
    return _as(_joined(made, words, type_), bits, element, width)


def _store(value: ir.Value, view: TensorView, start: int, width: int, opcode: str) -> None:
    bits = width * element_bits(view.info.element)
    words, end, constraint, type_ = _form(bits)
    narrow = _bitcast(value, f"i{bits}" if words == 1 else f"vector<2x{type_}>")
    if words == 1:
        parts = [build.value("arith.extui", types.parse("i16"), (narrow,))] if bits == 8 else [narrow]
    else:
        parts = [_element(narrow, number) for number in range(words)]
    operands = "{$1, $2}" if words > 1 else "$1"
    inputs = ",".join([constraint] * words)
    _asm(f"{opcode}{end} [$0], {operands};", f"l,{inputs}", (_address(view, start), *parts), None, pure=False)


def _asm(
    text: str, constraints: str, operands: tuple[ir.Value, ...], result: ir.Type | None, *, pure: bool
) -> ir.Value | None:
    """Inline assembly; what is not `pure` stays in its place among other accesses."""
    attributes = {
        "asm_string": build.string(text),
        "constraints": build.string(constraints if pure else f"{constraints},~{{memory}}"),
        "asm_dialect": build.i64(0),
    }
    if not pure:
        attributes["has_side_effects"] = mlir.ir.UnitAttr.get()
    made = build.emit("llvm.inline_asm", () if result is None else (result,), operands, attributes)
    return None if result is None else made.results[0]


def _address(view: TensorView, start: int) -> ir.Value:
    return build.value("llvm.ptrtoint", types.parse("i64"), (place_address(view, start),))


def _joined(made: ir.Value, words: int, type_: str) -> ir.Value:
    """The words side by side: one number, or a vector of two."""
    if words == 1:
        return made
    whole = build.value("llvm.mlir.poison", types.parse(f"vector<2x{type_}>"))
    for number in range(words):
        place = {"position": build.attribute(f"array<i64: {number}>")}
        word = build.value("llvm.extractvalue", types.parse(type_), (made,), place)
        index = build.constant(number, types.parse("i64"))
        whole = build.value("llvm.insertelement", whole.type, (whole, word, index))
    return whole


def _element(vector: ir.Value, number: int) -> ir.Value:
    index = build.constant(number, types.parse("i64"))
    return build.value("llvm.extractelement", mlir.ir.VectorType(vector.type).element_type, (vector, index))


def _as(value: ir.Value, bits: int, element: ir.Type, width: int) -> ir.Value:
    """The bits of a load as elements: one, or a vector of them."""
    if bits == 8:
        value = build.value("arith.trunci", types.parse("i8"), (value,))
    return _bitcast(value, str(element) if width == 1 else f"vector<{width}x{element}>")


def _bitcast(value: ir.Value, type_: str) -> ir.Value:
    wanted = types.parse(type_)
    return value if value.type == wanted else build.value("llvm.bitcast", wanted, (value,))
