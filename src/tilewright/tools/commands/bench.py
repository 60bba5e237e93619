"""`tilewright bench`: run the benchmarks of a source checkout."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import tilewright
from tilewright.base.errors import ArgumentError
from tilewright.tools.benching import chart, compare, results, tables
from tilewright.tools.benching.cases import BACKENDS, BACKWARD
from tilewright.tools.benching.plan import Request, plan
from tilewright.tools.benching.reporting import Reporter, say
from tilewright.tools.benching.suite_run import Results, SuiteRun
from tilewright.tools.console import console as make_console


def command(
    topics: Annotated[list[str] | None, typer.Argument(help="compiler, emulator, ...; all without names")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="topics: measure less, to show that they work")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="file for the results of ops; folder for those of topics")
    ] = None,
    list_topics: Annotated[bool, typer.Option("--list", help="only list the topics")] = False,
    suite: Annotated[str | None, typer.Option(help="measure ops: smoke, standard, full, peers or host")] = None,
    op: Annotated[str | None, typer.Option(help="measure this op and its backward only")] = None,
    backend: Annotated[list[str] | None, typer.Option(help=f"one of {', '.join(BACKENDS)}; may be repeated")] = None,
    shape: Annotated[list[str] | None, typer.Option(help="such as 32768x1024; may be repeated")] = None,
    dtype: Annotated[list[str] | None, typer.Option(help="float16, bfloat16, float32, float64; repeatable")] = None,
    tile_size: Annotated[int | None, typer.Option(help="of copy_transpose")] = None,
    warmup: Annotated[int | None, typer.Option(help="calls before the clock starts; 10 for an op by itself")] = None,
    iterations: Annotated[int | None, typer.Option(help="calls timed; 100 for an op by itself")] = None,
    target: Annotated[str | None, typer.Option(help="cuda, or emu: check, count, time nothing")] = None,
    budget: Annotated[float | None, typer.Option(help="seconds after which no case is begun")] = None,
    suites: Annotated[Path | None, typer.Option(help="file of suites; default: bench/suites.yaml")] = None,
    draw: Annotated[Path | None, typer.Option(help="draw charts of this file of results, as PNG and SVG")] = None,
    compare_files: Annotated[
        tuple[Path, Path] | None, typer.Option("--compare", metavar="OLD NEW", help="compare two files of results")
    ] = None,
) -> None:
    """Run benchmarks of ops against their peers (--suite, --op), or of the compiler and the emulator (topics)."""
    if compare_files is not None:
        show_comparison(*compare_files)
    elif draw is not None:
        draw_charts(draw, out or draw, op, dtype or [])
    elif suite is not None or op is not None:
        request = Request(suite, op, backend or (), shape or (), dtype or (), tile_size, warmup, iterations, target)
        found = run_ops(request, suites or checkout() / "bench" / "suites.yaml", out, budget)
        if any(row["backend"] in ("kernel", "") for row in found["failures"]):
            raise typer.Exit(1)
    else:
        run_topics(topics or [], quick, out, list_topics)


def run_ops(request: Request, suites: Path, out: Path | None, budget: float | None) -> dict[str, Any]:
    """Measure ops and show what was found; the file of results, whose contents it gives, is written after every row."""
    chosen, target = plan(request, suites)
    console, found = make_console(), Results()
    if target == "emu":
        say(console, ["On the emulator: results are checked on small shapes, memory traffic is counted; no times."])
    say(console, [f"cases: {len(chosen.cases)}, backends: {', '.join(chosen.backends)}"])
    reporter = Reporter(found, chosen.name, out, suites.parent / "results", console)
    counts = chosen.warmup, chosen.iterations
    backends = [chosen.backends_of(case) for case in chosen.cases]
    SuiteRun(chosen.cases, backends, target, *counts, reporter.watch, budget, chosen.clock, results=found).run()
    return reporter.finish()


def show_comparison(old: Path, new: Path) -> None:
    """Print the rows that two files have in common."""
    say(make_console(), tables.comparison(compare.compare(results.read(old), results.read(new))))


def draw_charts(path: Path, out: Path, op: str | None, dtypes: list[str]) -> None:
    """Draw charts of a file of results, of one op and some dtypes only if asked for, to `out` as PNG and SVG."""
    contents = results.read(path)
    wanted = (op, f"{op}{BACKWARD}")
    rows = [
        row for row in contents["results"]
        if (op is None or row["op"] in wanted) and (not dtypes or row["dtype"] in dtypes)
    ]  # fmt: skip
    say(make_console(), (f"wrote {made}" for made in chart.draw({**contents, "results": rows}, out)))


def run_topics(topics: list[str], quick: bool, out: Path | None, only_list: bool) -> None:
    """Run the modules `bench_<topic>` of the checkout."""
    runner = load_runner()
    console = make_console()
    known = runner.topics()
    if only_list:
        console.print("\n".join(known) or "no benchmarks")
        return
    chosen = topics or known
    unknown = [topic for topic in chosen if topic not in known]
    if unknown:
        raise ArgumentError(f"there is no benchmark {unknown[0]!r}", hint=f"there are: {', '.join(known)}")
    runner.run(chosen, quick, out or runner.RESULTS, console)


def load_runner() -> Any:
    """The module `bench.runner` of the checkout."""
    sys.path.insert(0, str(checkout()))
    return importlib.import_module("bench.runner")


def checkout() -> Path:
    """The checkout in the working directory, or the one that is installed editable."""
    for root in (Path.cwd(), Path(tilewright.__file__).resolve().parents[2]):
        if (root / "bench" / "runner.py").is_file():
            return root
    raise ArgumentError("no benchmarks here", hint="run this inside a source checkout: they are not part of the wheel")
