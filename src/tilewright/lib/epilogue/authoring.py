"""The user's function, made to tell the names of its variables: assignments and returns go through a recorder.

Everything else of the function stays Python's: its file, lines, closure, helpers and control flow.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, FunctionType, MethodType
from typing import Any

from tilewright.base.errors import CompileError, EpilogueError
from tilewright.lang.rewrite import source
from tilewright.lib.epilogue import proxies

RECORDER = "__tilewright_epilogue__"
_Nested = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


@dataclass(frozen=True)
class Authored:
    """A function ready to be traced. `variables` are the names to which it assigns; `named` is False where its source
    is not there, so that only a dict can name its outputs."""

    fn: Callable[..., Any]
    variables: frozenset[str]
    is_lambda: bool
    named: bool


def authored(fn: FunctionType, recorder: object) -> Authored:
    """`fn` with its assignments and returns handed to `recorder.assigned` and `recorder.returned`.

    Names that its module does not have are looked up among those of `proxies.NAMES`, then among Python's.
    """
    code = fn.__code__
    is_lambda = code.co_name == "<lambda>"
    scope = {**fn.__globals__, "__builtins__": {**vars(builtins), **proxies.NAMES}}
    try:
        tree = source.find(fn, source.capture(fn))
    except CompileError:
        return Authored(_copy(fn, code, scope, {}), frozenset(), is_lambda, named=False)
    variables = Variables.of(tree)
    rewriter = _Recording(variables.in_loops)
    tree.body = [made for statement in tree.body for made in rewriter.statements(statement)]
    ast.fix_missing_locations(tree)
    made = source.compile_inner(tree, code, (RECORDER,)).replace(co_name=code.co_name, co_qualname=code.co_qualname)
    return Authored(_copy(fn, made, scope, {RECORDER: CellType(recorder)}), variables.all, is_lambda, named=True)


def from_text(text: str) -> FunctionType:
    """The epilogue that a source text defines: its last function, or the lambda that it consists of.

    Raises:
        EpilogueError: it defines none.
    """
    file = f"<epilogue {zlib.crc32(text.encode()):08x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "epilogue"}
    if text.lstrip().startswith("lambda"):
        scope["epilogue"] = eval(compile(text.strip(), file, "eval"), scope)
    else:
        exec(compile(text, file, "exec"), scope)
    functions = [made for made in scope.values() if isinstance(made, FunctionType)]
    if not functions:
        raise EpilogueError(
            "The source text of the epilogue defines no function.",
            values={"text": text.strip().splitlines()[0] if text.strip() else ""},
            hint="write `def epilogue(accum, C): ...` or a lambda",
        )
    return functions[-1]


def unbound(fn: Any) -> tuple[FunctionType, dict[str, Any]]:
    """The plain function behind a decorated one, a method or a `functools.partial`, and what these pass to it.

    Raises:
        EpilogueError: there is none.
    """
    passed: dict[str, Any] = {}
    fn = inspect.unwrap(fn) if callable(fn) else fn
    if isinstance(fn, functools.partial):
        plain, passed = unbound(fn.func)
        given = inspect.signature(plain).bind_partial(*passed.values(), *fn.args, **fn.keywords)
        return plain, given.arguments
    if isinstance(fn, MethodType):
        plain, _ = unbound(fn.__func__)
        return plain, {next(iter(inspect.signature(plain).parameters)): fn.__self__}
    if not isinstance(fn, FunctionType):
        raise EpilogueError(
            f"An epilogue is a {type(fn).__name__}.", hint="write a function, a lambda, or the source text of one"
        )
    return fn, passed


def _copy(fn: FunctionType, code: Any, scope: dict[str, Any], extra: dict[str, CellType]) -> FunctionType:
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)) | extra
    made = FunctionType(code, scope, fn.__name__, fn.__defaults__, tuple(cells[name] for name in code.co_freevars))
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


@dataclass(frozen=True)
class Variables:
    """Names to which a function assigns; those `in_loops` may get several values one after the other."""

    all: frozenset[str]
    in_loops: frozenset[str]

    @classmethod
    def of(cls, tree: ast.FunctionDef) -> Variables:
        """Those of a function, without the functions inside."""
        found = list(_stored(tree.body, False))
        return cls(frozenset(name for name, _ in found), frozenset(name for name, loop in found if loop))


def _stored(nodes: list[Any], in_loop: bool) -> Iterator[tuple[str, bool]]:
    for node in nodes:
        if isinstance(node, _Nested):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, in_loop
        yield from _stored(list(ast.iter_child_nodes(node)), in_loop or isinstance(node, ast.For | ast.While))


class _Recording(ast.NodeTransformer):
    """Assignments `x = e` become `x = recorder.assigned("x", e)`, returns `return recorder.returned(names, e)`."""

    def __init__(self, in_loops: frozenset[str]) -> None:
        self.in_loops = in_loops

    def statements(self, node: ast.stmt) -> list[ast.stmt]:
        made = self.visit(node)
        return made if isinstance(made, list) else [made]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef  # type: ignore[assignment]

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        for target in node.targets:
            node.value = self._assigned(target, node.value, node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._assigned(node.target, node.value, node)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        node.value = self._assigned(node.target, node.value, node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        name = node.target.id
        value = self._assigned(node.target, ast.Name(name, ast.Load()), node)
        return [node, ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)]

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = _call("returned", ast.Constant(_names(node.value)), node.value, node)
        return node

    def _assigned(self, target: ast.expr, value: ast.expr, node: ast.AST) -> ast.expr:
        names = _names(target)
        if names is None or (isinstance(names, str) and names in self.in_loops):
            return value
        if isinstance(names, tuple):
            names = tuple(None if name in self.in_loops else name for name in names)
        return _call("assigned", ast.Constant(names), value, node)


def _names(node: ast.expr) -> Any:
    """A name, or a tuple of them; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Tuple | ast.List) and all(isinstance(item, ast.Name) for item in node.elts):
        return tuple(item.id for item in node.elts if isinstance(item, ast.Name))
    return None


def _call(method: str, names: ast.expr, value: ast.expr, node: ast.AST) -> ast.expr:
    """A call of the recorder that stands where `node` does."""
    made = ast.Call(ast.Attribute(ast.Name(RECORDER, ast.Load()), method, ast.Load()), [names, value], [])
    ast.copy_location(made, node)
    for part in (made.func, made.func.value, names):  # type: ignore[attr-defined]
        ast.copy_location(part, node)
    return made
