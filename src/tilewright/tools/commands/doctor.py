"""`tilewright doctor`: what is installed, what is missing, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tilewright.targets.nvidia import doctor


MARKS = {True: "[green]✓[/green]", False: "[red]✗[/red]", None: "[dim]·[/dim]"}


def command(
    strict: Annotated[bool, typer.Option("--strict", help="exit status 1 when anything is missing")] = False,
) -> None:
    """Report Python, MLIR, ptxas, nvdisasm, driver, device and PyTorch, each with the remedy when it is missing."""
    rows = doctor.rows()
    Console().print(table(rows))
    if strict and not all(row.ok is not False for row in rows):
        raise typer.Exit(1)


def table(rows: Iterable[doctor.Row]) -> Table:
    """The rows as a table: a mark, the name, what was found, the remedy."""
    result = Table(show_lines=False)
    for column in ("", "part", "found", "remedy"):
        result.add_column(column, overflow="fold")
    for row in rows:
        result.add_row(MARKS[row.ok], row.name, escape(row.value), "" if row.ok else escape(row.remedy))
    return result
