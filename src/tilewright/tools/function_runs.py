"""FILE:FUNCTION with `--arg`s, compiled for the emulator, and the values to run it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright.cute as cute
from tilewright.tools.arguments import Argument, TensorArgument, values
from tilewright.tools.commands.compile import ARG_HELP, compile_argument
from tilewright.tools.function_lookup import load_function

__all__ = ["ARG_HELP", "compiled_for", "run_values"]


def compiled_for(place: str, arguments: Sequence[Argument], arch: str | None, options: Any, target: str = "emu") -> Any:
    """The executor of `FILE:FUNCTION` for these arguments."""
    function = load_function(place)
    given = [compile_argument(item) for item in arguments]
    return cute.compile(function, *given, options=options, arch=arch, target=target)


def run_values(arguments: Sequence[Argument]) -> list[Any] | None:
    """What to call it with; None where an extent is not given."""
    if any(isinstance(item, TensorArgument) and None in item.shape for item in arguments):
        return None
    return values(arguments)
