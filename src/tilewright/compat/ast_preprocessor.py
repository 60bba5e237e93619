"""`cutlass.base_dsl.ast_preprocessor`: the class whose visitors a library may replace to change functions first.

Visitors of `DSLPreprocessor`, such as `visit_If`, get the nodes of a decorated function before its control flow is
rewritten. A library that wants another meaning for a statement puts a function of its own in the place of one:

    original = DSLPreprocessor.visit_If
    DSLPreprocessor.visit_If = lambda self, node: original(self, changed(node))

The rewriting itself is `tilewright.lang.rewrite` and is not replaced.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.lang.rewrite import tree_hooks
from tilewright.lang.rewrite.rewriter import rewrite, text

_STATEMENTS = (
    "FunctionDef", "If", "IfExp", "For", "While", "With", "Assign", "AugAssign", "AnnAssign", "Return", "Raise",
    "Assert", "Call", "BoolOp", "UnaryOp", "Compare", "Name", "Attribute",
)  # fmt: skip


class DSLPreprocessor(ast.NodeTransformer):
    """Visits the tree of a function; as it is, it changes nothing."""

    def __init__(self, client_module_name: list[str] | None = None) -> None:
        self.client_module_name = client_module_name or []

    @contextmanager
    def get_session(self) -> Iterator[DSLPreprocessor]:
        """This object, as what transforms functions."""
        yield self

    def transform(self, function: Any, exec_globals: dict[str, Any] | None = None) -> ast.Module:
        """The tree of a function as it is traced: changed by the visitors, its control flow rewritten."""
        plain = getattr(function, "__wrapped__", function)
        return ast.parse(text(rewrite(plain) if isinstance(plain, FunctionType) else plain))


def _visitor(name: str) -> Callable[[DSLPreprocessor, ast.AST], ast.AST]:
    def visit(self: DSLPreprocessor, node: ast.AST) -> ast.AST:
        return self.generic_visit(node)

    visit.__name__ = visit.__qualname__ = name
    visit.__doc__ = f"What stands for a {name.removeprefix('visit_')}: itself, with its parts visited."
    return visit


_OWN = {f"visit_{name}": _visitor(f"visit_{name}") for name in _STATEMENTS}
for _name, _function in _OWN.items():
    setattr(DSLPreprocessor, _name, _function)
ASTRewriter = DSLPreprocessor


def _visited(tree: ast.FunctionDef) -> ast.AST:
    """The tree after the visitors, where a library has replaced any."""
    replaced = any(getattr(DSLPreprocessor, name) is not function for name, function in _OWN.items())
    added = any(name.startswith("visit_") and name not in _OWN for name in vars(DSLPreprocessor))
    return DSLPreprocessor().visit(tree) if replaced or added else tree


tree_hooks.add(_visited)

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
