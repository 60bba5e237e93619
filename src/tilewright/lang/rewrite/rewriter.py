"""From a decorated function to its rewritten twin."""

from __future__ import annotations

import ast
import inspect
import re
from types import CellType, CodeType, FunctionType
from weakref import WeakKeyDictionary, WeakSet

from tilewright.lang.control import dispatch
from tilewright.lang.locations import REGION_PREFIX
from tilewright.lang.rewrite import source, tree_hooks
from tilewright.lang.rewrite.source import OUTER, Source
from tilewright.lang.rewrite.statements import FunctionRewriter
from tilewright.lang.rewrite.syntax import CONTROL, REGION

_control_cell = CellType(dispatch)
_REGION_IN_NAME = re.compile(rf"\.<locals>\.{REGION_PREFIX}\w+?__(?=\.)")
_rewritten: WeakSet[CodeType] = WeakSet()
_sources: WeakKeyDictionary[FunctionType, Source] = WeakKeyDictionary()  # of the functions that `rewrite` made


def rewrite(fn: FunctionType, captured: Source | None = None) -> FunctionType:
    """`fn` with its control flow handed to the control runtime.

    The new function has the file, lines, globals, closure cells, defaults and annotations of `fn`, which is its
    `__wrapped__`. `captured` is the source at decoration, see `source.capture`; without it the file is read now.
    A function that another decorator wrapped (`functools.wraps`) is rewritten inside its wrapper.
    Raises CompileError where the source is missing, differs from what was imported, or uses `global` or reads `_`.
    """
    if is_rewritten(fn):
        return fn
    captured = captured or source.capture(fn)
    code = source.compile_inner(_rewritten_tree(fn, captured), fn.__code__, (CONTROL,))
    code = code.replace(co_name=fn.__code__.co_name)
    made = _instantiate(_marked(code, fn.__qualname__, fn.__qualname__), fn, captured)
    _sources[made] = captured
    return made


def _rewritten_tree(fn: FunctionType, captured: Source) -> ast.FunctionDef:
    tree = tree_hooks.apply(source.find(fn, captured), fn.__code__.co_filename)
    first = next(iter((*tree.args.posonlyargs, *tree.args.args)), None)
    rewriter = FunctionRewriter(
        fn.__code__.co_filename, fn.__name__, first.arg if first else "", frozenset(fn.__code__.co_freevars)
    )
    return rewriter.function(tree)


def text(fn: FunctionType) -> str:
    """The source of a function as it is traced: of one that `rewrite` made, with its control flow rewritten.

    Raises:
        OSError: there is no source.
    """
    captured, plain = _sources.get(fn), getattr(fn, "__wrapped__", fn)
    if captured is None:
        return inspect.getsource(fn)
    tree = _rewritten_tree(plain, captured)
    tree.name = plain.__name__
    return ast.unparse(tree) + "\n"


def is_rewritten(fn: FunctionType) -> bool:
    """True when `rewrite` made this function, or a function around it."""
    return is_rewritten_code(fn.__code__)


def is_rewritten_code(code: CodeType) -> bool:
    """True for the code of a function that `rewrite` made, and of those inside it."""
    return code in _rewritten


def is_region(code: CodeType) -> bool:
    """True for the code of a body or operand that rewriting put into a function of its own."""
    return code.co_varnames[:1] == (REGION,)


def _marked(code: CodeType, qualname: str, root: str) -> CodeType:
    """Code under the names that it has in the source; region code is named so that locations can tell it from calls."""
    constants = tuple(_marked_constant(constant, qualname, root) for constant in code.co_consts)
    name = code.co_name
    if is_region(code) and not name.startswith(REGION_PREFIX):
        name = f"{REGION_PREFIX}operand__"
    made = code.replace(co_consts=constants, co_name=name, co_qualname=qualname)
    _rewritten.add(made)
    return made


def _marked_constant(constant: object, qualname: str, root: str) -> object:
    if isinstance(constant, str):  # the body of a class holds its qualified name
        return root + _REGION_IN_NAME.sub("", constant[len(OUTER) :]) if constant.startswith(OUTER) else constant
    if not isinstance(constant, CodeType):
        return constant
    inner = qualname if is_region(constant) else f"{qualname}.<locals>.{constant.co_name}"
    return _marked(constant, inner, root)


def _instantiate(code: CodeType, fn: FunctionType, captured: Source) -> FunctionType:
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)) | {CONTROL: _control_cell}
    wrapped = source.wrapped_by(fn)
    if wrapped is not None:
        twin = CellType(rewrite(wrapped, captured.wrapped))
        cells = {name: twin if source.holds(cell, wrapped) else cell for name, cell in cells.items()}
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__kwdefaults__ = fn.__kwdefaults__
    made.__annotations__ = fn.__annotations__
    made.__qualname__ = fn.__qualname__
    made.__module__ = fn.__module__
    made.__doc__ = fn.__doc__
    made.__dict__.update(fn.__dict__)
    made.__wrapped__ = fn  # type: ignore[attr-defined]
    return made
