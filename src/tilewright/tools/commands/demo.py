"""`tilewright demo`: compile and run the demonstration kernels."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.tools import demo
from tilewright.tools.console import console as make_console


def command(
    target: Annotated[str | None, typer.Option(help="cuda or emu; default: cuda where a device is")] = None,
    arch: Annotated[
        str | None, typer.Option(help="the chip, such as sm_90a; default: the device's, else sm_90a")
    ] = None,
) -> None:
    """Compile four kernels through every stage, run them, compare with NumPy; exit status 1 if one is wrong."""
    if not demo.run(make_console(), target=target, arch=arch):
        raise typer.Exit(1)
