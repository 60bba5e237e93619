"""Launching kernels from host code.

Calling a kernel gives a launcher; `.launch(grid=..., block=...)` traces the kernel's body into a `gpu.func` of its own
module and adds a `cute.launch` to the host function.
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base import notices
from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.hw import launches
from tilewright.ir import build, mlir, types
from tilewright.ir.context import located
from tilewright.lang import leaves, trace
from tilewright.lang.calls.parameters import BoundArguments, bind_kernel, call_arguments
from tilewright.lang.control import aliases
from tilewright.lang.locations import current_line, user_location
from tilewright.lang.numbers.integer_range import fits
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Integer, Numeric, as_numeric, is_number
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.lang.pinning import pinned
from tilewright.lang.printing.runtime_print import assert_
from tilewright.lang.profiling import mark_kernel
from tilewright.lang.tensors.tensor import Tensor

if TYPE_CHECKING:
    from mlir import ir

MAX_BLOCK_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = ((1 << 31) - 1, 65535, 65535)
MAX_CLUSTER_BLOCKS = 16
FLAGS = "tilewright.launch_flags"  # bit 0 cooperative, bit 1 programmatic dependent launch, bit 2 events
_EVENTS = 4
_RECORD_WORDS = 6  # of the record that carries the stream and the events: `EVENT_RECORD` in targets/host/abi.py


@dataclass(frozen=True)
class Kernel:
    """What `@cute.kernel` makes of a function: `traced` is the function to run while tracing. A `profiled` one is
    timed."""

    function: Callable[..., Any]
    traced: Callable[..., Any]
    name: str
    profiled: bool = False

    def launcher(self, args: Sequence[Any], kwargs: dict[str, Any]) -> KernelLauncher:
        """A launch of this kernel with these arguments."""
        current = trace.current()
        if current.side == "device":
            raise CompileError(
                f"kernel {self.name} is called from device code",
                location=user_location(2),
                hint="launch kernels from a @cute.jit function; share device code in plain or @cute.jit functions",
            )
        return KernelLauncher(self, bind_kernel(self.function, args, kwargs), self.name)


class KernelLauncher:
    """A kernel with its arguments, ready to launch."""

    def __init__(self, kernel: Kernel, arguments: BoundArguments, name: str) -> None:
        self.kernel = kernel
        self.arguments = arguments
        self.name = name
        trace.current().called[id(self)] = (name, user_location(3))

    def set_name_prefix(self, prefix: str, **_: object) -> KernelLauncher:
        """Prefix the kernel's symbol."""
        self.name = f"{prefix}_{self.name}"
        return self

    def smem_usage(self) -> int:
        """Known only after the kernel is traced."""
        raise CompileError("smem_usage is known after the launch", location=user_location())

    def launch(
        self,
        *positional: Any,
        grid: Any = (1, 1, 1),
        block: Any = None,
        cluster: Any = None,
        fallback_cluster: Any = None,
        smem: Any = None,
        stream: Any = None,
        cooperative: bool = False,
        use_pdl: bool = False,
        max_number_threads: Any = None,
        min_blocks_per_mp: int = 0,
        launch_completion_event: Any = None,
        launch_completion_event_flags: Any = 0,
        programmatic_event: Any = None,
        programmatic_event_flags: Any = 0,
        programmatic_event_trigger_at_block_start: Any = 0,
        **others: Any,
    ) -> None:
        """Launch on `grid` blocks of `block` threads, in clusters of `cluster` blocks. All are given by name.

        Without `grid` there is one block, without `block` one thread a block, with a warning.
        `smem` is the dynamic shared memory in bytes; None takes what the kernel allocates. `stream` None is the stream
        current at the call. The events are CUDA events without timing, arguments of the jit function:
        `launch_completion_event` is recorded when all blocks have begun, `programmatic_event` when all have called
        `griddepcontrol_launch_dependents`, or have begun where it triggers at block start (CUDA driver API,
        CUlaunchAttributeID).
        """
        trace.current().called.pop(id(self), None)
        _refuse_positional(positional)
        _refuse_unknown(others)
        if block is None:
            _warn_of_one_thread(self.name)
            block = (1, 1, 1)
        dims = [
            _dims(grid, "grid"),
            _dims(block, "block"),
            _dims(cluster if cluster is not None else (0, 0, 0), "cluster"),
        ]
        _check_grid(dims[0])
        _check_block(dims[1])
        _check_cluster(dims[2])
        symbol = self._trace(dims, bool(cooperative), max_number_threads, min_blocks_per_mp)
        values, _ = _flatten(self.arguments.runtime)
        stream_values = [] if stream is None else _stream(stream)
        flags = int(cooperative) | int(use_pdl) << 1
        if launch_completion_event is not None or programmatic_event is not None:
            completion = (launch_completion_event, launch_completion_event_flags)
            programmatic = (
                programmatic_event,
                programmatic_event_flags,
                programmatic_event_trigger_at_block_start,
            )
            stream_values, flags = [_event_record(stream_values, completion, programmatic)], flags | _EVENTS
        dynamic = [] if smem is None else [_i32(smem)]
        _emit_launch(symbol, dims, dynamic, values, stream_values, flags)

    def _trace(self, dims: list[list[Any]], cooperative: bool, max_threads: Any, min_blocks: int) -> str:
        current = trace.current()
        grid, block, cluster = dims
        name = current.kernel_name(self.name)
        values, rebuild = _flatten(self.arguments.runtime)
        constants = self.arguments.constants
        function = _kernel_function(current.module, name, [value.type for value in values])
        _set_bounds(function, block, cluster, max_threads, min_blocks)
        function.attributes["arg_attrs"] = _named(self.arguments.runtime)
        current.kernels.append(trace.KernelTrace(name, self.kernel.traced, function, user_location()))
        body = function.regions[0].blocks[0]
        current.grid, current.block, current.cluster = tuple(grid), tuple(block), tuple(cluster)
        current.cooperative = cooperative
        with trace.device_side(body), aliases.body():
            arguments = rebuild(list(body.arguments)) | constants
            if self.kernel.profiled or current.profiled:
                mark_kernel()
            with pinned():
                returned = _trace_root(self.kernel.traced, call_arguments(self.kernel.function, arguments))
            _refuse_result(self.kernel.function, returned)
            build.emit("gpu.return")
        return name


def _emit_launch(
    kernel: str, dims: list[list[Any]], smem: list[Any], values: list[Any], stream: list[Any], flags: int
) -> None:
    """`gpu.launch_func`. A cluster of (0, 0, 0) is none; without `smem` the launch takes what the kernel allocates."""
    names = ("grid", "block", "cluster")
    grid, block, cluster = (_extents(values, name) for values, name in zip(dims, names, strict=True))
    if all(isinstance(extent, int) and extent == 0 for extent in dims[2]):
        cluster = []
    each = [1] * 6 + [int(bool(cluster))] * 3
    sizes = [0, *each, len(smem), len(values), len(stream)]
    attributes = {
        "kernel": build.attribute(f"@{kernel}::@{kernel}"),
        "operandSegmentSizes": build.i32_array(sizes),
        FLAGS: build.i32(flags),
    }
    build.emit("gpu.launch_func", (), [*grid, *block, *cluster, *smem, *values, *stream], attributes)


def _trace_root(function: Callable[..., Any], arguments: inspect.BoundArguments) -> Any:
    """Run the body of a kernel; locations stop at this frame."""
    return function(*arguments.args, **arguments.kwargs)


def _refuse_result(function: Callable[..., Any], returned: Any) -> None:
    """A kernel returns nothing: there is nobody to take it. The value of a lambda's expression is not returned."""
    if returned is not None and function.__name__ != "<lambda>":
        code = inspect.unwrap(function).__code__
        raise CompileError(
            f"kernel {function.__name__} returns a value",
            location=SourceLocation(code.co_filename, code.co_firstlineno, function=function.__name__),
            values={"returned": leaves.describe(returned)},
            hint="write it into a tensor that is an argument of the kernel",
        )


def _flatten(arguments: dict[str, Any]) -> tuple[list[Any], Callable[[list[Any]], dict[str, Any]]]:
    structures = {name: argument_structure(value) for name, value in arguments.items()}
    values = [leaf for name, value in arguments.items() for leaf in structures[name].values(value)]

    def rebuild(fresh: list[Any]) -> dict[str, Any]:
        source = iter(fresh)
        made = {name: structure.build(source) for name, structure in structures.items()}
        for name, value in made.items():
            _keep_facts(value, arguments[name])
        return made

    return values, rebuild


def _keep_facts(fresh: Any, given: Any) -> None:
    """What is known of an argument's integers holds in the kernel too: they are the same numbers."""
    if fresh is given or type(fresh) is not type(given):
        return
    if isinstance(given, Tensor):
        pairs = zip(fresh.runtime_leaves(), given.runtime_leaves(), strict=True)
    elif isinstance(given, Integer):
        pairs = zip([fresh], [given], strict=True)
    elif not leaves.has_protocol(given) and leaves.is_aggregate(given):
        parts = leaves.split(given)
        for key, item in leaves.split(fresh).items():
            _keep_facts(item, parts[key])
        return
    else:
        return
    for own, known in pairs:
        if not own.is_static and not known.is_static:
            own.divisibility, own.bound, own.extent_product, own.plain = (
                known.divisibility, known.bound, known.extent_product, known.plain,
            )  # fmt: skip


def _named(arguments: dict[str, Any]) -> ir.Attribute:
    """The name of each argument of a kernel; a member of a tuple or a class is called by its path."""
    names: list[str] = []
    for name, value in arguments.items():
        for path, item in _parts(name, value):
            count = len(argument_structure(item).values(item))
            names += [path] if count == 1 else [f"{path}.{number}" for number in range(count)]
    return argument_names(names)


def argument_names(names: Sequence[str]) -> ir.Attribute:
    """The `arg_attrs` of a function whose arguments have these names."""
    return build.attribute("[" + ", ".join(f'{{tilewright.name = "{name}"}}' for name in names) + "]")


def _parts(name: str, value: Any) -> list[tuple[str, Any]]:
    if leaves.is_literal(value) or leaves.has_protocol(value) or not leaves.is_aggregate(value):
        return [(name, value)]
    return [part for key, item in leaves.split(value).items() for part in _parts(f"{name}.{key}", item)]


def argument_structure(value: Any) -> leaves.Structure:
    """What a kernel takes of an argument: Python numbers inside aggregates stay constants of the kernel."""
    if leaves.is_literal(value):
        return leaves.Static(value)
    if not leaves.has_protocol(value) and leaves.is_aggregate(value):
        return leaves.Aggregate(value, {key: argument_structure(item) for key, item in leaves.split(value).items()})
    return leaves.structure_of(value)


def _kernel_function(module: ir.Module, name: str, arguments: list[ir.Type]) -> ir.Operation:
    ir_ = mlir.ir
    place = current_line()
    with ir_.InsertionPoint(module.body), located(lambda: place):
        parent = build.emit("gpu.module", (), (), {"sym_name": build.string(name)}, regions=1)
    block = parent.regions[0].blocks.append()
    with ir_.InsertionPoint(block), located(lambda: place):
        function_type = ir_.TypeAttr.get(ir_.FunctionType.get(arguments, []))
        attributes = {"sym_name": build.string(name), "function_type": function_type, "gpu.kernel": ir_.UnitAttr.get()}
        function = build.emit("gpu.func", (), (), attributes, regions=1)
    function.regions[0].blocks.append(*arguments, arg_locs=[place] * len(arguments))
    return function


def _set_bounds(
    function: ir.Operation, block: list[Any], cluster: list[Any], max_threads: Any, min_blocks: int
) -> None:
    if all(isinstance(extent, int) for extent in block):
        function.attributes["known_block_size"] = build.i32_array(block)
    elif max_threads is not None:
        bound = max_threads if isinstance(max_threads, (tuple, list)) else (max_threads, 1, 1)
        function.attributes["nvvm.maxntid"] = build.i32_array([int(extent) for extent in bound])
    if all(isinstance(extent, int) for extent in cluster) and any(extent > 1 for extent in cluster):
        function.attributes["nvvm.cluster_dim"] = build.i32_array(cluster)
    if min_blocks:
        function.attributes["nvvm.minctasm"] = build.i32(min_blocks)


def _dims(value: Any, what: str) -> list[Any]:
    value = to_python(value)
    items = list(value) if isinstance(value, (tuple, list)) else [value]
    if not 1 <= len(items) <= 3 or not all(map(_is_integer, items)):
        raise CompileError(
            f"{what} takes one to three integers",
            location=user_location(3),
            values={what: value},
            hint=f"{what}=(x, y, z), integers of Python or of the language; `//` and cute.ceil_div divide them",
        )
    items = [int(item.value) if isinstance(item, Numeric) and item.is_static else item for item in items]
    return items + [1] * (3 - len(items))


def _is_integer(item: Any) -> bool:
    return is_number(item) and type(as_numeric(item)).is_integer


def _check_grid(grid: list[Any]) -> None:
    """Refuse an extent of compile time that no grid has."""
    for extent, limit in zip(grid, MAX_GRID, strict=True):
        if isinstance(extent, int) and not 1 <= extent <= limit:
            raise CompileError(
                "a grid without blocks" if extent == 0 else f"a grid of {extent} blocks along one axis",
                location=user_location(3),
                values={"grid": tuple(grid), "limit": f"1 to {MAX_GRID} along the axes"},
                hint=_grid_hint([item if isinstance(item, int) else 1 for item in grid]),
            )


def _grid_hint(grid: list[int]) -> str:
    hint = launches.grid_hint(grid)
    return f"{hint}: if cutlass.const_expr(n > 0): ..." if hint == launches.NOTHING else hint


def _check_block(block: list[Any]) -> None:
    """Refuse a block of compile time that no chip takes."""
    if not all(isinstance(extent, int) for extent in block):
        return
    threads = block[0] * block[1] * block[2]
    fits = all(1 <= extent <= limit for extent, limit in zip(block, MAX_BLOCK, strict=True))
    if not fits or threads > MAX_BLOCK_THREADS:
        raise CompileError(
            f"a block of {threads} threads",
            location=user_location(3),
            values={"block": tuple(block), "limit": f"{MAX_BLOCK_THREADS} threads, at most {MAX_BLOCK} along the axes"},
            hint=launches.block_hint(block),
        )


def _check_cluster(cluster: list[Any]) -> None:
    """Refuse a cluster of compile time that no chip takes; (0, 0, 0) stands for none."""
    if not all(isinstance(extent, int) for extent in cluster) or not any(cluster):
        return
    blocks = cluster[0] * cluster[1] * cluster[2]
    if min(cluster) < 1 or blocks > MAX_CLUSTER_BLOCKS:
        raise CompileError(
            f"a cluster of {blocks} blocks",
            location=user_location(3),
            values={"cluster": tuple(cluster), "limit": f"1 to {MAX_CLUSTER_BLOCKS} blocks"},
            hint=launches.cluster_hint(cluster),
        )


def _extents(values: list[Any], what: str) -> list[ir.Value]:
    """Extents of a launch in 32 bits; the program stops where one of 64 bits does not fit."""
    for axis, extent in zip("xyz", values, strict=True):
        if isinstance(extent, Integer) and not fits(extent, Int32.facts):
            assert_(Int64(Int32(extent)) == extent, f"the {what} of the launch does not fit 31 bits along {axis}")
    return [_i32(extent) for extent in values]


def _i32(number: Any) -> ir.Value:
    return Int32(as_numeric(number)).ir_value()


def _handle(value: Any, what: str, kind: str) -> list[ir.Value]:
    """The machine value of a stream or an event."""
    values = leaves.extract(value)
    if len(values) != 1:
        raise CompileError(
            f"{what} is {type(value).__name__}",
            location=user_location(3),
            hint=f"pass a {kind} argument of the jit function",
        )
    return values


def _stream(value: Any) -> list[ir.Value]:
    """The handle of a stream: that of an argument, or a number that is one, 0 the default stream's."""
    value = value.value or 0 if isinstance(value, ctypes.c_void_p) else value
    if not is_number(value):
        return _handle(value, "stream", "CUstream")
    number = as_numeric(value)
    if not type(number).is_integer or isinstance(number, Boolean) or (number.is_static and int(number.value) < 0):
        raise CompileError(
            f"stream is {value if number.is_static else f'a number of type {type(number).__name__}'}",
            location=user_location(3),
            hint="pass a CUstream argument of the jit function, its handle as an integer, 0 for the default stream, or "
            "None for the current one",
        )
    pointer = types.parse("!llvm.ptr")
    if number.is_static and int(number.value) == 0:
        return [build.value("llvm.mlir.zero", pointer)]
    return [build.value("llvm.inttoptr", pointer, (Int64(number).ir_value(),))]


def _event_record(stream: list[ir.Value], completion: tuple[Any, ...], programmatic: tuple[Any, ...]) -> ir.Value:
    """The address of a record in host memory that carries the stream and the events of a launch.

    It lies in the frame of the host function, so a launch in a loop uses it again: the driver copies what it needs.
    """
    pointer = types.parse("!llvm.ptr")
    frame = trace.current().module.body.operations[0].regions[0].blocks[0]
    null = build.value("llvm.mlir.zero", pointer)
    words: list[ir.Value] = stream or [frame.arguments[-1]]  # the stream current at the call
    for name, (event, *numbers) in (("launch_completion_event", completion), ("programmatic_event", programmatic)):
        words += [null] if event is None else _handle(event, name, "CUevent")
        words += [Int64(as_numeric(number)).ir_value() for number in numbers]
    with mlir.ir.InsertionPoint.at_block_begin(frame):
        one = build.value("arith.constant", types.parse("i32"), (), {"value": build.i32(1)})
        array = mlir.ir.TypeAttr.get(types.parse(f"!llvm.array<{_RECORD_WORDS} x i64>"))
        record = build.value("llvm.alloca", pointer, (one,), {"elem_type": array})
    for position, word in enumerate(words):
        build.emit("llvm.store", (), (word, _word_at(record, position)))
    return record


def _word_at(record: ir.Value, position: int) -> ir.Value:
    attributes = {
        "rawConstantIndices": build.i32_array([position]),
        "elem_type": mlir.ir.TypeAttr.get(types.parse("i64")),
    }
    return build.value("llvm.getelementptr", record.type, (record,), attributes)


def _refuse_positional(arguments: tuple[Any, ...]) -> None:
    if arguments:
        given = ", ".join(str(item) if is_number(item) else leaves.describe(item) for item in arguments)
        raise CompileError(
            "launch takes its options by name",
            location=user_location(3),
            values={"given without a name": given},
            hint="kernel(args).launch(grid=(x, y, z), block=(x, y, z))",
        )


def _warn_of_one_thread(kernel: str) -> None:
    """A launch without a block size runs one thread a block, which few mean."""
    message = f"kernel {kernel} is launched without block=, so each block has one thread: say block=1 where it is meant"
    place = user_location(3)
    notices.warn(message, place, stacklevel=3)


_SMEM_NAMES = ("shared_mem", "shared_memory", "shared_mem_bytes", "smem_bytes")
_IGNORED = frozenset(("smem_merge_branch_allocs", "hint_smem_base_uniform", "preferred_smem_carveout"))


def _refuse_unknown(others: dict[str, Any]) -> None:
    unknown = others.keys() - _IGNORED
    if unknown:
        name = sorted(unknown)[0]
        meant = "shared memory is `smem=`, in bytes; " if name in _SMEM_NAMES else ""
        raise CompileError(
            f"launch has no option {name!r}",
            location=user_location(3),
            hint=f"{meant}options: grid, block, cluster, smem, stream, cooperative, use_pdl, max_number_threads, "
            "min_blocks_per_mp, launch_completion_event, programmatic_event",
        )
