"""`tilewright bench`: run the benchmarks of a source checkout."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import tilewright
from tilewright.base.errors import ArgumentError
from tilewright.tools.console import console as make_console


def command(
    topics: Annotated[list[str] | None, typer.Argument(help="benchmarks to run; all without names")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="measure less, to show that the benchmarks work")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="folder for the results")] = None,
    list_topics: Annotated[bool, typer.Option("--list", help="only list the benchmarks")] = False,
) -> None:
    """Run benchmarks and print their medians; results go to bench/results of the checkout."""
    runner = load_runner()
    console = make_console()
    known = runner.topics()
    if list_topics:
        console.print("\n".join(known) or "no benchmarks")
        return
    chosen = topics or known
    unknown = [topic for topic in chosen if topic not in known]
    if unknown:
        raise ArgumentError(f"there is no benchmark {unknown[0]!r}", hint=f"there are: {', '.join(known)}")
    runner.run(chosen, quick, out or runner.RESULTS, console)


def load_runner() -> Any:
    """The module `bench.runner` of the checkout in the working directory, or of the one that is installed editable."""
    for root in (Path.cwd(), Path(tilewright.__file__).resolve().parents[2]):
        if (root / "bench" / "runner.py").is_file():
            sys.path.insert(0, str(root))
            return importlib.import_module("bench.runner")
    raise ArgumentError("no benchmarks here", hint="run this inside a source checkout: they are not part of the wheel")
