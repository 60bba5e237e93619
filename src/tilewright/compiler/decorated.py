"""Decorated functions: what the compiler takes from them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.compiler.direct_calls import DirectCalls
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.profiling import Region
from tilewright.lang.rewrite import capture, rewrite

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
T = TypeVar("T")


class Decorated(Generic[P, R]):
    """Base of decorated functions. `traced` is the function to run while tracing; it is rewritten on first use.

    A `profiled` one is a timed region of the kernels in which it is called; see `compiler.profiling`.
    """

    def __init__(self, function: FunctionType, preprocess: bool) -> None:
        _refuse_generator(function)
        functools.update_wrapper(cast(Any, self), function)
        self.function = function
        self.preprocess = preprocess
        self._source = capture(function) if preprocess else None
        self._traced: Callable[..., Any] | None = None
        self.profiled = False
        self.symbol_name = function.__name__
        self.__globals__ = function.__globals__  # libraries read it, as of a plain function

    @property
    def traced(self) -> Callable[..., Any]:
        if self._traced is None:
            self._traced = rewrite(self.function, self._source) if self.preprocess else self.function
        return self._traced

    def region(self) -> AbstractContextManager[object]:
        """What the function's body is traced in."""
        return Region(self.function.__name__) if self.profiled else nullcontext()

    def set_name_prefix(
        self, prefix: str, *, remove_cutlass_symbol: bool = False, keep_mangled_name: bool = True
    ) -> None:
        """Begin the symbol of functions traced from now on with `prefix`; without `keep_mangled_name` it is all of it.

        Raises:
            CompileError: nothing of the name would be left.
        """
        if not prefix and not keep_mangled_name:
            raise CompileError("a name needs a prefix or the function's own", location=user_location())
        parts = [prefix] if prefix else []
        self.symbol_name = "_".join([*parts, self.function.__name__] if keep_mangled_name else parts)

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, **kwargs: Any) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Decorated[Concatenate[Any, Q], R], instance: object, owner: Any = None
    ) -> BoundFunction[Q, R]: ...
    def __get__(self, instance: object, owner: Any = None) -> Any:
        return self if instance is None else BoundFunction(cast(Any, self), instance)


class BoundFunction(functools.partial[T], Generic[P, T]):
    """A decorated method of an object."""

    if TYPE_CHECKING:

        @overload
        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> T: ...
        @overload
        def __call__(self, /, *args: Any, **kwargs: Any) -> T: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def set_name_prefix(self, prefix: str, **options: Any) -> None:
        """Begin the symbol with `prefix`."""
        cast(Decorated[..., Any], self.func).set_name_prefix(prefix, **options)


def _refuse_generator(function: FunctionType) -> None:
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        code = function.__code__
        raise CompileError(
            f"{function.__qualname__} yields or awaits, which compiled code cannot",
            location=SourceLocation(code.co_filename, code.co_firstlineno, function=code.co_name),
            hint="write values to a tensor, or return them",
        )


class Profiled:
    """A plain function under `@cute.profile`: a call is inlined as ever, and is a timed region of the kernel."""

    def __init__(self, function: FunctionType) -> None:
        functools.update_wrapper(cast(Any, self), function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with Region(self.function.__name__) if trace.tracing() else nullcontext():
            return self.function(*args, **kwargs)


class EntryFunction(Decorated[P, R]):
    """A function that is compiled by itself.

    `pipeline` is the pass list that it brings, None for the standard one; `defaults` are options that hold for it where
    no others are given. Both are its DSL object's.
    """

    pipeline: Any = None
    defaults: Any = None
    last_executor: Any = None
    """What the last direct call ran."""

    def __init__(self, function: FunctionType, preprocess: bool) -> None:
        super().__init__(function, preprocess)
        self.direct_calls = DirectCalls()


def plain_function(function: Any) -> FunctionType:
    """The function of the user under decorators of the language."""
    while isinstance(function, Decorated | Profiled):
        function = function.function
    if not isinstance(function, FunctionType):
        raise CompileError(
            f"@cute.jit, @cute.kernel and @dsl_user_op decorate functions, not {type(function).__name__}",
            location=user_location(3),
            hint="write it as a function; for a class decorate its methods",
        )
    return function
