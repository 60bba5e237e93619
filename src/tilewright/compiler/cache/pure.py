"""What of Python and of the packages that are trusted depends on nothing but its arguments.

A function that can reach anything else, a file, the clock, a random number, the environment, what is printed, is traced
at every lookup: what it did would not be done again otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any, Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALL: Final = frozenset(("*",))

PURE: Final[dict[str, frozenset[str]]] = {
    "builtins": _names(
        "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float"
        " format frozenset getattr hasattr hex int isinstance issubclass iter len list map max min next object oct ord"
        " pow property range repr reversed round set setattr delattr slice sorted staticmethod str sum super tuple type"
        " vars dir zip __build_class__"
    ),
    "math": ALL,
    "_math": ALL,
    "cmath": ALL,
    "operator": ALL,
    "_operator": ALL,
    "itertools": ALL,
    "enum": ALL,
    "typing": ALL,
    "typing_extensions": ALL,
    "types": _names("SimpleNamespace MappingProxyType GenericAlias NoneType MethodType UnionType EllipsisType"),
    "abc": ALL,
    "_abc": ALL,
    "collections": ALL,
    "collections.abc": ALL,
    "_collections_abc": ALL,
    "_collections": ALL,
    "numbers": ALL,
    "fractions": ALL,
    "dataclasses": ALL,
    "copy": ALL,
    "bisect": ALL,
    "_bisect": ALL,
    "heapq": ALL,
    "_heapq": ALL,
    "string": ALL,
    "textwrap": ALL,
    "inspect": _names("Signature Parameter _ParameterKind _empty"),
    "reprlib": _names("recursive_repr"),
    "struct": ALL,
    "_struct": ALL,
    "functools": _names(
        "partial partialmethod reduce wraps update_wrapper cached_property singledispatch singledispatchmethod"
        " total_ordering cmp_to_key"
    ),
    "_functools": ALL,
    "contextlib": _names(
        "contextmanager nullcontext suppress ExitStack closing AbstractContextManager ContextDecorator"
        " _GeneratorContextManager"
    ),
    "posixpath": _names("join basename dirname split splitext normpath isabs"),
    "pathlib": _names("PurePath PurePosixPath"),
    "numpy": _names(
        "abs absolute add all allclose amax amin any arange argmax argmin argsort array array_equal "
        "asarray ascontiguousarray atleast_1d bitwise_and bitwise_or bool bool_ broadcast_shapes ceil "
        "clip concatenate cos cumprod cumsum divide dot dtype empty_like equal exp exp2 eye finfo float16 "
        "float32 float64 floor floor_divide full gcd generic iinfo inf int16 int32 int64 int8 isfinite "
        "isinf isnan lcm left_shift linspace log log10 log2 matmul max maximum min minimum mod multiply "
        "nan ndarray ndim ndindex newaxis ones pi power prod product ravel remainder repeat reshape "
        "result_type right_shift round sign sin sqrt stack subtract sum tile transpose trunc uint16 "
        "uint32 uint64 uint8 unique unravel_index where zeros zeros_like floating integer signedinteger "
        "unsignedinteger number complex64 complex128 intp uintp int_ uint"
    ),
    "ml_dtypes": ALL,
    "torch": _names("Tensor dtype device Size"),
    "cuda": _names("CUstream CUevent CUdeviceptr cudaStream_t cudaEvent_t"),
}
"""Module to the names in it. Numbers and text among them need no entry."""

REFLECTIVE: Final = _names("getattr hasattr setattr delattr vars dir attrgetter methodcaller __dict__ __getattribute__")
"""Names by which code reaches attributes whose names it does not spell out."""

UNSEEN: Final = _names("__globals__ __builtins__ __subclasses__ f_globals f_back f_locals gi_frame tb_frame")
"""Names by which code reaches what no walk over it sees."""


IMPURE: Final = _names("get_type_hints evaluate_forward_ref get_overloads")
"""Functions of modules that stand there whole: they read what no code names."""


def is_pure_function(function: FunctionType) -> bool:
    """True for a function of a trusted package that depends on nothing but its arguments and what its closure holds."""
    return _listed(function.__globals__.get("__name__"), function.__code__.co_qualname)


def is_pure_builtin(value: Any) -> bool:
    """True for a function written in C that depends on nothing but its arguments."""
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type):  # `tuple.__new__`
        return is_pure_class(owner)
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", None)
    return _listed(module, getattr(value, "__qualname__", None) or getattr(value, "__name__", None))


def is_pure_class(cls: type) -> bool:
    """True for a class of Python or a trusted package whose objects depend on nothing but what they are made from."""
    if cls.__module__ == "builtins":
        return not cls.__flags__ & _HEAP_TYPE and (cls.__name__ in _TYPES or issubclass(cls, BaseException))
    return _listed(cls.__module__, cls.__qualname__)


def reflects(names: Iterable[str]) -> bool:
    """True where one of these names lets code reach any attribute."""
    return not REFLECTIVE.isdisjoint(names)


_HEAP_TYPE: Final = 1 << 9
_TYPES: Final = PURE["builtins"] | _names("NoneType ellipsis NotImplementedType method mappingproxy")


def _listed(module: Any, name: Any) -> bool:
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    package = module.partition(".")[0]
    known = PURE.get(package if package in _WHOLE else module, frozenset())
    first = name.partition(".")[0]
    return first not in IMPURE if known is ALL else first in known


_WHOLE: Final = frozenset(("numpy", "ml_dtypes", "torch", "cuda"))
"""Packages whose functions stand in one list, wherever in the package they are defined."""
