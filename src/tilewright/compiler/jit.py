"""The decorators `@cute.jit`, `@cute.kernel` and `@dsl_user_op`, and `cute.compile`.

Importing them loads no compiler: that comes with the first function compiled.

Decorated functions have the parameters and the result of the function for editors and type checkers. Arguments are
converted (an array for a `Tensor`, a float for a `Float32`), so a second overload takes any.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)

from tilewright.base.errors import ArgumentError, CompileError
from tilewright.base.interrupts import uninterrupted
from tilewright.compiler.decorated import Decorated, EntryFunction, Profiled, plain_function
from tilewright.ir.context import reraise_lost
from tilewright.lang import locations, trace
from tilewright.lang.calls.launch import Kernel, KernelLauncher
from tilewright.lang.calls.parameters import refuse_runtime_constants
from tilewright.lang.diagnostics.tracebacks import OnlyUserFrames
from tilewright.lang.locations import ErrorsLocated, user_location

if TYPE_CHECKING:
    from tilewright.compiler.executor import Executor
    from tilewright.targets.profile import Profile

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
T = TypeVar("T")


@functools.cache
def _compiler() -> Any:
    """The compiler proper, `tilewright.compiler.build`."""
    return uninterrupted(lambda: importlib.import_module("tilewright.compiler.build"))


class JitFunction(EntryFunction[P, R]):
    """A function of the language. Called from Python it is compiled and run on the host; called while tracing it is
    inlined."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if trace.tracing():
            return self._inlined(args, kwargs)
        ready = self.direct_calls.find(args, kwargs)
        if ready is not None:
            self.last_executor = ready.executor
            return ready(args, kwargs)
        no_cache = bool(kwargs.pop("no_cache", False))
        with OnlyUserFrames(), ErrorsLocated():
            return reraise_lost(lambda: _compiler().run_directly(self, args, kwargs, no_cache))

    def profile(self) -> Profile:
        """What timed regions took in the direct calls of the program that was called last; see `cute.profile`.

        Raises:
            CompileError: it was not called directly, or nothing was timed.
        """
        if self.last_executor is None:
            raise CompileError(
                f"{self.function.__name__} was not called from Python",
                location=user_location(),
                hint="call it first; what cute.compile gives has a profile of its own",
            )
        made: Profile = self.last_executor.profile()
        return made

    def _inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inline the call; if that fails for a value of run time where one of compile time was asked for, say so."""
        try:
            with self.region():
                return self.traced(*args, **kwargs)
        except CompileError as error:
            if "run time" in str(error):
                refuse_runtime_constants(self.function, args, kwargs, error)
            raise


class KernelFunction(Decorated[P, KernelLauncher]):
    """A kernel. Called from a jit function it gives a launcher."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> KernelLauncher: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> KernelLauncher: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not trace.tracing():
            raise CompileError(
                f"kernel {self.function.__name__} is called from Python",
                location=user_location(),
                hint="kernels are launched from a @cute.jit function: kernel(args).launch(grid=..., block=...)",
            )
        return Kernel(self.function, self.traced, self.symbol_name, self.profiled).launcher(args, kwargs)

    def __getitem__(self, _: Any) -> NoReturn:
        """Other languages launch so."""
        raise CompileError(
            f"kernel {self.function.__name__} is not launched by [grid, block]",
            location=user_location(),
            hint="write kernel(args).launch(grid=..., block=...)",
        )


@overload
def jit(
    function: Callable[P, T], *, preprocess: bool = True, preprocessor: bool | None = None, **others: Any
) -> JitFunction[P, T]: ...
@overload
def jit(
    function: None = None, *, preprocess: bool = True, preprocessor: bool | None = None, **others: Any
) -> _JitDecorator: ...
def jit(function: Any = None, *, preprocess: bool = True, preprocessor: bool | None = None, **others: Any) -> Any:
    """Decorator: the function is host code when Python calls it, and is inlined when compiled code calls it.

    A call compiles the function for its arguments, or finds it in the cache, and runs it. With `preprocess=False` its
    control flow is not rewritten, only traced.
    """
    warn_of_ignored("@cute.jit", others)
    return _decorate(JitFunction, function, preprocess if preprocessor is None else preprocessor)


@overload
def kernel(
    function: Callable[P, Any], *, preprocess: bool = True, preprocessor: bool | None = None, **others: Any
) -> KernelFunction[P]: ...
@overload
def kernel(
    function: None = None, *, preprocess: bool = True, preprocessor: bool | None = None, **others: Any
) -> _KernelDecorator: ...
def kernel(function: Any = None, *, preprocess: bool = True, preprocessor: bool | None = None, **others: Any) -> Any:
    """Decorator: the function is device code, which a jit function launches.

    `kernel(args).launch(grid=(x, y, z), block=(x, y, z))` starts it. Further arguments of `launch` are `cluster`, the
    blocks of a cluster; `smem`, the dynamic shared memory in bytes, by default what the kernel allocates; `stream`, by
    default the current one; `cooperative`, for barriers of the grid; and `use_pdl`, for programmatic dependent
    launches. With `preprocess=False` control flow is not rewritten, only traced.
    """
    warn_of_ignored("@cute.kernel", others)
    return _decorate(KernelFunction, function, preprocess if preprocessor is None else preprocessor)


def warn_of_ignored(decorator: str, options: Iterable[str], taken: str = "preprocess=") -> None:
    """Say at the user's line which options a decorator ignores; sources for other compilers may have them."""
    for name in options:
        warnings.warn(f"{decorator} ignores {name}=, which it does not have; it takes {taken}", stacklevel=3)


class _JitDecorator(Protocol):
    """What `jit(preprocess=False)` gives."""

    def __call__(self, function: Callable[P, T], /) -> JitFunction[P, T]: ...


class _KernelDecorator(Protocol):
    """What `kernel(preprocess=False)` gives."""

    def __call__(self, function: Callable[P, Any], /) -> KernelFunction[P]: ...


class _UserOpDecorator(Protocol):
    """What `dsl_user_op()` gives."""

    def __call__(self, function: Callable[P, T], /) -> UserOp[P, T]: ...


def _decorate(cls: type[Decorated[..., Any]], function: Any, preprocess: bool) -> Any:
    if function is None:
        return lambda inner: _decorate(cls, inner, preprocess)
    made = cls(plain_function(function), preprocess)
    made.profiled = isinstance(function, Profiled)
    return made


@overload
def dsl_user_op(function: Callable[P, T], **_: Any) -> UserOp[P, T]: ...
@overload
def dsl_user_op(function: None = None, **_: Any) -> _UserOpDecorator: ...
def dsl_user_op(function: Any = None, **_: Any) -> Any:
    """Decorator: the function becomes an operation of the language, built from others.

    Its control flow is rewritten as a kernel's is. Callers may pass `loc=` and `ip=`, which sources for other compilers
    do; the function need not have them.
    """
    if function is None:
        return dsl_user_op
    return UserOp(function)


class UserOp(Decorated[P, R]):
    """What `dsl_user_op` makes of a function."""

    def __init__(self, function: Any) -> None:
        function = plain_function(function)
        super().__init__(function, preprocess=True)
        parameters = inspect.signature(function).parameters
        takes_any = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())
        self._drops = () if takes_any else tuple(name for name in ("loc", "ip") if name not in parameters)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for name in self._drops:
            kwargs.pop(name, None)
        if not trace.tracing():
            return self.traced(*args, **kwargs)
        # The location is for operations that the body builds with MLIR's own classes.
        with locations.current(), self.region():
            return self.traced(*args, **kwargs)


class Compile:
    """Compile a jit function for arguments like these; the result is called with such arguments.

    `cute.compile(fn, *args, options="--opt-level 2")`, or with options in brackets:
    `cute.compile[OptLevel(2), KeepPTX](fn, *args)`. A function that was compiled before comes from the cache. The
    executor that it returns has `stages`, `report()`, `kernels`, `source_map` and more.

    Args:
        function: a `@cute.jit` function or method.
        args: arguments as a call would pass them; compile-time ones become part of the code.
        options: flags such as `"--opt-level 2 --keep-ptx"`, or option objects; docs/options.md lists them.
        target: `cuda` or `emu`; by default `cuda` where there is a device.
        arch: the chip; by default the device's, or `sm_90a` where there is none.
        override: texts or files that replace stages `cute`, `nvvm`, `llvm`, `ptx` or `cubin`.
        passes: passes to add: objects, classes or text; `before(name, pass)` and `after(name, pass)` place them.
        pipeline: the whole pass list, as text or as a `PassManager`.
        checks: on the emulator: True raises at the first fault, "collect" reports all, False is fast; a list holds
            classes of checkers, in which True stands for all standard ones.
        observers: called after each stage with its name and the job.
        after_pass: called after each pass with the pass and the module.
        validate: arguments of a call, with which the emulator compares the program before and after each of your
            passes.
        no_cache: compile even if the cache has the function.

    Raises:
        CompileError: the function or its arguments are wrong.
    """

    def __init__(self, options: Sequence[Any] = ()) -> None:
        self._options = tuple(options)

    @property
    def preset(self) -> tuple[Any, ...]:
        """The options given in brackets."""
        return self._options

    def __getitem__(self, options: Any) -> Compile:
        given = options if isinstance(options, tuple) else (options,)
        return Compile((*self._options, *given))

    if TYPE_CHECKING:  # the names that editors offer; `compile_function` says what they mean

        @overload
        def __call__(
            self,
            function: Callable[..., Any],
            *args: Any,
            options: Any = None,
            target: str | None = None,
            arch: str | None = None,
            override: Mapping[str, Any] | None = None,
            passes: Any = (),
            pipeline: Any = None,
            checks: Any = True,
            observers: Sequence[Any] = (),
            after_pass: Callable[[Any, Any], None] | None = None,
            validate: Sequence[Any] | None = None,
            no_cache: bool = False,
            **kwargs: Any,
        ) -> Executor: ...
        @overload
        def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Executor: ...

    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Compile `function` for these arguments, or find it in the cache; keep the executor."""
        with OnlyUserFrames(), ErrorsLocated():
            jit_function = decorated(function)
            return reraise_lost(lambda: _compiler().compile_function(self._options, jit_function, args, **kwargs))


compile_function = Compile()


def compile_parallel(
    calls: Iterable[Any], *, processes: int | None = None, progress: bool | None = None
) -> list[Executor]:
    """Compile several functions at once, in processes beside each other; gives them compiled, in their order.

    Args:
        calls: tuples `(function, *args)`, or `functools.partial(cute.compile, function, *args, options=...)`.
        processes: how many to run at a time; by default one for each processor.
        progress: whether to show a bar on stderr; by default in a terminal, or as `TILEWRIGHT_PROGRESS` says.

    Raises:
        ArgumentError: an item is no call.
        TilewrightError: a function does not compile. All others are compiled by then.
    """
    with OnlyUserFrames(), ErrorsLocated():
        made = [_call(number, call) for number, call in enumerate(calls)]
        module = uninterrupted(lambda: importlib.import_module("tilewright.compiler.parallel"))
        found: list[Executor] = module.compile_parallel(made, _plan, processes=processes, progress=progress)
        return found


def compile_candidates(
    calls: Sequence[functools.partial[Any]], caught: tuple[type[Exception], ...]
) -> list[Executor | Exception]:
    """`compile_parallel` of calls some of which may fail: the errors named are given in their places."""
    module = uninterrupted(lambda: importlib.import_module("tilewright.compiler.parallel"))
    found: list[Executor | Exception] = module.compile_parallel(
        calls, _plan, processes=None, progress=None, caught=caught
    )
    return found


def plans_of(calls: Sequence[functools.partial[Any]]) -> list[Any]:
    """The plans of calls of `cute.compile` that are not made yet."""
    return [_plan(call) for call in calls]


def _call(number: int, call: Any) -> functools.partial[Any]:
    """A call of `cute.compile` that is not made yet."""
    if isinstance(call, functools.partial) and isinstance(call.func, Compile):
        return call
    if isinstance(call, tuple) and call:
        return functools.partial(compile_function, *call)
    raise ArgumentError(
        f"item {number} of compile_parallel is no call",
        values={"item": call},
        hint="give tuples (function, *args), or functools.partial(cute.compile, function, *args, options=...)",
    )


def _plan(call: functools.partial[Any]) -> Any:
    """The plan of a call of `cute.compile`."""
    function, *args = call.args
    keywords = {name: value for name, value in call.keywords.items() if name != "checks"}
    options = {name: keywords.pop(name) for name in _PLANNED if name in keywords}
    compile_: Any = call.func
    return _compiler().planned(compile_.preset, decorated(function), tuple(args), keywords, **options)


_PLANNED = ("options", "target", "arch", "passes", "pipeline")


def decorated(function: Any) -> tuple[JitFunction[..., Any], tuple[Any, ...]]:
    """The jit function that `function` is or holds, and the object it is bound to.

    Raises:
        CompileError: it is none.
    """
    if isinstance(function, functools.partial) and isinstance(function.func, JitFunction):
        return function.func, function.args
    if isinstance(function, JitFunction):
        return function, ()
    kernel = function.func if isinstance(function, functools.partial) else function
    if isinstance(kernel, KernelFunction):
        raise CompileError(
            f"{kernel.function.__name__} is a kernel",
            location=user_location(),
            hint="kernels are launched from a @cute.jit function; compile that function",
        )
    call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(call, JitFunction):
        return call, (function,)
    raise CompileError(
        f"cute.compile takes a @cute.jit function, not {type(function).__name__}",
        location=user_location(),
        values={"got": function},
        hint="decorate the function with @cute.jit",
    )
