"""`tilewright profile lines`: what each line of FILE:FUNCTION costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base.errors import ArgumentError
from tilewright.targets.nvidia.devices.cuda import CudaDevice
from tilewright.tools.arguments import parse_argument
from tilewright.tools.commands.compile import ARG_HELP
from tilewright.tools.function_runs import SECONDS, run_place
from tilewright.tools.profiling import ncu_lines
from tilewright.tools.profiling.line_profile import line_profiles
from tilewright.tools.profiling.line_tables import COLUMNS, as_json, column, table


def command(
    place: Annotated[str, typer.Argument(metavar="FILE:FUNCTION", help="a @cute.jit function, or one that calls such")],
    arg: Annotated[list[str] | None, typer.Option("--arg", help=ARG_HELP)] = None,
    arch: Annotated[
        str | None, typer.Option(help="the chip, such as sm_90a; default: the device's, else sm_90a")
    ] = None,
    options: Annotated[str, typer.Option(help='compile options: "--opt-level 2"')] = "",
    sort: Annotated[str, typer.Option(help=f"which lines are shown: {', '.join(COLUMNS)}")] = "cycles",
    top: Annotated[int, typer.Option(help="how many lines are shown")] = 20,
    seconds: Annotated[float, typer.Option(help="how long the run may take")] = SECONDS,
    by: Annotated[
        str | None, typer.Option(help="emu, or ncu on a GPU; default: ncu where it and a GPU are there")
    ] = None,
    ncu: Annotated[
        Path | None, typer.Option(help="a report of ncu (.ncu-rep), or what --save wrote: shown instead of a run's")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="a file for what ncu measured, which explore --ncu reads")] = None,
    json_: Annotated[bool, typer.Option("--json", help="print all of it as JSON")] = False,
) -> None:
    """Run a function once, on the emulator or under ncu, and show what each of its lines costs.

    On the emulator instructions, sectors of global memory and wavefronts of shared memory are counted, exactly; what
    warps wait for and the roofline are estimates, and say so. ncu measures all of it but the roofline.
    """
    column(sort)
    way = "ncu" if ncu is not None else profiler(by)
    if save is not None and way != "ncu":
        raise ArgumentError("--save keeps what ncu measured, and the emulator counts here", hint="--by ncu on a GPU")
    if top < 1:
        raise ArgumentError(f"--top {top} shows no lines", hint="--top 20")
    words = [parse_argument(word) for word in arg or []]
    found = run_place(place, words, arch=arch, options=options, seconds=seconds)
    if way == "ncu":
        given = ncu_lines.measured(place, arg or [], found.arch, options) if ncu is None else ncu_lines.read(ncu)
        if save is not None:
            save.write_text(given.text, encoding="utf-8")
        found = replace(found.beside(given), missing="")
    if found.missing:
        raise ArgumentError(f"there is nothing to show: {found.missing}")
    profiles = list(line_profiles(found))
    if not profiles:
        raise ArgumentError(f"{found.name} launches no kernel, so no line has a cost")
    if json_:
        typer.echo(json.dumps([as_json(profile) for profile in profiles], indent=1))
        return
    for profile in profiles:
        for line in table(profile, sort, top):
            typer.echo(line)


def profiler(by: str | None) -> str:
    """Who counts.

    Raises:
        ArgumentError: there is no such profiler.
    """
    if by not in (None, "emu", "ncu"):
        raise ArgumentError(f"--by {by}: there is no such profiler", hint="--by emu, or --by ncu on a GPU")
    return by or ("ncu" if ncu_lines.available() and CudaDevice.available() else "emu")


def run(words: Sequence[str]) -> None:
    """The command with the words that stand behind `profile lines`."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command("lines")(command)
    get_command(single).main(args=list(words), prog_name="tilewright profile lines", standalone_mode=False)
