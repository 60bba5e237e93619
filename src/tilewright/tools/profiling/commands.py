"""The command lines of the profilers: what the user asked for, as `ncu`, `nsys` and `compute-sanitizer` take it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base import settings
from tilewright.base.errors import ArgumentError

EXTRACTED = ("SpeedOfLight", "ComputeWorkloadAnalysis", "WarpStateStats")
"""The sections of Nsight Compute that have the metrics of `ncu_report`."""
MISTAKEN = {"--set=launchstats": "--section=LaunchStats"}
"""Options that were documented once, and what they are: launch statistics are a section, not a set."""
CHOICES = ("--set", "--section", "--metrics", "--query-metrics")
USUAL = "/usr/local/cuda/bin"


@dataclass(frozen=True)
class Wanted:
    """What is to be profiled: the kernels whose names contain `kernel` only; `options` go to the tool as they are."""

    command: tuple[str, ...]
    options: tuple[str, ...] = ()
    kernel: str | None = None
    extract: bool = False


@dataclass(frozen=True)
class Tool:
    """A profiler: its name here, its program, how its reports end, what it is part of, and its command line."""

    name: str
    program: str
    ending: str
    package: str
    line: Callable[[Wanted, Path], list[str]]


def _ncu(wanted: Wanted, report: Path) -> list[str]:
    options = [MISTAKEN.get(option, option) for option in wanted.options]
    line = ["--target-processes", "all", "--export", str(report.with_suffix(""))]  # ncu adds the ending
    if wanted.kernel is not None:
        line += ["--kernel-name", f"regex:{wanted.kernel}"]
    chosen = any(option.split("=")[0] in CHOICES for option in options)
    if wanted.extract:
        line += [f"--section={name}" for name in EXTRACTED]
    elif not chosen:
        line += ["--set", "full"]
    return line + options


def _nsys(wanted: Wanted, report: Path) -> list[str]:
    if wanted.kernel is not None:
        raise ArgumentError("nsys has no filter by kernel", hint="leave --kernel-name out, or use ncu")
    return ["profile", "--output", str(report.with_suffix("")), *wanted.options]


def _sanitizer(wanted: Wanted, report: Path) -> list[str]:
    line = ["--log-file", str(report), "--error-exitcode", "1"]
    if wanted.kernel is not None:
        line += ["--kernel-name", f"kns={wanted.kernel}"]
    return [*line, *wanted.options]


TOOLS = {
    "ncu": Tool("ncu", "ncu", ".ncu-rep", "Nsight Compute", _ncu),
    "nsys": Tool("nsys", "nsys", ".nsys-rep", "Nsight Systems", _nsys),
    "sanitizer": Tool("sanitizer", "compute-sanitizer", ".log", "the CUDA toolkit", _sanitizer),
}


def locate(program: str) -> str | None:
    """The program's path: in the search path, in the toolkit that is set, or where toolkits usually are."""
    folders = [str(Path(root) / "bin") for root in (settings.get("toolkit"),) if root]
    for folder in (None, *folders, USUAL):
        if found := shutil.which(program, path=folder):
            return found
    return None


def command_line(tool: Tool, wanted: Wanted, report: Path) -> list[str]:
    """The whole command.

    Raises:
        ArgumentError: there is nothing to run, or the tool cannot do what is wanted.
    """
    if not wanted.command:
        raise ArgumentError(
            "there is no command to profile", hint=f"tilewright profile {tool.name} -- python script.py"
        )
    if wanted.extract and tool.name != "ncu":
        raise ArgumentError("--extract reads reports of ncu", hint="tilewright profile ncu --extract -- ...")
    options = tool.line(wanted, report)
    program = locate(tool.program)
    if program is None:
        raise missing(tool, wanted.command)
    return [program, *options, *wanted.command]


def missing(tool: Tool, command: Sequence[str] = ()) -> ArgumentError:
    """The error for a tool that is not there, which offers the emulator."""
    again = " ".join(command) or "COMMAND"
    return ArgumentError(
        f"{tool.program} is not installed here: it is part of {tool.package}",
        values={"looked in": f"PATH, the CUDA toolkit that is set, {USUAL}"},
        hint=f"without it, the emulator counts what the same kernels do: tilewright profile emu -- {again}",
    )


def parse(words: Sequence[str]) -> Wanted:
    """`[--kernel-name X] [--extract] [options of the tool] -- COMMAND`.

    Raises:
        ArgumentError: `--` is missing, or a value.
    """
    if "--" not in words:
        raise ArgumentError(
            "where does the command begin?", values={"given": " ".join(words) or "nothing"},
            hint="write -- before it: tilewright profile ncu --extract -- python script.py",
        )  # fmt: skip
    place = list(words).index("--")
    before, command = list(words[:place]), tuple(words[place + 1 :])
    kernel, extract, options = None, False, []
    while before:
        word = before.pop(0)
        if word == "--extract":
            extract = True
        elif word == "--kernel-name" or word.startswith("--kernel-name="):
            kernel = word.partition("=")[2] or (before.pop(0) if before else "")
            if not kernel:
                raise ArgumentError("--kernel-name has no value", hint="--kernel-name softmax_online")
        elif word == "--set" and before and f"--set={before[0]}" in MISTAKEN:
            options.append(MISTAKEN[f"--set={before.pop(0)}"])
        else:
            options.append(word)
    return Wanted(command, tuple(options), kernel, extract)
