"""`tilewright emulate`: run a kernel of a PTX file on the emulator."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from tilewright.base.errors import ArgumentError
from tilewright.emulate import Report, run_ptx
from tilewright.tools.arguments import TensorArgument, parse_argument, values
from tilewright.tools.console import console as make_console

SIZE = re.compile(r"[0-9]{1,18}")
ENTRY = re.compile(r"\.entry\s+([\w$.]+)")
ARG_HELP = "one for each parameter, in order: f32[1024], zeros:f32[64,32], i32[16]=arange, @file.npy, 3, 2.5"
SHOWN = 6
"""Elements of an array that are printed."""


def command(
    file: Annotated[Path, typer.Argument(help="a PTX file")],
    kernel: Annotated[str | None, typer.Option(help="the kernel; may be left out when the file has one")] = None,
    grid: Annotated[str, typer.Option(help="blocks: X, X,Y or X,Y,Z")] = "1",
    block: Annotated[str, typer.Option(help="threads per block: X, X,Y or X,Y,Z")] = "1",
    cluster: Annotated[str, typer.Option(help="blocks per cluster: X, X,Y or X,Y,Z")] = "1",
    smem: Annotated[int, typer.Option(help="bytes of dynamic shared memory")] = 0,
    arg: Annotated[list[str] | None, typer.Option("--arg", help=ARG_HELP)] = None,
    checks: Annotated[str, typer.Option(help="on: stop at the first error; collect: report all; off: fast")] = "on",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="folder to save the arrays in afterwards")] = None,
    progress: Annotated[bool | None, typer.Option(help="a progress bar on long runs; default: in a terminal")] = None,
) -> None:
    """Run a kernel on arrays, say what it did to them, and what the emulator found and counted."""
    text = read_ptx(file)
    name = kernel or only_kernel(text, file)
    arguments = [parse_argument(word) for word in arg or []]
    data = values(arguments)
    before = [np.copy(item) if isinstance(item, np.ndarray) else item for item in data]
    start = time.perf_counter()
    report = run_ptx(
        text, name, extents("--grid", grid), extents("--block", block), data,
        cluster=extents("--cluster", cluster), smem=smem, checks=check_mode(checks), progress=progress,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    console = make_console()
    console.print(array_table([item.text for item in arguments], before, data))
    print_report(console, report, seconds)
    if out is not None:
        save(out, arguments, data, console)


def read_ptx(file: Path) -> str:
    """The text of a PTX file."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{file} cannot be read as PTX", values={"reason": error},
                            hint="`tilewright compile --emit ptx` writes such a file") from error  # fmt: skip


def only_kernel(text: str, file: Path) -> str:
    """The name of the file's kernel, if it has one only."""
    names = ENTRY.findall(text)
    if len(names) == 1:
        return str(names[0])
    if not names:
        raise ArgumentError(f"{file} has no kernel", hint="a kernel is a function marked .entry")
    raise ArgumentError(f"{file} has {len(names)} kernels", hint=f"choose one: --kernel {' | '.join(names)}")


def extents(option: str, text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z` as three positive numbers."""
    parts = text.split(",")
    if len(parts) > 3 or not all(SIZE.fullmatch(part.strip()) and int(part) > 0 for part in parts):
        raise ArgumentError(f"{option} {text!r} is not a size", hint="write one to three positive numbers: 128 or 16,8")
    x, y, z = [int(part) for part in parts] + [1] * (3 - len(parts))
    return x, y, z


def check_mode(word: str) -> bool | Literal["collect"]:
    """The value of `run_ptx`'s `checks`."""
    modes: dict[str, bool | Literal["collect"]] = {"on": True, "off": False, "collect": "collect"}
    if word not in modes:
        raise ArgumentError(f"--checks {word!r} is unknown", hint=f"one of: {', '.join(modes)}")
    return modes[word]


def array_table(texts: list[str], before: list[Any], after: list[Any]) -> Table:
    """What became of each argument."""
    table = Table()
    for column in ("argument", "changed", "first elements before", "after"):
        table.add_column(column)
    for text, old, new in zip(texts, before, after, strict=True):
        if not isinstance(new, np.ndarray):
            table.add_row(text, "", "", "")
            continue
        table.add_row(text, f"{int(different(old, new).sum())} of {new.size}", first(old), first(new))
    return table


def different(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Where two arrays differ in their bits."""
    width = old.dtype.itemsize
    a, b = (np.ascontiguousarray(item).view(np.uint8).reshape(-1, width) for item in (old, new))
    return np.any(a != b, axis=1)


def first(array: np.ndarray) -> str:
    """The first elements of an array, in a line."""
    flat = array.reshape(-1)[:SHOWN]
    return " ".join(f"{item:g}" for item in flat.tolist()) + (" ..." if array.size > SHOWN else "")


def print_report(console: Console, report: Report, seconds: float) -> None:
    """Counters, what the kernel printed, then findings; a run with findings ends with status 1."""
    console.print(
        f"{report.blocks:,} blocks of {report.threads:,} threads, {report.instructions:,} thread instructions "
        f"in {seconds * 1e3:.1f} ms"
    )
    console.print("  ".join(f"{name} {count:,}" for name, count in sorted(report.by_class.items())), style="dim")
    console.print(str(report.fidelity), style="dim", markup=False, highlight=False, soft_wrap=True)
    if report.output:
        console.print(report.output, markup=False, highlight=False, end="")
    for finding in [*report.errors, *report.races]:
        console.print(str(finding), style="red", highlight=False, markup=False, soft_wrap=True)
    if not report.ok:
        raise typer.Exit(1)


def save(folder: Path, arguments: list[Any], data: list[Any], console: Console) -> None:
    """Write every array as `arg<position>.npy`."""
    folder.mkdir(parents=True, exist_ok=True)
    for position, (argument, array) in enumerate(zip(arguments, data, strict=True)):
        if isinstance(argument, TensorArgument):
            path = folder / f"arg{position}.npy"
            np.save(path, array)
            console.print(f"wrote {path}")
