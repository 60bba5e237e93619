"""Scopes inside a function: which of its variables a nested function, lambda, class or comprehension uses.

Python's rules: what a scope binds is its own, unless it says `nonlocal` or `global`. The names of a class body are not
seen by its methods. A comprehension evaluates its first iterable outside, and `:=` in it binds outside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def free(node: ast.AST) -> frozenset[str]:
    """The names that the scope of `node` takes from the scopes around it, computed once: ask before a rewrite."""
    found: frozenset[str] | None = getattr(node, "_tilewright_free", None)
    if found is None:
        found = node._tilewright_free = _free(node)  # type: ignore[attr-defined]
    return found


def arguments(args: ast.arguments) -> Iterator[ast.arg]:
    """All parameters."""
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (arg for arg in (args.vararg, args.kwarg) if arg is not None)


def outside(node: ast.AST) -> list[ast.expr]:
    """What a definition or lambda evaluates in the scope around it: decorators, defaults, annotations, bases."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    assert isinstance(node, Function)
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    annotations = [arg.annotation for arg in arguments(node.args) if arg.annotation is not None]
    if isinstance(node, ast.Lambda):
        return defaults
    return [*node.decorator_list, *defaults, *annotations, *([node.returns] if node.returns else [])]


def names_of(node: ast.AST) -> list[str]:
    """The names that this node binds by itself, other than as an `ast.Name`."""
    match node:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [(alias.asname or alias.name).split(".")[0] for alias in aliases]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return [node.name] if isinstance(node, _DEFINITIONS) else []


def bound_by_walrus(node: ast.AST) -> set[str]:
    """What `:=` in a comprehension binds, which is a name of the function around."""
    inner = _Scope()
    inner.comprehension(node)
    return inner.outer


@dataclass
class _Scope:
    """The names of one scope. `inner` are those that scopes inside take from around them, `outer` what `:=` of a
    comprehension binds."""

    used: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    is_comprehension: bool = False

    def visit(self, node: ast.AST) -> None:
        self.bound.update(names_of(node))
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self.used.add(name)
            case ast.Name(id=name):
                self.bound.add(name)
            case ast.Nonlocal(names=names):
                self.declared |= set(names)
            case ast.Global(names=names):
                self.globals |= set(names)
            case ast.NamedExpr(target=target, value=value) if self.is_comprehension:
                self.outer.add(target.id)
                self.visit(value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                self.visit_all(outside(node))
                self.inner |= free(node)
            case _ if isinstance(node, COMPREHENSIONS):
                self.visit(node.generators[0].iter)
                (self.outer if self.is_comprehension else self.bound).update(bound_by_walrus(node))
                self.inner |= free(node)
            case _:
                self.visit_all(ast.iter_child_nodes(node))

    def visit_all(self, nodes: Iterator[ast.AST] | list[ast.expr] | list[ast.stmt]) -> None:
        for node in nodes:
            self.visit(node)

    def comprehension(self, node: ast.AST) -> None:
        """All of a comprehension but its first iterable."""
        self.is_comprehension = True
        first, *rest = node.generators  # type: ignore[attr-defined]
        self.visit_all([first.target, *first.ifs])
        self.visit_all(rest)
        self.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])  # type: ignore[attr-defined]


def _free(node: ast.AST) -> frozenset[str]:
    scope = _Scope()
    if isinstance(node, COMPREHENSIONS):
        scope.comprehension(node)
        return frozenset((scope.used | scope.inner | scope.outer) - scope.bound)
    if isinstance(node, ast.Lambda):
        scope.visit(node.body)
    elif isinstance(node, _DEFINITIONS):
        scope.visit_all(node.body)
    if isinstance(node, ast.ClassDef):
        own = scope.bound - scope.declared
        return frozenset((scope.used - own - scope.globals) | scope.declared | (scope.inner - {"__class__"}))
    assert isinstance(node, Function)
    scope.bound |= {argument.arg for argument in arguments(node.args)}
    own = scope.bound - scope.declared
    return frozenset(((scope.used | scope.inner) - own - scope.globals) | scope.declared)
