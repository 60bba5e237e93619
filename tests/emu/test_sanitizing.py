"""`scripts/sanitize_faults.py`, as far as it needs no GPU: what hangs is killed, findings are read, rows merged."""

import sys
import time

from scripts import sanitize_faults as script

LOADED = f"print({script.LOADED!r}, flush=True); "


def python(code):
    return [sys.executable, "-u", "-c", code]


def test_a_run_that_ends():
    assert script.run(python(LOADED + "print('right')"), 5) == (f"{script.LOADED}\nright\n", True)
    assert script.outcome(*script.run(python(LOADED + "print('argument 2 is wrong')"), 5)) == "argument 2 is wrong"
    assert script.outcome(*script.run(python(LOADED + "raise SystemExit(1)"), 5)) == "fails"


def test_a_run_that_hangs_is_killed_with_what_it_started():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-uc', '" + LOADED.replace("'", '"')
    code += "import time; time.sleep(100)'])"
    start = time.monotonic()
    output, ended = script.run(python(code), 0.3)
    assert (output, ended, script.outcome(output, ended)) == (f"{script.LOADED}\n", False, "hangs")
    assert time.monotonic() - start < 10


def test_a_child_that_never_loads_is_killed_too():
    output, ended = script.run(python("import time; time.sleep(100)"), 5, start=0.3)
    assert (output, ended) == ("", False)


def test_findings_of_compute_sanitizer():
    text = """========= COMPUTE-SANITIZER
right
========= Error: Race reported between Write access at scan+0xe0
=========     and Read access at scan+0x100 [4 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
    assert script.finding(text) == "Error: Race reported between Write access at scan+0xe0"
    assert script.finding("right\n========= ERROR SUMMARY: 0 errors\n") == ""


def row(kernel, change="", output="right"):
    return {"kernel": kernel, "change": change, "output": output} | dict.fromkeys(script.TOOLS, "")


def test_rows_are_merged_in_the_order_of_the_suite():
    old = {"card": "H100", "rows": [row("lock"), row("row_sum"), row("row_sum", "a")]}
    new = script.merged(old, [row("bulk_ring"), row("bulk_ring", "b", "hangs")], "H100")
    assert [(r["kernel"], r["change"]) for r in new["rows"]] == [
        ("row_sum", ""), ("row_sum", "a"), ("bulk_ring", ""), ("bulk_ring", "b"), ("lock", "")
    ]  # fmt: skip
    again = script.merged(new, [row("row_sum")], "H200")
    assert again["card"] == "H100" and again["rows"][0] == {**row("row_sum"), "card": "H200"}
    assert len(again["rows"]) == 4
    assert script.merged({}, [row("lock")], "H200") == {"card": "H200", "rows": [row("lock")]}


def test_a_text_that_hangs_is_not_run_under_the_tools(monkeypatch, tmp_path):
    commands = []

    def run(command, limit):
        commands.append((command[0], limit))
        return ("", False)

    monkeypatch.setattr(script, "run", run)
    text = script.Text("bulk_ring", "without", tmp_path / "x.cubin")
    assert script.judge(text, 5.0) == row("bulk_ring", "without", "hangs")
    assert commands == [(sys.executable, 5.0)]
    monkeypatch.setattr(
        script, "run", lambda command, limit: (commands.append((command[0], limit)), ("right", True))[1]
    )
    assert script.judge(text, 5.0) == row("bulk_ring", "without")
    assert commands[1:] == [(sys.executable, 5.0), *[("compute-sanitizer", 20.0)] * 4]
