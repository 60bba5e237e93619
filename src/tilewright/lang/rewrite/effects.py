"""What one expression, pattern or plain statement does to variables: reads before it binds, and sure bindings.

In the order of evaluation, so that a name that `:=`, a pattern or a comprehension binds first is not read from before.
What may be skipped (the second operand of `and`, an arm of `x if c else y`) binds nothing for sure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from tilewright.lang.rewrite import names, scopes

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class Effect:
    """`reads` are names whose earlier value is read, `kills` those that are certainly bound or deleted."""

    reads: Names = NONE
    kills: Names = NONE

    def then(self, other: Effect) -> Effect:
        """This, and after it `other`."""
        return Effect(self.reads | (other.reads - self.kills), self.kills | other.kills)

    def perhaps(self) -> Effect:
        """This, or nothing."""
        return Effect(self.reads)

    def or_else(self, other: Effect) -> Effect:
        """Either of both."""
        return Effect(self.reads | other.reads, self.kills & other.kills)

    def before(self, live: Names) -> Names:
        """The names live before it, from those live after."""
        return self.reads | (live - self.kills)


NOTHING = Effect()


def effect(node: ast.AST | None) -> Effect:
    """The effect of an expression, a pattern or a statement without a body, computed once: ask before a rewrite."""
    if node is None or isinstance(node, ast.Constant):
        return NOTHING
    found: Effect | None = getattr(node, "_tilewright_effect", None)
    if found is None:
        found = node._tilewright_effect = _effect(node)  # type: ignore[attr-defined]
    return found


def in_order(nodes: Iterable[ast.AST | None]) -> Effect:
    """The effect of one node after the other."""
    return reduce(Effect.then, map(effect, nodes), NOTHING)


def _effect(node: ast.AST) -> Effect:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return Effect(reads=frozenset({name}))
        case ast.Name(id=name):
            return Effect(kills=frozenset({name}))
        case ast.BoolOp(values=[first, *rest]):
            return effect(first).then(_skippable(rest))
        case ast.Compare(left=left, comparators=[first, *rest]):
            return in_order([left, first]).then(_skippable(rest))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return effect(test).then(effect(body).or_else(effect(orelse)))
        case ast.Lambda():  # what it captures is live everywhere
            return in_order(scopes.outside(node))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _comprehension(node)
        case ast.pattern():
            values = [child for child in ast.walk(node) if isinstance(child, ast.expr)]
            return Effect(in_order(values).reads, frozenset(names.summary(node).bound))
    return _statement(node)


def _statement(node: ast.AST) -> Effect:
    match node:
        case ast.Assign(targets=targets, value=value):
            return in_order([value, *targets])
        case ast.AugAssign(target=target, value=value):
            return Effect(frozenset(names.bound([target]))).then(in_order([target, value])).then(effect(target))
        case ast.AnnAssign(target=target, value=value):
            return NOTHING if value is None else in_order([value, target])
        case ast.NamedExpr(target=target, value=value):
            return in_order([value, target])
        case ast.Assert(test=test, msg=msg):
            return effect(test).then(effect(msg).perhaps())
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return in_order(scopes.outside(node)).then(Effect(kills=frozenset({node.name})))
        case ast.Import() | ast.ImportFrom():
            return Effect(kills=frozenset(names.summary(node).bound))
    return in_order(ast.iter_child_nodes(node))


def _skippable(nodes: list[ast.expr]) -> Effect:
    """Each of `nodes` is evaluated only if those before it are."""
    return reduce(lambda rest, node: effect(node).then(rest).perhaps(), reversed(nodes), NOTHING)


def _comprehension(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Effect:
    """The first iterable is evaluated outside; the rest perhaps, with variables of its own."""
    results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    inner: list[ast.expr] = []
    for number, generator in enumerate(node.generators):
        inner += [*([generator.iter] if number else []), generator.target, *generator.ifs]
    own = frozenset(names.bound(generator.target for generator in node.generators))
    inside = Effect(in_order([*inner, *results]).reads - own)
    return effect(node.generators[0].iter).then(inside)
