"""Functions and modules that a walk meets: what their code reads, and what of it is whose."""

from __future__ import annotations

import builtins
import copyreg
import inspect
import sys
from types import FunctionType, ModuleType
from typing import Any, Final

from tilewright.compiler.cache.code_reads import Chain, Import, code_reads
from tilewright.compiler.cache.owners import owner_of_class, owner_of_function, owner_of_module, resolved
from tilewright.compiler.cache.pure import ALL, PURE, is_pure_builtin, is_pure_function
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.cache.walk import Walk

_PYTEST: Final = "@py"
"""How the names begin that pytest puts into functions with `assert`. Tracing runs the source instead."""


def function(reach: Walk, function: FunctionType) -> None:
    """A function written in Python."""
    owner = owner_of_function(function)
    code, home = function.__code__, str(function.__globals__.get("__name__"))
    reach.note("function", home, code.co_qualname)
    reach.watch.attributes(function, _PARTS if owner == "user" else _PARTS[:1])
    if owner == "user":
        _walk_code(reach, function)
    elif owner == "trusted" and not is_pure_function(function):
        raise UnprovableError(f"it can reach {home}.{code.co_qualname}")
    elif resolved(home, code.co_qualname) is not function:  # its own names may be those of what it wraps
        reach.note(str(code.co_firstlineno))
        _closure(reach, function)
        _attributes(reach, function)
    if home == "copy":
        _registered_copies(reach)
    if owner == "user" or "<locals>" in code.co_qualname:
        reach.value(function.__defaults__)
        reach.value(function.__kwdefaults__)


def _registered_copies(reach: Walk) -> None:
    """How the user's classes are copied."""
    reach.watch.mapping(copyreg.dispatch_table)
    for cls, reduce in copyreg.dispatch_table.items():
        if isinstance(reduce, FunctionType) and owner_of_function(reduce) == "user":
            reach.note("registered copy")
            reach.value(cls)
            reach.value(reduce)


_PARTS: Final = ("__code__", "__defaults__", "__kwdefaults__")


def parameter_annotations(reach: Walk, function: FunctionType) -> None:
    """The annotations of a function, which say what its parameters become."""
    scope = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for name, value in inspect.get_annotations(function).items():
        reach.note("annotation", name)
        annotation(reach, value, function.__globals__, scope)


def annotation(reach: Walk, value: Any, globals_: dict[str, Any], cells: dict[str, Any]) -> None:
    """An annotation; of one written as text, what the text names."""
    if not isinstance(value, str):
        reach.value(value)
        return
    reach.note("text", value)
    try:
        code = compile(value, "<annotation>", "eval", dont_inherit=True)
    except (SyntaxError, ValueError):
        return
    reads = code_reads(code)
    reach.code_names(reads.names)
    for chain in reads.globals:
        if chain[0] in cells:
            _chain_of_cell(reach, chain, cells[chain[0]])
        else:
            _global_chain(reach, chain, globals_)


def _walk_code(reach: Walk, function: FunctionType) -> None:
    reads = code_reads(function.__code__)
    reach.note(reads.digest, function.__name__)
    reach.code_names(reads.names)
    _closure(reach, function)
    for chain in reads.globals:
        if not chain[0].startswith(_PYTEST):
            _global_chain(reach, chain, function.__globals__)
    for item in reads.imports:
        _import(reach, item, function.__globals__)
    _attributes(reach, function)


def _attributes(reach: Walk, function: FunctionType) -> None:
    if vars(function):
        reach.watch.state(function)
        for name, value in sorted(vars(function).items()):
            reach.attribute(function, name, value)
    reach.described(function)


def _closure(reach: Walk, function: FunctionType) -> None:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for chain in code_reads(function.__code__).free:
        _chain_of_cell(reach, chain, cells[chain[0]])


def _chain_of_cell(reach: Walk, chain: Chain, cell: Any) -> None:
    reach.note("free", ".".join(chain))
    reach.watch.cell(cell)
    try:
        value = cell.cell_contents
    except ValueError:
        reach.note("empty")
        return
    _chain(reach, value, chain[1:])


def _global_chain(reach: Walk, chain: Chain, globals_: dict[str, Any]) -> None:
    name = chain[0]
    reach.note("global", ".".join(chain))
    reach.watch.entry(globals_, name)
    if name in globals_:
        _chain(reach, globals_[name], chain[1:])
        return
    found = globals_.get("__builtins__", builtins)
    names = vars(found) if isinstance(found, ModuleType) else found
    reach.watch.entry(names, name)
    if name in names:
        reach.value(names[name])
    else:
        reach.note("missing")


def _chain(reach: Walk, value: Any, attributes: Chain) -> None:
    """A value, and the attributes read off it: those of modules are followed."""
    while attributes and isinstance(value, ModuleType):
        if _is_ours(value, attributes):
            reach.note("ours", value.__name__, ".".join(attributes))
            return
        name, attributes = attributes[0], attributes[1:]
        entries = vars(value)
        reach.watch.class_of(value)
        reach.watch.entry(entries, name)
        if type(value) is not ModuleType and _answers_itself(type(value), name):
            raise UnprovableError(f"it reads {value.__name__}.{name}")
        if name not in entries:
            _missing(reach, value, name)
            return
        value = entries[name]
    reach.value(value)


def _answers_itself(cls: type, name: str) -> bool:
    """Whether a class of modules says what their attribute is, before their entries do."""
    own = cls.__mro__[: cls.__mro__.index(ModuleType)]
    return any(name in vars(base) or "__getattribute__" in vars(base) for base in own)


def _is_ours(value: Any, attributes: Chain) -> bool:
    """Whether a chain that begins with a module names something of ours, which may be loaded when it is asked for."""
    for name in attributes:
        if not isinstance(value, ModuleType):
            break
        if owner_of_module(value) != "ours":
            return False
        if name not in vars(value):
            return True
        value = vars(value)[name]
    if isinstance(value, ModuleType):
        return owner_of_module(value) == "ours"
    if isinstance(value, type):
        return owner_of_class(value) == "ours"
    function = getattr(value, "function", value)
    return isinstance(function, FunctionType) and owner_of_function(function) == "ours"


def _missing(reach: Walk, module: ModuleType, name: str) -> None:
    """An attribute that a module does not have yet, or not as an entry."""
    reach.watch.entry(vars(module), "__getattr__")
    if hasattr(type(module), name) or "__getattr__" in vars(module):
        raise UnprovableError(f"it reads {module.__name__}.{name}")
    reach.note("missing")


def _import(reach: Walk, item: Import, globals_: dict[str, Any]) -> None:
    reach.note("import", item.module, str(item.level))
    found = sys.modules.get(_absolute(item, globals_))
    if found is None:
        raise UnprovableError(f"it imports {item.module}, which is not loaded")
    reach.watch.entry(sys.modules, found.__name__)
    if not item.names:
        top = found if "." not in item.module else sys.modules[found.__name__.partition(".")[0]]
        reach.value(top)
        reach.value(found)
    for name in item.names:
        reach.note("from", name)
        _chain(reach, found, (name,))


def _absolute(item: Import, globals_: dict[str, Any]) -> str:
    if not item.level:
        return item.module
    package = globals_.get("__package__") or str(globals_.get("__name__", "")).rpartition(".")[0]
    base = str(package).rsplit(".", item.level - 1)[0] if item.level > 1 else str(package)
    return f"{base}.{item.module}" if item.module else base


def module(reach: Walk, module: ModuleType) -> None:
    """A module that code hands on as a value: nobody knows what is read off it."""
    owner = owner_of_module(module)
    reach.note("module", module.__name__)
    if owner == "ours":
        return
    if owner == "trusted" and PURE.get(module.__name__) is ALL:
        reach.watch.mapping(vars(module))
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and owner_of_function(value) == "user":  # put there
                reach.attribute(module, name, value)
        return
    raise UnprovableError(f"it hands on module {module.__name__} as a value")


def builtin(reach: Walk, value: Any) -> None:
    """A function written in C, or a bound method of an object of C."""
    if not is_pure_builtin(value):
        raise UnprovableError(f"it can reach {getattr(value, '__module__', None) or 'a builtin'}.{value.__qualname__}")
    reach.note("builtin", str(value.__module__), value.__qualname__)
    reach.code_names((value.__name__,))  # the code may have another name for `getattr`


def method(reach: Walk, value: Any) -> None:
    """A bound method."""
    reach.note("method")
    reach.value(value.__func__)
    reach.value(value.__self__)


def cell(reach: Walk, cell: Any) -> None:
    """A variable of a closure, as a value."""
    _chain_of_cell(reach, ("",), cell)
