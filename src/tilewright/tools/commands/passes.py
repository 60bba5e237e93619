"""`tilewright passes`: the passes that are known."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tilewright.base.errors import PassError
from tilewright.passes import pipeline


def command(
    name: Annotated[str | None, typer.Argument(help="show this pass only, with its whole description")] = None,
) -> None:
    """List the registered passes with their options, or describe one."""
    console = Console()
    if name is None:
        console.print(table())
        console.print("MLIR's own passes can stand in a pipeline too, by their names.", style="dim")
        return
    found = pipeline.REGISTRY.get(name)
    if found is None:
        raise PassError(f"unknown pass {name!r}", hint=f"registered passes: {', '.join(sorted(pipeline.REGISTRY))}")
    console.print(f"[bold]{name}[/bold]{options_text(found)}")
    console.print(inspect.getdoc(found) or "", highlight=False)
    if found.requires:
        console.print(f"requires: {', '.join(found.requires)}")


def table() -> Table:
    """All registered passes, by name."""
    result = Table()
    for column in ("pass", "options (defaults)", "requires", "what it does"):
        result.add_column(column)
    for name, cls in sorted(pipeline.REGISTRY.items()):
        summary = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
        options = " ".join(f"{key}={value}" for key, value in cls.options.items())
        result.add_row(name, options, " ".join(cls.requires), summary)
    return result


def options_text(cls: type[pipeline.Pass]) -> str:
    """The options of a pass as a pipeline string has them."""
    pairs = " ".join(f"{key}={value}" for key, value in cls.options.items())
    return f"{{{pairs}}}" if pairs else ""
