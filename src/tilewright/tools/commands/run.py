"""`tilewright run`: run a script whose `import cutlass` means Tilewright."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base import settings
from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.compiler.target_choice import choose_target
from tilewright.hw.chips import normalize_arch

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
    if target is not None:
        choose_target(target)
    if arch is not None:
        normalize_arch(arch)
    given = {"target": target, "arch": arch}
    sys.argv = [str(script), *ctx.args]
    sys.path.insert(0, str(script.resolve().parent))
    with settings.scope(**{name: value for name, value in given.items() if value is not None}):
        run_script(str(script))


def run_script(script: str) -> None:
    """Run a file as `__main__`; what it raises is shown as Python shows it, without the frames of this command."""
    try:
        runpy.run_path(script, run_name="__main__")
    except TilewrightError:
        raise
    except Exception as error:  # noqa: BLE001
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != script:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        sys.exit(1)
