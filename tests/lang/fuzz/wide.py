"""Random programs with more of the language: narrow and wide numbers, records, closures, methods, `match`, printing,
math, shuffles and votes, and (in `tiles`) views of tensors with layouts.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.lang.fuzz.generator import NEAR, Generator, TypeSet
from tests.lang.fuzz.model import ALL_TYPES
from tests.lang.fuzz.tiles import Tiles

WIDE = TypeSet(ALL_TYPES)
SHUFFLED = ["Int32", "Uint32", "Float32", "Int64", "Float64", "Int16", "Uint8", "Float16", "BFloat16"]
MATH = {  # functions of Float32 and Float64, with the operands that they take
    "exp": (-20.0, 20.0), "exp2": (-30.0, 30.0), "log": (0.015625, 1e6), "log2": (0.015625, 1e6),
    "log10": (0.015625, 1e6), "sin": (-100.0, 100.0), "cos": (-100.0, 100.0), "tan": (-1.5, 1.5),
    "tanh": (-9.0, 9.0), "rsqrt": (1e-3, 1e6), "erf": (-4.0, 4.0), "atan": (-1e4, 1e4), "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
}  # fmt: skip
RECORDS = """class Pair_{0}(NamedTuple):
    x: object
    y: object


@dataclass
class Box_{0}:
    a: object
    b: object


@dataclass(frozen=True)
class Fixed_{0}:
    a: object
    b: object


"""


class WideGenerator(Tiles, Generator):
    """Writes programs that use all that the model knows."""

    types = WIDE
    frozen: frozenset[str] = frozenset()  # variables of the functions around, which an inner one may not assign

    def wide(self, type_: str) -> bool:
        return self.types.all[type_].wide

    def targets(self) -> list[str]:
        return [name for name in super().targets() if name not in self.frozen]

    # --- declarations ------------------------------------------------------------------------------------------------

    def prelude(self) -> None:
        self.records: dict[str, tuple[str, str, str]] = {}  # name: how it is made, types of its members
        self.actions: dict[str, tuple[str, str]] = {}  # calls that change something: types of argument and result
        self.tiles = {}
        self.lines += RECORDS.format(self.number).splitlines()
        super().prelude()
        self.worker()

    def worker(self) -> None:
        """A class with a method of the language that changes its object."""
        r = self.random
        state, argument, result = (r.choice(self.types.names) for _ in range(3))
        self.emit(0, f"class Worker_{self.number}:")
        self.emit(1, "def __init__(self, state):")
        self.emit(2, "self.state = state")
        self.emit(0, "")
        self.emit(1, "@cute.jit")
        self.emit(1, "def step(self, p0):")
        self.variables = {"self.state": state, "p0": argument}
        self.emit(2, f"self.state = {self.expression(state, 1)}")
        if r.random() < 0.5:
            self.if_(2, 1)
        self.emit(2, f"return {self.expression(result, 1)}")
        self.emit(0, "")
        self.emit(0, "")
        self.worker_types = state, argument, result

    def make_arrays(self) -> None:
        super().make_arrays()
        r = self.random
        makers = [self.record, self.record, self.items, self.make_worker, self.closure, self.lambda_, self.changer]
        for make in r.sample(makers, r.randint(1, 4)):
            make()
        self.make_tiles()

    def record(self) -> None:
        """A tuple, named tuple, or dataclass of two numbers."""
        r = self.random
        kind = r.choice(["", f"Pair_{self.number}", f"Fixed_{self.number}", f"Box_{self.number}"])
        a, b = r.choice(self.types.names), r.choice(self.types.names)
        mutable = kind.startswith("Box")
        name = self.fresh("box" if mutable else "p")
        self.emit(1, f"{name} = {kind}({self.expression(a, 1)}, {self.expression(b, 1)})")
        first, second = {"": ("[0]", "[1]"), "P": (".x", ".y")}.get(kind[:1], (".a", ".b"))
        self.variables |= {f"{name}{first}": a, f"{name}{second}": b}
        if not mutable:
            self.records[name] = kind, a, b

    def items(self) -> None:
        """A list of numbers."""
        name = self.fresh("items")
        types = [self.random.choice(self.types.names) for _ in range(self.random.randint(1, 3))]
        self.emit(1, f"{name} = [{', '.join(self.expression(type_, 1) for type_ in types)}]")
        self.variables |= {f"{name}[{place}]": type_ for place, type_ in enumerate(types)}

    def make_worker(self) -> None:
        state, argument, result = self.worker_types
        name = self.fresh("worker")
        self.emit(1, f"{name} = Worker_{self.number}({self.expression(state, 1)})")
        self.variables[f"{name}.state"] = state
        self.actions[f"{name}.step"] = argument, result

    def _inside(self, parameters: list[str], write: Callable[[], None]) -> None:
        """Write a function's body, in which the variables around may be read."""
        names = ("variables", "frozen", "arrays", "tiles", "records")
        kept = [getattr(self, name) for name in names]
        self.records = {}
        self.frozen = frozenset(name for name in self.variables if not set(name) & set(".["))
        self.variables = self.variables | {f"p{place}": type_ for place, type_ in enumerate(parameters)}
        write()
        for name, value in zip(names, kept, strict=True):
            setattr(self, name, value)

    def closure(self) -> None:
        r = self.random
        parameters = [r.choice(self.types.names) for _ in range(r.randint(1, 2))]
        result, name = r.choice(self.types.names), self.fresh("inner")
        self.emit(1, f"def {name}({', '.join(f'p{place}' for place in range(len(parameters)))}):")

        def write() -> None:
            local = self.fresh("v")
            self.emit(2, f"{local} = {self.expression(result, 1)}")
            self.variables[local] = result
            for _ in range(r.randint(0, 2)):
                r.choice([self.assign, self.if_, self.for_])(2, 1)
            self.emit(2, f"return {self.expression(result, 1)}")

        self._inside(parameters, write)
        self.helpers[name] = parameters, result

    def lambda_(self) -> None:
        r = self.random
        parameters = [r.choice(self.types.names) for _ in range(r.randint(1, 2))]
        result, name = r.choice(self.types.names), self.fresh("short")
        names = ", ".join(f"p{place}" for place in range(len(parameters)))
        self._inside(parameters, lambda: self.emit(1, f"{name} = lambda {names}: {self.expression(result, 1)}"))
        self.helpers[name] = parameters, result

    def changer(self) -> None:
        """A function inside that assigns a variable of the program."""
        r = self.random
        plain = [name for name in self.targets() if name.isalnum()]
        changed, argument, result = r.choice(plain), r.choice(self.types.names), r.choice(self.types.names)
        name = self.fresh("change")
        self.emit(1, f"def {name}(p0):")
        self.emit(2, f"nonlocal {changed}")

        def write() -> None:
            self.emit(2, f"{changed} = {self.expression(self.variables[changed], 1)}")
            self.emit(2, f"return {self.expression(result, 1)}")

        self._inside([argument], write)
        self.actions[name] = argument, result

    # --- expressions -------------------------------------------------------------------------------------------------

    def start(self, type_: str) -> str:
        r = self.random
        column = r.randrange(4)
        if type_ in ("TFloat32", "Float8E4M3FN", "Float8E5M2"):
            return f"{type_}(g_{r.choice(['Float16', 'Float32', 'Float64', 'BFloat16', 'Int8'])}[t, {column}])"
        if type_ in ("Int4", "Uint4"):
            return f"{type_}(g_{r.choice(['Int8', 'Uint32', 'Int64'])}[t, {column}])"
        if type_ in ("Int128", "Uint128"):
            factor = f"{type_}(g_{r.choice(['Int64', 'Uint64', 'Int8'])}[t, {column}])"
            return r.choice([factor, f"({factor} * {type_}(g_Int64[t, {r.randrange(4)}]))"])
        return super().start(type_)

    def expression(self, type_: str, depth: int = 2) -> str:
        if depth <= 0 or not self.wide(type_):
            return super().expression(type_, depth)
        r = self.random
        choices = [
            self.leaf, lambda _: self.converted(type_, depth), lambda _: self.converted(type_, depth),
            lambda _: self.ternary(type_, depth), lambda _: self.extreme(type_, depth),
            lambda _: f"abs({self.expression(type_, depth - 1)})", lambda _: f"-({self.expression(type_, depth - 1)})",
        ]  # fmt: skip
        calls = [name for name, (_, result) in self.helpers.items() if result == type_]
        if calls:
            choices.append(lambda _: self.call(r.choice(calls), depth))
        return r.choice(choices)(type_)

    def converted(self, type_: str, depth: int) -> str:
        source = self.random.choice(self.types.names)
        text = self.expression(source, depth - 1)
        kinds = self.types.all
        if kinds[source].kind == "f" and kinds[type_].width == 128:
            text = f"Int64({text})"
        same = [name for name in self.types.numbers if kinds[name].width == kinds[type_].width and name != type_]
        if kinds[type_].width >= 16 and same and self.random.random() < 0.1 and type_ != "TFloat32":
            other = self.random.choice(same)
            if kinds[other].kind != "f":
                return f"{self.expression(other, depth - 1)}.bitcast({type_})"
        return self.random.choice([f"{type_}({text})", f"({text}).to({type_})"])

    def division(self, type_: str, depth: int) -> str:
        if self.types.all[type_].width != 4:
            return super().division(type_, depth)
        divisor = self.random.choice(["1", "2", "3", "7"])
        return f"({self.expression(type_, depth - 1)} {self.random.choice(['//', '%'])} {type_}({divisor}))"

    def float_division(self, type_: str, depth: int) -> str:
        if self.random.random() < 0.2 and type_ in ("Float32", "Float64"):
            function = self.random.choice(["floor", "ceil", "sqrt", "absf"])
            return f"cute.math.{function}({self.expression(type_, depth - 1)})"
        return super().float_division(type_, depth)

    # --- statements --------------------------------------------------------------------------------------------------

    def choices(self, depth: int, nesting: int) -> list[Callable[[int, int], None]]:
        choices = super().choices(depth, nesting)
        choices += [self.renew] * 2 if self.records else []
        choices += [self.act] * 2 if self.actions else []
        choices += [self.match] if nesting else []
        choices += [self.unpack, self.swap]
        choices += [self.print_, self.counted_bits] if self.device else []
        if self.tiles:
            choices += [self.tile_statement] * 4
        if self.device and depth == 1:
            choices += [self.vote, self.shuffle]
        return choices

    def augment(self, depth: int, nesting: int) -> None:
        name = self.target()
        if self.wide(self.variables[name]):
            self.emit(depth, f"{name} = {self.expression(self.variables[name], 1)}")
            return
        type_ = self.variables[name]
        step = self.condition(1) if type_ == "Boolean" else self.expression(type_, 1)
        self.emit(depth, f"{name} {self.random.choice('&|^' if type_ == 'Boolean' else '+-*')}= {step}")

    def vector(self, depth: int, nesting: int) -> None:
        """As numbers wrap, no literal of it may be 0 in four bits; narrow floats compute as Float32."""
        kept = self.arrays
        self.arrays = {
            name: type_ for name, type_ in kept.items() if not self.wide(type_) and self.types.all[type_].width > 4
        }
        (super().vector if self.arrays else self.assign)(depth, nesting)
        self.arrays = kept

    def renew(self, depth: int, nesting: int) -> None:
        """Another record under the same name."""
        r = self.random
        name = r.choice(list(self.records))
        kind, a, b = self.records[name]
        left, right = self.expression(a, 1), self.expression(b, 1)
        made = f"{kind}({left}, {right})"
        if kind.startswith("Pair"):
            made = r.choice([made, f"{name}._replace(x={left})", f"{kind}(y={right}, x={name}.x)"])
        if kind.startswith("Fixed"):
            made = r.choice([made, f"replace({name}, b={right})"])
        if r.random() < 0.3:
            made = f"{made} if {self.condition(1)} else {name}"
        self.emit(depth, f"{name} = {made}")

    def act(self, depth: int, nesting: int) -> None:
        """Call something that changes its object or a variable."""
        name = self.random.choice(list(self.actions))
        argument, result = self.actions[name]
        targets = [item for item in self.targets() if self.variables[item] == result]
        start = f"{self.random.choice(targets)} = " if targets and self.random.random() < 0.7 else ""
        self.emit(depth, f"{start}{name}({self.expression(argument, 1)})")

    def match(self, depth: int, nesting: int) -> None:
        """Decided while tracing."""
        r = self.random
        subject = r.choice(["1", "2", "('a', 3)", "('b', 4)", "None"])
        cases = ["1", "2 | 3", "('a', 3)", "('b', q)", "None", "('a', q) if q > 3"]
        self.emit(depth, f"match {subject}:")
        for case in [*r.sample(cases, 2), "_"]:
            self.emit(depth + 1, f"case {case}:")
            self.block(depth + 2, nesting)

    def unpack(self, depth: int, nesting: int) -> None:
        """Several variables at once."""
        targets = self.random.sample(self.targets(), min(2, len(self.targets())))
        values = ", ".join(self.expression(self.variables[name], 1) for name in targets)
        self.emit(depth, f"{', '.join(targets)} = {values}")

    def swap(self, depth: int, nesting: int) -> None:
        name = self.target()
        others = [item for item in self.targets() if self.variables[item] == self.variables[name]]
        other = self.random.choice(others)
        self.emit(depth, f"{name}, {other} = {other}, {name}")

    def print_(self, depth: int, nesting: int) -> None:
        r = self.random
        types = [r.choice(["Int8", "Int32", "Uint32", "Int64", "Uint16", "Uint64"]) for _ in range(r.randint(1, 3))]
        places = " ".join("{}" for _ in types)
        values = ", ".join(self.expression(type_, 1) for type_ in types)
        self.emit(depth, f"if cute.arch.lane_idx() % 11 == {r.randrange(11)}:")
        self.emit(depth + 1, f'cute.printf("{self.number}.{self.fresh("m")}: {places}", {values})')

    def counted_bits(self, depth: int, nesting: int) -> None:
        targets = [name for name in self.targets() if self.variables[name] == "Int32"]
        argument = self.expression(self.random.choice(["Int32", "Uint32", "Int64", "Uint64"]), 1)
        call = f"cute.arch.{self.random.choice(['popc', 'clz'])}({argument})"
        self.emit(depth, f"{self.random.choice(targets)} = {call}" if targets else f"check_type({call}, 'Int32')")

    def vote(self, depth: int, nesting: int) -> None:
        name, call = self.fresh("v"), self.random.choice(["any", "all", "ballot"])
        self.emit(depth, f"{name} = cute.arch.vote_{call}_sync({self.condition(1)})")
        self.variables[name] = "Int32" if call == "ballot" else "Boolean"

    def shuffle(self, depth: int, nesting: int) -> None:
        r = self.random
        name, type_ = self.fresh("v"), r.choice(SHUFFLED)
        value = self.expression(type_, 1)
        call = r.choice([
            f"shuffle_sync_bfly({value}, {r.choice([1, 2, 5, 16, 31])})", f"shuffle_sync({value}, {r.randrange(32)})",
            f"shuffle_sync_up({value}, {r.randrange(32)})", f"shuffle_sync_down({value}, {r.randrange(32)})",
        ])  # fmt: skip
        if self.types.all[type_].kind != "f" and r.random() < 0.4:
            group = r.choice(["", f", threads_in_group={r.choice([2, 4, 8, 16])}"])
            call = f"warp_reduction_{r.choice(['sum', 'max', 'min'])}({value}{group})"
        self.emit(depth, f"{name} = cute.arch.{call}")
        self.variables[name] = type_

    def results(self) -> None:
        super().results()
        first = self.number * NEAR
        for column in range(first, first + NEAR, 2):
            self.near(column)

    def near(self, column: int) -> None:
        r = self.random
        name, type_ = r.choice(list(MATH)), r.choice(["Float32", "Float32", "Float64"])
        low, high = MATH[name]
        value = self.fresh("v")
        self.emit(1, f"{value} = {self.expression(type_, 1)}")
        inside = f"{value} if {low} <= {value} <= {high} else {type_}({r.uniform(low, high)!r})"
        self.emit(1, f"put_near(near, t, {column}, cute.math.{name}({inside}), '{name}')")
