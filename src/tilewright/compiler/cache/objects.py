"""Classes, objects and containers that a walk meets: what of them tracing can depend on.

Of a class of the user count its bases, its special methods, and the attributes whose names any code that was reached
has; of an object its class and, likewise, its attributes. Of classes that build on ours everything counts, for our code
reads their attributes by names of its own.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from tilewright.compiler.cache import functions
from tilewright.compiler.cache.arrays import ARRAYS
from tilewright.compiler.cache.code_reads import code_reads
from tilewright.compiler.cache.owners import owner_of_class
from tilewright.compiler.cache.pure import is_pure_class
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.cache.walk import Walk
from tilewright.compiler.decorated import Decorated, Profiled
from tilewright.ir.context import Stale
from tilewright.layout import ComposedLayout, Layout, Swizzle, is_static

_SKIPPED: Final = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "__static_attributes__", "__firstlineno__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "__type_params__",
    "__parameters__", "__dataclass_params__", "__weakref_offset__",
))  # fmt: skip
"""What a class has that says nothing, or is noted by itself."""


def class_(reach: Walk, cls: type) -> None:
    """A class: of ours and of Python the name says all."""
    owner = owner_of_class(cls)
    reach.note("class", cls.__module__, cls.__qualname__)
    if owner == "trusted" and not is_pure_class(cls):
        raise UnprovableError(f"it can reach the class {cls.__module__}.{cls.__qualname__}")
    if isinstance(cls, abc.ABCMeta):
        _registered(reach, cls)
    if owner != "user":
        reach.code_names((cls.__name__,))  # the code may have another name for `attrgetter`
        return
    reach.value(cls.__bases__)
    if type(cls) is not type:
        reach.value(type(cls))
    reach.watch.state(cls)
    reach.watch.attributes(cls, ("__bases__",))
    if isinstance(cls, enum.EnumMeta):
        members: Mapping[str, Any] = cls.__members__
        for name, member in members.items():
            reach.note("member", name)
            reach.value(member)
    _class_annotations(reach, cls)
    reach.described(cls)
    everything = any(base.__module__.startswith("tilewright.") for base in cls.__mro__)
    for name, value in vars(cls).items():
        if name in _SKIPPED or (isinstance(cls, enum.EnumMeta) and name in _ENUM):
            continue
        if name == "__hash__" and isinstance(value, types.FunctionType):
            reach.note("hash", code_reads(value.__code__).digest)  # it calls `hash`, as nothing else may
        elif everything or name in _READ_BY_US or (name.startswith("__") and name.endswith("__")):
            reach.note("has", name)
            reach.value(value)
        else:
            reach.attribute(cls, name, value)


def _registered(reach: Walk, cls: abc.ABCMeta) -> None:
    """The classes of the user that count as subclasses of an abstract class by `register`."""
    token, before = abc.get_cache_token(), _registry(cls)
    reach.watch.check(before, lambda: abc.get_cache_token() == token or _registry(cls) == before)
    reach.registered(before)


def _registry(cls: type) -> set[type]:
    own = {ref() for ref in abc._get_dump(cls)[0]} if isinstance(cls, abc.ABCMeta) else ()  # type: ignore[attr-defined]
    found = {item for item in own if item and owner_of_class(item) == "user" and not _made_in_c(item)}
    return found.union(*map(_registry, type.__subclasses__(cls)))


_READ_BY_US: Final = frozenset(("_fields", "_field_defaults"))
_ENUM: Final = frozenset((
    "_member_map_", "_member_names_", "_value2member_map_", "_unhashable_values_", "_member_type_",
    "_hashable_values_", "_unhashable_values_map_", "_new_member_", "_use_args_", "__new__", "_generate_next_value_",
))  # fmt: skip


def _class_annotations(reach: Walk, cls: type) -> None:
    scope = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    annotations = vars(cls).get("__annotations__")
    if annotations is None:
        return
    reach.watch.mapping(annotations)
    for name, value in annotations.items():
        reach.note("annotation", name)
        functions.annotation(reach, value, scope, {})


def object_(reach: Walk, value: Any) -> None:
    """An object of a class that has no row in `BY_TYPE`."""
    cls = type(value)
    if is_traced(value):
        reach.note("traced")
        return
    for base, handler in _BY_BASE:
        if isinstance(value, base):
            handler(reach, value)
            return
    if cls.__module__ == "typing":
        _typing_object(reach, value)
        return
    array = ARRAYS.get(cls.__module__.partition(".")[0])
    if array is not None and array(reach, value):
        return
    owner = owner_of_class(cls)
    if owner == "trusted" and (cls.__module__, cls.__qualname__) not in _PLAIN:
        raise UnprovableError(f"it can reach an object of {cls.__module__}.{cls.__qualname__}")
    reach.note("object")
    reach.value(cls)
    reach.watch.class_of(value)
    _content(reach, value)
    _state(reach, value, everything=owner != "user" or dataclasses.is_dataclass(value))


_PLAIN: Final = frozenset((
    ("types", "SimpleNamespace"), ("dataclasses", "Field"), ("dataclasses", "_FIELD_BASE"),
    ("dataclasses", "_MISSING_TYPE"),
    ("dataclasses", "_HAS_DEFAULT_FACTORY_CLASS"), ("dataclasses", "_KW_ONLY_TYPE"),
    ("dataclasses", "_DataclassParams"),
    ("fractions", "Fraction"), ("pathlib", "PosixPath"), ("pathlib", "PurePosixPath"), ("enum", "auto"),
    ("enum", "property"), ("types", "DynamicClassAttribute"), ("enum", "nonmember"), ("enum", "member"),
    ("inspect", "Signature"), ("inspect", "Parameter"),
    ("functools", "singledispatchmethod"), ("contextlib", "nullcontext"), ("builtins", "object"),
))  # fmt: skip
"""Classes of the standard library whose objects are what their attributes say."""

_CONTENTS: Final[tuple[type, ...]] = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


def _content(reach: Walk, value: Any) -> None:
    """What an object holds as a number, a text or a container, where its class builds on one of these."""
    for base in _CONTENTS:
        if isinstance(value, base):
            _BUILTIN[base](reach, value)
            return
    for base in type(value).__mro__:
        if _made_in_c(base) and base not in (object, types.SimpleNamespace) and not issubclass(base, BaseException):
            raise UnprovableError(f"it can reach an object over {base.__module__}.{base.__qualname__}")


def _made_in_c(cls: type) -> bool:
    """True for a class that C code made: its objects may hold what no attribute shows."""
    return any(
        getattr(item, "__objclass__", getattr(item, "__self__", None)) is cls
        for name, item in vars(cls).items()
        if type(item) in _OF_C and name not in ("__dict__", "__weakref__")
    )


_OF_C: Final = (
    types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType, types.BuiltinFunctionType,
)  # fmt: skip


def _state(reach: Walk, value: Any, everything: bool) -> None:
    entries = getattr(value, "__dict__", None)
    found = dict(entries) if isinstance(entries, dict) else {}
    if isinstance(entries, dict):
        reach.watch.object_(value)
    slots = list(_slots(type(value)))
    if slots:
        reach.watch.attributes(value, slots)
    found |= {name: getattr(value, name) for name in slots if hasattr(value, name)}
    for name, item in sorted(found.items()):
        if everything:
            reach.note("has", name)
            reach.value(item)
        else:
            reach.attribute(value, name, item)


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        for name, item in vars(base).items():
            if isinstance(item, types.MemberDescriptorType) and item.__objclass__ is base and name != "_hash":
                yield name


# Containers.


def _mapping(reach: Walk, value: Any) -> None:
    reach.note(f"{{{len(value)}")
    if isinstance(value, collections.defaultdict):
        reach.value(value.default_factory)
    if isinstance(value, dict):
        reach.watch.mapping(value)
    for key, item in value.items():
        reach.value(key)
        reach.value(item)


def _sequence(reach: Walk, value: Any) -> None:
    reach.note(f"[{len(value)}")
    if not isinstance(value, tuple):
        reach.watch.items(value)
    for item in value:
        reach.value(item)


def _set(reach: Walk, value: Any) -> None:
    if not all(type(item) in _SORTABLE for item in value):
        names = sorted({type(item).__name__ for item in value})
        raise UnprovableError(f"it can reach a set of {', '.join(names)}, whose order changes")
    before = sorted(map(repr, value))
    reach.note(f"<{len(value)}", *before)
    if not isinstance(value, frozenset):
        reach.watch.check(value, lambda: sorted(map(repr, value)) == before)


_SORTABLE: Final = frozenset((type(None), bool, int, float, complex, str, bytes))


def _atom(base: Any) -> Callable[[Walk, Any], None]:
    return lambda reach, value: reach.note(base.__name__, base.__repr__(value))


_BUILTIN: Final[Mapping[type, Callable[[Walk, Any], None]]] = {
    **{base: _atom(base) for base in (int, float, complex, str, bytes)},
    tuple: _sequence, list: _sequence, dict: _mapping, set: _set, frozenset: _set,
}  # fmt: skip


# Objects of Python's own that hold others.


def _parts(kind: str, *names: str, watched: bool = False) -> Callable[[Walk, Any], None]:
    """A handler for objects that are what these attributes are."""

    def handler(reach: Walk, value: Any) -> None:
        reach.note(kind)
        if watched:
            reach.watch.state(value)
        for name in names:
            reach.value(getattr(value, name, None))

    return handler


def _descriptor(reach: Walk, value: Any) -> None:
    """A method or attribute written in C: of Python's own classes, or a slot of a class."""
    reach.note("descriptor", value.__name__)
    owner = value.__objclass__
    if not isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
        reach.value(owner)


def _named_item(reach: Walk, value: Any) -> None:
    """An item of a named tuple."""
    reach.note("item", repr(value.__reduce__()[1]))


def _cached_function(reach: Walk, value: Any) -> None:
    """What `functools.cache` makes: results that it keeps may be of another state than the one that is seen now."""
    count = value.cache_info().currsize
    reach.note("cached", str(count))
    if count:
        raise UnprovableError(f"it can reach {value.__qualname__}, which keeps results from before")
    reach.watch.check(value, lambda: not value.cache_info().currsize)
    reach.value(value.__wrapped__)


def _member(reach: Walk, value: Any) -> None:
    reach.note("member", str(value._name_))
    reach.value(type(value))
    if owner_of_class(type(value)) != "user":
        reach.note(repr(value._value_))
        return
    reach.value(value._value_)
    _state(reach, value, everything=False)


def _decorated(reach: Walk, value: Any) -> None:
    """A function of the language."""
    reach.note(type(value).__qualname__, str(value.preprocess), str(value.profiled), value.symbol_name)
    reach.watch.attributes(value, ("symbol_name", "profiled"))
    if any(name.startswith("@py") for name in value.function.__code__.co_names) and value._source is not None:
        reach.note(*value._source.lines)
    reach.value(type(value))
    reach.value(value.function)
    functions.parameter_annotations(reach, value.function)


def _profiled(reach: Walk, value: Any) -> None:
    reach.note("profiled")
    reach.value(value.function)


def _printed(reach: Walk, value: Any) -> None:
    """An object that prints as what it is."""
    reach.note(type(value).__qualname__, repr(value))


def _alias(reach: Walk, value: Any) -> None:
    """`list[int]`, `Optional[X]`."""
    reach.note("alias", str(getattr(value, "_name", "")))
    reach.value(typing.get_origin(value) or type(value))
    for item in typing.get_args(value):
        _argument(reach, item)


def _argument(reach: Walk, item: Any) -> None:
    if isinstance(item, list):
        for inner in item:
            _argument(reach, inner)
    else:
        reach.value(item)


def _typing_object(reach: Walk, value: Any) -> None:
    if typing.get_origin(value) is not None:
        _alias(reach, value)
    else:
        reach.note("typing", repr(value))


def _layout(reach: Walk, value: Any) -> None:
    if is_static(value):
        reach.note(type(value).__qualname__, str(value))
    else:
        reach.note("dynamic", type(value).__qualname__)
        _state(reach, value, everything=True)


def is_traced(value: Any) -> bool:
    """True for a value of a program that was traced. No other program can use it, so it is as good as none."""
    if type(value) is Stale:
        return True
    return any(base.__name__ == "Value" and base.__module__.startswith("mlir.") for base in type(value).__mro__)


BY_TYPE: Final[Mapping[type, Callable[[Walk, Any], None]]] = {
    **_BUILTIN,
    types.MappingProxyType: _mapping,
    collections.OrderedDict: _mapping,
    collections.defaultdict: _mapping,
    collections.deque: _sequence,
    slice: _parts("slice", "start", "stop", "step"),
    property: _parts("property", "fget", "fset", "fdel"),
    staticmethod: _parts("staticmethod", "__func__"),
    classmethod: _parts("classmethod", "__func__"),
    functools.cached_property: _parts("cached_property", "func"),
    functools.partial: _parts("partial", "func", "args", "keywords"),
    functools.partialmethod: _parts("partialmethod", "func", "args", "keywords"),
    types.GenericAlias: _alias,
    types.UnionType: _alias,
    **dict.fromkeys(
        (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
         types.GetSetDescriptorType, types.MemberDescriptorType),
        _descriptor,
    ),
    type(functools.lru_cache(lambda: 0)): _cached_function,
    type(vars(collections.namedtuple("_", "item"))["item"]): _named_item,
    Layout: _layout,
    ComposedLayout: _layout,
    Swizzle: _layout,
}  # fmt: skip

_BY_BASE: Final[Iterable[tuple[Any, Callable[[Walk, Any], None]]]] = (
    (enum.Enum, _member),
    (Decorated, _decorated),
    (Profiled, _profiled),
    (functools.partial, _parts("partial", "func", "args", "keywords")),
    ((typing.TypeVar, typing.ParamSpec, typing.ForwardRef), _printed),
)
