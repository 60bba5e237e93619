"""Random programs of the language. Each is a function of one thread, whose text plain Python runs too.

Every variable has a type for life. Divisors are not zero, indices are inside, floats that become integers are small:
what is left is defined by the language, whatever the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.lang.fuzz.model import TYPES, Type, promote

COLUMNS = 4  # of each input, for each thread
RESULTS = 6  # integers and floats that each program leaves, for each thread
NEAR = 4  # columns for what need not be exact: two numbers, and how far off each may be


class TypeSet:
    """The number types that programs use."""

    def __init__(self, types: dict[str, Type]) -> None:
        self.all = types
        self.names = sorted(types)
        self.numbers = sorted(name for name in types if name != "Boolean")
        self.integers = [name for name, item in types.items() if item.kind in "iu"]
        self.floats = [name for name, item in types.items() if item.kind == "f"]
        self.pairs = {
            name: [(a, b) for a in self.names for b in self.names if self._meet(a, b, name)] for name in self.numbers
        }

    def _meet(self, a: str, b: str, name: str) -> bool:
        return {a, b} != {"Boolean"} and promote(self.all[a], self.all[b]).name == name


BASE = TypeSet(TYPES)
NUMBERS = BASE.numbers
SIGNATURE = ", ".join(["t", *(f"g_{name}" for name in NUMBERS), "ints", "floats", "near"])


class Generator:
    """Writes `program_<number>` from a seed; results go to columns from `number * RESULTS` on."""

    types = BASE

    def __init__(self, seed: int, number: int, budget: int, *, whiles: bool = True, device: bool = True) -> None:
        self.random = random.Random(seed)
        self.number = number
        self.budget = budget
        self.device = device  # with shared memory and shuffles
        self.whiles = whiles  # without them a changed program ends too
        self.lines: list[str] = []
        self.count = 0
        self.variables: dict[str, str] = {}  # name: type
        self.arrays: dict[str, str] = {}  # tensors of 8 numbers: type
        self.helpers: dict[str, tuple[list[str], str]] = {}

    def program(self) -> str:
        self.prelude()
        self.variables = {}
        self.emit(0, "@cute.jit")
        self.emit(0, f"def program_{self.number}({SIGNATURE}):")
        for _ in range(self.random.randint(4, 7)):
            type_ = self.random.choice(self.types.names)
            name = self.fresh("v")
            self.emit(1, f"{name} = {self.start(type_)}")
            self.variables[name] = type_
        self.make_arrays()
        while self.budget > 0:
            self.statement(1, 3)
        self.results()
        return "\n".join(self.lines) + "\n\n\n"

    def prelude(self) -> None:
        """What stands before the program."""
        for _ in range(self.random.randint(0, 2)):
            self.helper()

    def results(self) -> None:
        first = self.number * RESULTS
        whole = [*self.types.integers, "Boolean"]
        for column in range(first, first + RESULTS):
            self.emit(1, f"ints[t, {column}] = Int64({self.expression(self.random.choice(whole), 1)})")
            self.emit(1, f"floats[t, {column}] = {self.expression(self.random.choice(self.types.floats), 1)}")

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def helper(self) -> None:
        r = self.random
        parameters = [r.choice(self.types.names) for _ in range(r.randint(1, 3))]
        result = r.choice(self.types.names)
        name = f"helper_{self.number}_{len(self.helpers)}"
        self.variables = {f"p{index}": type_ for index, type_ in enumerate(parameters)}
        self.emit(0, "@cute.jit")
        self.emit(0, f"def {name}({', '.join(self.variables)}):")
        local = self.fresh("v")
        self.emit(1, f"{local} = {self.expression(result, 2)}")
        self.variables[local] = result
        for _ in range(r.randint(0, 2)):
            r.choice([self.assign, self.if_, self.for_])(1, 1)
        self.emit(1, f"return {self.expression(result, 1)}")
        self.emit(0, "")
        self.emit(0, "")
        self.helpers[name] = (parameters, result)

    def make_arrays(self) -> None:
        r = self.random
        for _ in range(r.randint(0, 2)):
            name, type_ = self.fresh("r"), r.choice(self.types.names)
            self.emit(1, f"{name} = registers({type_}, 8)")
            self.emit(1, f"{name}.fill({self.expression(type_, 1)})")
            self.arrays[name] = type_
        if self.device and r.random() < 0.4:
            name, type_ = self.fresh("s"), r.choice(self.types.names)
            self.emit(1, f"{name} = shared({type_}, (32, 8))")
            self.emit(1, f"row_{name} = {name}[t, None]")
            self.emit(1, f"row_{name}.fill({self.expression(type_, 1)})")
            self.arrays[f"row_{name}"] = type_
            self.exchange(1, name, type_)

    def exchange(self, depth: int, name: str, type_: str) -> None:
        """Read a neighbour's row of shared memory."""
        self.emit(depth, "cute.arch.sync_threads()")
        variable = self.fresh("v")
        self.emit(depth, f"{variable} = {name}[(t + {self.random.randint(1, 31)}) % 32, {self.index(1)}]")
        self.emit(depth, "cute.arch.sync_threads()")
        self.variables[variable] = type_

    # --- expressions -------------------------------------------------------------------------------------------------

    def start(self, type_: str) -> str:
        if type_ == "Boolean":
            return f"g_Int8[t, {self.random.randrange(COLUMNS)}] > {self.random.randint(-20, 20)}"
        return f"g_{type_}[t, {self.random.randrange(COLUMNS)}]"

    def literal(self, type_: str) -> str:
        r = self.random
        kind = self.types.all[type_]
        if kind.kind == "b":
            return r.choice(["True", "False"])
        if kind.kind == "f":
            return r.choice(["0.0", "0.5", "-1.5", "3.25", "0.1", "-7.0", "100.0", "1e-3", "12345.678"])
        small = str(r.randint(0 if kind.kind == "u" else -9, 9))
        top = (1 << (kind.width - (kind.kind == "i"))) - 1
        return r.choice(
            [small, small, small, str(r.randint(0, top)), str(top), str(-top - 1 if kind.kind == "i" else 0)]
        )

    def leaf(self, type_: str) -> str:
        names = [name for name, known in self.variables.items() if known == type_]
        arrays = [name for name, known in self.arrays.items() if known == type_]
        choices = [f"{type_}({self.literal(type_)})"]
        choices += [self.random.choice(names)] * 4 if names else []
        if arrays:
            choices += [f"{self.random.choice(arrays)}[{self.index(0)}]"] * 2
        others = [name for name, known in self.variables.items() if self.types.all[known].kind != "f"]
        if others:
            choices.append(f"{type_}({self.random.choice(others)})")
        return self.random.choice(choices)

    def index(self, depth: int) -> str:
        if self.random.random() < 0.3:
            return str(self.random.randrange(8))
        type_ = self.random.choice(["Int32", "Int32", "Int64", "Uint32", "Uint8", "Int16"])
        if self.random.random() < 0.5:
            return f"({self.expression(type_, depth)}) % 8"
        return f"({self.expression(type_, depth)} & 7)"

    def expression(self, type_: str, depth: int = 2) -> str:
        """An expression of exactly this type."""
        if depth <= 0:
            return self.leaf(type_)
        if type_ == "Boolean":
            return self.condition(depth)
        r = self.random
        choices = [lambda: self.leaf(type_), lambda: self.converted(type_, depth), lambda: self.ternary(type_, depth)]
        choices += [lambda: self.operation(type_, depth)] * 5 + [lambda: self.extreme(type_, depth)]
        choices += [
            lambda: f"abs({self.expression(type_, depth - 1)})",
            lambda: f"-({self.expression(type_, depth - 1)})",
        ]
        if self.types.all[type_].kind != "f":
            choices += [lambda: self.bits(type_, depth), lambda: self.division(type_, depth)] * 2
            choices.append(lambda: f"(~{self.expression(type_, depth - 1)})")
        else:
            choices += [lambda: self.float_division(type_, depth)]
        calls = [name for name, (_, result) in self.helpers.items() if result == type_]
        if calls:
            choices += [lambda: self.call(r.choice(calls), depth)] * 2
        return r.choice(choices)()

    def call(self, name: str, depth: int) -> str:
        return f"{name}({', '.join(self.expression(item, depth - 1) for item in self.helpers[name][0])})"

    def operation(self, type_: str, depth: int) -> str:
        r = self.random
        a, b = r.choice(self.types.pairs[type_])
        left, right = self.expression(a, depth - 1), self.expression(b, depth - 1)
        operator = r.choice("+-*")
        literal = "Int32" if self.types.all[type_].kind != "f" else "Float32"
        if r.random() < 0.3 and promote(self.types.all[type_], self.types.all[literal]).name == type_ and a == type_:
            number = str(r.randint(-99, 99)) if literal == "Int32" else self.literal("Float32")
            return r.choice([f"({left} {operator} {number})", f"({number} {operator} {left})"])
        return f"({left} {operator} {right})"

    def bits(self, type_: str, depth: int) -> str:
        r = self.random
        if r.random() < 0.5:
            amount = r.choice([str(r.randint(0, 300)), self.amount(depth - 1), self.amount(depth - 1)])
            return f"({self.expression(type_, depth - 1)} {r.choice(['<<', '>>'])} {amount})"
        a, b = r.choice(self.types.pairs[type_])
        return f"({self.expression(a, depth - 1)} {r.choice('&|^')} {self.expression(b, depth - 1)})"

    def amount(self, depth: int) -> str:
        """How far to shift, not negative."""
        type_ = self.random.choice(["Uint8", "Uint32", "Uint64", "Int16", "Int64"])
        if self.types.all[type_].kind == "u":
            return self.expression(type_, depth)
        return f"({self.expression(type_, depth)} & {type_}(127))"

    def division(self, type_: str, depth: int) -> str:
        r = self.random
        operator = r.choice(["//", "%"])
        left = self.expression(type_, depth - 1)
        if r.random() < 0.4:
            choices = [1, 2, 3, 7, 8, 64, 100, 127]
            choices += [-1, -2, -3, -8, -100] if self.types.all[type_].kind == "i" else []
            return f"({left} {operator} {type_}({r.choice(choices)}))"
        if self.types.all[type_].kind == "u":
            return f"({left} {operator} ({self.expression(type_, depth - 1)} | {type_}(1)))"
        return f"({left} {operator} (({self.expression(type_, depth - 1)} & {type_}(62)) - {type_}(31)))"

    def float_division(self, type_: str, depth: int) -> str:
        operator = self.random.choice(["/", "/", "//", "%"])
        divisor = self.expression(type_, depth - 1)
        if operator != "/":
            divisor = f"{type_}({self.random.choice(['0.5', '-1.5', '3.25', '0.1', '-7.0', '1e-3'])})"
        return f"({self.expression(type_, depth - 1)} {operator} {divisor})"

    def converted(self, type_: str, depth: int) -> str:
        source = self.random.choice(self.types.names)
        text = self.expression(source, depth - 1)
        if self.types.all[source].kind == "f" and self.types.all[type_].kind in "iu":
            low = "-100.0" if self.types.all[type_].kind == "i" else "0.0"
            safe = f"{source}({self.literal('Uint8')})" if self.types.all[type_].kind == "u" else f"{source}(-2.5)"
            safe = f"{source}(90.75)" if self.types.all[type_].kind == "u" else safe
            name = self.random.choice([name for name, known in self.variables.items() if known == source] or [""])
            if not name:
                return self.leaf(type_)
            return f"{type_}({name} if {low} <= {name} <= 120.0 else {safe})"
        return self.random.choice([f"{type_}({text})", f"({text}).to({type_})"])

    def ternary(self, type_: str, depth: int) -> str:
        arms = self.expression(type_, depth - 1), self.expression(type_, depth - 1)
        return f"({arms[0]} if {self.condition(depth - 1)} else {arms[1]})"

    def extreme(self, type_: str, depth: int) -> str:
        count = self.random.randint(2, 3)
        operands = ", ".join(self.expression(type_, depth - 1) for _ in range(count))
        return f"{self.random.choice(['min', 'max'])}({operands})"

    def condition(self, depth: int) -> str:
        r = self.random
        if depth <= 0:
            return self.leaf("Boolean")
        c = lambda: self.condition(depth - 1)  # noqa: E731
        n = lambda: self.expression(r.choice(self.types.numbers), depth - 1)  # noqa: E731
        compare = lambda: r.choice(["<", "<=", "==", "!=", ">", ">="])  # noqa: E731
        choices: list[Callable[[], str]] = [
            lambda: f"({n()} {compare()} {n()})",
            lambda: f"({n()} {compare()} {n()})",
            lambda: f"({n()} {compare()} {r.randint(-9, 9)})",
            lambda: f"({n()} {compare()} {n()} {compare()} {n()})",
            lambda: f"({c()} and {c()})",
            lambda: f"({c()} or {c()} or {c()})",
            lambda: f"Boolean(not {c()})",
            lambda: f"({c()} {r.choice('&|^')} {c()})",
            lambda: f"(~{c()})",
        ]
        return r.choice(choices)()

    # --- statements --------------------------------------------------------------------------------------------------

    def statement(self, depth: int, nesting: int) -> None:
        self.budget -= 1
        self.random.choice(self.choices(depth, nesting))(depth, nesting - 1)

    def choices(self, depth: int, nesting: int) -> list[Callable[[int, int], None]]:
        """The kinds of statements that may stand here; often is likely."""
        choices = [self.assign] * 4 + [self.augment, self.check]
        choices += [self.store] * 3 + [self.vector] * 2 if self.arrays else []
        if self.device and depth == 1:
            choices.append(self.shuffle)
        if nesting and self.budget > 0:
            choices += [self.if_, self.if_, self.for_, self.static_for, self.static_if] * 2
            choices += [self.while_] * 2 if self.whiles else []
        return choices

    def block(self, depth: int, nesting: int) -> None:
        before = dict(self.variables)
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, nesting)
        self.variables = before

    def targets(self) -> list[str]:
        """The variables that may be assigned; those whose names start with p may not."""
        return [name for name in self.variables if not name.startswith("p")]

    def target(self) -> str:
        return self.random.choice(self.targets())

    def assign(self, depth: int, nesting: int) -> None:
        name = self.target()
        self.emit(depth, f"{name} = {self.expression(self.variables[name])}")

    def augment(self, depth: int, nesting: int) -> None:
        name = self.target()
        type_ = self.variables[name]
        if type_ == "Boolean":
            self.emit(depth, f"{name} {self.random.choice('&|^')}= {self.condition(1)}")
        else:
            self.emit(depth, f"{name} {self.random.choice('+-*')}= {self.expression(type_, 1)}")

    def check(self, depth: int, nesting: int) -> None:
        name, type_ = self.target(), self.random.choice(self.types.names)
        if self.variables[name] == type_:
            self.emit(depth, f"{name} = check_type({self.expression(type_)}, '{type_}')")
        else:
            self.emit(depth, f"check_type({self.expression(type_)}, '{type_}')")

    def store(self, depth: int, nesting: int) -> None:
        name = self.random.choice(list(self.arrays))
        type_ = self.arrays[name]
        source = type_ if self.random.random() < 0.7 or self.types.all[type_].kind != "f" else "Int32"
        self.emit(depth, f"{name}[{self.index(1)}] = {self.expression(source, 1)}")

    def shuffle(self, depth: int, nesting: int) -> None:
        name, type_ = self.fresh("v"), self.random.choice(["Int32", "Uint32", "Float32"])
        value = self.expression(type_, 1)
        call = self.random.choice([
            f"shuffle_sync_bfly({value}, {self.random.choice([1, 2, 5, 16, 31])})",
            f"shuffle_sync({value}, {self.random.randrange(32)})",
        ])  # fmt: skip
        if type_ == "Int32" and self.random.random() < 0.3:
            call = f"warp_reduction_sum({value})"
        self.emit(depth, f"{name} = cute.arch.{call}")
        self.variables[name] = type_

    def vector(self, depth: int, nesting: int) -> None:
        """Arithmetic on all numbers of a tensor at once."""
        r = self.random
        name = r.choice(list(self.arrays))
        type_ = self.arrays[name]
        others = [item for item, known in self.arrays.items() if known == type_]
        value = self.fresh("w")
        self.emit(depth, f"{value} = {name}.load()")
        operand = r.choice([f"{r.choice(others)}.load()", f"{value}", self.expression(type_, 1)])
        if type_ == "Boolean":
            self.emit(depth, f"{name}.store({value} {r.choice('&|^')} {operand})")
            return
        operand = r.choice([operand, operand, str(r.randint(0, 99))])
        step = r.choice([
            f"{value} {r.choice('+-*')} {operand}",
            f"{r.randint(0, 9)} {r.choice('+-*')} {value}",
            f"abs({value})",
            f"-{value}",
            f"cute.where({value} {r.choice(['<', '>=', '==', '!='])} {operand}, {value}, {r.choice(others)}.load())",
        ])  # fmt: skip
        if self.types.all[type_].kind == "f":
            step = r.choice(
                [step, step, f"{value} / {operand}", f"{value} // {type_}(2.5)", f"{value} % {type_}(-0.75)"]
            )
        else:
            step = r.choice([
                step, step, f"{value} {r.choice('&|^')} {operand}", f"~{value}", f"{value} >> {r.randint(0, 70)}",
                f"{value} << ({value} & 15)", f"{value} // 3", f"{value} % 7", f"{value} % 16",
            ])  # fmt: skip
        self.emit(depth, f"{value} = {step}")
        targets = [item for item in self.targets() if self.variables[item] == type_]
        if targets and r.random() < 0.5:
            target = r.choice(targets)
            if self.types.all[type_].kind != "f":
                op = r.choice(["ADD", "MUL", "MAX", "MIN", "AND", "OR", "XOR"])
                self.emit(depth, f"{target} = {value}.reduce(cute.ReductionOp.{op}, {self.expression(type_, 1)}, 0)")
            else:
                self.emit(depth, f"{target} = {value}[{r.randrange(8)}]")
        self.emit(depth, f"{name}.store({value}.to({type_}))")

    def if_(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"if {self.condition(2)}:")
        self.block(depth + 1, nesting)
        if self.random.random() < 0.3:
            self.emit(depth, f"elif {self.condition(1)}:")
            self.block(depth + 1, nesting)
        if self.random.random() < 0.6:
            self.emit(depth, "else:")
            self.block(depth + 1, nesting)

    def for_(self, depth: int, nesting: int) -> None:
        r = self.random
        index = self.fresh("i")
        type_ = r.choice(["Int32", "Int32", "Int64", "Int16"])
        bound = lambda: r.choice([str(r.randint(-3, 5)), f"{type_}({self.expression('Int32', 1)} % 5)"])  # noqa: E731
        step = r.choice(["1", "2", "-1", "-2", f"({self.expression('Int32', 1)} % 3 + 1)"])
        arguments = r.choice([bound(), f"{bound()}, {bound()}", f"{bound()}, {bound()}, {step}"])
        self.emit(depth, f"for {index} in range({arguments}):")
        before = dict(self.variables)
        numbers = [name for name in self.targets() if self.variables[name] in self.types.integers]
        if numbers:
            name = r.choice(numbers)
            self.emit(depth + 1, f"{name} = {self.variables[name]}({name} * {r.randint(1, 9)} + {index})")
        self.block(depth + 1, nesting)
        if not numbers:
            self.assign(depth + 1, nesting)
        self.variables = before

    def while_(self, depth: int, nesting: int) -> None:
        counter = self.fresh("n")
        type_ = self.random.choice(["Int32", "Uint8", "Int64"])
        self.emit(depth, f"{counter} = {self.expression(type_, 1)} & {type_}({self.random.choice([1, 3, 5])})")
        test = self.random.choice(["", f" and {self.condition(1)}"])
        self.emit(depth, f"while {counter} != 0{test}:")
        self.emit(depth + 1, f"{counter} = {type_}({counter} - {type_}(1)) & {type_}(7)")
        self.block(depth + 1, nesting)

    def static_for(self, depth: int, nesting: int) -> None:
        index = self.fresh("k")
        self.emit(depth, f"for {index} in range_constexpr({self.random.randint(0, 3)}):")
        name = self.target()
        type_ = self.variables[name]
        step = self.condition(1) if type_ == "Boolean" else f"{type_}({self.expression(type_, 1)} + {index})"
        self.emit(depth + 1, f"{name} = {step}")
        self.block(depth + 1, nesting)

    def static_if(self, depth: int, nesting: int) -> None:
        self.emit(depth, f"if const_expr({self.random.choice(['1 < 2', 'False', 'True'])}):")
        self.block(depth + 1, nesting)
        self.emit(depth, "else:")
        self.block(depth + 1, nesting)
