"""Choosing registers and constants: what steps read and write."""

from __future__ import annotations

import random
from collections import deque
from typing import Final

from tilewright.tools.fuzzing.forms import KINDS
from tilewright.tools.fuzzing.program import WIDTH_OF

IMMEDIATE_KINDS: Final = "hrdfg"
_INTEGERS: Final = (0, 1, -1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, -128, -129, 255, 256, 32767, -32768)
_FLOATS: Final = {
    "f": (0, 1 << 31, 0x3F800000, 0xBF800000, 0x40000000, 0x3F000000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x7FFFFF,
          0x00800000, 0x7F7FFFFF, 0x4F000000, 0xCF000000, 0x4F800000, 0x477FE000, 0x33800000),
    "g": (0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000, 0x7FF8000000000000, 1,
          0x41E0000000000000, 0xC1E0000000000000, 0x43E0000000000000, 0x4340000000000000, 0x3CA0000000000000),
    "e": (0, 0x8000, 0x3C00, 0xBC00, 0x4000, 0x7C00, 0xFC00, 0x7E00, 1, 0x0400, 0x7BFF),
    "b": (0, 0x8000, 0x3F80, 0xBF80, 0x4000, 0x7F80, 0xFF80, 0x7FC0, 1, 0x0080, 0x7F7F),
}  # fmt: skip
_ELEMENTS: Final = {"f": "f", "g": "g", "e": "e", "b": "b", "x": "ee", "y": "bb"}


def bits_of(kind: str, rng: random.Random) -> int:
    """The bits of a value of a kind, odd ones often: a number from 0."""
    if kind in _ELEMENTS:
        elements, width = _ELEMENTS[kind], WIDTH_OF[_ELEMENTS[kind][0]]
        return sum(_float(element, width, rng) << width * place for place, element in enumerate(elements))
    width = WIDTH_OF[kind]
    return integer(width, rng) % (1 << width)


def integer(width: int, rng: random.Random) -> int:
    """A signed number of that many bits, often one at which something changes."""
    choice = rng.random()
    if choice < 0.4:
        return rng.choice(_INTEGERS)
    if choice < 0.6:
        return _signed((1 << rng.randrange(width)) - rng.randrange(2), width)
    if choice < 0.7:
        return rng.choice((-1 << width - 1, (1 << width - 1) - 1))
    return _signed(rng.getrandbits(rng.choice((8, width // 2, width, width))), width)


def _signed(value: int, width: int) -> int:
    half = 1 << width - 1
    return (value + half) % (2 * half) - half


def _float(kind: str, width: int, rng: random.Random) -> int:
    choice = rng.random()
    if choice < 0.35:
        return rng.choice(_FLOATS[kind])
    if choice < 0.6:
        return rng.getrandbits(width)
    # A number between 2**-4 and 2**4 with few digits.
    exponent, bias = {"f": (23, 127), "g": (52, 1023), "e": (10, 15), "b": (7, 127)}[kind]
    digits = rng.getrandbits(3) << exponent - 3 if choice < 0.85 else rng.getrandbits(exponent)
    return rng.getrandbits(1) << width - 1 | bias + rng.randrange(-4, 4) << exponent | digits


def literal(kind: str, bits: int) -> str:
    """Bits of a kind as an operand: floats in hexadecimal, integers signed."""
    if kind == "f":
        return f"0f{bits:08X}"
    if kind == "g":
        return f"0d{bits:016X}"
    return str(_signed(bits, WIDTH_OF[kind]))


class Drawing:
    """Draws what a program is made of from one generator of random numbers. Registers just written are preferred."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._recent: dict[str, deque[str]] = {kind: deque(maxlen=3) for kind in KINDS}
        self._names = 0

    def read(self, kind: str) -> str:
        """A register to read."""
        recent = self._recent[kind]
        if recent and self.rng.random() < 0.6:
            return self.rng.choice(list(recent))
        return self._any(kind)

    def write(self, kind: str) -> str:
        """A register to write."""
        name = self._any(kind)
        self._recent[kind].append(name)
        return name

    def writes(self, kinds: str) -> list[str]:
        """Different registers to write."""
        names: list[str] = []
        for kind in kinds:
            names.append(self.rng.choice([name for name in _all(kind) if name not in names]))
            self._recent[kind].append(names[-1])
        return names

    def reads(self, kinds: str) -> list[str]:
        """Registers to read, in any way the same."""
        return [self.read(kind) for kind in kinds]

    def source(self, kind: str) -> str:
        """A register or, at times, a constant."""
        if kind in IMMEDIATE_KINDS and self.rng.random() < 0.2:
            return literal(kind, bits_of(kind, self.rng))
        return self.read(kind)

    def latest(self, kind: str) -> list[str]:
        """The registers of a kind that were written last."""
        return list(dict.fromkeys(self._recent[kind]))

    def name(self, start: str) -> str:
        """A name that the program has not yet: of a label, a counter."""
        self._names += 1
        return f"{start}{self._names}"

    def _any(self, kind: str) -> str:
        return self.rng.choice(_all(kind))


def _all(kind: str) -> list[str]:
    return [f"%{kind}{number}" for number in range(KINDS[kind][1])]
