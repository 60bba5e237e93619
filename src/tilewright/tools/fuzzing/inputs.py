"""What programs read: records of 128 threads, by a few seeds; and how their outputs are compared."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Final

import numpy as np

from tilewright.tools.fuzzing.drawing import bits_of
from tilewright.tools.fuzzing.program import FREE_SLOT, OUT_BYTES, OUTPUTS, REGISTERS, SLOTS, THREADS, Program

INPUTS: Final = 8
"""How many different inputs there are; program `seed` reads that of `seed % INPUTS`."""
_FLOATS: Final = {"f": (32, 0x7F800000), "g": (64, 0x7FF0000000000000), "e": (16, 0x7C00), "b": (16, 0x7F80),
                  "x": (16, 0x7C00), "y": (16, 0x7F80)}  # fmt: skip
_WORDS: Final = {16: np.uint16, 32: np.uint32, 64: np.uint64}
Array = np.ndarray[Any, Any]


@cache
def records(which: int) -> Array:
    """(THREADS, SLOTS) words of 64 bits; those of register slots hold values of the register's kind."""
    rng = random.Random(f"input {which}")
    kinds = [register[1] if register[1] != "p" else "r" for register in REGISTERS]
    kinds += ["d" if slot % 2 else "r" for slot in range(FREE_SLOT, SLOTS)]
    found = np.array([[bits_of(kind, rng) for kind in kinds] for _ in range(THREADS)], np.uint64)
    found[:, FREE_SLOT:] |= np.array([[rng.getrandbits(64) for _ in range(FREE_SLOT, SLOTS)] for _ in range(THREADS)],
                                     np.uint64) << np.uint64(32)  # fmt: skip
    return found


def record_of(program: Program) -> Array:
    """The input of a program."""
    return records(program.seed % INPUTS)


def outputs_of(program: Program, memory: Array) -> Array:
    """(THREADS, outputs) words that a program stored, from the bytes of its output memory, NaNs made the same."""
    stored = memory[: THREADS * OUTPUTS * 8].view(np.uint64).reshape(THREADS, OUTPUTS)
    found = stored[:, : len(program.outputs)].copy()
    for place, register in enumerate(program.outputs):
        if register[1] in _FLOATS:
            _same_nans(found[:, place : place + 1], *_FLOATS[register[1]])
    return found


def _same_nans(column: Array, width: int, infinity: int) -> None:
    """Every NaN of a column of words, in place, becomes the one of all ones: PTX leaves its sign and payload free."""
    parts = column.view(_WORDS[width])
    size = parts.itemsize * 8
    magnitude = parts & parts.dtype.type((1 << size - 1) - 1)
    parts[magnitude > infinity] = (1 << size) - 1


def memory() -> Array:
    """Output memory before a run."""
    return np.zeros(OUT_BYTES, np.uint8)
