"""What users do to a function's tree before its control flow is rewritten: a list of functions from tree to tree."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation

Hook = Callable[[ast.FunctionDef], ast.AST]
_hooks: list[Hook] = []


def add(hook: Hook) -> None:
    """Call `hook` on the tree of every function that is rewritten from now on."""
    if hook not in _hooks:
        _hooks.append(hook)


def apply(tree: ast.FunctionDef, file: str) -> ast.FunctionDef:
    """The tree after all hooks.

    Raises:
        CompileError: a hook gave something other than the definition of a function.
    """
    for hook in _hooks:
        made = hook(tree)
        if not isinstance(made, ast.FunctionDef):
            raise CompileError(
                f"a hook made {type(made).__name__} of the function `{tree.name}`",
                location=SourceLocation(file, tree.lineno),
                hint="return the changed ast.FunctionDef",
            )
        tree = ast.fix_missing_locations(made)
    return tree
