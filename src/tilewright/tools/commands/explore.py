"""`tilewright explore`: every stage of FILE:FUNCTION side by side, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base.errors import ArgumentError
from tilewright.tools.arguments import parse_argument
from tilewright.tools.commands.compile import ARG_HELP
from tilewright.tools.console import console as make_console
from tilewright.tools.explorer.collect import collected
from tilewright.tools.explorer.explore import free
from tilewright.tools.explorer.page import page
from tilewright.tools.explorer.serving import serve
from tilewright.tools.function_runs import SECONDS, run_place
from tilewright.tools.profiling import ncu_lines

LARGEST_PORT = 65535


def command(
    place: Annotated[str, typer.Argument(metavar="FILE:FUNCTION", help="a @cute.jit function, or one that calls such")],
    arg: Annotated[list[str] | None, typer.Option("--arg", help=ARG_HELP)] = None,
    arch: Annotated[
        str | None, typer.Option(help="the chip, such as sm_90a; default: the device's, else sm_90a")
    ] = None,
    options: Annotated[str, typer.Option(help='compile options: "--opt-level 2"')] = "",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="the file; default: <function>.<arch>.html")] = None,
    run: Annotated[bool, typer.Option(help="run once on the emulator, for the counters of each line")] = True,
    seconds: Annotated[float, typer.Option(help="how long that run may take")] = SECONDS,
    ncu: Annotated[
        Path | None,
        typer.Option(help="a report of ncu (.ncu-rep), or what profile lines --by ncu --save wrote: shown beside"),
    ] = None,
    serve_: Annotated[
        bool, typer.Option("--serve", help="serve the page, and compile anew when a source file changes")
    ] = False,
    port: Annotated[int, typer.Option(help="where to serve it; 0 takes any free port")] = 8765,
) -> None:
    """Write a page that shows the stages of a function side by side, each pass's changes, figures and counters.

    The page is one file that needs nothing but a browser. With --serve it is shown at a local address instead, and
    renews itself when a source file changes.
    """
    if serve_:
        if not 0 <= port <= LARGEST_PORT:
            raise ArgumentError(f"--port {port}: ports are 0 to {LARGEST_PORT}", hint="--port 0 takes any free one")
        more = [*([] if run else ["--no-run"]), *([] if ncu is None else ["--ncu", str(ncu)])]
        serve(place, [*child_options(arg or [], arch, options, seconds), *more], port)
        return
    words = [parse_argument(word) for word in arg or []]
    found = run_place(place, words, arch=arch, options=options, seconds=seconds, run=run)
    data = collected(found if ncu is None else found.beside(ncu_lines.read(ncu)))
    file = out or free(found.name.replace(".", "_"), found.arch)
    file.write_text(page(data), encoding="utf-8")
    make_console().print(f"wrote {file}", soft_wrap=True, highlight=False, markup=False)


def child_options(arg: list[str], arch: str | None, options: str, seconds: float) -> list[str]:
    """The same options, for the processes that compile while the page is served."""
    words = [word for text in arg for word in ("--arg", text)] + ["--seconds", str(seconds)]
    words += ["--arch", arch] if arch is not None else []
    return words + (["--options", options] if options else [])
