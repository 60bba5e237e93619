"""Finds, runs, prints and keeps benchmarks."""

from __future__ import annotations

import importlib
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright.targets.nvidia.devices import driver as cuda

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PACKAGES = ("numpy", "xtc-mlir-python-bindings", "apache-tvm-ffi", "torch")


@dataclass(frozen=True)
class Row:
    """One measured quantity: the median of `samples` measurements, in `unit`.

    `target` is the value to reach, in the same unit, with `better` saying which side of it is good; `note` is shown
    beside the figure (for example a ratio to another library in the same run).
    """

    name: str
    median: float
    unit: str
    samples: int = 1
    target: float | None = None
    better: str = "lower"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.median <= self.target if self.better == "lower" else self.median >= self.target


def timed(function: Callable[[], object], samples: int = 21, number: int = 1) -> float:
    """Median seconds of one call of `function`, over `samples` runs of `number` calls, after one run to warm up."""
    function()
    seconds = []
    for _ in range(samples):
        start = time.perf_counter()
        for _ in range(number):
            function()
        seconds.append((time.perf_counter() - start) / number)
    return statistics.median(seconds)


def topics() -> list[str]:
    """The names of the benchmarks, from the files of this folder."""
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def run(names: Sequence[str], quick: bool, out: Path, console: Console) -> bool:
    """Run the topics `names`, print a table for each, write their files to `out`; whether all targets were met."""
    met = True
    for name in names:
        module = importlib.import_module(f"bench.bench_{name}")
        title = (module.__doc__ or name).strip().splitlines()[0]
        rows = list(module.rows(quick))
        console.print(table(title, rows))
        keep(out / f"{name}.json", title, rows, quick)
        history = getattr(module, "HISTORY", "")
        if history and not quick:
            remember(out / history, title, rows)
        met &= all(row.met is not False for row in rows)
    return met


def table(title: str, rows: Iterable[Row]) -> Table:
    """The rows as a table for the terminal."""
    result = Table(title=title, title_justify="left")
    result.add_column("what")
    for column in ("median", "unit", "target"):
        result.add_column(column, justify="right")
    result.add_column("note")
    for row in rows:
        colour = {None: "", True: "[green]", False: "[red]"}[row.met]
        target = "" if row.target is None else f"{'≤' if row.better == 'lower' else '≥'} {row.target:g}"
        result.add_row(row.name, f"{colour}{row.median:.4g}", row.unit, target, row.note)
    return result


def keep(path: Path, title: str, rows: Iterable[Row], quick: bool) -> None:
    """Write the rows and where they were measured as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"title": title, "quick": quick, "machine": machine(), "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def remember(path: Path, title: str, rows: Iterable[Row]) -> None:
    """Add the medians of a run, by name, to a file that holds those of earlier ones; one line for each run."""
    earlier = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    found = {row.name: float(f"{row.median:.4g}") for row in rows}
    lines = [json.dumps(run) for run in (*earlier, {**machine(), "medians": found})]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(lines)
    path.write_text(f'{{"title": {json.dumps(title)}, "runs": [\n{text}\n]}}\n', encoding="utf-8")


def machine() -> dict[str, str]:
    """What a figure depends on: time, commit, processor, GPU, Python, library versions."""
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": commit(),
        "processor": processor(),
        "python": platform.python_version(),
    }
    if cuda.available():
        facts["device"] = cuda.driver().device().name
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def commit() -> str:
    """The commit of the working tree, empty outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def processor() -> str:
    """The processor's name and how many of its cores this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()
