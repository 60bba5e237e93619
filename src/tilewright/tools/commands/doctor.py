"""`tilewright doctor`: what is installed, what is missing, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer
from rich.text import Text

from tilewright.targets.nvidia import doctor
from tilewright.targets.nvidia.doctor import Row
from tilewright.tools.console import console as make_console
from tilewright.tools.profiling.commands import TOOLS, locate

MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
OPTIONAL = {"PyYAML": "pyyaml", "matplotlib": "matplotlib", "triton": "triton", "quack": "quack-kernels"}
"""Packages that benchmarks use, by the name shown."""
EXTRA = ("PyYAML", "matplotlib")
"""Those of the extra `bench`."""


def command(
    strict: Annotated[bool, typer.Option("--strict", help="exit status 1 when anything is missing")] = False,
) -> None:
    """Report Python, MLIR, ptxas, nvdisasm, driver, device, PyTorch, profilers; the remedy where one is missing."""
    rows = [*doctor.rows(), *_profilers(), *_for_benchmarks()]
    console = make_console()
    for line in lines(rows):
        console.print(line, soft_wrap=True)
    if strict and any(row.ok is False for row in rows):
        raise typer.Exit(1)


def _profilers() -> Iterator[Row]:
    for tool in TOOLS.values():
        path = locate(tool.program)
        remedy = f"it is part of {tool.package}; `tilewright profile emu` counts without it"
        yield Row(tool.program, path or "not installed", True if path else None, remedy)


def _for_benchmarks() -> Iterator[Row]:
    for name, package in OPTIONAL.items():
        remedy = "pip install tilewright[bench]" if name in EXTRA else f"pip install {package}: a peer in benchmarks"
        try:
            yield Row(name, version(package), True)
        except PackageNotFoundError:
            yield Row(name, "not installed (optional)", None, remedy)


def lines(rows: Iterable[Row]) -> Iterator[Text]:
    """A line for each row, with a mark; below it the remedy where something is missing."""
    rows = list(rows)
    width = max(len(row.name) for row in rows)
    for row in rows:
        mark, style = MARKS[row.ok]
        yield Text.assemble((f"{mark} {row.name:<{width}}  ", style), row.value)
        if row.remedy and row.ok is not True:
            yield Text(f"{'':<{width}}    → {row.remedy}", style=style)
