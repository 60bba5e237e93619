"""How far the instructions of a launch are known to be those of a GPU.

Each instruction is named by its *form*: opcode, modifiers and types, without hints that change no result. Of a form

* `recorded`: kernels with it ran on a GPU, and the emulator gives the same results bit for bit;
* `bounds`: an approximate function, for which the PTX ISA gives bounds of the error, no bits: the emulator keeps them;
* `manual`: what it does is taken from the PTX ISA alone.

`recorded_forms.txt` has the forms of the first two kinds that the recorded kernels of tests/emu execute
(`scripts/list_recorded_forms.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from tilewright.targets.emu.ptx import Instruction

Level = Literal["recorded", "bounds", "manual"]
TABLE = Path(__file__).with_name("recorded_forms.txt")
CARD = "an H100"
_ACCESSES = frozenset(("ld", "ldu", "st"))
_MOVES = _ACCESSES | {"mov", "selp"}
_WORDS = {f"{letter}{width}": f"b{width}" for letter in "usf" for width in (32, 64)} | {"u8": "b8", "u16": "b16"}
"""Types that a move may have just as well: only its bits count."""
_HINTS = frozenset(("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak"))
_APPROXIMATE = frozenset(("approx", "full"))
MOST_NAMED = 6
"""Forms that a statement names of each kind."""


def form_of(instruction: Instruction) -> str:
    """The form of an instruction."""
    words = [w.removesuffix("::cta") for w in instruction.mods if not w.startswith(("L1::", "L2::"))]
    if instruction.op in _ACCESSES:
        words = [word for word in words if word not in _HINTS]
    if instruction.op in _MOVES:
        words = [_WORDS.get(word, word) for word in words]
    elif instruction.op == "bra":  # `.uni` is a hint, too
        words = []
    return ".".join((instruction.op, *words))


@cache
def recorded_forms() -> dict[str, Level]:
    """The forms that kernels recorded on a GPU execute: compared bit for bit, or within bounds."""
    level: Level = "recorded"
    found: dict[str, Level] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            level = "recorded" if line == "[recorded]" else "bounds"
        elif line and line[0] != "#":
            found[line] = level
    return found


def level_of(form: str) -> Level:
    """How far a form is known to be that of a GPU."""
    found = recorded_forms().get(form)
    if found is not None:
        return found
    return "bounds" if _APPROXIMATE.intersection(form.split(".")) else "manual"


@dataclass(frozen=True)
class Fidelity:
    """The forms that a launch has executed, each with the number of thread-instructions, by what is known of them."""

    recorded: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    manual: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, forms: Mapping[str, int]) -> Fidelity:
        """From the number of thread-instructions of each form."""
        groups: dict[Level, dict[str, int]] = {"recorded": {}, "bounds": {}, "manual": {}}
        for form in sorted(forms):
            groups[level_of(form)][form] = forms[form]
        return cls(**groups)

    @classmethod
    def of_launches(cls, launches: Iterable[Mapping[str, int]]) -> Fidelity:
        """The same of several launches together."""
        return cls.of(sum((Counter(forms) for forms in launches), Counter[str]()))

    def __str__(self) -> str:
        """The statement, in a sentence for each kind that there is."""
        total = sum(sum(group.values()) for group in (self.recorded, self.bounds, self.manual))
        count = len(self.recorded) + len(self.bounds) + len(self.manual)
        if not count:
            return "fidelity: nothing was executed"
        share = 100 * sum(self.recorded.values()) / total
        shown = "100" if share == 100 else f"{min(share, 99.9):.1f}"
        sentences = [
            f"fidelity: of {count} forms of instructions {len(self.recorded)} are recorded bit for bit on {CARD}, "
            f"{shown} % of those that ran"
        ]
        if self.bounds:
            sentences.append(f"approximate, within the bounds of the PTX ISA: {_named(self.bounds)}")
        if self.manual:
            sentences.append(f"taken from the PTX ISA alone: {_named(self.manual)}")
        return "\n  ".join(sentences)


def _named(forms: Mapping[str, int]) -> str:
    """The forms that ran most often."""
    names = sorted(forms, key=lambda form: (-forms[form], form))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
