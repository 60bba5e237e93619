"""The decorators `@cute.jit`, `@cute.kernel` and `@dsl_user_op`, and `cute.compile`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.compiler import stages
from tilewright.compiler.arguments import BoundCall, bind_call, leaf_type, traced
from tilewright.compiler.executor import Executor
from tilewright.compiler.job import Job, KernelJob
from tilewright.compiler.options import Options
from tilewright.compiler.target import choose_arch, choose_target
from tilewright.ir import build, mlir
from tilewright.ir.context import compile_context, current, located
from tilewright.lang import locations, trace
from tilewright.lang.launch import Kernel
from tilewright.lang.locations import user_location
from tilewright.lang.rewrite import capture, rewrite
from tilewright.passes.pipeline import Pass, PassManager


class _Decorated:
    """Base of decorated functions. `traced` is the function to run while tracing; it is rewritten on first use."""

    def __init__(self, function: FunctionType, preprocess: bool) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.preprocess = preprocess
        self._source = capture(function) if preprocess else None
        self._traced: Callable[..., Any] | None = None

    @property
    def traced(self) -> Callable[..., Any]:
        if self._traced is None:
            self._traced = rewrite(self.function, self._source) if self.preprocess else self.function
        return self._traced

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


class JitFunction(_Decorated):
    """A function of the language. Called from Python it is compiled and run on the host; called while tracing it is
    inlined."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if trace.tracing():
            return self.traced(*args, **kwargs)
        no_cache = bool(kwargs.pop("no_cache", False))
        return _run_directly(self, args, kwargs, no_cache)


class KernelFunction(_Decorated):
    """A kernel. Called from a jit function it gives a launcher."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not trace.tracing():
            raise CompileError(
                f"kernel {self.function.__name__} is called from Python",
                location=user_location(),
                hint="kernels are launched from a @cute.jit function: kernel(args).launch(grid=..., block=...)",
            )
        return Kernel(self.function, self.traced, self.function.__name__).launcher(args, kwargs)


def jit(function: Any = None, *, preprocess: bool = True, preprocessor: bool | None = None, **_: Any) -> Any:
    """Decorator: compile the function. With `preprocess=False` control flow is not rewritten, only traced."""
    return _decorate(JitFunction, function, preprocess if preprocessor is None else preprocessor)


def kernel(function: Any = None, *, preprocess: bool = True, preprocessor: bool | None = None, **_: Any) -> Any:
    """Decorator: the function is device code, launched with `kernel(args).launch(grid=..., block=...)`."""
    return _decorate(KernelFunction, function, preprocess if preprocessor is None else preprocessor)


def _decorate(cls: type[_Decorated], function: Any, preprocess: bool) -> Any:
    if function is None:
        return lambda inner: cls(inner, preprocess)
    return cls(function, preprocess)


def dsl_user_op(function: Any = None, **_: Any) -> Any:
    """Decorator: an operation built from others. Its control flow is rewritten; `loc=` and `ip=` may be given."""
    if function is None:
        return dsl_user_op
    return UserOp(function)


class UserOp(_Decorated):
    """What `dsl_user_op` makes of a function."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function, preprocess=True)
        parameters = inspect.signature(function).parameters
        takes_any = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())
        self._drops = () if takes_any else tuple(name for name in ("loc", "ip") if name not in parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for name in self._drops:
            kwargs.pop(name, None)
        if not trace.tracing():
            return self.traced(*args, **kwargs)
        with locations.current():  # for operations that the body builds with MLIR's own classes
            return self.traced(*args, **kwargs)


class Compile:
    """`cute.compile(fn, *args, options=...)`, and `cute.compile[OptLevel(2), KeepPTX](fn, *args)`."""

    def __init__(self, options: Sequence[Any] = ()) -> None:
        self._options = tuple(options)

    def __getitem__(self, options: Any) -> Compile:
        given = options if isinstance(options, tuple) else (options,)
        return Compile((*self._options, *given))

    def __call__(
        self,
        function: Any,
        *args: Any,
        options: Any = None,
        target: str | None = None,
        arch: str | None = None,
        override: Mapping[str, Any] | None = None,
        passes: Any = (),
        pipeline: Any = None,
        checks: Any = True,
        observers: Sequence[stages.Observer] = (),
        **kwargs: Any,
    ) -> Executor:
        """Compile `function` for these arguments. It always compiles; keep the executor.

        Args:
            function: a `@cute.jit` function or method.
            args: arguments as a call would have them; compile-time ones are baked in.
            options: flags such as `"--opt-level 2 --keep-ptx"`, or option objects.
            target: `cuda` or `emu`; by default cuda where a device is.
            arch: the chip; by default the device's, without one `sm_90a`.
            override: texts or files to use for stages `nvvm`, `llvm`, `ptx`, `cubin` instead of what was made.
            passes: passes to add to stage `cute`, or `before(name, pass)`, `after(name, pass)`.
            pipeline: the whole pass list, as text or `PassManager`.
            checks: on the emulator: True raises at the first fault, "collect" reports all, False is fast.
            observers: called after each stage with its name and the job.

        Raises:
            CompileError: the function or its arguments are wrong.
        """
        made = Options.from_settings().merged(self._options).merged(options)
        jit_function, bound_self = _jit_function(function)
        call = bind_call(jit_function.function, jit_function.function.__name__, (*bound_self, *args), kwargs)
        chosen = choose_target(target)
        job = _job(
            jit_function, call, made, choose_arch(arch or made.gpu_arch, chosen), override or {}, passes, pipeline
        )
        return Executor.build(job, call, chosen, jit_function.function, checks, observers)


compile_function = Compile()


def _jit_function(function: Any) -> tuple[JitFunction, tuple[Any, ...]]:
    if isinstance(function, functools.partial) and isinstance(function.func, JitFunction):
        return function.func, function.args
    if isinstance(function, JitFunction):
        return function, ()
    if isinstance(function, KernelFunction):
        raise CompileError(
            f"{function.function.__name__} is a kernel",
            location=user_location(),
            hint="kernels are launched from a @cute.jit function; compile that function",
        )
    call = getattr(type(function), "__call__", None)
    if isinstance(call, JitFunction):
        return call, (function,)
    raise CompileError(
        f"cute.compile takes a @cute.jit function, not {type(function).__name__}",
        location=user_location(),
        values={"got": function},
        hint="decorate the function with @cute.jit",
    )


def _job(
    function: JitFunction,
    call: BoundCall,
    options: Options,
    arch: str,
    override: Mapping[str, Any],
    passes: Any,
    pipeline: Any,
) -> Job:
    stages.check_override(override)
    return Job(
        name=call.signature.name,
        arch=arch,
        options=options,
        pipeline=_pipeline(arch, options, passes, pipeline),
        trace=lambda job: trace_program(job, function, call),
        python=_source(function.function),
        override=override,
        signature=call.signature,
    )


def _pipeline(arch: str, options: Options, passes: Any, pipeline: Any) -> PassManager:
    if pipeline is None:
        manager = stages.standard_pipeline(arch, opt_level=options.opt_level)
    else:
        given = PassManager.parse(pipeline) if isinstance(pipeline, str) else pipeline
        manager = stages.completed(given, arch)
    for item in passes if isinstance(passes, (list, tuple)) else (passes,):
        place = item if isinstance(item, Placed) else before("cute-to-nvvm", item)
        manager.insert(place.item, before=place.before, after=place.after)
    return manager


class Placed:
    """A pass and where it goes in the list."""

    def __init__(self, item: Pass, *, before: str | None = None, after: str | None = None) -> None:
        self.item, self.before, self.after = item, before, after


def before(name: str, item: Pass) -> Placed:
    """Run `item` before the pass called `name`."""
    return Placed(item, before=name)


def after(name: str, item: Pass) -> Placed:
    """Run `item` after the pass called `name`."""
    return Placed(item, after=name)


@functools.lru_cache(maxsize=1024)
def _source(function: FunctionType) -> str:
    """The text of a function as it was when first compiled."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"# the source of {function.__qualname__} is not available\n"


def trace_program(job: Job, function: JitFunction, call: BoundCall) -> Any:
    """Stage `cute`: run the function on symbolic arguments; gives the module."""
    module = mlir.ir.Module.create(loc=current().unknown)
    module.operation.attributes["gpu.container_module"] = mlir.ir.UnitAttr.get()
    program = trace.Trace(module, job.arch, job.options.enable_assertions)
    with located(locations.current), trace.program(program), current().unknown, mlir.ir.InsertionPoint(module.body):
        body = _host_function(call)
        with mlir.ir.InsertionPoint(body):
            _trace_root(function.traced, traced(call, list(body.arguments)))
            build.emit("func.return")
    job.kernels = {item.name: KernelJob(item.name, _source(item.function)) for item in program.kernels}
    return module.operation


def _host_function(call: BoundCall) -> Any:
    types = [leaf_type(param, leaf) for param in call.signature.params for leaf in param.leaves()]
    function_type = mlir.ir.TypeAttr.get(mlir.ir.FunctionType.get(types, []))
    attributes = {"sym_name": build.string(call.signature.name), "function_type": function_type}
    function = build.emit("func.func", (), (), attributes, regions=1)
    return function.regions[0].blocks.append(*types, arg_locs=[current().unknown] * len(types))


def _trace_root(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Run the user's function; locations stop at this frame."""
    function(**arguments)


_MOST_CACHED = 256
_cache: dict[Any, Executor] = {}


def _run_directly(function: JitFunction, args: tuple[Any, ...], kwargs: dict[str, Any], no_cache: bool) -> Any:
    """Trace again (globals may have changed), and compile only what was not compiled before."""
    call = bind_call(function.function, function.function.__name__, args, kwargs)
    options, target = Options.from_settings(), choose_target(None)
    arch = choose_arch(options.gpu_arch, target)
    job = _job(function, call, options, arch, {}, (), None)
    with compile_context():
        stages.run(job, "cute")
        key = (job.texts["cute"], call.signature, options, target, arch)
        executor = None if no_cache else _cache.get(key)
        if executor is None:
            executor = Executor.finish(job, call, target, function.function, True, ())
            if len(_cache) >= _MOST_CACHED:
                _cache.pop(next(iter(_cache)))
            _cache[key] = executor
    executor.run(call.passed())
    return None
