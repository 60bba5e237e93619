"""`tilewright profile`: run a command under a profiler, or read its reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tilewright.base.errors import ArgumentError
from tilewright.tools.commands import profile_lines
from tilewright.tools.console import console as make_console
from tilewright.tools.profiling import ncu_report, running
from tilewright.tools.profiling.commands import TOOLS, locate, missing, parse

COMMAND_OPTIONS = {"context_settings": {"ignore_unknown_options": True, "allow_interspersed_args": False}}
WAYS = (*TOOLS, "emu", "lines", "extract")


def command(
    way: Annotated[str, typer.Argument(help=f"one of {', '.join(WAYS)}")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--kernel-name X] [--extract] [OPTIONS OF THE TOOL] -- COMMAND", show_default=False),
    ] = None,
) -> None:
    """Run a command under ncu, nsys, compute-sanitizer (sanitizer) or the emulator (emu); read ncu reports (extract).

    `lines FILE:FUNCTION --arg ...` shows what each line of a function costs (`profile lines --help`). Reports go to
    profiles/. With --extract, the metrics of an ncu report are shown; `extract REPORT... [--json] [--kernel X]` shows
    those of reports that are there. --kernel-name takes the kernels whose name contains it.
    """
    given = list(words or [])
    if way == "extract":
        extract(given)
    elif way == "lines":
        profile_lines.run(given)
    elif way == "emu":
        emulate(given)
    elif way in TOOLS:
        profile(way, given)
    else:
        raise ArgumentError(f"there is no profiler {way!r}", hint=f"one of: {', '.join(WAYS)}")


def profile(way: str, words: Sequence[str]) -> None:
    """Run a command under a profiler; its exit status is passed on."""
    wanted = parse(words)
    if wanted.command and locate(TOOLS[way].program) is None:
        raise missing(TOOLS[way], wanted.command)
    status, report = running.profile(TOOLS[way], wanted)
    if not report.exists():
        raise ArgumentError(f"{way} wrote no report", hint="its own words are above")
    if report.suffix == ".log":
        show(report.read_text(encoding="utf-8").splitlines())
    show([f"wrote {report}"])
    if wanted.extract:
        show(ncu_report.lines(ncu_report.extract([report])))
    if status:
        raise typer.Exit(status)


def emulate(words: Sequence[str]) -> None:
    """Run a command with its kernels on the emulator, and show what they counted."""
    wanted = parse(words)
    status, launches = running.emulate(wanted)
    chosen = [item for item in launches if ncu_report.plain(wanted.kernel or "") in ncu_report.plain(item["kernel"])]
    if chosen:
        show(running.counted(chosen))
    else:
        names = ", ".join(sorted({item["kernel"] for item in launches})) or "none"
        show([f"No such kernel ran on the emulator. Kernels that ran: {names}."])
    if status:
        raise typer.Exit(status)


def extract(words: Sequence[str]) -> None:
    """`REPORT... [--json] [--kernel X]`."""
    reports, kernel, as_json = [], None, False
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--json":
            as_json = True
        elif word.partition("=")[0] in ("--kernel", "--kernel-name"):
            kernel = word.partition("=")[2] or (left.pop(0) if left else "")
            if not kernel:
                raise ArgumentError(f"{word} has no value", hint="--kernel CopyTranspose")
        elif word.startswith("-"):
            raise ArgumentError(f"extract has no option {word}", hint="it has --json and --kernel NAME")
        else:
            reports.append(Path(word))
    if not reports:
        raise ArgumentError("there is no report to read", hint="tilewright profile extract profiles/*.ncu-rep")
    found = ncu_report.extract(reports, kernel)
    if as_json:
        typer.echo(json.dumps([item.as_dict() for item in found], indent=1))
    else:
        show(ncu_report.lines(found))


def show(lines: Iterable[str]) -> None:
    """Print lines as they are."""
    console = make_console()
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
