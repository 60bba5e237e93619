"""A run of a suite: cases go to a worker process, its messages become the results.

A kernel that faults takes its process's device with it, so the worker is replaced when it ends, hangs, or says that the
device is lost; the backend that it was at is left out of that case from then on.

Messages of the worker: `machine` (facts), `begin` (case and backend that come next), `row`, `roof`, `failure` (of a
backend), `case_failure`, `missing` (a backend that is not installed), `late` (a case that the budget left out), `end`
(of a case), `fatal` (nothing can be measured).
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tilewright.base.errors import LaunchError
from tilewright.tools.benching.cases import Case

COMMAND = (sys.executable, "-m", "tilewright.tools.benching.worker")
SILENT_SECONDS = 180.0
"""How long a worker may say nothing: a peer's first call imports and compiles."""
POLL_SECONDS = 0.5
GRACE_SECONDS = 45.0
"""How long after the end of the budget a case under way may take."""
Watch = Callable[[str, dict[str, Any]], None]
"""Is told of each message, by its kind, after it was noted."""


@dataclass
class Results:
    """What a run found; `skipped` are cases that the budget left out, `missing` backends, with the reason."""

    machine: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    roofs: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass
class SuiteRun:
    """The cases of a run, the backends of each and how they are measured; `budget` is in seconds, None for no end.

    `watch` is told of every message, and when it returns the results are as they are to be kept.
    """

    cases: Sequence[Case]
    backends: Sequence[Sequence[str]]
    target: str
    warmup: int
    iterations: int
    watch: Watch
    budget: float | None = None
    clock: str = "device"
    command: Sequence[str] = COMMAND
    silent_seconds: float = SILENT_SECONDS
    results: Results = field(default_factory=Results)

    def run(self) -> Results:
        """Measure all cases.

        Raises:
            LaunchError: nothing can be measured here.
        """
        deadline = None if self.budget is None else time.monotonic() + self.budget
        backends = {number: list(names) for number, names in enumerate(self.backends)}
        while backends:
            self._work(backends, deadline)
        return self.results

    def _work(self, backends: dict[int, list[str]], deadline: float | None) -> None:
        """One worker's life: takes out of `backends` the cases that are done, and the backend at which it died."""
        at: tuple[int | None, str | None] = (None, None)
        left = len(backends)
        ending = "it ended"
        known = False  # the failure was sent before the end
        with _Worker(self.command, self._job(backends, deadline)) as worker:
            for kind, message in worker.messages(self.silent_seconds, deadline):
                if kind == "hang":
                    ending = message["hang"]
                    break
                if kind == "begin":
                    at, known = (message["begin"], message["backend"]), False
                known = known or kind == "failure"
                self._note(kind, message, backends)
                if kind in ("end", "case_failure", "late"):
                    at = (None, None)
        if worker.status:
            ending = f"{ending} with status {worker.status}"
        number, backend = at
        if number is None:
            if left and len(backends) == left:
                raise LaunchError(f"the process that measures cannot go on: {ending}", hint="its own words are above")
            return
        if not known:
            self._fail(number, backend, f"the process that measures was lost: {ending}")
        if backend is None:
            del backends[number]
        else:
            backends[number].remove(backend)

    def _note(self, kind: str, message: dict[str, Any], backends: dict[int, list[str]]) -> None:
        found = self.results
        if kind == "fatal":
            raise LaunchError(
                message["fatal"], hint="`tilewright doctor` says what is missing; --target emu needs no GPU"
            )
        if kind == "machine":
            found.machine.update(message["machine"])
        elif kind == "row":
            self._replace(found.rows, message["row"])
        elif kind == "roof":
            self._replace(found.roofs, message["roof"])
        elif kind == "failure":
            found.failures.append(message["failure"])
        elif kind == "missing":
            found.missing[message["missing"]] = message["why"]
        elif kind == "case_failure":
            self._fail(message["case_failure"], None, message["error"])
        elif kind == "late":
            found.skipped.append(self._case(message["late"]))
        if kind in ("end", "case_failure", "late"):
            del backends[message[kind]]
        self.watch(kind, message)

    @staticmethod
    def _replace(rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
        """Add a row; one of a worker that died later goes."""
        rows[:] = [old for old in rows if identity(old) != identity(row)] + [row]

    def _fail(self, number: int, backend: str | None, error: str) -> None:
        failure = {**self._case(number), "backend": backend or "", "error": error}
        self.results.failures.append(failure)
        self.watch("failure", {"failure": failure})

    def _case(self, number: int) -> dict[str, Any]:
        case = self.cases[number]
        row: dict[str, Any] = {"op": case.op, "backend": "", "shape": list(case.shape), "dtype": case.dtype}
        return {**row, "options": dict(case.options)} if case.options else row

    def _job(self, backends: dict[int, list[str]], deadline: float | None) -> dict[str, Any]:
        cases = [(number, asdict(self.cases[number]), names) for number, names in backends.items()]
        return {
            "target": self.target, "warmup": self.warmup, "iterations": self.iterations, "deadline": deadline,
            "cases": cases, "clock": self.clock,
        }  # fmt: skip


def identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a row from others of its run: op, options, backend, shape, dtype."""
    options = tuple(sorted((row.get("options") or {}).items()))
    return row["op"], options, row["backend"], tuple(row["shape"]), row["dtype"]


class _Worker:
    """A worker process and what it starts; leaving the block ends it, and `status` is how it ended."""

    def __init__(self, command: Sequence[str], job: dict[str, Any]) -> None:
        self.status: int | None = None
        self._reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(writing)], stdin=subprocess.PIPE, pass_fds=(writing,), start_new_session=True
            )
        finally:
            os.close(writing)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended at once, which its status will tell
            self._process.stdin.write(json.dumps(job).encode())
            self._process.stdin.close()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._reading)
        if kind is not None:
            self._kill()
        try:
            self.status = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._kill()
            self.status = self._process.wait()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def messages(self, silent: float, deadline: float | None) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the worker says, as (kind, message), to its end; `hang` if it takes too long, and then it is killed."""
        rest, heard = b"", time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._reading, selectors.EVENT_READ)
            while True:
                if selector.select(POLL_SECONDS):
                    data = os.read(self._reading, 1 << 16)
                    if not data:
                        return
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        message = json.loads(line)
                        yield next(iter(message)), message
                    heard = time.monotonic()
                elif self._process.poll() is not None:
                    return  # a process that it started may still hold the pipe
                now = time.monotonic()
                if now > heard + silent or (deadline is not None and now > deadline + GRACE_SECONDS):
                    why = f"it said nothing for {silent:.0f} s" if now > heard + silent else "the budget was spent"
                    self._kill()
                    yield "hang", {"hang": why}
                    return
