"""Rules from `cute` to `nvvm` for bulk copies: one PTX instruction each.

Semantics: PTX ISA 9.0, "cp.async.bulk", "cp.async.bulk.tensor", "cp.reduce.async.bulk" and its tensor form,
"prefetch.tensormap". A tensor map is a parameter of the kernel by value, whose generic address the instructions take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.int_value import materialize
from tilewright.layout import ComposedLayout, size
from tilewright.passes.lowering import LoweringContext, Rules, TensorView, gep, gep_constant
from tilewright.passes.rules.memory import element_bits, memory_type
from tilewright.targets.nvidia.lowering.rules import use

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_MAP_BYTES = 128
_LETTERS = {"i16": "h", "i32": "r", "i64": "l"}


class _Assembly:
    """An instruction in the making: its operands, each with the name by which the text calls it."""

    def __init__(self) -> None:
        self._operands: list[ir.Value] = []

    def add(self, value: ir.Value) -> str:
        """The name of another operand: an integer, or an address."""
        if str(value.type).startswith("!llvm.ptr"):
            width = "i32" if "<3>" in str(value.type) else "i64"
            value = build.value("llvm.ptrtoint", types.parse(width), (value,))
        self._operands.append(value)
        return f"${len(self._operands) - 1}"

    def emit(self, text: str) -> None:
        """Build it. It may touch memory, and stays where it is."""
        letters = [_LETTERS[str(value.type)] for value in self._operands]
        attributes = {
            "asm_string": build.string(text),
            "constraints": build.string(",".join([*letters, "~{memory}"])),
            "has_side_effects": mlir.ir.UnitAttr.get(),
            "asm_dialect": build.i64(0),
        }
        build.emit("llvm.inline_asm", (), self._operands, attributes)


def first_address(view: TensorView) -> ir.Value:
    """Where a tensor begins before the swizzle, which is what the copy engine and wgmma take."""
    layout = view.layout
    if not isinstance(layout, ComposedLayout) or (isinstance(layout.offset, int) and layout.offset == 0):
        return view.ptr
    return gep(view.ptr, materialize(layout.offset, 32), memory_type(view.info.element))


def _bytes(view: TensorView) -> int:
    return int(size(view.layout)) * element_bits(view.info.element) // 8


@rules.lowers("make_tensor_map")
def _tensor_map(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    raise CompileError(
        "a tensor map is made on the host",
        hint="call make_tiled_tma_atom in the @cute.jit function and pass the atom and the tensor to the kernel",
    )


@rules.lowers("tma_load")
def _tma_load(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (map_,), (target,), (barrier,), coord, mask, cache = build.groups(op)
    use("cp.async.bulk.tensor", "a tensor copy (TMA)", context)
    made = _Assembly()
    place, far = made.add(first_address(context.tensor(target))), _box(made, map_, coord)
    operands = [f"[{place}]", far, f"[{made.add(barrier)}]"]
    words = ["cp.async.bulk.tensor", f"{len(coord)}d", "shared::cluster.global.tile.mbarrier::complete_tx::bytes"]
    if mask:
        use("cp.async.bulk.tensor.multicast", "a tensor copy to several blocks", context)
        words.append("multicast::cluster")
        operands.append(made.add(mask[0]))
    _finish(made, words, operands, cache)
    return []


@rules.lowers("tma_store")
def _tma_store(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (map_,), (source,), coord, cache = build.groups(op)
    kind = text_of(op, "kind")
    feature = "cp.reduce.async.bulk.tensor" if kind else "cp.async.bulk.tensor"
    use(feature, "a tensor copy (TMA)", context)
    made = _Assembly()
    operands = [_box(made, map_, coord), f"[{made.add(first_address(context.tensor(source)))}]"]
    words = [feature, f"{len(coord)}d", "global.shared::cta", *([kind] if kind else []), "tile.bulk_group"]
    _finish(made, words, operands, cache)
    return []


@rules.lowers("tma_prefetch")
def _tma_prefetch(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (map_,), coord = build.groups(op)
    made = _Assembly()
    if not coord:
        use("prefetch.tensormap", "prefetch.tensormap", context)
        made.emit(f"prefetch.tensormap [{made.add(map_)}];")
        return []
    use("cp.async.bulk.prefetch", "a prefetch of a box", context)
    far = _box(made, map_, coord)
    made.emit(f"cp.async.bulk.prefetch.tensor.{len(coord)}d.L2.global.tile {far};")
    return []


@rules.lowers("tensor_map_copy")
def _tensor_map_copy(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    map_, target = op.operands
    words = number_of(op, "align") // 4
    type_ = types.parse(f"vector<{words}xi32>")
    for at in range(_MAP_BYTES // (4 * words)):
        aligned = {"alignment": build.i64(4 * words)}
        value = build.value("llvm.load", type_, (gep_constant(map_, at, type_),), aligned)
        build.emit("llvm.store", (), (value, gep_constant(target, at, type_)), aligned)
    return []


@rules.lowers("bulk_load")
def _bulk_load(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (source,), (target,), (barrier,), mask, cache = build.groups(op)
    use("cp.async.bulk", "a bulk copy", context)
    made = _Assembly()
    shared, far = context.tensor(target), context.tensor(source)
    operands = [f"[{made.add(first_address(shared))}]", f"[{made.add(far.ptr)}]", str(_bytes(shared))]
    operands.append(f"[{made.add(barrier)}]")
    words = ["cp.async.bulk", "shared::cluster.global.mbarrier::complete_tx::bytes"]
    if mask:
        words.append("multicast::cluster")
        operands.append(made.add(mask[0]))
    _finish(made, words, operands, cache)
    return []


_BULK_TYPES = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "i32": "s32", "i64": "u64"}


@rules.lowers("bulk_store")
def _bulk_store(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (source,), (target,), cache = build.groups(op)
    kind = text_of(op, "kind")
    feature = "cp.reduce.async.bulk" if kind else "cp.async.bulk"
    use(feature, "a bulk copy", context)
    made = _Assembly()
    shared, far = context.tensor(source), context.tensor(target)
    operands = [f"[{made.add(far.ptr)}]", f"[{made.add(first_address(shared))}]", str(_bytes(shared))]
    words, last = [feature, "global.shared::cta.bulk_group"], []
    if kind:
        element = str(shared.info.element)
        last = [kind, *(["noftz"] if element in ("f16", "bf16") and kind == "add" else []), _BULK_TYPES[element]]
    _finish(made, words, operands, cache, last)
    return []


@rules.lowers("bulk_commit")
def _bulk_commit(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("cp.async.bulk", "cp.async.bulk.commit_group", context)
    _Assembly().emit("cp.async.bulk.commit_group;")
    return []


@rules.lowers("bulk_wait")
def _bulk_wait(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    use("cp.async.bulk", "cp.async.bulk.wait_group", context)
    read = ".read" if number_of(op, "read") else ""
    _Assembly().emit(f"cp.async.bulk.wait_group{read} {number_of(op, 'groups')};")
    return []


def _box(made: _Assembly, map_: ir.Value, coord: Sequence[ir.Value]) -> str:
    """`[map, {x, y}]`."""
    address = made.add(map_)
    return f"[{address}, {{{', '.join(made.add(number) for number in coord)}}}]"


def _finish(
    made: _Assembly, words: list[str], operands: list[str], cache: Sequence[ir.Value], last: Sequence[str] = ()
) -> None:
    if cache:
        words.append("L2::cache_hint")
        operands.append(made.add(cache[0]))
    made.emit(f"{'.'.join([*words, *last])} {', '.join(operands)};")
