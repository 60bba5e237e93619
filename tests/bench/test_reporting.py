"""What a run leaves in its file."""

import io
import json

from rich.console import Console

from tilewright.tools.benching.reporting import Reporter
from tilewright.tools.benching.suite_run import Results

ROW = {"op": "reduce", "backend": "kernel", "shape": [2, 4], "dtype": "float32", "bytes": 40, "p50_us": 1.0,
       "p90_us": 1.5, "gbs": 0.04, "fraction_of_copy": 0.5}  # fmt: skip
LEFT_OUT = {"op": "reduce", "backend": "", "shape": [4, 4], "dtype": "float32"}


def test_cases_left_out_after_the_last_row_are_in_the_file(tmp_path):
    found, out = Results(), tmp_path / "results.json"
    shown = Console(file=io.StringIO())
    reporter = Reporter(found, "smoke", out, tmp_path, shown)
    found.rows.append(ROW)
    reporter.watch("row", {"row": ROW})
    found.skipped.append(LEFT_OUT)
    reporter.watch("late", {"late": 1})
    reporter.finish()
    assert json.loads(out.read_text())["skipped"] == [LEFT_OUT]
    assert "1 cases were not begun: the budget was spent" in shown.file.getvalue()


def test_a_run_without_rows_leaves_no_file(tmp_path):
    reporter = Reporter(Results(skipped=[LEFT_OUT]), "smoke", None, tmp_path, Console(file=io.StringIO()))
    reporter.finish()
    assert list(tmp_path.iterdir()) == []
