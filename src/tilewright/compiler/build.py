"""From a jit function and its arguments to a compiled function: the cache, tracing, the stages."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tilewright.arguments.binding import BoundCall, leaf_type, on_host, traced
from tilewright.base import notices, settings, spans
from tilewright.base.errors import CompileError
from tilewright.base.location import stable_file
from tilewright.compiler import hooks, logs, stages, validation
from tilewright.compiler.cache.lookup import Hit, Turn
from tilewright.compiler.decorated import EntryFunction
from tilewright.compiler.executor import Executor, make_executor
from tilewright.compiler.executor.stage_files import keep_files
from tilewright.compiler.executor.wide_form import WideForm, without_memory
from tilewright.compiler.memory_cache import MemoryCache
from tilewright.compiler.plan import Plan, plan
from tilewright.ir import build, mlir, user_ops
from tilewright.ir.context import compile_context, current, located, names_of
from tilewright.ir.erasing import erase_unused
from tilewright.lang import leaves, locations, rewrite, trace
from tilewright.lang.calls.launch import argument_names
from tilewright.lang.calls.parameters import call_arguments, declared
from tilewright.lang.calls.user_ops import call as call_user_op
from tilewright.lang.control import aliases
from tilewright.passes.pipeline import Pass, PassManager
from tilewright.targets.artifact import Artifact, artifact_of
from tilewright.targets.cute_stage import bytecode
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.target import back_end_of, device_of

user_ops.called_by(call_user_op)

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
    no_cache: bool = False,
    **kwargs: Any,
) -> Executor:
    """Compile `function` for these arguments, or find it as it was compiled before; keep the executor.

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
        no_cache: compile in any case. So do `override`, `observers`, `after_pass` and `--print-ir`.
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
    made = planned(preset, decorated, args, kwargs, options, target, arch, override, passes, pipeline)
    if validate is not None:
        _validate(made, validate, checks)

    cached = not (no_cache or made.override or observers or after_pass or made.options.print_ir)

    def compiled(call: BoundCall) -> Executor:
        return _obtained(replace(made, call=call), checks, cached, observers, after_pass).executor

    executor = compiled(made.call)
    if spans.has_narrow(made.call.signature) and not made.override:
        executor.runner.wide_form = WideForm(made.call, compiled)
    return executor


def planned(
    preset: Sequence[Any],
    decorated: tuple[EntryFunction[..., Any], tuple[Any, ...]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Any = None,
    target: str | None = None,
    arch: str | None = None,
    override: Mapping[str, Any] | None = None,
    passes: Any = (),
    pipeline: Any = None,
) -> Plan:
    """The plan of a call of `cute.compile`; see `compile_function`."""
    function, bound = decorated
    return plan(
        function,
        args,
        kwargs,
        bound=bound,
        options=(*preset, options),
        target=target,
        arch=arch,
        override=override,
        passes=passes,
        pipeline=pipeline,
    )


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
    artifact = _artifact(job, made, observers)
    executor = make_executor(artifact, made.call, made.target, made.function.function, checks, lambda: job)
    keep_files(executor)
    return executor


def _artifact(job: Job, made: Plan, observers: Sequence[stages.Observer] = ()) -> Artifact:
    back_end = back_end_of(made.target)
    until = device_of(made.target).stage_for(job.options)
    back_end.begin(job, until)
    stages.run(job, until, observers)
    return artifact_of(job, back_end.parts(job), back_end.kernel_parts)


def compile_for_cache(made: Plan) -> None:
    """Compile a function that is not in the cache, keep it there, and load it nowhere."""
    with Turn(made) as turn:
        if turn.before_tracing() is not None:
            return
        job = _job(made)
        with compile_context():
            stages.run(job, "cute")
            if turn.after_tracing(job, bytecode(job.module.operation)) is None:
                turn.keep(job, _artifact(job, made))


def _warn_of_result(job: Job) -> None:
    """Python gets nothing that is known only at run time."""
    message = (
        f"{job.name} returns a value known only at run time, which no call gives to Python: write it into a tensor"
    )
    notices.warn(message, locations.user_location(3), stacklevel=3)


def _job(made: Plan) -> Job:
    source = functools.partial(_source, made.function.traced)
    job = made.job(lambda job: trace_program(job, made.function, made.call), source)
    job.anew = _again(made)
    return job


def _again(made: Plan) -> Callable[[], Job]:
    """Gives a job for the same plan, to compile once more; it keeps no memory of the arguments."""
    return functools.partial(_job, replace(made, call=without_memory(made.call)))


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
    begins = mlir.ir.Location.file(stable_file(code.co_filename), code.co_firstlineno, 0)
    with located(lambda: begins), trace.program(program), current().unknown, mlir.ir.InsertionPoint(module.body):
        host = _host_function(call)
        body = host.regions[0].blocks[0]
        with mlir.ir.InsertionPoint(body):
            seen = traced(call, list(body.arguments))
            arguments = call_arguments(function.function, declared(function.function, seen))
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
        notices.warn(message, place)


def _trace_root(function: Callable[..., Any], arguments: inspect.BoundArguments) -> Any:
    """Run the user's function; locations stop at this frame."""
    return function(*arguments.args, **arguments.kwargs)


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
    """What a direct call runs: found without tracing where nothing changed that the function reaches."""
    return _obtained(made, True, not no_cache, direct=True, anew=no_cache)


_cache: MemoryCache[Executor] = MemoryCache(limit=256)
"""What direct calls have run, by program: no executor is made twice."""


def _obtained(
    made: Plan,
    checks: Any,
    cached: bool,
    observers: Sequence[stages.Observer] = (),
    after_pass: Callable[[Pass, Any], None] | None = None,
    *,
    direct: bool = False,
    anew: bool = False,
) -> Found:
    """The compiled function, from the cache or by compiling."""
    with Turn(made, cached and not settings.get("no_cache")) as turn:
        hit = turn.before_tracing()
        if hit is not None:
            return Found(_found(made, hit, checks, direct), hit.result, turn.still_valid)
        job = _job(made)
        job.after_pass = after_pass
        with compile_context():
            if not direct:
                back_end_of(made.target).begin(job, device_of(made.target).stage_for(job.options))
            stages.run(job, "cute", observers)
            if direct and job.returns_runtime:
                raise _returns_runtime(job)
            program = bytecode(job.module.operation) if direct or turn.enabled else b""
            hit = turn.after_tracing(job, program)
            if hit is not None:
                executor = _found(made, hit, checks, direct)
            else:
                executor = _compiled(made, job, turn, program, checks, observers, direct and not anew)
    if job.returns_runtime:
        _warn_of_result(job)
    return Found(executor, job.result, turn.still_valid)


def _compiled(
    made: Plan, job: Job, turn: Turn, program: bytes, checks: Any, observers: Sequence[stages.Observer], shared: bool
) -> Executor:
    """Compile a traced program; one that is `shared` only where no direct call of this process did."""
    key = turn.program or (program, made.key(), user_ops.version(names_of(job.module.operation)))
    executor = _cache.get(key) if shared else None
    if executor is None:
        executor = finished(job, made, checks, observers)
        turn.keep(job, executor.artifact)
        hooks.compiled(executor)
        if program:
            _cache.replace(key, executor)
    return executor


def _found(made: Plan, hit: Hit, checks: Any, direct: bool) -> Executor:
    """An executor of what the cache had; a direct call takes the one that ran before."""
    key = hit.program, made.target, made.options
    executor = _cache.get(key) if direct else None
    if executor is not None:
        return executor
    light = replace(made, call=without_memory(made.call))

    def compilation() -> Job:
        source = functools.partial(_source, made.function.traced)
        job = hit.entry.job(light, source, lambda job: trace_again(job, light))
        job.anew = _again(light)
        return job

    artifact = hit.entry.for_plan(made)
    restored = functools.cache(compilation)
    executor = make_executor(artifact, made.call, made.target, made.function.function, checks, restored)
    executor.cached = hit.where
    keep_files(executor)
    executor.back_end.show(executor)
    logs.found(executor, hit.where)
    if direct:
        _cache.replace(key, executor)
    return executor


def trace_again(job: Job, made: Plan) -> None:
    """Fill in what only tracing knows of a function that was found in the cache: the Python text of its kernels."""
    with compile_context():
        trace_program(job, made.function, made.call)


def _returns_runtime(job: Job) -> CompileError:
    return CompileError(
        f"{job.name} returns a value known only at run time",
        location=locations.user_location(),
        hint="write it into a tensor; only values of compile time come back to Python",
    )


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
