"""A random mistake in a correct program ends in an error of ours with its line, or in a right result. In time, too."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lang.fuzz.mistakes import WIDE_FROM, mistake

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 1.0  # of the processor, for one mistake
HANG = 60.0  # seconds on the wall: the machine may be busy


class Worker:
    """The process that runs the programs; a new one is started when it died or hung."""

    def __init__(self) -> None:
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from tests.lang.fuzz.mistake_worker import main; main()"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def outcome(self, seed: int) -> dict[str, object]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], HANG)
        answer = self.process.stdout.readline() if ready else ""
        if answer:
            said: dict[str, object] = json.loads(answer)
            return said
        kind = "died" if ready else "hung"
        self.close()
        self.process = self._start()
        return {"kind": kind, "seconds": HANG}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    made.outcome(0)  # imports and first compilation
    yield made
    made.close()


def complaint(seed: int, worker: Worker) -> str:
    """What is wrong with how the mistake ended; empty when nothing is."""
    case, said = mistake(seed), worker.outcome(seed)
    if said["kind"] in ("syntax", "user"):
        return ""
    place = f"seed {seed}, {case.kind}, line {case.line}: {said['kind']}"
    if said["kind"] not in ("ours", "result"):
        return f"{place}\n{said.get('message', '')}"
    if float(str(said["seconds"])) > SECONDS:
        said = worker.outcome(seed)  # a busy machine, or slow indeed
    if float(str(said["seconds"])) > SECONDS:
        return f"{place} after {said['seconds']} s"
    if said["kind"] == "result":
        return f"{place} {said['wrong']}" if said["wrong"] else ""
    lines = said["lines"]
    assert isinstance(lines, list)
    if not lines or (case.exact and case.line not in lines):
        return f"{place} names lines {lines}\n{said['message']}"
    return ""


@pytest.mark.parametrize("first", [0, 25, 50, WIDE_FROM, WIDE_FROM + 25])
def test_random_mistakes(first, worker):
    problems = [complaint(seed, worker) for seed in range(first, first + 25)]
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.mark.slow
@pytest.mark.parametrize("first", [*range(1000, 2000, 50), *range(WIDE_FROM + 1000, WIDE_FROM + 2000, 50)])
def test_many_random_mistakes(first, worker):
    problems = [complaint(seed, worker) for seed in range(first, first + 50)]
    assert not any(problems), "\n".join(filter(None, problems))
