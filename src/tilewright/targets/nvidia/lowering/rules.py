"""Rules from `cute` to `nvvm`: the grid, shared memory, cooperation of threads, printing.

Operation semantics: PTX ISA 9.0, sections "Parallel Synchronization and Communication Instructions" and "Special
Registers".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.base.errors import CompileError
from tilewright.hw.features import require, supports
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.context import current
from tilewright.ir.locations import source_location
from tilewright.passes.lowering import LoweringContext, Rules, gep_constant
from tilewright.passes.rules.values import combiner

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
FULL_MASK = -1
SMEM_SYMBOL = "__tilewright_smem"

_SREG = {"thread_idx": "tid", "block_dim": "ntid", "block_idx": "ctaid", "grid_dim": "nctaid"}
_SREG_CLUSTER = {
    "cluster_idx": "clusterid", "cluster_dim": "nclusterid", "block_in_cluster_idx": "cluster.ctaid",
    "block_in_cluster_dim": "cluster.nctaid",
}  # fmt: skip
_SREG_SCALAR = {
    "lane_idx": "laneid", "block_in_cluster_rank": "cluster.ctarank", "cluster_size": "cluster.nctarank",
    "physical_warp_id": "warpid", "sm_id": "smid",
}  # fmt: skip


def special_register(name: str) -> str:
    """The nvvm operation that reads `cute.index {name}`."""
    head, _, axis = name.partition(".")
    if head in _SREG_SCALAR:
        return f"nvvm.read.ptx.sreg.{_SREG_SCALAR[head]}"
    table = _SREG if head in _SREG else _SREG_CLUSTER
    if head not in table:
        raise CompileError(f"no special register holds {name!r}")
    return f"nvvm.read.ptx.sreg.{table[head]}.{axis}"


@rules.lowers("index")
def _index(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    name = text_of(op, "name")
    if "cluster" in name:
        use("cluster", name, context)
    known = _known(name, context.facts.get("block"))
    if known is not None:
        return [build.constant(known, op.results[0].type)]
    if name == "dynamic_smem_size":
        return [_asm("mov.u32 $0, %dynamic_smem_size;", op.results[0].type)]
    return [build.value(special_register(name), op.results[0].type)]


def _known(name: str, block: Sequence[int] | None) -> int | None:
    """What a launch with a static block says of an index: the block's extents, and 0 along an extent of 1."""
    head, _, axis = name.partition(".")
    if block is None or head not in ("block_dim", "thread_idx"):
        return None
    extent = block["xyz".index(axis)]
    if head == "block_dim":
        return extent
    return 0 if extent == 1 else None


def _asm(text: str, result: ir.Type) -> ir.Value:
    return build.value(
        "llvm.inline_asm",
        result,
        (),
        {"asm_string": build.string(text), "constraints": build.string("=r"), "asm_dialect": build.i64(0)},
    )


@rules.lowers("smem_base")
def _smem_base(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    ptr = types.parse("!llvm.ptr<3>")
    name = mlir.ir.FlatSymbolRefAttr.get(SMEM_SYMBOL)
    base = build.value("llvm.mlir.addressof", ptr, (), {"global_name": name})
    return [gep_constant(base, number_of(op, "offset"), types.parse("i8"))]


@rules.lowers("sync_threads")
def _sync_threads(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    build.emit("nvvm.barrier0")
    return []


@rules.lowers("barrier")
def _barrier(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (number,), count = build.groups(op)
    if text_of(op, "kind") == "arrive":
        build.emit("nvvm.barrier.arrive", (), (number, *count), {"operandSegmentSizes": build.i32_array([1, 1])})
        return []
    sizes = build.i32_array([1, len(count), 0])
    build.emit("nvvm.barrier", (), (number, *count), {"operandSegmentSizes": sizes})
    return []


@rules.lowers("sync_warp")
def _sync_warp(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    build.emit("nvvm.bar.warp.sync", (), (op.operands[0],))
    return []


_FENCE_SCOPE = {"cta": "block", "gpu": "device", "sys": ""}
_FENCE_ORDER = {"acq_rel": 6, "seq_cst": 7}


@rules.lowers("fence")
def _fence(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    scope, order = text_of(op, "scope"), text_of(op, "order")
    if scope == "cluster":
        use("fence.cluster", "fence.acq_rel.cluster", context)
        build.emit("llvm.inline_asm", (), (), _volatile_asm("fence.acq_rel.cluster;", "~{memory}"))
        return []
    attributes = {"ordering": build.i64(_FENCE_ORDER[order])}
    if _FENCE_SCOPE[scope]:
        attributes["syncscope"] = build.string(_FENCE_SCOPE[scope])
    build.emit("llvm.fence", (), (), attributes)
    return []


def _volatile_asm(text: str, constraints: str) -> dict[str, ir.Attribute]:
    return {
        "asm_string": build.string(text),
        "constraints": build.string(constraints),
        "has_side_effects": mlir.ir.UnitAttr.get(),
        "asm_dialect": build.i64(0),
    }


def use(feature: str, operation: str, context: LoweringContext) -> None:
    """Note that the kernel uses a feature of the chip; refuse it where the chip lacks it."""
    require(feature, context.facts["arch"], operation=operation, location=source_location(current().locate()))
    context.facts["features"].add(feature)


@rules.lowers("shuffle")
def _shuffle(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    value, lane, mask = op.operands
    return [shuffle(text_of(op, "kind"), value, lane, mask, number_of(op, "clamp"))]


def shuffle(kind: str, value: ir.Value, lane: ir.Value, mask: ir.Value, clamp: int) -> ir.Value:
    """`shfl.sync` of a value of any width: in 32-bit pieces."""
    width = _bits(value.type)
    if width == 32:
        return _shuffle32(kind, value, lane, mask, clamp)
    integer = types.parse(f"i{width}")
    bits = _bitcast(value, integer)
    if width < 32:
        wide = build.value("arith.extui", types.parse("i32"), (bits,))
        narrow = build.value("arith.trunci", integer, (_shuffle32(kind, wide, lane, mask, clamp),))
        return _bitcast(narrow, value.type)
    pieces = types.parse(f"vector<{width // 32}xi32>")
    source = build.value("llvm.bitcast", pieces, (bits,))
    result = build.value("llvm.mlir.poison", pieces)
    for number in range(width // 32):
        position = build.constant(number, types.parse("i32"))
        piece = build.value("llvm.extractelement", types.parse("i32"), (source, position))
        moved = _shuffle32(kind, piece, lane, mask, clamp)
        result = build.value("llvm.insertelement", pieces, (result, moved, position))
    return _bitcast(build.value("llvm.bitcast", integer, (result,)), value.type)


def _shuffle32(kind: str, value: ir.Value, lane: ir.Value, mask: ir.Value, clamp: int) -> ir.Value:
    clamp_value = build.constant(clamp, types.parse("i32"))
    attribute = build.attribute(f"#nvvm<shfl_kind {kind}>")
    return build.value("nvvm.shfl.sync", value.type, (mask, value, lane, clamp_value), {"kind": attribute})


def _bits(type_: ir.Type) -> int:
    if isinstance(type_, mlir.ir.VectorType):
        return int(type_.element_type.width) * int(type_.shape[0])
    return int(type_.width)


def _bitcast(value: ir.Value, type_: ir.Type) -> ir.Value:
    return value if value.type == type_ else build.value("llvm.bitcast", type_, (value,))


@rules.lowers("vote")
def _vote(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    pred, mask = op.operands
    kind = build.attribute(f"#nvvm<vote_sync_kind {text_of(op, 'kind')}>")
    return [build.value("nvvm.vote.sync", op.results[0].type, (mask, pred), {"kind": kind})]


_REDUX = {"addi": "add", "addu": "add", "mini": "min", "minu": "umin", "maxi": "max", "maxu": "umax",
          "andi": "and", "andu": "and", "ori": "or", "oru": "or", "xori": "xor", "xoru": "xor"}  # fmt: skip


@rules.lowers("warp_reduce")
def _warp_reduce(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    """A butterfly of shuffles; one `redux.sync` for 32-bit integers over the whole warp (sm_80 and up)."""
    value, kind, width = op.operands[0], text_of(op, "kind"), number_of(op, "width")
    mask = build.constant(FULL_MASK, types.parse("i32"))
    if width == 32 and kind in _REDUX and str(value.type) == "i32" and supports("redux.sync", context.facts["arch"]):
        attribute = build.attribute(f"#nvvm<redux_kind {_REDUX[kind]}>")
        return [build.value("nvvm.redux.sync", value.type, (value, mask), {"kind": attribute})]
    combine = combiner(kind)
    step = width // 2
    while step:
        lane = build.constant(step, types.parse("i32"))
        value = combine(value, shuffle("bfly", value, lane, mask, 31))
        step //= 2
    return [value]


@rules.lowers("ptx", "ptx_value", "ptx_pure")
def _ptx(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    text, constraints, feature = (text_of(op, name) for name in ("text", "constraints", "feature"))
    if feature:
        use(feature, text.strip("{ ").split(";")[0], context)
    attributes = _volatile_asm(text, constraints)
    if op.name == "cute.ptx_pure":
        del attributes["has_side_effects"]
    results = [result.type for result in op.results]
    return list(build.emit("llvm.inline_asm", results, list(op.operands), attributes).results)


@rules.lowers("assert")
def _assert(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    build.emit("cf.assert", (), (op.operands[0],), {"msg": build.string(text_of(op, "message"))})
    return []
