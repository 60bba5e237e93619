"""Making syntax nodes of the rewritten program: calls into the control runtime, bodies as functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, TypeVar

from tilewright.lang.locations import REGION_PREFIX
from tilewright.lang.rewrite import names

CONTROL = f"{REGION_PREFIX}control__"  # the runtime, a free variable of every rewritten function
REGION = f"{REGION_PREFIX}region__"  # first parameter of every body: the region in which it runs
SIGNAL = f"{REGION_PREFIX}signal__"
ITEM = f"{REGION_PREFIX}item__"

NodeT = TypeVar("NodeT", bound=ast.AST)


def load(name: str) -> ast.Name:
    """A read of a variable."""
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    """A variable as the target of an assignment."""
    return ast.Name(name, ast.Store())


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """`CONTROL.function(arguments)`."""
    return ast.Call(ast.Attribute(load(CONTROL), function, ast.Load()), list(arguments), [])


def constants(values: Iterable[Any]) -> ast.Constant:
    """A constant tuple."""
    return ast.Constant(tuple(values))  # type: ignore[arg-type]  # the stubs leave tuples out


def thunk(body: ast.expr) -> ast.Lambda:
    """`body` put off; its parameter marks it as part of the function around it."""
    return at(ast.Lambda(names.parameters((REGION,)), body), body)


def body_function(name: str, parameters: tuple[str, ...], assigned: Iterable[str], body: list[ast.stmt]) -> ast.stmt:
    """`def name(REGION, parameters): nonlocal assigned; body`."""
    shared = sorted(assigned)
    head: list[ast.stmt] = [ast.Nonlocal(shared)] if shared else []
    return function(name, names.parameters((REGION, *parameters)), [*head, *body] or [ast.Pass()])


def function(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """`def name(arguments): body`."""
    made = ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[], returns=None)
    made.type_params = []  # type: ignore[attr-defined]  # Python 3.12 asks for it
    return made


def never_run(assigned: Iterable[str]) -> ast.stmt:
    """Statements that make names local to a function and do nothing."""
    targets: list[ast.expr] = [store(name) for name in sorted(assigned)]
    return ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])


def at(node: NodeT, place: ast.AST) -> NodeT:
    """`node` and the new nodes in it at the position of `place`; what has a position keeps it."""
    ast.copy_location(node, place)
    _locate_children(node, node)
    return node


def _locate_children(node: ast.AST, place: ast.AST) -> None:
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if isinstance(value, list) else (value,):
            if not isinstance(child, ast.AST) or hasattr(child, "lineno"):
                continue
            if "lineno" in child._attributes:
                ast.copy_location(child, place)
            _locate_children(child, place)
