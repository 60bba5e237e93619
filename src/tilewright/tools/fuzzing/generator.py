"""Random programs by seed. Each draws a few families of instructions, so that its steps meet each other."""

from __future__ import annotations

import random
from typing import Final

from tilewright.tools.fuzzing.drawing import Drawing
from tilewright.tools.fuzzing.exchanges import EXCHANGES
from tilewright.tools.fuzzing.forms import APPROXIMATE, KINDS, families
from tilewright.tools.fuzzing.program import OUTPUTS, REGISTERS, Node, Program, Region, Step
from tilewright.tools.fuzzing.steps import STEPS, step_of

_DEPTH: Final = 3
_APPROXIMATE_SHARE: Final = 0.06


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
                found.append(self.rng.choice(STEPS)(self.draw))
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
        """One instruction of one of the program's families."""
        rows = families()[self.rng.choice(self.families)]
        return step_of(self.draw, self.rng.choice(self.rng.choice(rows)))
