"""Runs FILE:FUNCTION once on the GPU, for a profiler that looks on. `main` takes place, chip, options, arguments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import tilewright.cute as cute
import tilewright.dropin  # noqa: F401  importing it makes `import cutlass` resolve
from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.compiler.decorated import BoundFunction, Decorated
from tilewright.tools.arguments import Argument, TensorArgument, parse_argument, values
from tilewright.tools.commands.compile import compile_argument
from tilewright.tools.function_lookup import load_function

try:
    import torch
except ImportError:  # only operators of PyTorch tensors need it
    torch = None


def main() -> None:
    """Run with the words of the command line."""
    place, arch, options, *words = sys.argv[1:]
    launch(place, [parse_argument(word) for word in words], arch or None, options)


def launch(place: str, words: Sequence[Argument], arch: str | None, options: str) -> None:
    """Compile for the GPU and call once. NumPy arrays are copied there; a plain function gets tensors of PyTorch."""
    function = load_function(place)
    if isinstance(function, Decorated | BoundFunction):
        given = map(compile_argument, words)
        cute.compile(function, *given, options=options, arch=arch, target="cuda")(*values(words))
        return
    with settings.scope(target="cuda", **({"arch": arch} if arch else {})):
        function(*on_device(words))


def on_device(words: Sequence[Argument]) -> list[Any]:
    """The arguments, arrays as tensors of the GPU.

    Raises:
        ArgumentError: PyTorch is not installed.
    """
    found = values(words)
    if torch is None and any(isinstance(item, TensorArgument) for item in words):
        raise ArgumentError("a plain function runs on tensors of PyTorch, which is not installed")
    return [
        torch.from_numpy(value).cuda() if isinstance(item, TensorArgument) else value
        for item, value in zip(words, found, strict=True)
    ]
