"""Statements: every `if`, `for`, `while` and `with` becomes a call of the control runtime.

The body of a construct becomes a nested function that shares the variables of the function around it (`nonlocal`).
Nothing is written twice: the runtime decides, when the program is traced, whether a body is run as Python or is
traced into a region. A `return`, `break` or `continue` inside a body becomes a signal that the body returns; the call
site hands it on, and the runtime refuses it where the way out crosses a region of run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.lang.locations import REGION_PREFIX
from tilewright.lang.rewrite import liveness, names
from tilewright.lang.rewrite.expressions import ExpressionRewriter
from tilewright.lang.rewrite.syntax import (
    ITEM,
    REGION,
    SIGNAL,
    at,
    body_function,
    call,
    constants,
    load,
    never_run,
    store,
)


class FunctionRewriter:
    """Rewrites one function; nested functions get rewriters of their own."""

    def __init__(self, file: str, name: str, first_parameter: str = "", host: frozenset[str] = frozenset()) -> None:
        self.file = file
        self.name = name
        self.first_parameter = first_parameter
        self.host = host  # variables of Python code around the program
        self.inner_host = host
        self.count = 0
        self.depth = 0  # of bodies around the statement being rewritten
        self.shared: set[str] = set()  # variables that bodies assign
        self.declared: set[str] = set()  # `nonlocal` names of the function itself
        self.liveness = liveness.Liveness()
        self.expressions = ExpressionRewriter(self)

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite `node` in place."""
        whole = names.summary_of(node.body)
        self._check(whole)
        if whole.suspends:
            node.body = [self.expressions.visit(statement) for statement in node.body]
            return node
        self.liveness = liveness.analyse(node)
        parameters = {argument.arg for argument in names.arguments(node.args)}
        self.inner_host = self.host - (whole.bound - whole.nonlocals) - parameters
        self.declared = whole.nonlocals
        body = list(node.body)
        docstring = [body.pop(0)] if ast.get_docstring(node, clean=False) is not None else []
        rewritten = self.block(body)
        local = self.shared - parameters - self.declared
        head = [at(never_run(local), node)] if local else []
        declared = [at(ast.Nonlocal(sorted(self.declared)), node)] if self.declared else []
        node.body = [*docstring, *declared, *head, *rewritten] or [at(ast.Pass(), node)]
        return node

    def nested(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a function inside this one."""
        first = next(iter((*node.args.posonlyargs, *node.args.args)), None)
        return FunctionRewriter(self.file, node.name, first.arg if first else "", self.inner_host).function(node)

    def nested_lambda(self) -> FunctionRewriter:
        return FunctionRewriter(self.file, "<lambda>", host=self.inner_host)

    def _check(self, whole: names.Summary) -> None:
        if whole.global_ is not None:
            node = whole.global_
            raise CompileError(
                f"`global {', '.join(node.names)}` in a compiled function",
                location=SourceLocation(self.file, node.lineno, node.col_offset, node.end_col_offset or 0, self.name),
                hint="return the value, or pass it as an argument",
            )

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The rewritten statements."""
        return [new for statement in statements for new in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.If():
                return self._if(node)
            case ast.For():
                return self._for(node)
            case ast.While():
                return self._while(node)
            case ast.With():
                return self._with(node)
            case ast.Return() | ast.Break() | ast.Continue() | ast.Raise() if self.depth:
                return self._exit(node)
            case ast.Nonlocal():
                return [at(ast.Pass(), node)]
            case ast.Assert():
                node.test = at(call("static_test", self._value(node.test), ast.Constant("assert")), node.test)
                node.msg = node.msg and self._value(node.msg)
                return [node]
            case ast.AnnAssign():
                return self._annotated(node)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                return self._match(node)
        return [self.expressions.visit(node)]

    def _value(self, node: ast.expr) -> ast.expr:
        value: ast.expr = self.expressions.visit(node)
        return value

    def _annotated(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is None:
            if isinstance(node.target, ast.Name):
                self.shared.add(node.target.id)
            return [at(ast.Pass(), node)]
        return [at(ast.Assign([self._value(node.target)], self._value(node.value)), node)]

    def _try(self, node: ast.Try | ast.TryStar) -> list[ast.stmt]:
        node.body = self.block(node.body)
        for handler in node.handlers:
            handler.type = handler.type and self._value(handler.type)
            handler.body = self.block(handler.body)
        node.orelse = self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        return [node]

    def _match(self, node: ast.Match) -> list[ast.stmt]:
        node.subject = self._value(node.subject)
        for case in node.cases:
            case.guard = case.guard and self._value(case.guard)
            case.body = self.block(case.body)
        return [node]

    def _exit(self, node: ast.stmt) -> list[ast.stmt]:
        """An early way out of a body."""
        match node:
            case ast.Return(value=value):
                result = ast.Constant(None) if value is None else self._value(value)
                return [at(ast.Return(call("return_", load(REGION), result)), node)]
            case ast.Raise():
                check = at(ast.Expr(call("raise_", load(REGION))), node)
                return [check, self.expressions.visit(node)]
        name = "break_" if isinstance(node, ast.Break) else "continue_"
        return [at(ast.Return(call(name, load(REGION))), node)]

    def _body(
        self, kind: str, place: ast.stmt, statements: list[ast.stmt], parameters: tuple[str, ...] = ()
    ) -> tuple[ast.stmt, ast.expr]:
        """The function that holds `statements`, and a reference to it."""
        self.count += 1
        name = f"{REGION_PREFIX}{kind}_{self.count}__"
        assigned = names.bound(statements)
        self.shared |= assigned
        self.depth += 1
        body = self.block(statements)
        self.depth -= 1
        return at(body_function(name, parameters, assigned, body), place), load(name)

    def _region(self) -> ast.expr:
        """The region around, or at the top of a function the names of host variables."""
        return load(REGION) if self.depth else constants(sorted(self.host))

    def _carried(self, node: ast.stmt, parts: Iterable[ast.AST]) -> tuple[ast.expr, ast.expr]:
        """The variables that the construct hands on, and those it assigns that nobody reads again."""
        carried, dead = self.liveness.carried(node, names.bound(parts))
        return constants(carried), constants(dead)

    def _changed(self, parts: Iterable[ast.AST]) -> tuple[ast.expr, ast.expr]:
        """Attributes and containers that the construct assigns, by dotted name."""
        found = names.summary_of(parts)
        return constants(sorted(found.attributes)), constants(sorted(found.containers))

    def _finish(self, functions: list[ast.stmt], run: ast.Call, place: ast.AST, exits: bool) -> list[ast.stmt]:
        """`functions`, then the call that runs the construct; its signal is handed on where there can be one."""
        if not exits:
            return [*functions, at(ast.Expr(run), place)]
        raised = ast.Compare(load(SIGNAL), [ast.IsNot()], [ast.Constant(None)])
        return [
            *functions,
            at(ast.Assign([store(SIGNAL)], run), place),
            at(ast.If(raised, [ast.Return(self._leave())], []), place),
        ]

    def _if(self, node: ast.If) -> list[ast.stmt]:
        carried = self._carried(node, [*node.body, *node.orelse])
        exits = self._exits([*node.body, *node.orelse])
        test = self._value(node.test)
        then, then_name = self._body("if", node, node.body)
        functions, else_name = [then], ast.Constant(None)
        if node.orelse:
            otherwise, else_name = self._body("else", node.orelse[0], node.orelse)  # type: ignore[assignment]
            functions.append(otherwise)
        run = call("if_", self._region(), test, then_name, else_name, *carried)
        return self._finish(functions, run, node.test, exits)

    def _exits(self, statements: list[ast.stmt]) -> bool:
        found = names.summary_of(statements)
        return found.returns or found.leaves_loop

    def _while(self, node: ast.While) -> list[ast.stmt]:
        carried = self._carried(node, [node.test, *node.body])
        exits = names.summary_of(node.body).returns
        test = at(ast.Return(node.test), node.test)
        changed = self._changed([node.test, *node.body])
        test_function, test_name = self._test(node, test)
        body, body_name = self._body("while", node, node.body)
        run = call("while_", self._region(), test_name, body_name, *carried, *changed)
        return self._loop(node, [test_function, body], run, node.test, exits)

    def _test(self, node: ast.While, test: ast.Return) -> tuple[ast.stmt, ast.expr]:
        self.count += 1
        name = f"{REGION_PREFIX}test_{self.count}__"
        assigned = names.bound([test])
        self.shared |= assigned
        statement = ast.copy_location(ast.Return(self._value(test.value or ast.Constant(True))), test)
        return at(body_function(name, (), assigned, [statement]), node), load(name)

    def _for(self, node: ast.For) -> list[ast.stmt]:
        carried = self._carried(node, [node.target, *node.body])
        target = constants(sorted(names.bound([node.target])))
        changed = self._changed([node.target, *node.body])
        exits = names.summary_of(node.body).returns
        iterable = self._iterable(node.iter)
        first = at(ast.Assign([node.target], load(ITEM)), node.target)
        body, body_name = self._body("for", node, [first, *node.body], (ITEM,))
        run = call("for_", self._region(), iterable, body_name, *carried, target, *changed)
        return self._loop(node, [body], run, node.iter, exits)

    def _iterable(self, node: ast.expr) -> ast.expr:
        """`range(...)` right in the head of a loop is the loop of the language."""
        node = self._value(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            node.func = at(call("range", node.func), node.func)
        return node

    def _loop(
        self, node: ast.For | ast.While, functions: list[ast.stmt], run: ast.Call, place: ast.AST, exits: bool
    ) -> list[ast.stmt]:
        """A loop hands on `return` alone; its signal also says whether `break` skips the `else` clause."""
        if not exits and not node.orelse:
            return [*functions, at(ast.Expr(run), place)]
        statements = [*functions, at(ast.Assign([store(SIGNAL)], run), place)]
        if exits:
            is_return = call("is_return", load(SIGNAL))
            statements.append(at(ast.If(is_return, [ast.Return(self._leave())], []), place))
        if node.orelse:
            finished = ast.Compare(load(SIGNAL), [ast.Is()], [ast.Constant(None)])
            statements.append(at(ast.If(finished, [at(ast.Pass(), place)], []), place))
            statements[-1].body = self.block(node.orelse)  # type: ignore[attr-defined]
        return statements

    def _leave(self) -> ast.expr:
        """What a construct that left early makes its function return."""
        return load(SIGNAL) if self.depth else ast.Attribute(load(SIGNAL), "value", ast.Load())

    def _with(self, node: ast.With) -> list[ast.stmt]:
        if len(node.items) > 1:
            inner = at(ast.With(node.items[1:], node.body), node)
            self.liveness.after[inner] = self.liveness.after[node]
            outer = at(ast.With(node.items[:1], [inner]), node)
            self.liveness.after[outer] = self.liveness.after[node]
            return self._with(outer)
        item = node.items[0]
        carried = self._carried(node, [item, *node.body])
        exits = self._exits(node.body)
        manager = self._value(item.context_expr)
        head = [at(ast.Assign([item.optional_vars], load(ITEM)), node)] if item.optional_vars else []
        body, body_name = self._body("with", node, [*head, *node.body], (ITEM,))
        run = call("with_", self._region(), manager, body_name, *carried)
        return self._finish([body], run, item.context_expr, exits)
