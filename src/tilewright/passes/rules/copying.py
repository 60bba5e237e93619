"""Rules for `cute.copy` and `cute.copy_value`: instruction by instruction, each run of them under its predicate.

A mover lowers the instructions of one kind of atom. It says how many there are, and emits each. Where a predicate is
false, an instruction is skipped, unless it takes the predicate itself (cp.async then writes zeros).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.ir.atom_text import AtomText, read
from tilewright.ir.vectors import extract, insert
from tilewright.layout import size
from tilewright.passes.lowering import LoweringContext, Rules, TensorView
from tilewright.passes.rules import packed
from tilewright.passes.rules.fragments import Fragment, Made, fragment_of, give, made, tensor_or_fragment
from tilewright.passes.rules.memory import (
    MAX_VECTOR_BYTES,
    as_stored,
    as_value,
    chunk_alignment,
    element_alignment,
    element_bits,
    element_bytes,
    fits_vectors,
    load,
    memory_type,
    place_address,
    store,
    vector_width,
)
from tilewright.passes.rules.narrow_accesses import why_narrow

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()


@dataclass(frozen=True)
class Moves:
    """`count` instructions; `emit(n)` builds one. With `emit_if(n, predicate)` they take a predicate themselves."""

    count: int
    emit: Callable[[int], None]
    emit_if: Callable[[int, ir.Value], None] | None = None


Side = TensorView | Fragment
"""What a copy reads: a tensor, or a register fragment as a value."""
Target = TensorView | Made
Mover = Callable[[Side, Target, AtomText, int, LoweringContext], Moves]
"""(source, destination, atom, elements for each predicate, context) -> the instructions."""


def lower_copy(op: ir.Operation, context: LoweringContext, movers: Mapping[str, Mover]) -> list[ir.Value]:
    """Lower `copy` with the mover of its atom."""
    (source,), (target,), preds = build.groups(op)
    src, dst = tensor_or_fragment(source, context), context.tensor(target)
    _move(op, src, dst, preds, None, context, movers)
    return []


def lower_copy_value(op: ir.Operation, context: LoweringContext, movers: Mapping[str, Mover]) -> list[ir.Value] | None:
    """Lower `copy_value` with the mover of its atom."""
    (source,), preds, old = build.groups(op)
    target = made(op)
    before = fragment_of(old[0], context) if old else None
    _move(op, tensor_or_fragment(source, context), target, preds, before, context, movers)
    return give(op, target.fragment(), context)


def _move(
    op: ir.Operation,
    src: Side,
    dst: Target,
    preds: Sequence[ir.Value],
    old: Fragment | None,
    context: LoweringContext,
    movers: Mapping[str, Mover],
) -> None:
    """The instructions, each run of them under its predicate; `old` is what registers held before."""
    atom = read(text_of(op, "atom"))
    if atom.name not in movers:
        raise CompileError(
            f"copy atom {atom.name} has no lowering for this target", hint=f"it has {', '.join(sorted(movers))}"
        )
    pred = tensor_or_fragment(preds[0], context) if preds else None
    entries = _count(pred) if pred is not None else 1
    moves = movers[atom.name](src, dst, atom, _count(src) // entries, context)
    if atom.name == "universal" and moves.count:
        _remark(op, (src, dst), moves.count, entries, atom, context)
    if pred is None:
        for number in range(moves.count):
            moves.emit(number)
        return
    for entry in range(entries):
        numbers = range(entry * moves.count // entries, (entry + 1) * moves.count // entries)
        _where(_condition(pred, entry), moves, numbers, dst, old)


def _remark(
    op: ir.Operation, sides: tuple[Side, Target], count: int, entries: int, atom: AtomText, context: LoweringContext
) -> None:
    """Why a copy to or from memory is not done by wider instructions."""
    for way, view in zip(("load from", "store to"), sides, strict=True):
        if not isinstance(view, TensorView) or view.info.space == "rmem":
            continue
        width, bits = _count(view) // count, element_bits(view.info.element)
        text = why_narrow(way, view, width, bits)
        if atom.number("bits") and width * bits < MAX_VECTOR_BYTES * 8:
            text = f"each {way} {view.info.space} moves {width * bits} bits, as num_bits_per_copy says"
        elif text is None and entries == count and entries < _count(view) * bits // 128:
            text = f"each {way} {view.info.space} moves {width * bits} bits: each has a predicate of its own"
        context.remark(op, text)


def _condition(pred: Side, entry: int) -> ir.Value:
    if isinstance(pred, Fragment):
        return pred.scalars()[entry]
    return load(place_address(pred, entry), types.parse("i1"), element_alignment(pred))


def _where(condition: ir.Value, moves: Moves, numbers: range, dst: Target, old: Fragment | None) -> None:
    if moves.emit_if is not None:
        for number in numbers:
            moves.emit_if(number, condition)
        return
    guard = build.emit("scf.if", (), (condition,), regions=2)
    known = set(dst.pieces) if isinstance(dst, Made) else set()
    with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
        for number in numbers:
            moves.emit(number)
        new = [] if old is None or not isinstance(dst, Made) else [place for place in dst.pieces if place not in known]
        build.emit("scf.yield", (), [dst.pieces[place][1] for place in new] if isinstance(dst, Made) else ())
    if isinstance(dst, Made) and old is not None:
        _merge(guard, dst, new, old)


def _merge(guard: ir.Operation, dst: Made, places: Sequence[int], old: Fragment) -> None:
    """What `guard` wrote where its predicate is true, else what the registers held."""
    pieces = [dst.pieces[place] for place in places]
    final = build.emit("scf.if", [value.type for _, value in pieces], guard.operands, regions=2)
    guard.regions[0].blocks[0].append_to(final.regions[0])
    guard.erase()
    with mlir.ir.InsertionPoint(final.regions[1].blocks.append()):
        kept = [old.word(place, value.type, width) for place, (width, value) in zip(places, pieces, strict=True)]
        build.emit("scf.yield", (), kept)
    for place, (width, _), result in zip(places, pieces, final.results, strict=True):
        dst.write(place, width, result)


def move_universal(src: Side, dst: Target, atom: AtomText, per_predicate: int, context: LoweringContext) -> Moves:
    """Loads and stores: as wide as the atom says, else as wide as layouts, alignments and predicates allow."""
    width = universal_width(src, dst, atom, per_predicate)

    def emit(number: int) -> None:
        write_run(dst, number * width, width, read_run(src, number * width, width))

    return Moves(_count(src) // width, emit)


def universal_width(src: Side, dst: Target, atom: AtomText, per_predicate: int) -> int:
    """Elements of one instruction of a universal copy.

    Raises:
        CompileError: the memories do not allow the width of the atom, or the predicate does not fit it.
    """
    bits = atom.number("bits")
    width = required_width(bits, src, dst) if bits else _widest(src, dst, per_predicate)
    if per_predicate % width:
        raise CompileError(
            f"a predicate for each {per_predicate} elements, and a copy of {width} elements at a time",
            values={"source": src.layout, "atom": str(atom)},
        )
    return width


def required_width(bits: int, *views: Side | Target, hint: str = "") -> int:
    """Elements of an instruction of `bits` bits; the memories among `views` must allow it, else the error has `hint`.

    Raises:
        CompileError: a layout is not contiguous over so many bits, or its address not known to be aligned to them.
    """
    width = 1
    for view in views:
        width = max(bits // element_bits(view.info.element), 1)
        if view.info.space == "rmem" or not isinstance(view, TensorView):
            continue
        if width > 1 and not fits_vectors(view, width):
            raise CompileError(
                f"a copy of {bits} bits needs {width} contiguous elements, aligned to {bits // 8} bytes",
                values={
                    f"tensor in {view.info.space}": view.layout,
                    "alignment known": f"{view.info.align} bytes",
                    "element": f"{element_bits(view.info.element)} bits",
                },
                hint=hint or _WIDTH_HINTS.get(view.info.space, _WIDTH_HINTS["gmem"]),
            )
    return width


_WIDTH_HINTS = {
    "gmem": "give the tensor its alignment (from_dlpack(assumed_align=16)) and its extents their divisibility "
    "(mark_compact_shape_dynamic(divisibility=...), cute.assume), or use a smaller num_bits_per_copy",
    "smem": "allocate it at a multiple of those bytes (byte_alignment=, in a struct cute.struct.Align[...]), give each "
    "thread elements that lie together, or use a smaller num_bits_per_copy",
}

ROW_HINT = (
    "a row of a matrix is 16 bytes that lie together: allocate the tensor at a multiple of 16 bytes, and where the "
    "elements of a column lie together instead, give the operation transpose=True"
)
"""What to do where a tensor has no rows for ldmatrix or stmatrix."""


def in_memory(view: Side | Target) -> TensorView:
    """The side of a copy that an instruction takes addresses of.

    Raises:
        CompileError: it is registers.
    """
    if not isinstance(view, TensorView):
        raise CompileError("an instruction takes the address of a register fragment", values={"layout": view.layout})
    return view


def _widest(src: Side, dst: Target, per_predicate: int) -> int:
    """Registers take any vector; memories decide."""
    limit = max(MAX_VECTOR_BYTES * 8 // element_bits(src.info.element), 1)
    width = limit & -limit
    while per_predicate % width:
        width //= 2
    tensors = [view for view in (src, dst) if isinstance(view, TensorView)]
    memories = [view for view in tensors if view.info.space != "rmem"] or tensors
    return min(vector_width(view, width) for view in memories)


def read_run(view: Side, start: int, width: int) -> ir.Value:
    """Elements `start` to `start + width` as a vector (a number for width 1), as they lie in memory."""
    if isinstance(view, Fragment):
        return as_stored(view.run(start, width))
    element = memory_type(view.info.element)
    if width == 1 and packed.is_packed(view.info.element):
        return packed.load_one(view.ptr, view.layout(start), element)
    if width == 1:
        return load(place_address(view, start), element, element_alignment(view), raw=True)
    type_ = types.parse(f"vector<{width}x{element}>")
    if fits_vectors(view, width):
        return load(place_address(view, start), type_, chunk_alignment(view, width), raw=True)
    whole = build.value("llvm.mlir.poison", type_)
    for step in range(width):
        whole = insert(whole, read_run(view, start + step, 1), step)
    return whole


def write_run(view: Target, start: int, width: int, value: ir.Value) -> None:
    """Write what `read_run` gave."""
    if isinstance(view, Made):
        view.write(start, width, as_value(value) if str(view.element) == "i1" else value)
    elif width == 1 and packed.is_packed(view.info.element):
        packed.store_one(value, view.ptr, view.layout(start))
    elif width == 1:
        store(value, place_address(view, start), element_alignment(view), raw=True)
    elif fits_vectors(view, width):
        store(value, place_address(view, start), chunk_alignment(view, width), raw=True)
    else:
        for step in range(width):
            write_run(view, start + step, 1, extract(value, step))


def read_word(view: Side, start: int, type_: ir.Type, bits: int) -> ir.Value:
    """The elements from `start` on that fill `bits` bits, side by side as one value of `type_`."""
    width = max(bits // (element_bytes(view.info.element) * 8), 1)
    if isinstance(view, Fragment):
        return view.word(start, type_, width)
    if width == 1 or _one_load(view, start, width):
        return load(place_address(view, start), type_, _word_alignment(view, bits), raw=True)
    return _cast(read_run(view, start, width), type_)


def write_word(view: Target, start: int, value: ir.Value, bits: int) -> None:
    """Write what `read_word` gave."""
    element = memory_type(view.info.element)
    width = max(bits // (element_bytes(view.info.element) * 8), 1)
    if isinstance(view, Made):
        view.write(start, width, value)
        return
    if width == 1 or _one_load(view, start, width):
        store(value, place_address(view, start), _word_alignment(view, bits), raw=True)
        return
    vector = _cast(value, types.parse(f"vector<{width}x{element}>"))
    for step in range(width):
        write_run(view, start + step, 1, extract(vector, step))


def _one_load(view: TensorView, start: int, width: int) -> bool:
    """True when the word's elements are contiguous and aligned; registers have static layouts."""
    if view.info.align % (width * element_bytes(view.info.element)):
        return False
    offsets = [view.layout(start + step) for step in range(width)]
    if not all(isinstance(offset, int) for offset in offsets) or offsets[0] % width:
        return False
    return all(offset == offsets[0] + step for step, offset in enumerate(offsets))


def _word_alignment(view: TensorView, bits: int) -> int:
    return min(bits // 8, view.info.align)


def _cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else build.value("llvm.bitcast", type_, (value,))


def _count(view: Side | Target) -> int:
    return int(size(view.layout))


MOVERS: dict[str, Mover] = {"universal": move_universal}


@rules.lowers("copy")
def _copy(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return lower_copy(op, context, MOVERS)


@rules.lowers("copy_value")
def _copy_value(op: ir.Operation, context: LoweringContext) -> list[ir.Value] | None:
    return lower_copy_value(op, context, MOVERS)
