"""Seeded faults: correct kernels, their mutants, and what the emulator says of each.

A mutant lacks one synchronising instruction, waits or orders less, or has a shared-memory offset or a guard shifted.
Under each of several seeds it gives the right output, or another one, or fails. Every mutant that breaks a rule of
the memory must be reported. One that gives the same other output under all seeds, and breaks no rule, is a different
program that is as well defined as the first: no check can know that it was not meant ("other").
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

DATA = Path(__file__).parent / "data" / "engine"
PTX = (DATA / "faults.ptx").read_text()
KINDS = ("reported", "equal", "other", "missed")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FALSE_ALARMS = {("named_barriers", "racecheck")}
"""Tools that object to a correct kernel: racecheck takes no notice of `bar.arrive`, and says nothing reliable there."""
HEAD = (
    "| kernel | what it uses | mutants | reported | equal | other | missed "
    "| wrong on an H100 | compute-sanitizer | SentryWard |"
)
SEEDS = (0, 1, 2, 3)
LIMIT = 200_000
MOST_SHIFTS = 6
Array = np.ndarray[Any, Any]

SYNC = re.compile(
    r"^[ \t]*(?:@!?%p\d+ )?(?:bar|barrier|fence|membar|wgmma\.fence|wgmma\.wait|wgmma\.commit|"
    r"cp\.async\.(?:wait|commit)|mbarrier\.arrive\.shared|mbarrier\.arrive\.expect)[^;{]*;",
    re.MULTILINE,
)
ORDER = re.compile(r"\.(acquire|release)(?=\.gpu)")
WAIT = re.compile(r"\{\s*\.reg \.pred p;\s*mbarrier\.try_wait[^}]*\}")
OFFSET = re.compile(r"(?<=(?:ld|st)\.shared\.)(\w+[ \t]+[^\[;]*\[[^\]+]+)(\+\d+)?(?=\])")
GUARD = re.compile(r"setp\.(ge|gt|lt|le)\.(?=[us]32[ \t]+%p\d+, %r\d+, %?r?\d+;)")
SHIFTED = {"ge": "gt", "gt": "ge", "lt": "le", "le": "lt"}


@dataclass(frozen=True)
class Case:
    """A kernel, its launch, and a function that makes arguments and the expected results (by argument)."""

    name: str
    uses: str
    grid: tuple[int, int]
    block: tuple[int, int]
    make: Callable[[], tuple[list[Any], dict[int, Array]]]
    cluster: int = 1


@dataclass(frozen=True)
class Mutant:
    """A changed text; `what` names the change."""

    case: Case
    what: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """`outcomes`: what each seed gives without checks, empty where right; `report`: the first finding of the checks."""

    mutant: Mutant
    outcomes: tuple[str, ...]
    report: str

    @property
    def kind(self) -> str:
        """reported, missed (an outcome depends on the seed), other (wrong, but always the same) or equal."""
        if self.report:
            return "reported"
        if not any(self.outcomes):
            return "equal"
        return "other" if len(set(self.outcomes)) == 1 else "missed"


def _random(shape: tuple[int, ...], dtype: Any, low: int = -4, high: int = 5) -> Array:
    return np.random.default_rng(7).integers(low, high, shape).astype(dtype)


def _row_sum():
    a = _random((3, 700), np.float32)
    return [a, np.zeros(3, np.float32), 700], {1: a.sum(axis=1)}


def _transpose():
    a = _random((64, 64), np.float32, 0, 10000)
    return [a, np.zeros_like(a), 64], {1: a.T}


def _scan():
    a = _random((2, 128), np.int32)
    return [a, np.zeros_like(a)], {1: a.cumsum(axis=1, dtype=np.int32)}


def _copy_ring():
    a = _random((6, 128, 4), np.float32, 0, 10000)
    return [a, np.zeros_like(a), 6], {1: a[:, ::-1]}


def _bulk_ring():
    a = _random((6, 256), np.float32, 0, 10000)
    return [a, np.zeros_like(a), 6], {1: 2 * a}


def _named_barriers():
    a = _random((4, 64), np.int32, 0, 10000)
    return [a, np.zeros_like(a), 4], {1: a[:, ::-1] + 1}


def _warp_product():
    a, b = _random((16, 16), np.float16), _random((16, 8), np.float16)
    return [a, b, np.zeros((16, 8), np.float32)], {2: a.astype(np.float32) @ b.astype(np.float32)}


def _group_product():
    a, b = _random((64, 16), np.float16), _random((8, 16), np.float16)
    return [a, b, np.zeros((64, 8), np.float32)], {2: a.astype(np.float32) @ b.T.astype(np.float32)}


def _cluster_exchange():
    ranks = np.arange(8)[:, None] % 4
    return [np.zeros((8, 32), np.int32)], {0: (ranks + 1) % 4 * 100 + np.arange(32)}


def _message():
    a = _random((64,), np.int32, 0, 10000)
    wanted = np.zeros((3, 64), np.int32)
    wanted[1:] = 3 * a[::-1]
    return [a, np.zeros_like(a), np.zeros(1, np.int32), np.zeros((3, 64), np.int32)], {3: wanted}


def _last_block():
    a = _random((8, 64), np.int32)
    zero = np.zeros(1, np.int32)
    return [a, np.zeros(8, np.int32), zero, zero.copy()], {3: a.sum(keepdims=True).reshape(1)}


def _lock():
    return [np.zeros(1, np.int32), np.zeros(1, np.int32)], {1: np.array([12])}


CASES = (
    Case("row_sum", "barriers in a loop", (3, 1), (256, 1), _row_sum),
    Case("transpose", "a tile in shared memory", (2, 2), (32, 8), _transpose),
    Case("scan", "two buffers", (2, 1), (128, 1), _scan),
    Case("copy_ring", "cp.async groups", (1, 1), (128, 1), _copy_ring),
    Case("bulk_ring", "bulk copies, mbarriers, a producer warp", (1, 1), (160, 1), _bulk_ring),
    Case("named_barriers", "bar.sync and bar.arrive with counts", (1, 1), (128, 1), _named_barriers),
    Case("warp_product", "ldmatrix, mma.sync", (1, 1), (64, 1), _warp_product),
    Case("group_product", "wgmma, proxy fence", (1, 1), (128, 1), _group_product),
    Case("cluster_exchange", "shared memory of other blocks", (8, 1), (32, 1), _cluster_exchange, 4),
    Case("message", "release and acquire between blocks", (3, 1), (64, 1), _message),
    Case("last_block", "fences and a relaxed atomic", (8, 1), (64, 1), _last_block),
    Case("lock", "compare-and-swap", (3, 1), (128, 1), _lock),
)


def run(case: Case, text: str, checks: bool, seed: int) -> str:
    """Empty if the kernel ends with the right results, else what happened."""
    args, wanted = case.make()
    try:
        run_ptx(
            text, case.name, case.grid, case.block, args, cluster=case.cluster, checks=checks, seed=seed, limit=LIMIT
        )
    except EmulationError as error:
        return error.message
    wrong = [k for k, value in wanted.items() if not np.array_equal(args[k], value)]
    return f"argument {wrong[0]} is wrong ({zlib.crc32(args[wrong[0]].tobytes()):08x})" if wrong else ""


def body_of(name: str) -> tuple[int, int]:
    """Where the kernel's text begins and ends in `PTX`."""
    start = PTX.index(f".entry {name}(")
    end = PTX.find(".entry", start + 6)
    return start, end if end >= 0 else len(PTX)


def mutants(case: Case) -> Iterator[Mutant]:
    """All mutants of a kernel, in the order of the text."""
    start, end = body_of(case.name)
    body = PTX[start:end]

    def changed(at: int, to: int, new: str, what: str) -> Mutant:
        line = PTX.count("\n", 0, start + at) + 1
        return Mutant(case, f"line {line}: {what}", PTX[: start + at] + new + PTX[start + to :])

    for match in SYNC.finditer(body):
        yield changed(match.start(), match.end(), "", f"without {' '.join(match.group().split())}")
    for match in ORDER.finditer(body):
        yield changed(match.start(1), match.end(1), "relaxed", f"relaxed, not {match.group(1)}")
    for match in WAIT.finditer(body):
        always = re.search(r"selp\.u32 (%r\d+)", match.group()).expand(r"mov.u32 \1, 1;")
        yield changed(match.start(), match.end(), always,
                      "without mbarrier.try_wait")  # fmt: skip
    for match in islice(OFFSET.finditer(body), MOST_SHIFTS):
        offset = int(match.group(2) or 0) + 4
        yield changed(match.start(), match.end(), f"{match.group(1)}+{offset}", "shared offset shifted by 4")
    for match in GUARD.finditer(body):
        yield changed(
            match.start(1), match.end(1), SHIFTED[match.group(1)], f"{SHIFTED[match.group(1)]}, not {match.group(1)}"
        )


def judge(mutant: Mutant) -> Verdict:
    """Run a mutant unchecked under all seeds, then with checks."""
    outcomes = tuple(run(mutant.case, mutant.text, False, seed) for seed in SEEDS)
    report = next((found for seed in SEEDS[:2] if (found := run(mutant.case, mutant.text, True, seed))), "")
    return Verdict(mutant, outcomes, "" if report.startswith("argument") else report)


def recorded(name: str) -> dict[tuple[str, str], dict[str, str]]:
    """What another judge said, by kernel and change: `sanitizer` (an H100), `sentryward` (static)."""
    rows = json.loads((DATA / f"{name}.json").read_text())["rows"]
    return {(row["kernel"], row["change"]): row for row in rows}


def wrong_on_gpu(row: dict[str, str]) -> bool:
    """The kernel ended with other results on the H100, or did not end."""
    return row["output"] != "right"


def sanitized(row: dict[str, str]) -> bool:
    """One of compute-sanitizer's tools reported it, and has nothing against the correct kernel."""
    return any(row[tool] for tool in TOOLS if (row["kernel"], tool) not in FALSE_ALARMS)


def harmful(row: dict[str, str]) -> bool:
    """Wrong on the H100, or reported there."""
    return wrong_on_gpu(row) or sanitized(row)


def refused(row: dict[str, str]) -> bool:
    """The static verifier proved something wrong; what it cannot decide is not counted."""
    return row["result"] in ("potential_race", "not_wellsynced", "invalid_lifecycle")


def compared(verdicts: list[Verdict]) -> Counter[tuple[str, bool]]:
    """Mutants that an H100 ran, by the emulator's verdict and whether they are harmful there."""
    rows = recorded("sanitizer")
    keys = [(v, (v.mutant.case.name, v.mutant.what)) for v in verdicts]
    return Counter((v.kind, harmful(rows[key])) for v, key in keys if key in rows)


def _count(keys: list[tuple[str, str]], judge_of: str, test: Callable[[dict[str, str]], bool]) -> str:
    """How many of a kernel's mutants a judge objects to; a dash where it has no verdict on the correct kernel."""
    rows = recorded(judge_of)
    correct = rows.get((keys[0][0], ""))
    if correct is None or correct.get("result", "race_free") != "race_free":
        return "–"
    return str(sum(test(rows[key]) for key in keys))


def table_row(case: Case, verdicts: list[Verdict]) -> list[str]:
    """One kernel's cells."""
    kinds = [verdict.kind for verdict in verdicts]
    keys = [(case.name, verdict.mutant.what) for verdict in verdicts]
    ours = [str(kinds.count(kind)) for kind in KINDS]
    others = [_count(keys, "sanitizer", wrong_on_gpu), _count(keys, "sanitizer", sanitized)]
    return [f"`{case.name}`", case.uses, str(len(kinds)), *ours, *others, _count(keys, "sentryward", refused)]


def table() -> str:
    """The verdicts on all mutants, as a table for the documentation, and how they compare with the H100's."""
    judged = {case: [judge(mutant) for mutant in mutants(case)] for case in CASES}
    rows = [table_row(case, verdicts) for case, verdicts in judged.items()]
    sums = [str(sum(int(row[k]) for row in rows if row[k] != "–")) for k in range(2, len(rows[0]))]
    lines = [HEAD, "|".join(["", *["---"] * HEAD.count(" | "), "---", ""])]
    lines += [f"| {' | '.join(row)} |" for row in [*rows, ["all", "", *sums]]]
    both = compared([verdict for verdicts in judged.values() for verdict in verdicts])
    bad = sum(number for (_, harm), number in both.items() if harm)
    same, other, more = both["reported", True], both["other", True], both["reported", False]
    summary = f"{bad} harmful, of which {same} reported here and {other} other; {more} more reported here"
    lines += ["", f"{both.total()} mutants ran on the H100: {summary}."]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
