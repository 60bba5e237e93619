"""Names of a function: what statements bind, what they read, private names of classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.lang.rewrite import scopes
from tilewright.lang.rewrite.scopes import arguments

__all__ = [
    "FUNCTIONS", "SCOPES", "Summary", "arguments", "bound", "dotted", "mangle", "parameters", "summary", "summary_of",
]  # fmt: skip

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def parameters(names: Iterable[str]) -> ast.arguments:
    """A parameter list of plain names."""
    return ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=name) for name in names],
        vararg=None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )


@dataclass
class Summary:
    """What one piece of a function does with names; nested functions count by what they capture.

    `bound` are names assigned or deleted, `reads` names read, `captured` names that nested functions and classes use at
    any later time, `attributes` and `containers` the dotted names of
    attributes (`a.b` of `a.b = v`) and of containers (`a` of `a[i] = v`) that it assigns. `leaves_loop` says that a
    `break` or `continue` of it belongs to a loop around it.
    """

    bound: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    global_: ast.Global | None = None
    returns: bool = False
    leaves_loop: bool = False
    suspends: bool = False
    walrus: bool = False

    def add(self, other: Summary) -> None:
        self.bound |= other.bound
        self.reads |= other.reads
        self.captured |= other.captured
        self.attributes |= other.attributes
        self.containers |= other.containers
        self.nonlocals |= other.nonlocals
        self.global_ = self.global_ or other.global_
        self.returns |= other.returns
        self.leaves_loop |= other.leaves_loop
        self.suspends |= other.suspends
        self.walrus |= other.walrus


def summary(node: ast.AST) -> Summary:
    """The summary of a node, computed once: ask before the node is rewritten."""
    found: Summary | None = getattr(node, "_tilewright_summary", None)
    if found is None:
        found = Summary()
        _collect(node, found)
        node._tilewright_summary = found  # type: ignore[attr-defined]
    return found


def summary_of(nodes: Iterable[ast.AST]) -> Summary:
    """The summary of several nodes together."""
    found = Summary()
    for node in nodes:
        found.add(summary(node))
    return found


def _collect(node: ast.AST, into: Summary) -> None:
    if isinstance(node, ast.Name):
        (into.reads if isinstance(node.ctx, ast.Load) else into.bound).add(node.id)
        into.bound.discard("_")
        return
    if isinstance(node, ast.Constant):
        return
    if isinstance(node, SCOPES):
        _collect_scope(node, into)
    elif isinstance(node, scopes.COMPREHENSIONS):
        _collect_comprehension(node, into)
    else:
        _collect_plain(node, into)


def _collect_plain(node: ast.AST, into: Summary) -> None:
    _note(node, into)
    is_loop = isinstance(node, _LOOPS)
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.stmt):
                inner = summary(child)
                exits = into.leaves_loop or (inner.leaves_loop and not (is_loop and name == "body"))
                into.add(inner)
                into.leaves_loop = exits
            elif isinstance(child, ast.AST):
                _collect(child, into)


def _note(node: ast.AST, into: Summary) -> None:
    """What this node alone adds."""
    into.bound.update(scopes.names_of(node))
    match node:
        case ast.Attribute(ctx=ast.Store()):
            into.attributes |= {name for name in (dotted(node),) if name}
        case ast.Subscript(ctx=ast.Store()):
            into.containers |= {name for name in (dotted(node.value),) if name}
        case ast.NamedExpr():
            into.walrus = True
        case ast.Return():
            into.returns = True
        case ast.Break() | ast.Continue():
            into.leaves_loop = True
        case ast.Nonlocal(names=names):
            into.nonlocals |= set(names)
        case ast.Global():
            into.global_ = into.global_ or node
        case ast.Yield() | ast.YieldFrom() | ast.Await():
            into.suspends = True


def _collect_scope(node: ast.AST, into: Summary) -> None:
    """A nested function or class binds its name, and uses variables at any later time."""
    into.bound.update(scopes.names_of(node))
    for expression in scopes.outside(node):
        _collect(expression, into)
    into.captured |= scopes.free(node)


def _collect_comprehension(node: ast.AST, into: Summary) -> None:
    """A comprehension's variables are its own; what `:=` binds is the function's."""
    inner = Summary()
    _collect_plain(node, inner)
    inner.bound = scopes.bound_by_walrus(node)
    first = summary(node.generators[0].iter)  # type: ignore[attr-defined]
    inner.reads = first.reads | scopes.free(node)
    inner.captured &= first.captured | scopes.free(node)
    into.add(inner)


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these nodes bind or delete in their function."""
    return summary_of(nodes).bound


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of attributes of a name, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def mangle(tree: ast.FunctionDef, class_name: str | None) -> ast.FunctionDef:
    """Spell private names (`__x`) of a method as its class does; nested classes do it for themselves."""
    if class_name is not None and class_name.strip("_"):
        _Mangler(class_name.lstrip("_")).generic_visit(tree)
    return tree


class _Mangler(ast.NodeTransformer):
    def __init__(self, class_name: str) -> None:
        self.class_name = class_name

    def private(self, name: str) -> str:
        if not name.startswith("__") or name.endswith("__") or "." in name:
            return name
        return f"_{self.class_name}{name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.name = self.private(node.name)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.private(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self.private(node.attr)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.private(node.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.private(node.name)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        node.arg = None if node.arg is None else self.private(node.arg)
        return self.generic_visit(node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Nonlocal:
        node.names = [self.private(name) for name in node.names]
        return node
