"""The command `tilewright`.

Each command is a module of `tilewright.tools.commands` with a function `command`. Only the module of the command that
is called gets imported, so that `tilewright --help` loads neither NumPy nor MLIR.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tilewright import __version__
from tilewright.base import settings, streams
from tilewright.base.errors import TilewrightError
from tilewright.tools.console import console

COMMANDS = {
    "demo": "Compile and run the demonstration kernels, with a table of every stage.",
    "compile": "Compile FILE:FUNCTION and write the stages asked for.",
    "run": "Run a script, its `import cutlass` resolved to Tilewright.",
    "explore": "Show every stage of FILE:FUNCTION side by side in a browser, with what each line costs.",
    "layout": "Evaluate a layout expression, print it, draw it.",
    "emulate": "Run a kernel of a PTX file on the emulator.",
    "debug": "Step through a kernel on the emulator, forwards and backwards.",
    "bench": "Run the benchmarks of a source checkout: ops against their peers, the compiler, the emulator.",
    "profile": "What each line costs; a command under ncu, nsys, compute-sanitizer or the emulator.",
    "passes": "List the passes and the pipeline they stand in.",
    "cache": "List, clear or verify the compiled functions that are kept on disk.",
    "doctor": "Say what is installed, what is missing, and the remedy.",
}


OWN_FOLDERS = tuple(str(Path(file).resolve().parent) for file in (__file__, typer.__file__))
"""What runs the commands."""


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and help text, and imports one when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command to run, imported now."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(str(name)), rest


def load(name: str) -> Any:
    """Import the module of command `name` and make its command object."""
    module = importlib.import_module(f"tilewright.tools.commands.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, **getattr(module, "COMMAND_OPTIONS", {}))(module.command)
    return get_command(single)


app = typer.Typer(
    cls=LazyGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


def show_version(wanted: bool) -> None:
    """Print the version and end, if asked to."""
    if wanted:
        print(f"tilewright {__version__}")
        raise typer.Exit


@app.callback()
def group(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tilewright: GPU kernels from Python to SASS, every stage open, run without a GPU."""


def main() -> None:
    """Run the command line; an error of Tilewright is printed without a traceback, exit status 1."""
    streams.steady()
    try:
        try:
            app(prog_name="tilewright")
        finally:
            streams.flush()
    except TilewrightError as error:
        if error.location is not None and error.location.file.startswith(OWN_FOLDERS):
            error.location = None  # the line of a command says nothing to its user
        fail(f"{type(error).__name__}: {error}")
    except BrokenPipeError:
        streams.give_up_output()  # whoever read has seen enough
        sys.exit(1)
    except OSError as error:  # scripts and modules of the user do not come here: `run` and `load_module` see to them
        streams.give_up_output()
        fail(f"{error.filename or 'the output'} cannot be written or read: {error.strerror or error}")
    except MemoryError as error:
        fail(f"this machine has too little memory: {error or 'none is left'}")


def fail(message: str) -> None:
    """Print an error without its traceback, unless the setting `debug` asks for it; exit status 1."""
    if settings.get("debug"):
        traceback.print_exc()
    console(stderr=True).print(Text(message), soft_wrap=True)
    sys.exit(1)
