"""`tilewright debug`: step through a kernel on the emulator, forwards and backwards."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tilewright.base.errors import ArgumentError
from tilewright.tools.debugger.dap import serve
from tilewright.tools.debugger.plan import Program
from tilewright.tools.debugger.session import Session
from tilewright.tools.debugger.shell import Shell

ARG_HELP = "one for each parameter, in order: f32[1024], zeros:f32[64,32], i32[16]=arange, @file.npy, 3, 2.5"
SAID = (
    "This is a debug build: nothing is optimised, and comments of the PTX pin the variables of the source. "
    "Its code differs from that of other builds; --release debugs those, without variables."
)


def command(
    place: Annotated[str | None, typer.Argument(metavar="FILE:FUNCTION", help="a @cute.jit function")] = None,
    arg: Annotated[list[str] | None, typer.Option("--arg", help=ARG_HELP)] = None,
    arch: Annotated[str | None, typer.Option(help="the chip, such as sm_90a; default: sm_90a")] = None,
    options: Annotated[str, typer.Option(help='compile options: "--opt-level 1"')] = "",
    release: Annotated[
        bool, typer.Option("--release", help="the code of other builds, optimised and without pins")
    ] = False,
    seed: Annotated[int, typer.Option(help="the order of blocks and warps")] = 0,
    checks: Annotated[bool, typer.Option(help="stop at races and other errors")] = True,
    dap: Annotated[
        bool, typer.Option("--dap", help="serve an editor by the Debug Adapter Protocol on stdin and stdout")
    ] = False,
) -> None:
    """Step through the kernels of a function on the emulator, by lines of Python or PTX, forwards and backwards."""
    if dap:
        serve(sys.stdin.buffer, sys.stdout.buffer)
        return
    if place is None:
        raise ArgumentError("nothing to debug", hint="tilewright debug FILE:FUNCTION --arg ..., or --dap for an editor")
    chosen = options if release else f"--opt-level 0 {options}"
    program = Program(place, tuple(arg or ()), chosen, arch, seed, checks, not release)
    session = Session(program)
    try:
        if not release:
            typer.echo(SAID)
        Shell(session).begin()
    finally:
        session.close()
