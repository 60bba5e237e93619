"""`tilewright run`: run a script whose `import cutlass` means Tilewright."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base import settings
from tilewright.base.errors import ArgumentError

COMMAND_OPTIONS = {"context_settings": {"allow_extra_args": True, "allow_interspersed_args": False}}


def command(
    ctx: typer.Context,
    script: Annotated[Path, typer.Argument(help="a Python file; what follows are its own arguments")],
    target: Annotated[str | None, typer.Option(help="cuda or emu; default: cuda where a device is")] = None,
    arch: Annotated[
        str | None, typer.Option(help="the chip, such as sm_90a; default: the device's, else sm_90a")
    ] = None,
) -> None:
    """Run a script as `python SCRIPT ARGUMENTS` would, with `import cutlass` resolved to Tilewright."""
    if not script.is_file():
        raise ArgumentError(f"there is no file {script}", hint="the path is relative to the working directory")
    given = {"target": target, "arch": arch}
    sys.argv = [str(script), *ctx.args]
    sys.path.insert(0, str(script.resolve().parent))
    with settings.scope(**{name: value for name, value in given.items() if value is not None}):
        runpy.run_path(str(script), run_name="__main__")
