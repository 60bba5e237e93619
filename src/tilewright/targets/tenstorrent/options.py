"""The options of this back end beside those that every back end has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from tilewright.base.errors import CompileError
from tilewright.targets.options import Options

DST_MODES = ("fp32", "bf16")
FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
PROFILES = ("ttnn-0.81",)


@dataclass(frozen=True)
class TenstorrentOptions(Options):
    """`--core-grid 8x8`: the cores to spread blocks over, columns by rows. `--dst fp32|bf16`: what DST accumulates in.
    `--fidelity`: of the matrix engine. `--profile`: the API that the C++ is written for."""

    core_grid: str = "8x8"
    dst: str = "fp32"
    fidelity: str = "HiFi4"
    profile: str = "ttnn-0.81"

    def checked(self) -> Self:
        for flag, value, known in (
            ("--dst", self.dst, DST_MODES),
            ("--fidelity", self.fidelity, FIDELITIES),
            ("--profile", self.profile, PROFILES),
        ):
            if value not in known:
                raise CompileError(f"{flag} {value!r} is not known", hint=f"one of {', '.join(known)}")
        grid_of(self.core_grid)
        return super().checked()


def grid_of(text: str) -> tuple[int, int]:
    """`8x4` as (8, 4).

    Raises:
        CompileError: it is no grid of cores.
    """
    columns, _, rows = text.partition("x")
    if not (columns.isdigit() and rows.isdigit() and int(columns) and int(rows)):
        raise CompileError(f"--core-grid {text!r} is no grid", hint="columns by rows, as in 8x4")
    return int(columns), int(rows)
