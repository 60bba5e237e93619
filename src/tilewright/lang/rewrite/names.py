"""Names of a function: what statements bind, what they read, private names of classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def arguments(args: ast.arguments) -> Iterator[ast.arg]:
    """All parameters."""
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (arg for arg in (args.vararg, args.kwarg) if arg is not None)


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


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that belong to the same function: nested functions and classes are yielded but not entered.

    Their decorators, defaults and bases are evaluated here, so these are entered.
    """
    for node in nodes:
        yield node
        if isinstance(node, SCOPES):
            yield from own_nodes(_evaluated_outside(node))
        else:
            yield from own_nodes(ast.iter_child_nodes(node))


def _evaluated_outside(node: Scope) -> list[ast.expr]:
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
    return defaults if isinstance(node, ast.Lambda) else [*node.decorator_list, *defaults]


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these statements bind or delete in their function."""
    found: set[str] = set()
    for node in _without_comprehension_targets(nodes):
        found |= binds(node)
    found.discard("_")
    return found


def _without_comprehension_targets(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        if isinstance(node, COMPREHENSIONS):
            yield from (found for found in own_nodes([node]) if isinstance(found, ast.NamedExpr))
            continue
        yield node
        children = _evaluated_outside(node) if isinstance(node, SCOPES) else ast.iter_child_nodes(node)
        yield from _without_comprehension_targets(children)


def binds(node: ast.AST) -> set[str]:
    """The names that this node alone binds or deletes."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.NamedExpr(target=ast.Name(id=name)):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(alias.asname or alias.name).split(".")[0] for alias in aliases}
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}
        case ast.MatchMapping(rest=str(name)):
            return {name}
    return set()


def reads(nodes: Iterable[ast.AST]) -> set[str]:
    """The names read by these nodes in their own function; a comprehension's own variables may be among them."""
    return {node.id for node in own_nodes(nodes) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def captured(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that nested functions and classes read; these may run at any later time."""
    found: set[str] = set()
    for node in own_nodes(nodes):
        if isinstance(node, SCOPES):
            found |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            found |= {name for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal) for name in inner.names}
    return found


def places(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Attributes (`a.b.c`) and containers (`a.b` of `a.b[i]`) that these statements assign, by dotted name."""
    attributes: set[str] = set()
    containers: set[str] = set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            attributes.add(dotted(node) or "")
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            containers.add(dotted(node.value) or "")
    return attributes - {""}, containers - {""}


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of attributes of a name, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def has_return(nodes: Iterable[ast.AST]) -> bool:
    """True when a `return` of this function is among the statements."""
    return any(isinstance(node, ast.Return) for node in own_nodes(nodes))


def has_loop_exit(nodes: Iterable[ast.AST]) -> bool:
    """True when a `break` or `continue` leaves these statements for a loop around them."""
    for node in nodes:
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if isinstance(node, SCOPES):
            continue
        inner = node.orelse if isinstance(node, LOOPS) else list(ast.iter_child_nodes(node))
        if has_loop_exit(inner):
            return True
    return False


def suspends(nodes: Iterable[ast.AST]) -> bool:
    """True when these nodes contain `yield` or `await` of this function."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in own_nodes(nodes))


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
