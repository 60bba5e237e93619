"""Random mistakes in correct programs: names, arguments, operators, types, indices and statements changed."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

from tests.lang.fuzz.generator import Generator
from tests.lang.fuzz.harness import LAUNCH, SIGNATURE
from tests.lang.fuzz.wide import WideGenerator

WRONG = [
    "None", "'text'", "2.5", "-1", "99999999999", "()", "(1, 2)", "[1]", "{}", "t", "ints", "floats", "cute", "len",
    "Float32", "Int8", "lambda: 1", "1 + 2j", "b'x'", "g_Int8.shape", "g_Int8[t, None]", "...",
]  # fmt: skip
STATEMENTS = [
    "break", "continue", "return 1", "yield 1", "global t", "del t", "raise", "assert t", "import nothing", "t: int",
    "with t:\n    pass", "try:\n    t = 1\nfinally:\n    pass", "class A:\n    pass", "t = t = 2", "a, b = t",
    "t.x = 1", "a, *b = 1, 2, 3", "print(t, sep=3)", "await t", "t[0] = 1", "nonlocal t", "for q in t:\n    pass",
    "while t:\n    t = None", "[t for t in ints]", "x = yield", "match t:\n    case 1:\n        pass", "exec('t')",
    "int.x = 1", "ints = 5", "min(t)", "range(1)", "t @= t",
]  # fmt: skip


@dataclass(frozen=True)
class Mistake:
    """A program with one change. `exact`: an error must name this line (0 where several are right)."""

    text: str
    line: int
    kind: str
    exact: bool


WIDE_FROM = 100_000  # seeds of programs with more of the language


def mistake(seed: int) -> Mistake:
    """A random program with a random change."""
    r = random.Random(seed)
    kind = WideGenerator if seed >= WIDE_FROM else Generator
    text = kind(r.randrange(1 << 30), 0, 6, whiles=False).program() + LAUNCH % f"    program_0({SIGNATURE})\n"
    return changed(text, r)


def changed(text: str, r: random.Random) -> Mistake:
    """The text with a random change."""
    tree = ast.parse(text)
    node = None
    while node is None:
        kind = r.choice(list(KINDS))
        node = KINDS[kind](tree, r)
    return Mistake(ast.unparse(tree), _line_of_mark(tree, node), kind, kind in EXACT)


def _line_of_mark(tree: ast.Module, node: ast.AST) -> int:
    """The line of `node` in the unparsed text: the statement before which `ast.unparse` has written as much."""
    fresh = ast.parse(ast.unparse(tree))
    pairs = zip(ast.walk(tree), ast.walk(fresh), strict=False)
    return next((getattr(new, "lineno", 0) for old, new in pairs if old is node), 0)


def _nodes(tree: ast.Module, kind: type[ast.AST]) -> list[ast.AST]:
    """Nodes of a kind in the bodies of the functions, decorators and parameters aside."""
    functions = [item for item in tree.body if isinstance(item, ast.FunctionDef)]
    return [
        node for function in functions for item in function.body for node in ast.walk(item) if isinstance(node, kind)
    ]


def _unknown_name(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = [node for node in _nodes(tree, ast.Name) if isinstance(node.ctx, ast.Load)]
    node = r.choice(found)
    node.id += "_"
    return node


def _other_name(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = _nodes(tree, ast.Name)
    node, other = r.choice(found), r.choice(found)
    node.id = other.id
    return node


def _attribute(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = _nodes(tree, ast.Attribute)
    node = r.choice(found)
    node.attr = r.choice([node.attr + "_", "load", "shape", "size", "thread_idx", "launch", "iterator"])
    return node


def _fewer_arguments(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = [node for node in _nodes(tree, ast.Call) if node.args]
    node = r.choice(found)
    node.args.pop(r.randrange(len(node.args)))
    return node


def _more_arguments(tree: ast.Module, r: random.Random) -> ast.AST | None:
    node = r.choice(_nodes(tree, ast.Call))
    if r.random() < 0.5:
        node.args.append(_wrong(r))
    else:
        node.keywords.append(ast.keyword(r.choice(["x", "value", "dtype", "loc"]), _wrong(r)))
    return node


def _swapped_arguments(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = [node for node in _nodes(tree, ast.Call) if len(node.args) > 1]
    if not found:
        return None
    node = r.choice(found)
    r.shuffle(node.args)
    return node


def _wrong(r: random.Random) -> ast.expr:
    return ast.parse(r.choice(WRONG), mode="eval").body


def _wrong_argument(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = [node for node in _nodes(tree, ast.Call) if node.args]
    node = r.choice(found)
    node.args[r.randrange(len(node.args))] = _wrong(r)
    return node


def _wrong_operand(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = _nodes(tree, ast.BinOp)
    if not found:
        return None
    node = r.choice(found)
    setattr(node, r.choice(["left", "right"]), _wrong(r))
    return node


def _operator(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = _nodes(tree, ast.BinOp)
    if not found:
        return None
    node = r.choice(found)
    node.op = r.choice([ast.MatMult(), ast.Pow(), ast.LShift(), ast.BitOr(), ast.Div(), ast.FloorDiv(), ast.Mod()])
    return node


def _index(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = _nodes(tree, ast.Subscript)
    if not found:
        return None
    node = r.choice(found)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    change = r.choice(["more", "fewer", "wrong", "nested"])
    if change == "more":
        parts = [*parts, _wrong(r)]
    elif change == "fewer" and len(parts) > 1:
        parts = parts[:-1]
    elif change == "nested":
        parts = [ast.Tuple(list(parts), ast.Load()), *parts[1:]]
    else:
        parts = [_wrong(r), *parts[1:]]
    node.slice = parts[0] if len(parts) == 1 else ast.Tuple(list(parts), ast.Load())
    return node


def _wrong_value(tree: ast.Module, r: random.Random) -> ast.AST | None:
    node = r.choice(_nodes(tree, (ast.Assign, ast.AugAssign, ast.Return)))  # type: ignore[arg-type]
    node.value = _wrong(r)
    return node


def _test(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = _nodes(tree, (ast.If, ast.While, ast.IfExp))  # type: ignore[arg-type]
    if not found:
        return None
    node = r.choice(found)
    if isinstance(node, ast.While):
        node.test = ast.BoolOp(ast.And(), [node.test, _wrong(r)])
    else:
        node.test = _wrong(r)
    return node


def _bodies(tree: ast.Module) -> list[ast.AST]:
    """What holds statements, in the program and its helpers (plain Python runs no launch)."""
    functions = [item for item in tree.body if getattr(item, "name", "launch") not in ("kernel", "launch")]
    return [
        node for item in functions for node in ast.walk(item) if isinstance(node, (ast.FunctionDef, ast.If, ast.For))
    ]


def _lost_statement(tree: ast.Module, r: random.Random) -> ast.AST | None:
    found = [item for item in _bodies(tree) if len(item.body) > 1]
    if not found:
        return None
    node = r.choice(found)
    node.body.pop(r.randrange(len(node.body)))
    return node


def _new_statement(tree: ast.Module, r: random.Random) -> ast.AST | None:
    node = r.choice(_bodies(tree))
    text = r.choice(STATEMENTS)
    place = r.randrange(len(node.body) + 1)
    statement = ast.parse(text).body[0]
    node.body.insert(place, statement)
    return statement


KINDS = {
    "unknown name": _unknown_name, "other name": _other_name, "attribute": _attribute, "index": _index, "test": _test,
    "fewer arguments": _fewer_arguments, "more arguments": _more_arguments, "swapped arguments": _swapped_arguments,
    "wrong argument": _wrong_argument, "wrong operand": _wrong_operand, "operator": _operator,
    "wrong value": _wrong_value, "lost statement": _lost_statement, "new statement": _new_statement,
}  # fmt: skip
EXACT = {"unknown name"}
