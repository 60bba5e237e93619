"""Parameters of kernels and jit functions: which are compile-time, and what annotations ask for."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from tilewright.base.errors import CompileError
from tilewright.base.interrupts import raised_by_signal
from tilewright.lang.leaves import describe, holds_runtime
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.integer_range import fits
from tilewright.lang.numbers.numeric import Float, Float32, Integer, Numeric, as_numeric, is_number
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.lang.printing.runtime_print import assert_
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import ComposedLayout, Layout, is_static

if TYPE_CHECKING:  # for editors, a `Constexpr[int]` is an int, a bare `Constexpr` anything
    from typing_extensions import TypeVar as TypeVarWithDefault

    T = TypeVarWithDefault("T", default=Any)
    Constexpr: TypeAlias = Annotated[T, "known at compile time"]
else:
    T = TypeVar("T")

    class Constexpr(typing.Generic[T]):
        """Annotation of a compile-time parameter: `Constexpr` or `Constexpr[int]`. Any Python object may be passed."""


@dataclass(frozen=True)
class BoundArguments:
    """Arguments by parameter name: those of run time, and the constants of compile time."""

    runtime: dict[str, Any]
    constants: dict[str, Any]


def is_constexpr(annotation: Any) -> bool:
    """True for `Constexpr` and `Constexpr[...]`."""
    return annotation is Constexpr or typing.get_origin(annotation) is Constexpr


def evaluated_annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function as objects; a text that does not evaluate stays text."""
    found = inspect.get_annotations(function)
    if not any(isinstance(value, str) for value in found.values()):
        return found
    function = inspect.unwrap(function)
    scope = dict(getattr(function, "__globals__", {}))
    cells = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if cells else ()
    scope |= {name: cell.cell_contents for name, cell in zip(names, cells, strict=True) if _filled(cell)}
    return {name: _evaluated(value, scope) for name, value in found.items()}


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _evaluated(annotation: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)  # as inspect.get_annotations(eval_str=True) does
    except Exception as error:
        if raised_by_signal(error):
            raise
        return annotation


def bind(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, defaults filled in; an error that names the function when they do not fit it."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise CompileError(
            f"{function.__name__}({', '.join(signature.parameters)}): {error}",
            location=user_location(3),
            hint="give one argument for each parameter that has no default"
            if "missing" in str(error)
            else f"it takes {', '.join(signature.parameters) or 'none'}",
        ) from error
    bound.apply_defaults()
    return dict(bound.arguments)


def call_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> inspect.BoundArguments:
    """Arguments by name as a call of `function` takes them, whatever the kinds of its parameters."""
    signature = inspect.signature(function)
    bound = signature.bind_partial()
    bound.arguments = {name: arguments[name] for name in signature.parameters if name in arguments}
    return bound


def bind_kernel(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """The arguments of a kernel launch. Python numbers become Int32, Float32, Boolean unless they are Constexpr."""
    types = evaluated_annotations(function)
    runtime: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    gathers = gathering(function)
    for position, (name, value) in enumerate(bind(function, args, kwargs).items()):
        annotation = types.get(name)
        if is_constexpr(annotation) and (holds_runtime(value) or _is_layout_of_run_time(value)):
            raise runtime_constant(function, position, name, value)
        if is_constexpr(annotation) or _is_constant(value):
            constants[name] = to_python(value)
        elif name in gathers:
            runtime[name] = _adapt_all(value, annotation, position, name)
        else:
            runtime[name] = adapt(value, annotation, position, name)
    return BoundArguments(runtime, constants)


def _is_layout_of_run_time(value: Any) -> bool:
    return isinstance(value, Layout | ComposedLayout) and not is_static(value)


def runtime_constant(function: Callable[..., Any], position: int, name: str, value: Any) -> CompileError:
    """The error of a parameter of compile time that is given a value of run time."""
    return CompileError(
        f"argument #{position + 1} ({name}) of {function.__name__} is Constexpr, but gets a value known only at run"
        " time",
        location=user_location(3),
        values={name: describe(value)},
        hint=f"make it a constant where it comes from (Constexpr there too; an extent of a tensor is one if the tensor "
        f"comes from `from_dlpack`), or annotate `{name}` with a type of run time, such as cutlass.Int32",
    )


def refuse_runtime_constants(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], cause: CompileError
) -> None:
    """Raises CompileError where a call, which failed for `cause`, gives a parameter of compile time a runtime value."""
    types = evaluated_annotations(function)
    for position, (name, value) in enumerate(bind(function, args, kwargs).items()):
        if is_constexpr(types.get(name)) and holds_runtime(value):
            raise runtime_constant(function, position, name, value) from cause


def _is_constant(value: Any) -> bool:
    return isinstance(value, (str, type(None), type)) or inspect.isroutine(value)


def gathering(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters `*args` and `**kwargs` of a function, with their kinds."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {item.name: item.kind for item in parameters if item.kind in kinds}


def gathered(name: str, value: Any) -> Iterator[tuple[Any, str, Any]]:
    """Key, path and value of each argument that `*args` or `**kwargs` took: its annotation is theirs."""
    if isinstance(value, dict):
        yield from ((key, f"{name}.{key}", item) for key, item in value.items())
    else:
        yield from ((number, f"{name}[{number}]", item) for number, item in enumerate(value))


def _adapt_all(value: Any, annotation: Any, position: int, name: str) -> Any:
    """What `*args` or `**kwargs` took as their annotation asks; without one Python numbers stay constants."""
    if annotation is None:
        return value
    items = {
        key: item if _is_constant(item) else adapt(item, annotation, position + number, path)
        for number, (key, path, item) in enumerate(gathered(name, value))
    }
    return items if isinstance(value, dict) else tuple(items.values())


def adapt(value: Any, annotation: Any, position: int, name: str) -> Any:
    """`value` as its annotation asks; an error that names the parameter when it cannot be."""
    if isinstance(annotation, type) and issubclass(annotation, Numeric):
        if not is_number(value):
            raise expects(position, name, annotation, value)
        return _as_type(as_numeric(value), number_type_for(value, annotation, position, name), name)
    if annotation is Tensor and not isinstance(value, Tensor):
        raise expects(position, name, annotation, value)
    if hasattr(annotation, "__tw_of_tensor__"):
        return _of_tensor(value, annotation, position, name)
    return as_numeric(value) if is_number(value) else value


def _of_tensor(value: Any, annotation: Any, position: int, name: str) -> Any:
    """A tensor as a class that stands for one, such as `cutlass.Array`."""
    if isinstance(value, Tensor):
        return annotation.__tw_of_tensor__(value)
    if not isinstance(value, annotation):
        raise expects(position, name, annotation, value)
    return value


def declared(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a jit function with its tensors as the classes that its annotations ask for."""
    kinds = evaluated_annotations(function)
    return {
        name: kinds[name].__tw_of_tensor__(value)
        if isinstance(value, Tensor) and hasattr(kinds.get(name), "__tw_of_tensor__")
        else value
        for name, value in arguments.items()
    }


def _as_type(number: Numeric, cls: type[Numeric], name: str) -> Numeric:
    """The number as `cls`; the program stops where one of 64 bits, as sizes are, does not fit 32."""
    made = cls(number)
    if isinstance(number, Integer) and isinstance(made, Integer) and cls.width == 32 and number.width > 32:
        if not number.is_static and not fits(number, cls.facts):
            assert_(type(number)(made) == number, f"argument {name} of a kernel does not fit {cls}")
    return made


def number_type_for(value: Any, annotation: type[Numeric], position: int, name: str) -> type[Numeric]:
    """The type of number that an annotation asks for; a base (`Float`) leaves it to the number."""
    if annotation not in (Numeric, Integer, Float):
        return annotation
    own = type(as_numeric(value))
    if issubclass(own, annotation):
        return own
    if annotation is Float:
        return Float32
    raise expects(position, name, annotation, value)


def expects(position: int, name: str, annotation: Any, value: Any) -> CompileError:
    """The error of a wrong argument, in the words that CuTe DSL uses."""
    sequence = annotation is Tensor and isinstance(value, (list, tuple))
    hint = "make an array of it first, as by `numpy.asarray`" if sequence else "pass an argument of that type"
    return CompileError(
        f"expects argument #{position + 1} ({name}) to be {_type_name(annotation)}, but got {_type_name(type(value))}",
        location=user_location(3),
        hint=f"{hint}, or drop the annotation",
    )


def _type_name(annotation: Any) -> str:
    """A type as the user writes it: `int`, `Int32`, `cute.Tensor`, `numpy.ndarray`."""
    if not isinstance(annotation, type):
        return str(annotation)
    module, name = annotation.__module__, annotation.__qualname__
    if module.startswith("tilewright."):
        return name if issubclass(annotation, Numeric) else f"cute.{name}"
    return name if module == "builtins" else f"{module}.{name}"
