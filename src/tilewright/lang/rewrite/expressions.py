"""Expressions: ternaries, `and`/`or`/`not`, chained comparisons, `in`, and built-in functions on runtime values."""

from __future__ import annotations

import ast
from typing import Protocol

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.lang.rewrite import names
from tilewright.lang.rewrite.syntax import at, call, constants, load, thunk

BUILTINS = frozenset(("min", "max", "abs", "any", "all", "bool", "int", "float"))
_COMPARISONS = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_CANNOT_FAULT = (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)


def is_simple(node: ast.expr) -> bool:
    """True for operands that may be computed whether they are needed or not: no effect, no fault."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=value):
            return is_simple(value)
        case ast.UnaryOp(operand=operand):
            return is_simple(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return isinstance(op, _CANNOT_FAULT) and is_simple(left) and is_simple(right)
        case ast.Compare(left=left, comparators=comparators):
            return is_simple(left) and all(is_simple(item) for item in comparators)
    return False


class Function(Protocol):
    """The function that expressions stand in: where it is, what it sees, and how functions inside it are rewritten."""

    file: str
    name: str
    first_parameter: str
    host: frozenset[str]
    depth: int

    def nested(self, node: ast.FunctionDef) -> ast.FunctionDef: ...

    def nested_lambda(self) -> Function: ...


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites the expressions of one function in place."""

    def __init__(self, owner: Function) -> None:
        self.owner = owner

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "_" and isinstance(node.ctx, ast.Load):
            raise CompileError(
                "`_` is read",
                location=self.place(node),
                hint="`_` takes values that nobody needs: give the value a name",
            )
        return node

    def host(self) -> ast.Constant:
        return constants(sorted(self.owner.host))

    def place(self, node: ast.expr) -> SourceLocation:
        last = node.end_col_offset or 0
        return SourceLocation(self.owner.file, node.lineno, node.col_offset, last, self.owner.name)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        stays = _must_stay(node.body, node.orelse)
        cheap = is_simple(node.body) and is_simple(node.orelse)
        self.generic_visit(node)
        if stays:
            node.test = at(call("static_test", node.test, ast.Constant("a conditional expression")), node.test)
            return node
        arms = (thunk(node.body), thunk(node.orelse))
        return at(call("ternary", self.host(), node.test, *arms, ast.Constant(cheap)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        first, *rest = node.values
        if _must_stay(*rest):
            return self.generic_visit(node)  # type: ignore[return-value]
        simple = tuple(is_simple(value) for value in rest)
        self.generic_visit(node)
        first, *rest = node.values
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return at(call(name, self.host(), constants(simple), first, *(thunk(value) for value in rest)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return at(call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            return self._single(node)
        if _must_stay(*node.comparators[1:]):
            return self.generic_visit(node)  # type: ignore[return-value]
        simple = tuple(is_simple(item) for item in node.comparators)
        self.generic_visit(node)
        operators = tuple(_COMPARISONS[type(op)] for op in node.ops)
        first, *rest = node.comparators
        tail = (thunk(item) for item in rest)
        return at(call("chain", self.host(), constants(simple), constants(operators), node.left, first, *tail), node)

    def _single(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ops[0], ast.Eq | ast.NotEq) and _is_sequence(node.left, node.comparators[0]):
            name = "equal" if isinstance(node.ops[0], ast.Eq) else "not_equal"
            return at(call(name, node.left, node.comparators[0]), node)
        if not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        name = "contains" if isinstance(node.ops[0], ast.In) else "contains_not"
        items = node.comparators[0]
        if isinstance(items, ast.Set):  # its items need no hash
            items = at(ast.Tuple(items.elts, ast.Load()), items)
        return at(call(name, node.left, items), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if not isinstance(function, ast.Name):
            return self.generic_visit(node)  # type: ignore[return-value]
        self._check_introspection(function.id, node)
        self.generic_visit(node)
        if function.id in BUILTINS:
            node.func = at(call("builtin", function), function)
        elif function.id == "super" and not node.args and self.owner.first_parameter:
            node.args = [at(load("__class__"), node), at(load(self.owner.first_parameter), node)]
        return node

    def _check_introspection(self, name: str, node: ast.Call) -> None:
        """Bodies are functions of their own: they cannot show the variables of the function around them."""
        reads_variables = (name in ("locals", "vars", "dir") and not node.args) or (
            name in ("eval", "exec") and len(node.args) == 1
        )
        if reads_variables and self.owner.depth:
            raise CompileError(
                f"`{name}` inside an `if`, loop or `with` of a compiled function",
                location=self.place(node),
                hint="name the variables, or call it before the statement",
            )

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = ExpressionRewriter(self.owner.nested_lambda()).visit(node.body)
        self._defaults(node.args)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        self._defaults(node.args)
        return self.owner.nested(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(item) if isinstance(item, ast.FunctionDef) else item for item in node.body]
        return node

    def _defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]


def _must_stay(*operands: ast.expr) -> bool:
    """True when an operand binds names or suspends, and so can't move into a function of its own."""
    found = names.summary_of(operands)
    return found.suspends or found.walrus


def _is_sequence(*operands: ast.expr) -> bool:
    return any(isinstance(operand, ast.Tuple | ast.List) for operand in operands)
