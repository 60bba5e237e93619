"""Many programs through several assemblers and the emulator: which ones disagree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tilewright.tools.fuzzing.assemblers import Assembler, Failure
from tilewright.tools.fuzzing.generator import generate
from tilewright.tools.fuzzing.machines import Machine, Outcome, emulated
from tilewright.tools.fuzzing.program import Program, module

BATCH: Final = 40
EMULATOR: Final = "emulator"
Change = Callable[[str], str]
"""A text of PTX to another one, before it is assembled."""


@dataclass(frozen=True)
class Finding:
    """A program on which the ways to run it disagree, or fail: what each that differs gave in the place of what."""

    program: Program
    differing: tuple[str, ...]
    wanted: Outcome
    found: Outcome

    @property
    def kind(self) -> str:
        """`crash`, `hang`, `refusal` of an assembler, `emulator` (a finding of its checks), `device`, `value`."""
        if isinstance(self.wanted, str):
            return "emulator"
        return self.found.split(":", 1)[0] if isinstance(self.found, str) else "value"


@dataclass
class Survey:
    """How many programs ran, those compared with the emulator, and what was found."""

    programs: int = 0
    exact: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Made:
    """A batch of programs: what the emulator gives, and a cubin or a failure by the assembler's name."""

    programs: tuple[Program, ...]
    wanted: tuple[Outcome, ...]
    built: dict[str, bytes | Failure]
    change: Change | None = None

    def text(self, *programs: Program) -> str:
        """The text that was assembled, of some of the programs."""
        return self.change(module(programs)) if self.change else module(programs)


def survey(
    seeds: Iterable[int],
    assemblers: Sequence[Assembler],
    machine: Machine | None,
    pool: Executor,
    *,
    seconds: float = float("inf"),
    batch: int = BATCH,
    ahead: int = 32,
    checks: bool = False,
    change: Change | None = None,
) -> Survey:
    """Run programs until they or the seconds end. Without a machine, code is made and not run."""
    end, result = time.monotonic() + seconds, Survey()
    batches = _batches(seeds, batch)
    waiting: set[Future[Made]] = set()
    while True:
        while len(waiting) < ahead and time.monotonic() < end and (chosen := next(batches, None)):
            waiting.add(pool.submit(made_of_seeds, chosen, tuple(assemblers), checks, change))
        if not waiting:
            return result
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            made = future.result()
            result.programs += len(made.programs)
            result.exact += sum(program.exact for program in made.programs)
            result.findings += disagreements(made, assemblers, machine)
        if time.monotonic() > end:
            for future in waiting:
                future.cancel()
            waiting = {future for future in waiting if not future.cancelled()}


def _batches(seeds: Iterable[int], size: int) -> Iterator[list[int]]:
    chosen: list[int] = []
    for seed in seeds:
        chosen.append(seed)
        if len(chosen) == size:
            yield chosen
            chosen = []
    if chosen:
        yield chosen


def made_of_seeds(
    seeds: Sequence[int], assemblers: Sequence[Assembler], checks: bool, change: Change | None = None
) -> Made:
    """Programs of some seeds, made."""
    return made([generate(seed) for seed in seeds], assemblers, checks, change)


def made(
    programs: Sequence[Program], assemblers: Sequence[Assembler], checks: bool, change: Change | None = None
) -> Made:
    """Programs emulated, and assembled together."""
    wanted = tuple(emulated(program, checks=checks) for program in programs)
    made = Made(tuple(programs), wanted, {}, change)
    text = made.text(*programs)
    made.built.update({one.name: one.assemble(text) for one in assemblers})
    return made


def disagreements(made: Made, assemblers: Sequence[Assembler], machine: Machine | None) -> list[Finding]:
    """The findings of a batch. A program whose results are not exact is compared with the first assembler's code."""
    outcomes = [_outcomes(made, assembler, machine) for assembler in assemblers]
    found = []
    for place, program in enumerate(made.programs):
        wanted, given = (
            made.wanted[place],
            [(one.name, all_[place]) for one, all_ in zip(assemblers, outcomes, strict=True)],
        )
        if not program.exact and not isinstance(wanted, str):
            wanted = next((outcome for _, outcome in given if not isinstance(outcome, str)), wanted)
        wrong = [(name, outcome) for name, outcome in given if not same(outcome, wanted)]
        if isinstance(wanted, str):
            found.append(Finding(program, (EMULATOR,), wanted, wanted))
        elif wrong and (machine or any(isinstance(outcome, str) for _, outcome in wrong)):
            found.append(Finding(program, tuple(name for name, _ in wrong), wanted, wrong[0][1]))
    return found


def _outcomes(made: Made, assembler: Assembler, machine: Machine | None) -> list[Outcome]:
    built = made.built[assembler.name]
    if isinstance(built, Failure):
        return _blamed(made, assembler, machine)
    return machine.run(built, made.programs) if machine else list(made.wanted)


def _blamed(made: Made, assembler: Assembler, machine: Machine | None) -> list[Outcome]:
    """The programs one by one, when the assembler fails for all of them together."""
    found: list[Outcome] = []
    for program in made.programs:
        built = assembler.assemble(made.text(program))
        if isinstance(built, Failure):
            found.append(f"{built.kind}: {built.text}")
        else:
            found += machine.run(built, [program]) if machine else [np.zeros(0)]
    return found


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are equal; code that was not run equals all."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    return not one.size or bool(np.array_equal(one, other))


class Oracle:
    """Says of programs whether they are legal and still fail in the way of a finding; candidates are made in a pool."""

    def __init__(
        self,
        finding: Finding,
        assemblers: Sequence[Assembler],
        machine: Machine | None,
        pool: Executor,
        change: Change | None = None,
    ) -> None:
        differing = [one for one in assemblers if one.name in finding.differing]
        # What is not exact needs code to compare with, of an assembler that does not differ.
        others = [one for one in assemblers if one not in differing and not finding.program.exact]
        self.assemblers = (*others[:1], *differing[:1])
        self.kind, self.machine, self.pool, self.change = finding.kind, machine, pool, change

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        futures = [self.pool.submit(made, [program], self.assemblers, True, self.change) for program in programs]
        found = [disagreements(future.result(), self.assemblers, self.machine) for future in futures]
        return [bool(findings) and findings[0].kind == self.kind for findings in found]


def helped(
    findings: Sequence[Finding],
    assemblers: Sequence[Assembler],
    machine: Machine | None,
    pool: Executor,
    change: Change,
) -> set[int]:
    """The seeds of findings that a change of the text does away with."""
    seeds = [finding.program.seed for finding in findings]
    again = survey(seeds, assemblers, machine, pool, change=change)
    return set(seeds) - {finding.program.seed for finding in again.findings}
