"""Python variables of threads: a debug build says in comments of the PTX what they hold (`lang.pinning`).

    // pin gemm.acc_row i32 : %r5
    // pin gemm.tile tensor f16 smem 16 (8,16):(16,1) : %r7

The threads that pass such a line have given the variable the value that is in its registers then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.base.errors import ArgumentError
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.ptx import Instruction
from tilewright.tools.debugger.numbers import decoded


@dataclass(frozen=True)
class Kind:
    """What a pin says of a variable: its function, name, and what it is (`i32`, `tensor f16 ...`, `constant 3`)."""

    function: str
    name: str
    text: str


@dataclass
class Variable:
    """A variable of all threads of a batch: by lane the kind of its value (0 for none) and the words of it."""

    which: Array
    words: list[Array] = field(default_factory=list)


class Variables:
    """The variables of the threads of a batch."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._kinds: list[Kind | None] = [None]
        self._numbers: dict[Kind, int] = {}
        self._variables: dict[tuple[str, str], Variable] = {}
        self._known: dict[int, tuple[Instruction, Kind]] = {}

    def bind(self, instruction: Instruction, L: Lanes, values: Sequence[Any]) -> None:
        """Threads have passed a pin with these values in its registers."""
        kind = self._kind(instruction)
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._kinds)
            self._kinds.append(kind)
        key = kind.function, kind.name
        variable = self._variables.get(key)
        if variable is None:
            variable = self._variables[key] = Variable(np.zeros(self._lanes, np.int32))
        variable.which[L.ids] = number
        while len(variable.words) < len(values):
            variable.words.append(np.zeros(self._lanes, np.uint64))
        for words, value in zip(variable.words, values, strict=False):
            words[L.ids] = _raw(value)

    def _kind(self, instruction: Instruction) -> Kind:
        known = self._known.get(id(instruction))
        if known is None:
            known = self._known[id(instruction)] = instruction, parsed(instruction)
        return known[1]

    def names(self, lane: int) -> list[tuple[str, str]]:
        """(function, name) of the variables that a lane has, in the order in which they came to be."""
        return [key for key, variable in self._variables.items() if variable.which[lane]]

    def value(self, function: str, name: str, lane: int) -> tuple[Kind, list[int]]:
        """What a variable of one lane holds: its kind and words.

        Raises:
            ArgumentError: it has none.
        """
        variable = self._variables.get((function, name))
        kind = self._kinds[variable.which[lane]] if variable is not None else None
        if variable is None or kind is None:
            raise ArgumentError(f"the thread has no variable {name}", hint="`variables` lists those that it has")
        return kind, [int(words[lane]) for words in variable.words]

    def numbers(self, name: str, L: Lanes, function: str) -> Array:
        """A variable that is a number, for all lanes of `L`; of several of one name that of `function`.

        Raises:
            ArgumentError: there is none, or it is no number.
        """
        keys = [key for key in self._variables if key[1] == name]
        keys.sort(key=lambda key: key[0] != function)
        for key in keys:
            variable = self._variables[key]
            kinds = {self._kinds[n] for n in np.unique(variable.which[L.ids]).tolist()}
            (kind, *more) = sorted((k for k in kinds if k is not None), key=lambda k: k.text) or [None]
            if kind is None:
                continue
            values = _constant(kind, L) if kind.text.startswith("constant ") else None
            if values is None and not more and variable.words:
                values = decoded(kind.text, variable.words[0][L.ids])
            if values is not None:
                return values
        raise ArgumentError(f"there is no number {name} here", hint="`variables` lists those of the thread")


def _constant(kind: Kind, L: Lanes) -> Array | None:
    try:
        return np.full(L.n, float(kind.text.split(" ", 1)[1]))
    except ValueError:
        return None


def _raw(value: Any) -> Any:
    """The bits of a register, as 64 bits."""
    array = np.asarray(value)
    if array.dtype.kind == "b":
        return array.astype(np.uint64)
    return array.view(f"u{array.dtype.itemsize}").astype(np.uint64)


def parsed(instruction: Instruction) -> Kind:
    """The kind that the text of a pin names."""
    text = instruction.text.removeprefix("// pin ").rpartition(" :")[0]
    path, _, rest = text.partition(" ")
    function, _, name = path.partition(".")
    return Kind(function, name, rest)
