"""`tilewright doctor`: what is installed, what is missing, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.text import Text

from tilewright.targets.nvidia import doctor
from tilewright.tools.console import console as make_console

MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


def command(
    strict: Annotated[bool, typer.Option("--strict", help="exit status 1 when anything is missing")] = False,
) -> None:
    """Report Python, MLIR, ptxas, nvdisasm, driver, device and PyTorch, each with the remedy when it is missing."""
    rows = doctor.rows()
    console = make_console()
    for line in lines(rows):
        console.print(line, soft_wrap=True)
    if strict and any(row.ok is False for row in rows):
        raise typer.Exit(1)


def lines(rows: Iterable[doctor.Row]) -> Iterator[Text]:
    """A line for each row, with a mark; below it the remedy where something is missing."""
    rows = list(rows)
    width = max(len(row.name) for row in rows)
    for row in rows:
        mark, style = MARKS[row.ok]
        yield Text.assemble((f"{mark} {row.name:<{width}}  ", style), row.value)
        if row.remedy and row.ok is not True:
            yield Text(f"{'':<{width}}    → {row.remedy}", style=style)
