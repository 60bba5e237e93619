"""What the puzzles of `examples/puzzles` call to be checked.

A function runs on the emulator, and must give what it should. The emulator runs with all checks, so a race, a wrong
access or a value that nobody wrote is reported as such, before any result is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.base.errors import TilewrightError
from tilewright.emulate import observe

ARCH = "sm_90a"
NEVER = -99.0
"""What outputs hold before a kernel runs."""


class Unsolved(AssertionError):
    """A puzzle whose function does not do yet what it should; the message says where it differs."""


def check(
    number: int,
    function: Any,
    arguments: Sequence[Any],
    expected: np.ndarray,
    *,
    limits: Mapping[str, int] | None = None,
    instructions: Sequence[str] = (),
    tolerance: float = 0.0,
    output: np.ndarray | None = None,
    start: float = NEVER,
) -> None:
    """Run a `@cute.jit` function, whose last argument is the output, and print that the puzzle is solved.

    Args:
        number: the puzzle's.
        function: called with `arguments`.
        arguments: arrays, and tensors made by `from_dlpack`; the last is the output.
        expected: what the output should be.
        limits: the most that counters of the emulator's report may say, such as `bank_conflicts`.
        instructions: instructions that must be in the PTX, such as `shfl.sync`.
        tolerance: the greatest error, relative to the greatest expected value.
        output: the array behind the last argument, where that is a tensor.
        start: what the output is filled with before; a value that no result has, unless the kernel adds to it.

    Raises:
        Unsolved: an element is wrong, a limit is passed or an instruction is missing.
        EmulationError: the kernel does something that is wrong in itself.
    """
    filled = arguments[-1] if output is None else output
    filled[...] = start
    try:
        compiled = cute.compile(function, *arguments, target="emu", options=f"--gpu-arch {ARCH}")
        with observe(counters=True) as reports:
            compiled(*arguments)
    except TilewrightError as error:
        error.add_note(f"Puzzle {number} is not solved yet: the message above says what is wrong.")
        raise
    compare(number, filled, expected, tolerance)
    for counter, most in (limits or {}).items():
        found = sum(getattr(report, counter) for report in reports)
        if found > most:
            raise Unsolved(f"Puzzle {number}: the result is right, with {found} {counter}; it can be had with {most}.")
    ptx = compiled.stages["ptx"]
    if missing := [name for name in instructions if name not in ptx]:
        raise Unsolved(f"Puzzle {number}: the result is right, but it is meant to be had by {' and '.join(missing)}.")
    print(f"Puzzle {number} is solved.")


def compare(number: int, output: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Compare two arrays; the message of the exception names the first place that is wrong."""
    allowed = tolerance * np.abs(expected).max()
    wrong = np.argwhere(~(np.abs(output.astype(np.float64) - expected) <= allowed))
    if not len(wrong):
        return
    place = tuple(int(index) for index in wrong[0])
    index = ", ".join(map(str, place))
    value = "was never written" if output[place] == NEVER else f"is {output[place]}"
    raise Unsolved(
        f"Puzzle {number} is not solved yet: y[{index}] {value} and should be {expected[place]}"
        f" ({len(wrong)} of {expected.size} elements are wrong)."
    )
