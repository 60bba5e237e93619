"""`tilewright passes`: the passes that are known."""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tilewright.base.errors import PassError
from tilewright.hw.chips import normalize_arch
from tilewright.passes import pipeline
from tilewright.targets.nvidia.backend.back_end import BACK_END
from tilewright.targets.nvidia.backend.pass_list import standard_pipeline
from tilewright.tools.console import console as make_console
from tilewright.tools.function_lookup import load_module


def command(
    name: Annotated[str | None, typer.Argument(help="show this pass only, with its whole description")] = None,
    arch: Annotated[str, typer.Option(help="the chip whose pipeline is shown")] = BACK_END.default_arch,
    load: Annotated[list[Path] | None, typer.Option(help="Python files with further passes")] = None,
) -> None:
    """List the registered passes and the pipeline that compiles a function, or describe one pass."""
    for path in load or []:
        load_module(path)
    console = make_console(highlight=False)
    if name is not None:
        describe(name, console)
        return
    for known in sorted(pipeline.REGISTRY):
        describe(known, console, whole=False)
    console.print("\nMLIR's own passes can stand in a pipeline too, by their names. The pipeline of a compilation:")
    console.print(str(standard_pipeline(normalize_arch(arch))), markup=False, soft_wrap=True)


def describe(name: str, console: Console, whole: bool = True) -> None:
    """Print a pass: what it does (the first paragraph or all), its options with defaults, what it needs, its stage."""
    found = pipeline.REGISTRY.get(name)
    if found is None:
        raise PassError(f"unknown pass {name!r}", hint=f"registered passes: {', '.join(sorted(pipeline.REGISTRY))}")
    text = description(found)
    console.print(name, style="bold", markup=False)
    show_below(text if whole else text.split("\n\n")[0], console)
    options = " ".join(f"{key}={value}" for key, value in found.options.items())
    for title, words in (("options", options), ("requires", " ".join(found.requires)), ("stage", found.stage)):
        if words:
            show_below(f"{title}: {words}", console)


def show_below(text: str, console: Console) -> None:
    """Print a text indented under the name of its pass."""
    console.print(textwrap.indent(text, "    "), markup=False, soft_wrap=True)


def description(cls: type[pipeline.Pass]) -> str:
    """What a pass says of itself; one with a file of its own says it there, after its name and a colon."""
    module = inspect.getdoc(sys.modules.get(cls.__module__)) or ""  # a pass typed in has no module
    prefix = f"{cls.name}: "
    return module.removeprefix(prefix) if module.startswith(prefix) else inspect.getdoc(cls) or ""
