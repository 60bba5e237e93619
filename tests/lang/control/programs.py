"""Random programs of the language, each also a plain Python program with the same meaning.

Integers stay below 2^20 in size, so that no Int32 wraps; division is by constants other than zero.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

from tilewright.lang import control

RESULTS = "alias.count, tally.number, tally.calls, other.count, total"
INTS = ["a", "b", "c", "x", "y", "z"]
BOOLS = ["p", "q"]


class State:
    """Counter state of the DynamicExpression protocol, changed in place by `advance`."""

    def __init__(self, count: Any) -> None:
        self.count = count

    def advance(self, by: Any) -> None:
        self.count = (self.count + by) % 97

    def next(self, by: Any) -> State:
        return State((self.count * 2 + by) % 89)

    def __extract_mlir_values__(self) -> list[Any]:
        return [self.count.ir_value()]

    def __new_from_mlir_values__(self, values: list[Any]) -> State:
        return State(type(self.count).from_ir(values[0]))


class Tally:
    """A plain object that a method changes."""

    def __init__(self, number: Any) -> None:
        self.number = number
        self.calls = 0

    def bump(self, by: Any) -> None:
        self.number = (self.number - by) % 101
        self.calls += 1


class Generator:
    """Writes one program of bounded size from a seed."""

    def __init__(self, seed: int, budget: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.budget = budget
        self.static_loop = ""  # the variable of the loop of compile time around, with no runtime construct between
        self.static_path = True  # no runtime construct around

    def program(self) -> str:
        self.emit(0, "def program(a, b, c):")
        self.emit(1, f"x, y, z = {self.int_literal()}, a, b + {self.int_literal()}")
        self.emit(1, f"p, q = {self.random.choice(['True', 'a < b'])}, b > c")
        self.emit(1, "items = [a, 1, c]")
        self.emit(1, "pair = (x, y)")
        self.emit(1, "state = State(a + 0)")
        self.emit(1, "alias = state")
        self.emit(1, "tally, other, total = Tally(b), State(c), 0")
        self.emit(1, "def add(v):")
        self.emit(2, "nonlocal total")
        self.emit(2, "total = (total + v) % 61")
        self.emit(1, "def helper(u, v):")
        self.emit(2, "if u < v:")
        self.emit(3, "u = v - u")
        self.emit(2, "return u % 50 + z % 3")
        while self.budget > 0:
            self.statement(1, 3)
        self.emit(1, "return x, y, z, p, q, items[0], items[1], items[2], pair[0], pair[1], " + RESULTS)
        return "\n".join(self.lines) + "\n"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def int_literal(self) -> str:
        return str(self.random.randint(-9, 9))

    def integer(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0:
            return r.choice([*INTS, self.int_literal(), f"items[{r.randint(0, 2)}]", "pair[0]", "state.count"])
        e = lambda: self.integer(depth - 1)  # noqa: E731
        return r.choice(
            [
                lambda: self.integer(0),
                lambda: f"({e()} + {e()})",
                lambda: f"({e()} - {e()})",
                lambda: f"({e()} % 100 * {r.randint(-5, 5)})",
                lambda: f"({e()} // {r.choice([-7, -3, 2, 3, 8])})",
                lambda: f"({e()} % {r.choice([-7, -4, 2, 3, 8, 100])})",
                lambda: f"({e()} if {self.condition(depth - 1)} else {e()})",
                lambda: f"helper({e()}, {e()})",
                lambda: f"min({e()}, {e()})",
                lambda: f"max({e()}, {e()}, {self.int_literal()})",
                lambda: f"abs({e()})",
            ]
        )()

    def condition(self, depth: int = 2) -> str:
        r = self.random
        if depth <= 0:
            return r.choice(
                [*BOOLS, f"{self.integer(0)} {r.choice(['<', '<=', '==', '!=', '>', '>='])} {self.integer(0)}"]
            )
        c = lambda: self.condition(depth - 1)  # noqa: E731
        i = lambda: self.integer(depth - 1)  # noqa: E731
        return r.choice(
            [
                c,
                lambda: f"({c()} and {c()})",
                lambda: f"({c()} or {c()} or {c()})",
                lambda: f"(not {c()})",
                lambda: f"({i()} < {i()} <= {i()})",
                lambda: f"({i()} in (1, {i()}, 5))",
                lambda: f"({i()} > {i()})",
                lambda: f"({i()} != 0 and {i()} // 3 == {self.int_literal()})",
            ]
        )()

    def boolean(self) -> str:
        r = self.random
        return f"({self.integer(1)} {r.choice(['<', '==', '>='])} {self.integer(1)})"

    def statement(self, depth: int, nesting: int) -> None:
        self.budget -= 1
        r = self.random
        simple = [
            self.assign,
            self.assign,
            self.augment,
            self.assign_bool,
            self.assign_item,
            self.advance,
            self.pair,
            self.call,
        ]
        compound = [self.if_, self.if_, self.for_, self.while_, self.static_if, self.static_for, self.other_for]
        choices = simple if nesting == 0 or self.budget < 0 else [*simple, *compound, *compound]
        if self.static_loop and r.random() < 0.15:
            self.emit(depth, f"if {r.choice([f'{self.static_loop} == 1', f'{self.static_loop} > 2', 'False'])}:")
            self.emit(depth + 1, r.choice(["break", "continue"]))
            return
        r.choice(choices)(depth, nesting - 1)

    def block(self, depth: int, nesting: int, runtime: bool, static_loop: str = "") -> None:
        before = self.static_loop, self.static_path
        self.static_loop = static_loop or ("" if runtime else self.static_loop)
        self.static_path = self.static_path and not runtime
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, nesting)
        self.static_loop, self.static_path = before

    def assign(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"{self.random.choice(INTS)} = {self.integer()} % 1000")

    def augment(self, depth: int, nesting: int) -> None:
        name = self.random.choice(INTS)
        self.emit(depth, f"{name} {self.random.choice(['+=', '-='])} {self.integer(1)} % 100")
        self.emit(depth, f"{name} %= 1000")

    def assign_bool(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"{self.random.choice(BOOLS)} = {self.boolean()}")

    def assign_item(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"items[{self.random.randint(0, 2)}] = {self.integer(1)} % 500")

    def advance(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"{self.random.choice(['state', 'alias'])}.advance({self.integer(0)} % 10)")

    def call(self, depth: int, nesting: int) -> None:
        argument = f"{self.integer(1)} % 10"
        statements = [f"tally.bump({argument})", f"add({argument})", f"other = other.next({argument})"]
        self.emit(depth, self.random.choice(statements))

    def pair(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"pair = ({self.integer(1)} % 200, {self.random.choice(['pair[0]', 'pair[1]', 'x'])})")

    def if_(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.block(depth + 1, nesting, True)
        if self.random.random() < 0.4:
            self.emit(depth, f"elif {self.condition(1)}:")
            self.block(depth + 1, nesting, True)
        if self.random.random() < 0.6:
            self.emit(depth, "else:")
            self.block(depth + 1, nesting, True)

    def static_if(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"if const_expr({self.random.choice(['1 < 2', 'FLAG', 'not FLAG'])}):")
        self.block(depth + 1, nesting, False)
        if self.static_path and self.random.random() < 0.1:
            self.emit(depth + 1, "return x, y, z, p, q, items[0], items[1], items[2], pair[0], pair[1], " + RESULTS)
        self.emit(depth, "else:")
        self.block(depth + 1, nesting, False)

    def for_(self, depth: int, nesting: int) -> None:
        r = self.random
        self.loops += 1
        i = r.choice([f"i{self.loops}", f"i{self.loops}", "z"])
        bound = lambda: r.choice(["a % 5", "b % 4", "x % 6", str(r.randint(-3, 4)), "-(c % 5)"])  # noqa: E731
        step = r.choice(["1", "2", "-1", "-3", "3", "(a % 3 + 1)", "(b % 2 - 2)", "(1 if a < c else -2)"])
        arguments = r.choice([bound(), f"{bound()}, {bound()}", f"{bound()}, {bound()}, {step}"])
        self.emit(depth, f"for {i} in {r.choice(['range', 'drange'])}({arguments}):")
        self.emit(depth + 1, f"x = (x + {i} * {r.randint(1, 9)}) % 1000")
        self.block(depth + 1, nesting, True)

    def while_(self, depth: int, nesting: int) -> None:
        self.loops += 1
        n = f"n{self.loops}"
        self.emit(depth, f"{n} = a % {self.random.randint(2, 6)} + 0")
        test = self.random.choice(["", f" and {self.condition(1)}"])
        self.emit(depth, f"while {n} > 0{test}:")
        self.emit(depth + 1, f"{n} -= 1")
        self.block(depth + 1, nesting, True)

    def static_for(self, depth: int, nesting: int) -> None:
        self.loops += 1
        step = f"s{self.loops}"
        self.emit(depth, f"for {step} in range_constexpr({self.random.randint(0, 4)}):")
        self.emit(depth + 1, f"y = (y + {step} * {self.random.randint(1, 9)}) % 1000")
        self.block(depth + 1, nesting, False, step)
        if self.random.random() < 0.3:
            self.emit(depth, "else:")
            self.emit(depth + 1, f"x = {self.integer(1)} % 100")

    def other_for(self, depth: int, nesting: int) -> None:
        self.loops += 1
        step = f"s{self.loops}"
        self.emit(depth, f"for {step}, value_ in enumerate((x, 3, y)):")
        self.emit(depth + 1, "z = (z + value_) % 1000")
        self.block(depth + 1, nesting, False, step)


def load(text: str, name: str) -> Callable[..., Any]:
    """The function `program` of a source text, which tracebacks and `inspect` can find."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {
        "State": State,
        "Tally": Tally,
        "FLAG": True,
        "const_expr": control.const_expr,
        "range_constexpr": control.range_constexpr,
        "drange": control.range,
    }
    exec(compile(text, name, "exec"), scope)
    return scope["program"]  # type: ignore[return-value]
