"""The demonstration: four kernels compiled through every stage, run, and compared with NumPy in float64."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import tilewright.cute as cute
from tilewright.base.errors import CompileError
from tilewright.targets.nvidia.devices import driver
from tilewright.tools import demo_kernels as kernels

SEED = 0
SUM_TOLERANCE = 1e-6
"""Allowed error of a float32 sum, in units of the sum of the absolute values."""
ROUNDING = 2.0**-24
"""Half a unit in the last place of a float32, relative to its value."""


@dataclass(frozen=True)
class Problem:
    """Arguments of a kernel, the last being its output, with the exact result and the error allowed at each place."""

    arguments: tuple[np.ndarray, ...]
    exact: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True)
class Case:
    """A kernel of the demonstration. `block` is its number of threads per block."""

    title: str
    function: Any
    block: int
    problem: Callable[[np.random.Generator], Problem]


@dataclass(frozen=True)
class Outcome:
    """What compiling and running a case gave. `error` is the greatest error, `allowed` the bound at that place.

    `seconds` has the time of each call of `cute.compile`, by the names of `CALLS`.
    """

    case: Case
    executor: Any
    error: float
    allowed: float
    seconds: dict[str, float]

    @property
    def right(self) -> bool:
        """Whether the error is within its bound."""
        return self.error <= self.allowed


def vector_add(generator: np.random.Generator) -> Problem:
    """A length that is no multiple of the block, so that the guard matters."""
    a, b = generator.standard_normal((2, 100_003), dtype=np.float32)
    exact = a.astype(np.float64) + b
    return Problem((a, b, np.full_like(a, np.nan)), exact, ROUNDING * np.abs(exact))


def row_sum(rows: int, columns: int) -> Callable[[np.random.Generator], Problem]:
    """Sums of the rows of a random matrix."""

    def problem(generator: np.random.Generator) -> Problem:
        x = generator.standard_normal((rows, columns), dtype=np.float32)
        exact = x.astype(np.float64).sum(axis=1)
        output = np.full(rows, np.nan, np.float32)
        return Problem((x, output), exact, SUM_TOLERANCE * np.abs(x).sum(axis=1, dtype=np.float64))

    return problem


def block_sum(generator: np.random.Generator) -> Problem:
    """Integers, whose sums are exact."""
    threads = kernels.TREE_THREADS
    x = generator.integers(-1000, 1000, 50_001, dtype=np.int32)
    padded = np.concatenate([x, np.zeros(-len(x) % threads, np.int32)]).astype(np.int64)
    exact = padded.reshape(-1, threads).sum(axis=1)
    return Problem((x, np.full(len(exact), -1, np.int32)), exact, np.zeros(len(exact)))


CALLS = ("cold", "warm", "filling", "cached")
"""How each case is compiled, in this order: first in the process, once more, then with the cache of compiled functions
on, twice, so that the last call finds what the one before it kept."""

TIMES = {"cold": "first call", "warm": "again", "cached": "cached"}
"""The rows of times below the stages: what a call of `cute.compile` takes."""

CASES = (
    Case("vector add", kernels.add, kernels.ADD_THREADS, vector_add),
    Case("row sum", kernels.row_sum, kernels.ROW_THREADS, row_sum(64, 4096)),
    Case("with layouts", kernels.row_sum_layout, kernels.LAYOUT_THREADS, row_sum(64, 4000)),
    Case("block sum", kernels.block_sum, kernels.TREE_THREADS, block_sum),
)


def run(console: Console, **compile_options: Any) -> bool:
    """Run all cases and print the two tables; whether every result is within its bound."""
    outcomes = [run_case(case, **compile_options) for case in CASES]
    console.print(f"Compiled for {outcomes[0].executor.arch}, ran on {where(outcomes[0].executor)}.", highlight=False)
    console.print(stage_table(outcomes))
    console.print(result_table(outcomes))
    return all(outcome.right for outcome in outcomes)


def run_case(case: Case, **compile_options: Any) -> Outcome:
    """Compile one case, run it, and compare; the error shown is the one that comes closest to its bound."""
    problem = case.problem(np.random.default_rng(SEED))
    made = {call: timed(case, problem, no_cache=call in ("cold", "warm"), **compile_options) for call in CALLS}
    executor = made["cold"][0]
    executor(*problem.arguments)
    errors = np.abs(problem.arguments[-1].astype(np.float64) - problem.exact)
    errors[np.isnan(errors)] = np.inf
    share = np.divide(errors, problem.allowed, out=np.where(errors > 0, np.inf, 0.0), where=problem.allowed > 0)
    worst = int(np.argmax(share))
    seconds = {call: taken for call, (_, taken) in made.items()}
    return Outcome(case, executor, float(errors[worst]), float(problem.allowed[worst]), seconds)


def timed(case: Case, problem: Problem, **compile_options: Any) -> tuple[Any, float]:
    """Compile a case; the executor, which is ready to be called, and the seconds that it took."""
    start = time.perf_counter()
    executor = cute.compile(case.function, *problem.arguments, **compile_options)
    return executor, time.perf_counter() - start


def where(executor: Any) -> str:
    """What the executor runs on."""
    if executor.target == "cuda":
        return f"{driver.driver().device().name} (CUDA driver)"
    return "the PTX emulator, with all checks"


def stage_table(outcomes: Sequence[Outcome]) -> Table:
    """Size and time of every stage, two columns for each kernel; then how long a call of `cute.compile` takes."""
    table = plain_table("Stages: lines (cubin: bytes), milliseconds", "stage")
    for outcome in outcomes:
        table.add_column(outcome.case.title, justify="right", no_wrap=True)
        table.add_column("ms", justify="right", no_wrap=True)
    for stage in outcomes[0].executor.stages:
        table.add_row(stage, *(cell for outcome in outcomes for cell in stage_cells(outcome.executor, stage)))
    table.add_section()
    for call, name in TIMES.items():
        table.add_row(name, *(cell for outcome in outcomes for cell in ("", f"{outcome.seconds[call] * 1e3:.1f}")))
    return table


def stage_cells(executor: Any, stage: str) -> tuple[str, str]:
    """Size and milliseconds of one stage; of a stage that cannot be made, such as for want of a tool, neither."""
    try:
        content = executor.stages[stage]
    except CompileError:
        return "missing", ""
    size = len(content) if isinstance(content, bytes) else content.count("\n")
    return f"{size:,}", f"{executor.timings[stage] * 1e3:.1f}"


def result_table(outcomes: Sequence[Outcome]) -> Table:
    """Error against NumPy in float64 with its bound, and what each kernel costs."""
    table = plain_table("Results: error against NumPy in float64, and what a kernel costs", "kernel")
    for column in ("error", "allowed", "registers", "spills", "shared", "occupancy"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("limited by", no_wrap=True)
    for outcome in outcomes:
        error = f"{'[green]' if outcome.right else '[red]wrong: '}{outcome.error:.2g}"
        table.add_row(outcome.case.title, error, f"{outcome.allowed:.2g}", *resource_cells(outcome))
    return table


def plain_table(title: str, first: str) -> Table:
    """A table that fits into 80 columns."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    table.add_column(first, no_wrap=True)
    return table


def resource_cells(outcome: Outcome) -> tuple[str, ...]:
    """Registers and spilled bytes per thread, shared bytes per block, occupancy and its limit; from the cubin."""
    executor = outcome.executor
    try:
        (kernel,) = executor.kernels.values()
        occupancy = executor.occupancy(block=outcome.case.block)
    except CompileError as error:
        return ("", "", "", "", error.message)
    info = kernel.info
    spills, shared = info.spill_store_bytes + info.spill_load_bytes, info.shared_bytes + executor.smem_bytes()
    return str(info.registers), f"{spills} B", f"{shared} B", f"{100 * occupancy.fraction:.0f} %", occupancy.limit
