"""From a jit function and its arguments to a compiled function: tracing, the stages, the cache of direct calls."""

from __future__ import annotations

import functools
import inspect
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tilewright.arguments.binding import BoundCall, leaf_type, on_host, traced
from tilewright.base import spans
from tilewright.base.errors import CompileError
from tilewright.compiler import hooks, stages, validation
from tilewright.compiler.decorated import EntryFunction
from tilewright.compiler.executor import Executor, make_executor
from tilewright.compiler.executor.stage_files import keep_files
from tilewright.compiler.executor.wide_form import WideForm
from tilewright.compiler.memory_cache import MemoryCache
from tilewright.compiler.plan import Plan, plan
from tilewright.ir import build, mlir, user_ops
from tilewright.ir.context import compile_context, current, located
from tilewright.ir.erasing import erase_unused
from tilewright.lang import leaves, locations, rewrite, trace
from tilewright.lang.calls.launch import argument_names
from tilewright.lang.calls.parameters import call_arguments
from tilewright.lang.calls.user_ops import call as call_user_op
from tilewright.lang.control import aliases
from tilewright.passes.pipeline import Pass, PassManager
from tilewright.targets.artifact import artifact_of
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.target import back_end_of, device_of

user_ops.front_end = call_user_op

T = TypeVar("T")


def compile_function(
    preset: Sequence[Any],
    decorated: tuple[EntryFunction[..., Any], tuple[Any, ...]],
    args: tuple[Any, ...],
    *,
    options: Any = None,
    target: str | None = None,
    arch: str | None = None,
    override: Mapping[str, Any] | None = None,
    passes: Any = (),
    pipeline: Any = None,
    checks: Any = True,
    observers: Sequence[stages.Observer] = (),
    after_pass: Callable[[Pass, Any], None] | None = None,
    validate: Sequence[Any] | None = None,
    **kwargs: Any,
) -> Executor:
    """Compile `function` for these arguments. It always compiles; keep the executor.

    Args:
        preset: options given in brackets.
        decorated: the `@cute.jit` function, and the object that a method is bound to.
        args: arguments as a call would have them; compile-time ones are baked in.
        options: flags such as `"--opt-level 2 --keep-ptx"`, or option objects.
        target: `cuda` or `emu`; by default cuda where a device is.
        arch: the chip; by default the device's, without one `sm_90a`.
        override: texts or files to use for stages `cute`, `nvvm`, `llvm`, `ptx`, `cubin` instead of what was made.
        passes: passes to add to stage `cute`: objects, classes or text; `before(name, pass)`, `after(name, pass)`.
        pipeline: the whole pass list, as text or `PassManager`.
        checks: on the emulator: True raises at the first fault, "collect" reports all, False is fast; a list has
            classes of checkers (`tilewright.emulate.Observer`), in which True stands for all standard ones.
        observers: called after each stage with its name and the job.
        after_pass: called after each pass with the pass and the module: `lambda item, module: print(item, module)`;
            after a pass over text with the text.
        validate: arguments of a call, with which the emulator runs the program before and after each pass of the user;
            the first whose result differs is a PassError.
        kwargs: arguments by name.

    Raises:
        CompileError: the function or its arguments are wrong.
    """
    if not (isinstance(checks, bool | list | tuple) or checks == "collect"):
        raise CompileError(
            f"checks is True, False, 'collect' or a list of checkers, not {checks!r}",
            location=locations.user_location(),
            hint="it says what the emulator looks for; options of the compiler go into options=",
        )
    jit_function, bound_self = decorated
    made = plan(
        jit_function,
        args,
        kwargs,
        bound=bound_self,
        options=(*preset, options),
        target=target,
        arch=arch,
        override=override,
        passes=passes,
        pipeline=pipeline,
    )

    if validate is not None:
        _validate(made, validate, checks)

    def compiled(call: BoundCall) -> Executor:
        wanted = replace(made, call=call)
        job = _job(wanted)
        job.after_pass = after_pass
        with compile_context():
            executor = finished(job, wanted, checks, observers)
        hooks.compiled(executor)
        if job.returns_runtime:
            _warn_of_result(job)
        return executor

    executor = compiled(made.call)
    if spans.has_narrow(made.call.signature) and not made.override:
        executor.runner.wide_form = WideForm(made.call, compiled)
    return executor


def read_cute(
    decorated: tuple[EntryFunction[..., Any], tuple[Any, ...]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    target: str,
    options: Any,
    read: Callable[[Job], T],
) -> T:
    """What `read` makes of a function at the end of stage `cute`; later stages do not run."""
    function, bound = decorated
    made = plan(function, args, kwargs, bound=bound, target=target, options=(options,))
    job = _job(made)
    with compile_context():
        stages.run(job, "cute")
        return read(job)


def finished(job: Job, made: Plan, checks: Any, observers: Sequence[stages.Observer] = ()) -> Executor:
    """Run the stages that are left, in the current context, and load the artifact."""
    back_end = back_end_of(made.target)
    until = device_of(made.target).stage_for(job.options)
    back_end.begin(job, until)
    stages.run(job, until, observers)
    artifact = artifact_of(job, back_end.parts(job), back_end.kernel_parts)
    executor = make_executor(artifact, made.call, made.target, made.function.function, checks, job)
    keep_files(executor)
    return executor


def _warn_of_result(job: Job) -> None:
    """Python gets nothing that is known only at run time."""
    message = (
        f"{job.name} returns a value known only at run time, which no call gives to Python: write it into a tensor"
    )
    place = locations.user_location(3)
    if place is None:
        warnings.warn(message, stacklevel=3)
    else:
        warnings.warn_explicit(message, UserWarning, place.file, place.line)


def _job(made: Plan) -> Job:
    source = functools.partial(_source, made.function.traced)
    return made.job(lambda job: trace_program(job, made.function, made.call), source)


def _source(function: Any) -> str:
    """The text of a function as it is traced."""
    try:
        return rewrite.text(function)
    except (OSError, TypeError):
        return f"# the source of {function.__qualname__} is not available\n"


def trace_program(job: Job, function: EntryFunction[..., Any], call: BoundCall) -> Any:
    """Stage `cute`: run the function on symbolic arguments; gives the module."""
    module = mlir.ir.Module.create(loc=current().unknown)
    module.operation.attributes["gpu.container_module"] = mlir.ir.UnitAttr.get()
    options = job.options
    program = trace.Trace(
        module,
        job.arch,
        options.enable_assertions,
        options.fp_contract == "on",
        host_memory=on_host(call),
        profiled=function.profiled,
    )
    code = function.function.__code__
    begins = mlir.ir.Location.file(code.co_filename, code.co_firstlineno, 0)
    with located(lambda: begins), trace.program(program), current().unknown, mlir.ir.InsertionPoint(module.body):
        host = _host_function(call)
        body = host.regions[0].blocks[0]
        with mlir.ir.InsertionPoint(body):
            seen = traced(call, list(body.arguments))
            arguments = call_arguments(function.function, seen)
            with located(locations.current), aliases.body():
                job.result = _trace_root(function.traced, arguments)
            _warn_of_unlaunched(program)
            build.emit("func.return")
            job.returns_runtime = leaves.holds_runtime(job.result)
    erase_unused(module.operation)
    job.entry = trace.free_symbol(job.name, {item.name for item in program.kernels})
    host.attributes["sym_name"] = build.string(job.entry)
    job.kernels = {
        item.name: KernelJob(item.name, functools.partial(_source, item.function), item.launched_at)
        for item in program.kernels
    }
    return module.operation


def _host_function(call: BoundCall) -> Any:
    leaves_ = [(param, leaf) for param in call.signature.params for leaf in param.leaves()]
    types = [leaf_type(param, leaf) for param, leaf in leaves_]
    function_type = mlir.ir.TypeAttr.get(mlir.ir.FunctionType.get(types, []))
    attributes = {
        "sym_name": build.string(call.signature.name),
        "function_type": function_type,
        "arg_attrs": argument_names([leaf.name for _, leaf in leaves_]),
    }
    function = build.emit("func.func", (), (), attributes, regions=1)
    function.regions[0].blocks.append(*types, arg_locs=[current().unknown] * len(types))
    return function


def _validate(made: Plan, inputs: Any, checks: Any) -> None:
    """Run the program before and after each pass of the user."""
    if not isinstance(inputs, tuple | list):
        raise CompileError(
            f"validate takes the arguments of a call, not {type(inputs).__name__}",
            location=locations.user_location(),
            hint="validate=(a, b, c)",
        )
    if made.override:
        raise CompileError(
            "validate checks passes, and override takes the place of what they made",
            location=locations.user_location(),
            hint="leave one of the two out",
        )

    back_end = back_end_of(made.target)

    options = made.options.changed({"fp_contract": "off"})  # else a pass that changes nothing might change roundings

    def build_with(manager: PassManager) -> Executor:
        part = replace(made, target=back_end.tests_on, pipeline=manager, options=options)
        with compile_context():
            return finished(_job(part), part, checks)

    standard = back_end.standard_passes(made.arch, made.options)
    validation.check_passes(made.pipeline, standard, build_with, inputs)


def _warn_of_unlaunched(program: trace.Trace) -> None:
    """A kernel that is called and not launched does nothing, which nobody means."""
    for name, place in program.called.values():
        where = f" at {place}" if place is not None else ""
        message = f"kernel {name} is called{where}, but never launched: add .launch(grid=, block=)"
        if place is None:
            warnings.warn(message, stacklevel=2)
        else:
            warnings.warn_explicit(message, UserWarning, place.file, place.line)


def _trace_root(function: Callable[..., Any], arguments: inspect.BoundArguments) -> Any:
    """Run the user's function; locations stop at this frame."""
    return function(*arguments.args, **arguments.kwargs)


_cache: MemoryCache[Executor] = MemoryCache(limit=256)


@dataclass(frozen=True)
class Found:
    """What a direct call runs: the compiled function, and what the traced one returned.

    `still_valid` says whether tracing again, for the same arguments and settings, would give the same; None where
    nothing but tracing can tell.
    """

    executor: Executor
    result: Any
    still_valid: Callable[[], bool] | None


def find(made: Plan, no_cache: bool = False) -> Found:
    """Trace again (globals may have changed), and compile only what was not compiled before."""
    job = _job(made)
    with compile_context():
        stages.run(job, "cute")
        if job.returns_runtime:
            raise CompileError(
                f"{job.name} returns a value known only at run time",
                location=locations.user_location(),
                hint="write it into a tensor; only values of compile time come back to Python",
            )
        text = job.texts["cute"]
        key = (text, _places(job), made.key(), user_ops.version(text))
        executor = None if no_cache else _cache.get(key)
        if executor is None:
            executor = finished(job, made, True)
            hooks.compiled(executor)
            _cache.replace(key, executor)
    return Found(executor, job.result, None)


def run_directly(
    function: EntryFunction[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], no_cache: bool
) -> Any:
    """Run a function called from Python, compiled for these arguments, and keep what the next such call runs."""
    made = plan(function, args, kwargs)
    found = find(made, no_cache)
    if found.still_valid is not None and not no_cache:
        function.direct_calls.keep(
            function.function, args, kwargs, made.call, found.executor, found.result, found.still_valid
        )
    function.last_executor = found.executor
    found.executor.runner.run_traced(made.call.passed())
    return found.result


def _places(job: Job) -> bytes:
    """The program with its source lines: the same kernel in another file, or moved in its own, has errors elsewhere."""
    written = io.BytesIO()
    job.module.operation.write_bytecode(written)
    return written.getvalue()
