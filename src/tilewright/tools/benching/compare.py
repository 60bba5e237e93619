"""Two files of results, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.tools.benching.suite_run import identity

NOISE = 0.01
"""Two runs of the same code differ by so much."""


@dataclass(frozen=True)
class Change:
    """A row in both files, its median times in microseconds."""

    row: Mapping[str, Any]
    old_us: float
    new_us: float

    @property
    def ratio(self) -> float:
        """New time over old: below 1 is faster."""
        return self.new_us / self.old_us

    @property
    def verdict(self) -> str:
        """faster, slower, or the same within the noise."""
        if abs(self.ratio - 1) <= NOISE:
            return "same"
        return "faster" if self.ratio < 1 else "slower"


@dataclass(frozen=True)
class Comparison:
    """What two files have in common, and what only one of them has."""

    changes: list[Change]
    only_old: list[Mapping[str, Any]]
    only_new: list[Mapping[str, Any]]


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """The rows with times of two files, in the order of the new one."""
    before, after = dict(_timed(old)), dict(_timed(new))
    changes = [Change(row, before[key]["p50_us"], row["p50_us"]) for key, row in after.items() if key in before]
    only_old = [row for key, row in before.items() if key not in after]
    only_new = [row for key, row in after.items() if key not in before]
    return Comparison(changes, only_old, only_new)


def _timed(contents: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    return ((identity(row), row) for row in contents["results"] if row.get("p50_us"))
