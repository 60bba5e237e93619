"""cute-to-host: host functions from the `cute` dialect to LLVM operations.

before: `func.func @f(leaves..., stream)` with cute operations, `cute.launch` among them
after:  `func.func @f(leaves..., stream, table) -> i32`, whose launches call `@__tw_launch` of the host runtime

The function gives 0, or the code of the first launch or assertion that failed. No launch follows a failed one; nothing
at all follows a failed assertion, see `leave_at_failures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base import notices
from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import number_of, text_of
from tilewright.ir.context import located
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.lang.numbers.arithmetic import compare, constant, constant_of, select
from tilewright.passes.lowering import LoweringContext, Rules, gep_constant, lower
from tilewright.passes.pipeline import Pass, register
from tilewright.passes.place_shared_memory import SMEM_BYTES
from tilewright.passes.program import host_functions, kernels
from tilewright.passes.rules import copying, fragments, gemm, memory, narrow, values
from tilewright.targets.host.tensor_maps import make_map

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
ITERATIONS = 1 << 16
"""Iterations of a loop without launches between two looks for Ctrl-C."""
FLAGS = "tilewright.launch_flags"
ADDRESS_SPACE = {"generic": 0, "gmem": 0, "rmem": 0, "smem": 0, "dsmem": 0}


@register
class CuteToHost(Pass):
    """See the module."""

    name = "cute-to-host"
    in_cute = False
    requires = ("place-shared-memory",)

    def __init__(self, launched: Mapping[str, int] | None = None) -> None:
        """`launched` gives each kernel's shared memory in bytes, in the order of the kernels; by default they are
        looked up in the module."""
        super().__init__()
        self._launched = launched

    def run(self, module: ir.Operation) -> None:
        smem = self._launched
        if smem is None:
            smem = {text_of(kernel, "sym_name"): number_of(kernel, SMEM_BYTES) for kernel in kernels(module)}
        order = {name: number for number, name in enumerate(smem)}
        for function in host_functions(module):
            stream = function.regions[0].blocks[0].arguments[-1]
            context = LoweringContext(ADDRESS_SPACE, {"order": order, "smem": smem, "stream": stream})
            _add_table(function, context)
            _note_maps(function)
            lower(
                function,
                memory.rules + fragments.rules + values.rules + copying.rules + gemm.rules + narrow.rules + rules,
                context,
            )
            _order_zeros(function)
            _end_loops(function, context)
            _return_status(function, context)
        _declare_runtime(module)


_EXTREMES = {"arith.minnumf": "llvm.minimumnum", "arith.maxnumf": "llvm.maximumnum"}


def _order_zeros(function: ir.Operation) -> None:
    """`min` and `max` as the GPU has them: a processor's own take either zero where both are zeros."""
    for op in operations(function):
        if op.name in _EXTREMES:
            location = op.location
            with mlir.ir.InsertionPoint(op), located(lambda location=location: location):  # type: ignore[misc]
                exact = build.intrinsic(_EXTREMES[op.name], op.results[0].type, list(op.operands))
            op.results[0].replace_all_uses_with(exact)
            op.erase()


def _end_loops(function: ir.Operation, context: LoweringContext) -> None:
    """Loops that may be endless end when a launch has failed, or at Ctrl-C (`@__tw_poll`)."""
    i32, i1 = types.parse("i32"), types.parse("i1")
    for op in [op for op in operations(function) if op.name == "scf.while"]:
        end = list(op.regions[0].blocks[0].operations)[-1].operation
        launches = any(inner.name == "llvm.call" and _callee(inner) == "@__tw_launch" for inner in operations(op))
        location = op.location
        with located(lambda location=location: location):  # type: ignore[misc]
            with mlir.ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                iterations = _slot(i32)
                _store(build.constant(0, i32), iterations)
            with mlir.ir.InsertionPoint(end):
                mask = build.constant(0 if launches else ITERATIONS - 1, i32)
                operands = [context.facts["table"], iterations, mask]
                _unless_failed(context, lambda operands=operands: _call("__tw_poll", operands))
                status = build.value("llvm.load", i32, (context.facts["status"],))
                fine = build.value("arith.cmpi", i1, (status, build.constant(0, i32)), {"predicate": build.i64(0)})
                end.operands[0] = build.value("arith.andi", i1, (end.operands[0], fine))


def _add_table(function: ir.Operation, context: LoweringContext) -> None:
    """The pointer table as last argument, and a slot for the result."""
    ptr = types.parse("!llvm.ptr")
    block = function.regions[0].blocks[0]
    context.facts["table"] = block.add_argument(ptr, mlir.ir.Location.unknown())
    function_type = mlir.ir.FunctionType.get([argument.type for argument in block.arguments], [types.parse("i32")])
    function.attributes["function_type"] = mlir.ir.TypeAttr.get(function_type)
    with mlir.ir.InsertionPoint.at_block_begin(block):
        context.facts["status"] = _slot(types.parse("i32"))
        _store(build.constant(0, types.parse("i32")), context.facts["status"])


def _return_status(function: ir.Operation, context: LoweringContext) -> None:
    end = list(function.regions[0].blocks[0].operations)[-1].operation
    with mlir.ir.InsertionPoint(end):
        status = build.value("llvm.load", types.parse("i32"), (context.facts["status"],))
        build.emit("func.return", (), (status,))
    end.erase()


def _slot(type_: ir.Type, count: int = 1) -> ir.Value:
    size = build.constant(count, types.parse("i32"))
    attributes = {"elem_type": mlir.ir.TypeAttr.get(type_), "alignment": build.i64(16)}
    return build.value("llvm.alloca", types.parse("!llvm.ptr"), (size,), attributes)


def _store(value: ir.Value, address: ir.Value) -> None:
    build.emit("llvm.store", (), (value, address))


BY_VALUE = "tilewright.by_value"
"""Of a launch: the places among its arguments of those that are given by the address of their bytes."""


def _note_maps(function: ir.Operation) -> None:
    """Say of each launch which of its arguments are tensor maps, as long as types tell."""
    for op in operations(function):
        if op.name == "gpu.launch_func":
            arguments = _Launch.of(op).arguments
            places = [place for place, value in enumerate(arguments) if types.is_tensor_map(value.type)]
            op.attributes[BY_VALUE] = build.i32_array(places)


@rules.lowers("make_tensor_map")
def _tensor_map(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    def encode(arguments: list[ir.Value]) -> None:
        _unless_failed(context, lambda: _call("__tw_tensor_map", [context.facts["table"], *arguments]))

    return [make_map(op, context, encode)]


@rules.lowers("gpu.launch_func")
def _launch(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    launch = _Launch.of(op)
    ptr, i32 = types.parse("!llvm.ptr"), types.parse("i32")
    needed = context.facts["smem"][launch.kernel]
    smem = launch.smem or [build.constant(needed, i32)]
    _check_smem(op, constant_of(smem[0]), needed, launch.kernel)
    with mlir.ir.InsertionPoint.at_block_begin(memory.entry_block(op)):
        whole = set(mlir.ir.DenseI32ArrayAttr(op.attributes[BY_VALUE]))
        slots = [
            argument if place in whole else _slot(argument.type) for place, argument in enumerate(launch.arguments)
        ]
        array = _slot(ptr, max(len(slots), 1))
    for number, (slot, argument) in enumerate(zip(slots, launch.arguments, strict=True)):
        if number not in whole:
            _store(argument, slot)
        _store(slot, gep_constant(array, number, ptr))
    operands = [
        context.facts["table"],
        build.constant(context.facts["order"][launch.kernel], i32),
        *launch.dims,
        *(launch.cluster or [build.constant(1, i32)] * 3),
        *smem,
        *(launch.stream or [context.facts["stream"]]),
        build.constant(number_of(op, FLAGS), i32),
        array,
    ]
    _unless_failed(context, lambda: _call("__tw_launch", operands))
    return []


class SharedMemoryWarning(UserWarning):
    """A launch gives less shared memory than its kernel allocates."""


def _check_smem(op: ir.Operation, given: int | None, needed: int, kernel: str) -> None:
    """Warn where a launch gives less than the kernel's allocators hand out. CuTe DSL warns too: what is not touched
    need not be there."""
    place = source_location(op.location)
    if given is None or not 0 <= given < needed or place is None:
        return
    text = (
        f"smem={given} is less than the {needed} bytes that {kernel} allocates: what lies beyond is out of bounds;"
        " leave smem= out to get as much as the allocators hand out"
    )
    notices.warn(text, place, SharedMemoryWarning)


@dataclass(frozen=True)
class _Launch:
    """The operands of a `gpu.launch_func` by what they are."""

    kernel: str
    dims: list[ir.Value]
    cluster: list[ir.Value]
    smem: list[ir.Value]
    arguments: list[ir.Value]
    stream: list[ir.Value]

    @classmethod
    def of(cls, op: ir.Operation) -> _Launch:
        sizes = list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands, parts = iter(op.operands), []
        for count in (sum(sizes[:1]), 6, sum(sizes[7:10]), *sizes[10:]):
            parts.append([next(operands) for _ in range(count)])
        kernel = str(mlir.ir.SymbolRefAttr(op.attributes["kernel"]).value[0])
        return cls(kernel, *parts[1:])


def _unless_failed(context: LoweringContext, act: Any) -> None:
    """Run `act`, which gives a code, unless an earlier one failed."""
    i32, status = types.parse("i32"), context.facts["status"]
    before = build.value("llvm.load", i32, (status,))
    zero = build.constant(0, i32)
    fine = build.value("arith.cmpi", types.parse("i1"), (before, zero), {"predicate": build.i64(0)})
    guard = build.emit("scf.if", (), (fine,), regions=2)
    with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
        _store(act(), status)
        build.emit("scf.yield")


def _call(name: str, operands: list[ir.Value]) -> ir.Value:
    attributes = {
        "callee": build.symbol(name),
        "operandSegmentSizes": build.i32_array([len(operands), 0]),
        "op_bundle_sizes": build.i32_array([]),
    }
    return build.value("llvm.call", types.parse("i32"), operands, attributes)


@rules.lowers("gpu.printf")
def _print(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    text = _string(op, text_of(op, "format"))
    arguments = [_promoted(argument) for argument in op.operands]
    operands = [context.facts["table"], text, *arguments]
    attributes = {
        "callee": build.symbol("__tw_printf"),
        "var_callee_type": build.attribute("!llvm.func<i32 (ptr, ptr, ...)>"),
        "operandSegmentSizes": build.i32_array([len(operands), 0]),
        "op_bundle_sizes": build.i32_array([]),
    }
    build.value("llvm.call", types.parse("i32"), operands, attributes)
    return []


def _promoted(value: ir.Value) -> ir.Value:
    """C's promotion of variadic arguments."""
    text = str(value.type)
    if text in ("f16", "bf16", "f32"):
        return build.value("arith.extf", types.parse("f64"), (value,))
    if text in ("i1", "i8", "i16"):
        return build.value("arith.extui" if text == "i1" else "arith.extsi", types.parse("i32"), (value,))
    return value


@rules.lowers("assert")
def _assert(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    one = build.constant(1, types.parse("i1"))
    failed = build.value("arith.xori", types.parse("i1"), (op.operands[0], one))
    guard = build.emit("scf.if", (), (failed,), regions=2)
    with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
        _raise(op, text_of(op, "message"), context)
        build.emit("scf.yield")
    return []


@rules.lowers(
    "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"
)
def _divide(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    """A division whose divisor may be 0, or -1 under the least number, would end the process."""
    left, right = op.operands
    known = constant_of(right)
    if known in (None, 0, -1):
        right = _safe_divisor(op, left, right, context)
    return [build.value(op.name, left.type, (left, right))]


def _safe_divisor(op: ir.Operation, left: ir.Value, right: ir.Value, context: LoweringContext) -> ir.Value:
    """The divisor, or 1: after an error for 0; for -1 under the least number, whose quotient wraps to itself."""
    bits = right.type.element_type.width if isinstance(right.type, mlir.ir.VectorType) else right.type.width
    one = constant(1, right.type)
    unsafe = zero = _equal(right, 0)
    _raise_where(zero, op, "division by zero", context)
    if not op.name.endswith("ui"):
        overflow = build.value("arith.andi", zero.type, (_equal(right, -1), _equal(left, -(1 << (bits - 1)))))
        unsafe = build.value("arith.ori", zero.type, (zero, overflow))
    return select(unsafe, one, right)


def _equal(value: ir.Value, number: int) -> ir.Value:
    return compare("eq", "i", value, constant(number, value.type))


def _raise_where(failed: ir.Value, op: ir.Operation, text: str, context: LoweringContext) -> None:
    if isinstance(failed.type, mlir.ir.VectorType):
        kind = build.attribute("#vector.kind<or>")
        failed = build.value("vector.reduction", types.parse("i1"), (failed,), {"kind": kind})
    place = source_location(op.location)
    message = f"{text} ({place})" if place is not None else text
    guard = build.emit("scf.if", (), (failed,), regions=2)
    with mlir.ir.InsertionPoint(guard.regions[0].blocks.append()):
        _raise(op, message, context)
        build.emit("scf.yield")


def _raise(op: ir.Operation, message: str, context: LoweringContext) -> None:
    kind, text = _string(op, "LaunchError"), _string(op, message)
    _unless_failed(context, lambda: _call("__tw_raise", [context.facts["table"], kind, text]))


@rules.lowers(
    "index",
    "atomic",
    "sync_threads",
    "barrier",
    "sync_warp",
    "shuffle",
    "vote",
    "warp_reduce",
    "smem_base",
    "ptx",
    "ptx_value",
    "ptx_pure",
    "tma_load",
    "tma_store",
    "tma_prefetch",
    "tensor_map_copy",
    "bulk_load",
    "bulk_store",
    "bulk_commit",
    "bulk_wait",
    "wgmma_named",
    "wgmma_fence",
    "wgmma_commit",
    "wgmma_wait",
    "accumulator",
    "accumulator_read",
    "accumulator_write",
    "set_registers",
)
def _device_only(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    raise CompileError(
        f"{op.name} is device code in a host function",
        location=source_location(op.location),
        hint="put it in a function decorated with @cute.kernel and launch that from the @cute.jit function",
    )


def leave_at_failures(module: ir.Operation) -> None:
    """Make a failed assertion the end of its function. The module is in the `llvm` dialect: the call that notes the
    failure stands in a block of its own, which now returns its code."""
    for op in [op for op in operations(module) if op.name == "llvm.call" and _callee(op) == "@__tw_raise"]:
        last = list(op.block.operations)[-1].operation
        location = op.location
        with mlir.ir.InsertionPoint(last), located(lambda location=location: location):  # type: ignore[misc]
            build.emit("llvm.return", (), (op.results[0],))
        last.erase()


def _callee(op: ir.Operation) -> str:
    return str(op.attributes["callee"]) if "callee" in op.attributes else ""


def check_host(module: ir.Operation) -> None:
    """Refuse what cannot become native code: operations of the device, assembly, and what no pass has lowered."""

    for op in operations(module):
        if op.name.partition(".")[0] not in ("llvm", "builtin") or op.name == "llvm.inline_asm":
            raise CompileError(
                f"{op.name} is device code in a host function",
                location=source_location(op.location),
                hint="put it in a function decorated with @cute.kernel and launch that from the @cute.jit function",
            )


def _string(op: ir.Operation, text: str) -> ir.Value:
    """The address of a constant C string of the module."""
    module = op
    while module.name != "builtin.module":
        module = module.parent.operation
    name = f"__tw_text_{_text_number(module)}"
    attributes = {
        "global_type": mlir.ir.TypeAttr.get(types.parse(f"!llvm.array<{len(text.encode()) + 1} x i8>")),
        "sym_name": build.string(name),
        "linkage": build.attribute("#llvm.linkage<internal>"),
        "constant": mlir.ir.UnitAttr.get(),
        "value": build.string(text + "\0"),
        "addr_space": build.i32(0),
    }
    with mlir.ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        build.emit("llvm.mlir.global", (), (), attributes, regions=1)
    return build.value("llvm.mlir.addressof", types.parse("!llvm.ptr"), (), {"global_name": build.symbol(name)})


def _text_number(module: ir.Operation) -> int:
    return sum(op.operation.name == "llvm.mlir.global" for op in module.regions[0].blocks[0])


_RUNTIME = {
    "__tw_launch": "!llvm.func<i32 (ptr, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, ptr, i32, ptr)>",
    "__tw_tensor_map": "!llvm.func<i32 (ptr, ptr, i32, i32, ptr, ptr, ptr, ptr, ptr, i32)>",
    "__tw_poll": "!llvm.func<i32 (ptr, ptr, i32)>",
    "__tw_raise": "!llvm.func<i32 (ptr, ptr, ptr)>",
    "__tw_printf": "!llvm.func<i32 (ptr, ptr, ...)>",
}


def _declare_runtime(module: ir.Operation) -> None:
    with mlir.ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        for name, text in _RUNTIME.items():
            attributes = {
                "sym_name": build.string(name),
                "function_type": mlir.ir.TypeAttr.get(types.parse(text)),
                "linkage": build.attribute("#llvm.linkage<external>"),
            }
            build.emit("llvm.func", (), (), attributes, regions=1)
