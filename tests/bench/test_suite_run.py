"""A run survives what its worker dies of, and keeps what was found before."""

import json
import sys
import textwrap
import time

import pytest

from tilewright.base.errors import LaunchError
from tilewright.tools.benching.cases import Case
from tilewright.tools.benching.suite_run import SuiteRun, identity

CASES = (Case("a", (2, 3), "float32"), Case("b", (4,), "bfloat16", (("op", "max"),)))

WORKER = """
import json, os, sys, time
job = json.load(sys.stdin)
stream = os.fdopen(int(sys.argv[1]), "w")
def send(**message):
    print(json.dumps(message), file=stream, flush=True)
send(machine={"device": "fake"})
for number, case, backends in job["cases"]:
    if job["deadline"] is not None and time.monotonic() > job["deadline"]:
        send(late=number)
        continue
    send(begin=number, backend=None)
    for backend in backends:
        send(begin=number, backend=backend)
        BODY
    send(begin=number, backend=None)
    for backend in backends:
        row = {"op": case["op"], "backend": backend, "shape": case["shape"], "dtype": case["dtype"], "p50_us": 1.0}
        send(row={**row, "options": dict(case["options"])})
    TAIL
    send(end=number)
"""


def run(tmp_path, body="pass", tail="pass", **options):
    script = tmp_path / "worker.py"
    text = WORKER.replace("BODY", textwrap.indent(body, " " * 8).strip())
    script.write_text(text.replace("TAIL", textwrap.indent(tail, " " * 4).strip()))
    seen = []
    suite = SuiteRun(
        CASES, [("kernel", "torch")] * len(CASES), "cuda", 1, 2, lambda kind, message: seen.append(kind),
        command=(sys.executable, str(script)), **options,
    )  # fmt: skip
    return suite.run(), seen


def measured(found):
    return [(row["op"], row["backend"]) for row in found.rows]


ALL = [("a", "kernel"), ("a", "torch"), ("b", "kernel"), ("b", "torch")]


def test_every_row_arrives_and_is_told(tmp_path):
    found, seen = run(tmp_path)
    assert measured(found) == ALL and not found.failures
    assert found.machine == {"device": "fake"}
    assert seen.count("row") == 4 and seen.count("end") == 2


def test_a_crash_costs_one_backend_of_one_case(tmp_path):
    found, _ = run(tmp_path, 'if (case["op"], backend) == ("a", "kernel"): os.kill(os.getpid(), 11)')
    assert sorted(measured(found)) == ALL[1:]
    (failure,) = found.failures
    assert (failure["op"], failure["backend"], failure["shape"]) == ("a", "kernel", [2, 3])
    assert failure["error"] == "the process that measures was lost: it ended with status -11"


def test_a_lost_device_is_reported_in_the_workers_words(tmp_path):
    body = """
    if (case["op"], backend) == ("b", "torch"):
        send(failure={"op": "b", "backend": "torch", "shape": [4], "dtype": "bfloat16", "error": "illegal address"})
        os._exit(3)
    """
    found, _ = run(tmp_path, textwrap.dedent(body).strip())
    assert sorted(measured(found)) == ALL[:3]
    assert [failure["error"] for failure in found.failures] == ["illegal address"]


def test_a_crash_while_timing_costs_the_case_and_its_rows_are_not_doubled(tmp_path):
    flag = tmp_path / "once"
    tail = f"""
    if case["op"] == "b" and not os.path.exists({str(flag)!r}):
        open({str(flag)!r}, "w").close()
        os._exit(1)
    """
    found, _ = run(tmp_path, tail=textwrap.dedent(tail).strip())
    assert sorted(measured(found)) == ALL
    (failure,) = found.failures
    assert failure["backend"] == "" and failure["options"] == {"op": "max"}


def test_a_silent_worker_is_ended(tmp_path):
    body = 'if (case["op"], backend) == ("a", "torch"): time.sleep(60)'
    start = time.monotonic()
    found, _ = run(tmp_path, body, silent_seconds=0.6)
    assert time.monotonic() - start < 20
    assert sorted(measured(found)) == [ALL[0], *ALL[2:]]
    assert "it said nothing for 1 s" in found.failures[0]["error"]


def test_a_spent_budget_leaves_cases_out_and_says_so(tmp_path):
    found, _ = run(tmp_path, budget=0.0)
    assert not found.rows and not found.failures
    assert [case["op"] for case in found.skipped] == ["a", "b"]


def test_a_case_that_fails_and_takes_the_device_with_it(tmp_path):
    tail = """
    if case["op"] == "a":
        send(case_failure=number, error="CUDA error while timing")
        os._exit(3)
    """
    found, _ = run(tmp_path, tail=textwrap.dedent(tail).strip())
    assert [(failure["op"], failure["error"]) for failure in found.failures] == [("a", "CUDA error while timing")]
    assert measured(found)[-2:] == ALL[2:]


def test_a_worker_that_cannot_start_ends_the_run(tmp_path):
    suite = SuiteRun(
        CASES, [("kernel",)] * len(CASES), "cuda", 1, 2, print, command=(sys.executable, "-c", "raise SystemExit(7)")
    )
    with pytest.raises(LaunchError, match="the process that measures cannot go on: it ended with status 7"):
        suite.run()


def test_a_machine_without_a_gpu_ends_the_run(tmp_path):
    script = 'import os, sys; os.write(int(sys.argv[1]), b\'{"fatal": "PyTorch finds no GPU here"}\\n\')'
    suite = SuiteRun(CASES, [("kernel",)] * len(CASES), "cuda", 1, 2, print, command=(sys.executable, "-c", script))
    with pytest.raises(LaunchError, match="PyTorch finds no GPU here"):
        suite.run()


def test_rows_are_told_apart_by_options_too():
    row = {"op": "reduce", "backend": "kernel", "shape": [2], "dtype": "float32"}
    assert identity(row) == identity(json.loads(json.dumps(row)))
    assert identity(row) != identity({**row, "options": {"op": "max"}})
