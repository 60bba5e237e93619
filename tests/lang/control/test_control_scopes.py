"""Names of nested functions, lambdas, comprehensions and classes are their own, whatever loop stands around."""

from __future__ import annotations

import ast
import itertools
import linecache
import symtable
import sys
import textwrap
from typing import Any

import pytest

from tests.lang.control.harness import agrees, trace
from tilewright.base.errors import CompileError
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.rewrite import scopes

SMALL = list(itertools.product(range(-2, 4), repeat=2))

INNER = {  # each has a local `i` of its own, and gives `load`
    "def": """
def load(a):
    i = a + 1
    return i
""",
    "def with a loop": """
def load(a):
    for i in range_(2):
        for j in range_(2):
            a = a + i
    return a
""",
    "parameter": """
def load(i):
    return i + 2
""",
    "keyword parameter": """
def load(a, *, i=3):
    return a + i
""",
    "star parameters": """
def load(a, *i, **j):
    return a + len(i) + len(j)
""",
    "lambda": """
load = lambda i: i + 3
""",
    "lambda in a lambda": """
load = lambda a: (lambda i: i * 2)(a)
""",
    "comprehension": """
weights = [i * 2 for i in (1, 2)]
load = lambda a: a + weights[0] + weights[1]
""",
    "comprehension in a lambda": """
load = lambda a: sum([i * a for i in (1, 2)])
""",
    "nested comprehensions": """
load = lambda a: sum([i + j for j in (1, 2) for i in (j, a)])
""",
    "generator that is kept": """
kept = (i for i in (4, 5))
load = lambda a: a + 1
next(kept)
""",
    "class": """
class Box:
    i = 7
    j = i + 1
    def get(self, a):
        return a + self.i
load = Box().get
""",
    "def in a def": """
def load(a):
    def deeper(b):
        i = b * 2
        return i
    return deeper(a)
""",
    "nonlocal of another": """
def load(a):
    i = a
    def bump():
        nonlocal i
        i = i + 5
    bump()
    return i
""",
    "walrus in a def": """
def load(a):
    return (i := a + 1) + i
""",
    "walrus in a comprehension in a def": """
def load(a):
    found = [(i := k) for k in (1, 2)]
    return a + i + len(found)
""",
    "except as": """
def load(a):
    try:
        raise KeyError
    except KeyError as i:
        return a + len(i.args)
""",
    "with as": """
import contextlib
def load(a):
    with contextlib.nullcontext(4) as i:
        return a + i
""",
    "import": """
def load(a):
    import math as i
    return a + i.gcd(4, 6)
""",
    "match": """
def load(a):
    match (1, 2):
        case (i, *j):
            return a + i + len(j)
""",
}

LOOPS = {
    "no loop": """
if n > 1:
    i = load(n)
    out = out + i
""",
    "static": """
for s in range_(2):
    if s < n:
        i = load(s)
        out = out + i
""",
    "runtime": """
for s in range(n):
    if s < m:
        i = load(s)
        out = out + i
""",
    "while": """
s = Int32(0)
while s < n:
    if s < m:
        i = load(s)
        out = out + i
    s = s + 1
""",
    "static in static": """
for s in range_(2):
    for t in range_(2):
        if s + t < n:
            i = load(t)
            out = out + i
""",
    "static in runtime": """
for s in range(n):
    for t in range_(2):
        if s + t < m:
            for i in range_(3):
                out = out + load(i)
""",
    "both kinds of a type": """
for s in range_(2):
    if s < n:
        i = load(s)
        out = out + i
    if s > m:
        i = 1.5
        out = out + int(i)
""",
}


def range_(n: int) -> range:  # stands for `cutlass.range_constexpr`
    return range(n)


def made(text: str, name: str) -> Any:
    """The function `f` of a text that is kept as a file's would be."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"range_": range_, "Int32": Int32, "int": int}
    exec(compile(text, file, "exec"), names)
    return names["f"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_name_first_bound_under_a_runtime_if(loop):
    for inner, text in INNER.items():
        body = f"{text}\nout = n - n\n{LOOPS[loop]}\nreturn out"
        f = made(f"def f(n, m):\n{textwrap.indent(body, '    ')}\n", f"{inner}, {loop}")
        native_int = {"range_": range_, "Int32": int}
        python = dict(native_int)
        exec(f"def f(n, m):\n{textwrap.indent(body, '    ')}\n", python)
        agrees(f, SMALL, python=python["f"])


@pytest.mark.parametrize("inner", INNER)
def test_a_name_that_changes_its_type_where_nobody_reads_it(inner):
    """A local of the same name elsewhere keeps no variable alive."""
    body = f"{INNER[inner].strip()}\ni = 1\nout = load(n + i)\nif n > 1:\n    i = 2.5\nreturn out"
    trace(made(f"def f(n):\n{textwrap.indent(body, '    ')}\n", f"type, {inner}"))


@pytest.mark.parametrize(
    "use",
    ["def g():\n    return i + 1\nreturn g()", "g = lambda: i + 1\nreturn g()", "return sum([i + k for k in (1, 2)])",
     "class C:\n    k = i + 1\nreturn C.k", "class C:\n    def get(self):\n        return i + 1\nreturn C().get()",
     "def g(k=i + 1):\n    return k\nreturn g()", "def g():\n    return [i + k for k in (1, 2)]\nreturn sum(g())"],
)  # fmt: skip
def test_what_a_scope_takes_from_around_is_read(use):
    """Carried out of the `if` where both paths give it a value, and named in the error where one gives none."""
    tail = textwrap.indent(use, "    ")
    text = f"def f(n):\n    i = n\n    if n > 1:\n        i = n * 3\n{tail}\n"
    agrees(made(text, f"read, {use}"), [(n,) for n in range(-2, 5)])
    with pytest.raises(CompileError, match="`i` is used, but only one branch of a runtime `if` gives it a value"):
        trace(made(f"def f(n):\n    if n > 1:\n        i = n * 3\n{tail}\n", f"refused, {use}"))


def test_a_variable_of_one_path_takes_another_type():
    def f(n, m):
        out = n
        if n > 0:
            q = m
            out += q
        if m > 0:
            q = 2.5
            out += 1
        else:
            q = m > n
            out += 2
        return out

    agrees(f, SMALL)

    def g(n, m):
        if n > 0:
            q = m
        if m > 0:
            q = "m"
        else:
            q = m
        return q

    with pytest.raises(CompileError, match="the branches of a runtime `if` give it different types"):
        trace(g)


def test_a_generator_that_another_iterator_keeps():
    def f(n, m):
        scale = 2
        pairs = zip([x * scale for x in (1, 2)], (x * scale for x in (1, 2)), strict=True)
        if n > 0:
            scale = 5
        return sum([a * b for a, b in pairs])

    agrees(f, SMALL)


SCOPES = [
    *INNER.values(), "[a for a in b if c]", "{a: b for a, b in c}", "{(a := b) for b in c}", "lambda a=b: a + c",
    "def g(a: b, *c: i, **j: k) -> n: pass", "@a\ndef g(): return b", "class C(a, metaclass=b):\n    c = i\n    i = 1",
    "class C:\n    a = 1\n    def get(self): return a", "class C:\n    def get(self): return __class__, a",
    "def g():\n    def h():\n        nonlocal a\n        a = 1\n    a = b\n    h()", "lambda: [a for b in c]",
    "def g():\n    nonlocal a\n    a = b", "def g():\n    global a\n    a = b", "def g():\n    a.b = c\n    i[j] = 1",
    "class C:\n    nonlocal a\n    a = b", "def g():\n    del a\n    for b in c: pass",
    "def g():\n    import a.b, b as c",
    "def g():\n    class a:\n        b: c = i\n    return a, j", "def g():\n    [(a := b) for b in c]\n    return a",
    "[[a for a in b] for b in c]", "[lambda a: a + b + c for b in i]", "def g():\n    a += 1\n    (b, *c) = i",
    "async def g():\n    async with a as b:\n        async for c in i: yield c + j",
    "def g():\n    try: a\n    except b as c: pass\n    return c, i", "[a for b in c for a in b if (i := a)]",
]  # fmt: skip


@pytest.mark.parametrize("text", SCOPES)
def test_free_names_are_those_of_pythons_symbol_table(text):
    if sys.version_info >= (3, 12) and text.startswith(("[", "{")):
        pytest.skip("from Python 3.12 on, comprehensions are compiled into the function around them")
    names = ["a", "b", "c", "i", "j", "k", "n"]
    whole = f"def f({', '.join(names)}):\n" + textwrap.indent(text, "    ") + "\n"
    (function,) = symtable.symtable(whole, "<text>", "exec").get_children()
    inner = {name for child in function.get_children() for name in names_from_around(child)}
    module = compile(whole, "<text>", "exec")  # a class may have a name that its methods do not see
    inner |= {name for code in module.co_consts if hasattr(code, "co_cellvars") for name in code.co_cellvars}
    nodes = [node for node in ast.walk(ast.parse(whole).body[0]) if is_scope(node)][1:]
    outermost = [node for node in nodes if not any(node in list(ast.walk(other))[1:] for other in nodes)]
    assert outermost
    assert {name for node in outermost for name in scopes.free(node)} & set(names) == inner & set(names)


def is_scope(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *scopes.COMPREHENSIONS))


def names_from_around(table: symtable.SymbolTable) -> set[str]:
    """The names of a scope that Python looks up in the functions around it."""
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_free()}
