"""Which registers of a PTX text a value may come to, or come from: by names, for all kernels of the text at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_STATEMENT = re.compile(r"(?:^|\s)([a-z]\w*(?:\.\w+)*)[ \t]+(\{[^{}]*\}|%\w+), ([^;]*);")
_REGISTER = re.compile(r"%\w+")


class Definition(NamedTuple):
    """An instruction that gives registers a value: its operation, and the registers that it writes and reads."""

    operation: str
    results: tuple[str, ...]
    operands: tuple[str, ...]


def definitions(ptx: str) -> list[Definition]:
    """All instructions of the text whose first operand is a register or a group of them."""
    return [
        Definition(operation, tuple(_REGISTER.findall(results)), tuple(_REGISTER.findall(operands)))
        for operation, results, operands in _STATEMENT.findall(ptx)
    ]


def results_of(operation: re.Pattern[str], rows: Iterable[Definition]) -> set[str]:
    """The registers that instructions of an operation write."""
    return {name for row in rows if operation.fullmatch(row.operation) for name in row.results}


def operands_of(operation: re.Pattern[str], rows: Iterable[Definition]) -> set[str]:
    """The registers that instructions of an operation read."""
    return {name for row in rows if operation.fullmatch(row.operation) for name in row.operands}


def reached(seeds: set[str], passed_on: re.Pattern[str], rows: Iterable[Definition]) -> set[str]:
    """Registers that the value of a seed may come to through operations that begin with `passed_on`."""
    return _closure(seeds, [(row.operands, row.results) for row in rows if passed_on.match(row.operation)])


def sources(seeds: set[str], passed_on: re.Pattern[str], rows: Iterable[Definition]) -> set[str]:
    """Registers whose value may come to a seed in that way."""
    return _closure(seeds, [(row.results, row.operands) for row in rows if passed_on.match(row.operation)])


def _closure(seeds: set[str], steps: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> set[str]:
    following: dict[str, set[str]] = {}
    for before, after in steps:
        for name in before:
            following.setdefault(name, set()).update(after)
    found, waiting = set(seeds), list(seeds)
    while waiting:
        new = following.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
