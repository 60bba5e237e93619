"""Every barrier and flag of the kernels is needed: without one, or with less order, the emulator reports the kernel."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.collectives.ranks import run_ranks, whole_numbers
from tilewright.base.errors import EmulationError
from tilewright.dist import collectives
from tilewright.kernels import exchanging

SEEDS = (0, 1, 2, 3)
WORLD = 2
WEAKER = {
    "bar.sync": [("removed", r".*", "")],
    "st.release.sys": [("removed", r".*", ""), ("relaxed", "release", "relaxed"), ("scope gpu", "sys", "gpu")],
    "ld.acquire.sys": [("relaxed", "acquire", "relaxed"), ("scope gpu", "sys", "gpu")],
    "st.relaxed.sys.global.v2": [("removed", r".*", ""), ("weak", r"\.relaxed\.sys", ""), ("scope gpu", "sys", "gpu")],
    "ld.relaxed.sys": [("weak", r"\.relaxed\.sys", ""), ("scope gpu", "sys", "gpu")],
}


def places(text: str) -> Iterator[tuple[int, str, str, str]]:
    """(line, name, pattern, replacement) of each way in which one instruction can be less than it is."""
    for number, line in enumerate(text.splitlines()):
        for mark, ways in WEAKER.items():
            if mark in line and not line.lstrip().startswith("//"):
                yield from ((number, f"{mark} {name}", old, new) for name, old, new in ways)


def mutated(text: str, place: tuple[int, str, str, str]) -> str:
    lines = text.splitlines()
    number, _, old, new = place
    lines[number] = re.sub(old, new, lines[number], count=1)
    return "\n".join(lines)


class Mutating:
    """Stands in for the communicator's compiler, and keeps what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.change = folder, (), lambda text: text
        self.text = ""
        self.made: dict[str, Any] = {}

    def __call__(self, *asked: Any) -> Any:
        original = collectives.compiled(*asked) if not self.text else None
        if original is not None:
            self.text = str(original.stages["ptx"])
        text = self.change(self.text)
        if text not in self.made:
            path = self.folder / f"{len(self.made)}.ptx"
            path.write_text(text)
            self.made[text] = collectives.compiled(*asked, override={"ptx": path})
        return self.made[text]


def reported(call: Callable[..., Any], arrays: list[Any]) -> str:
    """The kind of what the emulator reports under one of the seeds; empty if nothing."""
    for seed in SEEDS:
        try:
            run_ranks(WORLD, arrays, call, seed, part=1 << 12, lines=1 << 11, timeout=1e-4)
        except EmulationError as error:
            return error.kind
    return ""


two_halves = exchanging.arrivals


@cute.jit
def one_half(node: Any, rank: Any, source: Any, epoch: Any, plan: cutlass.Constexpr) -> cute.Int64:
    return two_halves(node, rank, source, 0, plan)


@pytest.mark.parametrize("name", ["one_shot", "all_gather"])
def test_a_region_of_one_half_is_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank would write over what another has not read yet."""
    monkeypatch.setattr(collectives, "_executor", functools.cache(collectives.compiled))
    monkeypatch.setattr(exchanging, "arrivals", one_half)
    assert reported(several_calls(name), whole_numbers(WORLD, 300, np.int32)) == "race"


def several_calls(name: str) -> Callable[..., Any]:
    """Three calls of a collective."""

    def call(comm: collectives.Communicator, x: Any, rank: int) -> Any:
        for _ in range(3):
            comm.all_gather(x) if name == "all_gather" else comm.all_reduce(x, algo=name)
        return x

    return call


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("lamport", 6), ("one_shot", 8), ("two_shot", 16), ("all_gather", 8)])
def test_all_mutants_are_reported(name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutating = Mutating(tmp_path)
    monkeypatch.setattr(collectives, "_executor", mutating)
    arrays = whole_numbers(WORLD, 3000, np.int32)

    call = several_calls(name)
    assert not reported(call, arrays)
    found = list(places(mutating.text))
    missed = []
    for place in found:
        mutating.change = lambda text, place=place: mutated(text, place)
        if reported(call, arrays) not in ("race", "trap", "deadlock", "barrier"):
            missed.append((place[1], mutating.text.splitlines()[place[0]]))
    assert len(found) >= least
    assert not missed
