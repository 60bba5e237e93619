"""Correct kernels with named mistakes.

A kernel takes `slip`, the name of the mistake that it makes, or "". A comment `# kernel: word` names a line; a mistake
says which lines a finding may name. `compiled` says that the compiler refuses it; all others are found by the emulator.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import tilewright.cute as cute
from tilewright.emulate import observe

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Slip:
    """A mistake: what is wrong, the lines `at` which it may be found, the kinds of finding that it may give (none:
    refused while compiling)."""

    name: str
    what: str
    at: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    words: str = ""

    @property
    def compiled(self) -> bool:
        return not self.kinds


def slip(name: str, what: str, at: str, kinds: str = "", words: str = "") -> Slip:
    """A mistake found by the emulator as one of `kinds`, or refused with `words` in the message."""
    return Slip(name, what, tuple(at.split()), tuple(kinds.split()), words)


@dataclass(frozen=True)
class Case:
    """A kernel: its host function, its arguments with the results expected, and its mistakes."""

    name: str
    what: str
    host: Callable[..., Any]
    make: Callable[[], tuple[list[Array], dict[int, Array]]]
    slips: tuple[Slip, ...]

    @cached_property
    def file(self) -> Path:
        return Path(inspect.getfile(inspect.unwrap(self.host)))

    def lines(self, slip: Slip) -> set[int]:
        """The lines at which a mistake may be found: of a statement, the first and the last one."""
        tree = ast.parse(self.file.read_text())
        marked = [n for n, line in enumerate(self.file.read_text().splitlines(), 1)
                  if line.rpartition(f"# {self.name}: ")[2] in slip.at and f"# {self.name}: " in line]  # fmt: skip
        found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.end_lineno in marked]
        return {node.lineno for node in found} | set(marked)

    def compile(self, name: str = "") -> Any:
        """The host function compiled, with this mistake."""
        arrays, _ = self.make()
        return cute.compile(self.host, *_static(arrays), name, target="emu")

    def run(self, compiled: Any, seed: int) -> None:
        """Run it with all checks, and compare what it writes."""
        arrays, wanted = self.make()
        with observe(seed=seed, timeout=60):
            compiled(*_static(arrays))
        for number, expected in wanted.items():
            np.testing.assert_array_equal(arrays[number], expected)


def _static(arrays: list[Array]) -> list[Any]:
    return [cute.runtime.from_dlpack(array, assumed_align=16) for array in arrays]
