"""Random programs by seed. Each draws a few families of instructions, so that its steps meet each other."""

from __future__ import annotations

import random
import re
from typing import Final

from tilewright.tools.fuzzing.drawing import Drawing, bits_of, integer, literal
from tilewright.tools.fuzzing.exchanges import EXCHANGES
from tilewright.tools.fuzzing.forms import APPROXIMATE, KINDS, families
from tilewright.tools.fuzzing.program import OUTPUTS, REGISTERS, WIDTH_OF, Node, Program, Region, Step

_DEPTH: Final = 3
_APPROXIMATE_SHARE: Final = 0.06
_REGISTERS_ONLY: Final = re.compile(r".*[su]16x2$|v\w+[24]\.|redux")
_NAN_OF: Final = {"f": "f32", "g": "f64", "e": "f16", "b": "bf16"}
_BITS_OF: Final = (("f", "r"), ("g", "d"), ("e", "h"), ("b", "h"))


def generate(seed: int) -> Program:
    """The program of a seed: the same one in every process."""
    return _Generator(seed).program()


class _Generator:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"ptx {seed}")
        self.draw = Drawing(self.rng)
        self.exact = self.rng.random() >= _APPROXIMATE_SHARE
        known = sorted(name for name in families() if name != APPROXIMATE)
        self.families = self.rng.sample(known, self.rng.randint(1, 4)) + ([] if self.exact else [APPROXIMATE])
        self.exchanging = self.rng.random() < 0.5

    def program(self) -> Program:
        """Steps, and the registers that are stored, those written last among them."""
        body = self.nodes(self.rng.randint(4, 36), 0, uniform=True)
        stored = self.rng.sample(REGISTERS, self.rng.randint(2, OUTPUTS - 6))
        latest = [name for kind in KINDS for name in self.draw.latest(kind)]
        wanted = dict.fromkeys([*self.rng.sample(latest, min(len(latest), 6)), *stored])
        return Program(self.seed, body, tuple(wanted)[:OUTPUTS], exact=self.exact)

    def nodes(self, count: int, depth: int, *, uniform: bool) -> tuple[Node, ...]:
        """A row of about `count` steps; `uniform` where all threads come."""
        found: list[Node] = []
        while count > 0:
            choice = self.rng.random()
            if choice < 0.12 and depth < _DEPTH and count > 2:
                inner = self.rng.randint(1, min(count, 10))
                found.append(self.region(inner, depth, uniform))
                count -= inner
            elif choice < 0.24 and uniform and self.exchanging:
                found.append(self.rng.choice(EXCHANGES)(self.draw))
            elif choice < 0.30:
                found.append(self.rng.choice((self.constant, self.bits, self.carry, self.load, self.local))())
            else:
                found.append(self.instruction())
            count -= 1
        return tuple(found)

    def region(self, count: int, depth: int, uniform: bool) -> Region:
        """A branch, a loop or a switch around `count` steps."""
        kind = self.rng.choice(("if", "else", "loop", "while", "switch"))
        if kind == "if":
            end, guard = self.draw.name("$end"), self.draw.read("p")
            inner = self.nodes(count, depth + 1, uniform=False)
            return Region((f"@{self.rng.choice('! ').strip()}{guard} bra \t{end};", inner, f"{end}:"))
        if kind == "else":
            other, end, guard = self.draw.name("$else"), self.draw.name("$end"), self.draw.read("p")
            first = self.nodes(count // 2 + 1, depth + 1, uniform=False)
            second = self.nodes(count // 2 + 1, depth + 1, uniform=False)
            return Region((f"@{guard} bra \t{other};", first, f"bra.uni \t{end};", f"{other}:", second, f"{end}:"))
        if kind == "switch":
            return self.switch(count, depth)
        return self.loop(count, depth, uniform=uniform and kind == "loop", constant=kind == "loop")

    def loop(self, count: int, depth: int, *, uniform: bool, constant: bool) -> Region:
        """A loop of a few rounds: as many for all threads, or as many as a register says."""
        start, counter = self.draw.name("$loop"), self.draw.name("%i")
        rounds = str(self.rng.randint(1, 5)) if constant else f"{counter}_rounds"
        taken = f"and.b32 \t{rounds}, {self.draw.read('r')}, 3;"
        inner = self.nodes(count, depth + 1, uniform=uniform)
        more = f"setp.lt.s32 \t{counter}_more, {counter}, {rounds};"
        return Region((
            f"{{ .reg .b32 {counter}; .reg .pred {counter}_more;",
            *(() if constant else (f".reg .b32 {rounds}; {taken}",)),
            f"mov.b32 \t{counter}, 0;", f"{start}:", inner, f"add.s32 \t{counter}, {counter}, 1;", more,
            f"@{counter}_more bra \t{start}; }}",
        ))  # fmt: skip

    def switch(self, count: int, depth: int) -> Region:
        """An indexed branch of four ways, of which one leads past all steps."""
        labels, end = [self.draw.name("$case") for _ in range(3)], self.draw.name("$end")
        table, index = self.draw.name("$table"), self.draw.read("r")
        parts: list[str | tuple[Node, ...]] = [
            f"{{ .reg .b32 %way; and.b32 \t%way, {index}, 3;",
            f"{table}: .branchtargets {', '.join([*labels, end])};",
            f"brx.idx \t%way, {table}; }}",
        ]
        for label in labels:
            parts += [f"{label}:", self.nodes(count // 3 + 1, depth + 1, uniform=False), f"bra.uni \t{end};"]
        return Region((*parts, f"{end}:"))

    def instruction(self) -> Step:
        """One instruction of one of the program's families, at times predicated."""
        rows = families()[self.rng.choice(self.families)]
        form = self.rng.choice(self.rng.choice(rows))
        before: list[str] = []
        fixed = bool(_REGISTERS_ONLY.match(form.opcode))
        operands = [self.operand(spec, 0 if fixed else n, before) for n, spec in enumerate(form.operands)]
        results = [self.result(spec) for spec in form.results]
        written = f"{form.opcode} \t{', '.join([*results, *operands])};"
        if self.rng.random() < 0.1:
            written = f"@{self.rng.choice(('', '!'))}{self.draw.read('p')} {written}"
        return Step((f"{{ {' '.join([*before, written])} }}",) if before else (written,))

    def result(self, spec: str) -> str:
        """A register to write, a vector of them, or two predicates."""
        if "^" in spec:
            return "|".join(self.draw.writes(spec.replace("^", "")))
        if spec.startswith("{"):
            names = iter(self.draw.writes(spec.strip("{}").replace("_", "")))
            return "{" + ", ".join("_" if kind == "_" else next(names) for kind in spec.strip("{}")) + "}"
        return self.draw.write(spec)

    def operand(self, spec: str, place: int, before: list[str]) -> str:
        """An operand; the instructions that bring it into its range go to `before`."""
        if spec.startswith("#"):
            return str(self.rng.randrange(int(spec[1:])))
        if spec.startswith("{"):
            return "{" + ", ".join(self.draw.reads(spec.strip("{}"))) + "}"
        if len(spec) == 1:
            return self.draw.source(spec) if place else self.draw.read(spec)
        width, name = WIDTH_OF[spec[0]], f"%t{len(before)}"
        if spec.endswith("+"):
            if self.rng.random() < 0.4:
                return self.divisor(width)
            most = (1 << width - 1) - 1
            before.append(
                f".reg .b{width} {name}; and.b{width} \t{name}, {self.draw.read(spec[0])}, {most};"
                f" or.b{width} \t{name}, {name}, 1;"
            )
            return name
        mask = int(spec[2:]) - 1
        before.append(f".reg .b{width} {name}; and.b{width} \t{name}, {self.draw.read(spec[0])}, {mask};")
        return name

    def divisor(self, width: int) -> str:
        """A constant to divide by: not 0, nor -1, by which the least number has no quotient."""
        value = integer(width, self.rng)
        return str(value if value not in (0, -1) else 3)

    def constant(self) -> Step:
        """A register becomes a constant."""
        kind = self.rng.choice([kind for kind in KINDS if kind != "p"])
        bits, shown = bits_of(kind, self.rng), kind if kind in "fg" else {16: "h", 32: "r", 64: "d"}[WIDTH_OF[kind]]
        return Step((f"mov.b{WIDTH_OF[kind]} \t{self.draw.write(kind)}, {literal(shown, bits)};",))

    def bits(self) -> Step:
        """The bits of a float as an integer: those of a NaN are free, so it becomes a constant."""
        kind, integer_kind = self.rng.choice(_BITS_OF)
        source, width = self.draw.read(kind), WIDTH_OF[kind]
        target = self.draw.write(integer_kind)
        return Step((
            f"{{ .reg .pred %nan; setp.nan.{_NAN_OF[kind]} \t%nan, {source}, {source};"
            f" selp.b{width} \t{target}, 12345, {source}, %nan; }}",
        ))  # fmt: skip

    def carry(self) -> Step:
        """Sums, differences or products in several words."""
        type_ = self.rng.choice(("u32", "s32", "u64", "s64"))
        kind = "r" if type_.endswith("32") else "d"
        first = self.rng.choice(("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"))
        following = {"add.cc": "addc", "sub.cc": "subc", "mad.lo.cc": "madc.hi", "mad.hi.cc": "madc.lo"}[first]
        middle = [f"{following}.cc"] * self.rng.randrange(2)
        lines = []
        for opcode in (first, *middle, following):
            operands = self.draw.reads(kind * (3 if opcode.startswith("mad") else 2))
            lines.append(f"{opcode}.{type_} \t{', '.join([self.draw.write(kind), *operands])};")
        return Step(tuple(lines))

    def load(self) -> Step:
        """Integers of the input, of this thread's record or of any by a register."""
        opcode = f"ld.global{self.rng.choice(('', '.nc', '.ca', '.cg', '.cv', '.L1::no_allocate'))}"
        if opcode == "ld.global.cv" and self.rng.random() < 0.5:
            opcode = "ld.relaxed.gpu.global"
        type_, kind, size = self.rng.choice(
            (("u8", "h", 1), ("s8", "r", 1), ("u16", "r", 2), ("s16", "h", 2), ("s16", "d", 2), ("s8", "d", 1),
             ("b32", "r", 4), ("s32", "d", 4), ("u32", "d", 4), ("b64", "d", 8))
        )  # fmt: skip
        vector = self.rng.choice((1, 1, 2, 4))
        vector = min(vector, KINDS[kind][1] - 1, 2 if size == 8 else 4)
        vector = 2 if vector == 3 else vector
        place = 8 * self.rng.randrange(48, 60) + (self.rng.randrange(8 // (size * vector)) * size * vector
                                                  if size * vector < 8 else 0)  # fmt: skip
        place -= place % (size * vector)
        targets = self.draw.writes(kind * vector)
        to = "{" + ", ".join(targets) + "}" if vector > 1 else targets[0]
        written = f"{opcode}{f'.v{vector}' if vector > 1 else ''}.{type_} \t{to}, "
        if self.rng.random() < 0.5:
            return Step((f"{written}[%record+{place}];",))
        return Step((
            f"{{ .reg .b32 %row; .reg .b64 %at; and.b32 \t%row, {self.draw.read('r')}, 127;"
            f" mad.wide.u32 \t%at, %row, 512, %source; {written}[%at+{place}]; }}",
        ))  # fmt: skip

    def local(self) -> Step:
        """An array of the thread, written at constant places and read at one that a register says, or the reverse."""
        array = self.draw.name("array")
        lines = [f".local .align 16 .b8 {array}[16]; .reg .b64 %local; .reg .b32 %place;"]
        values = self.draw.reads("rrrr")
        lines.append(f"st.local.v4.b32 \t[{array}], {{{', '.join(values)}}};")
        lines.append(f"and.b32 \t%place, {self.draw.read('r')}, 15; cvt.u64.u32 \t%local, %place;")
        lines.append(f"{{ .reg .b64 %start; mov.u64 \t%start, {array}; add.s64 \t%local, %start, %local; }}")
        if self.rng.random() < 0.5:
            lines.append(f"st.local.u8 \t[%local], {self.draw.read('r')};")
            lines.append(f"ld.local.b32 \t{self.draw.write('r')}, [{array}+{4 * self.rng.randrange(4)}];")
            lines.append(f"ld.local.b64 \t{self.draw.write('d')}, [{array}+{8 * self.rng.randrange(2)}];")
        else:
            lines.append(f"ld.local.{self.rng.choice(('u8', 's8'))} \t{self.draw.write('r')}, [%local];")
        return Step((f"{{ {' '.join(lines)} }}",))
