"""`compiled.explore()`: write the explorer's page of a compiled function."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.tools.explorer.collect import collected
from tilewright.tools.explorer.page import page
from tilewright.tools.function_runs import SECONDS, run_executor


def explore(executor: Any, values: Sequence[Any], path: str | Path | None = None, seconds: float = SECONDS) -> Path:
    """Write the page of a compiled function, and give its path.

    Args:
        executor: the compiled function.
        values: arguments of a call, which runs once on the emulator for the counters; none for a page without them.
        path: the file to write; by default `<function>.<arch>.html`, with a number where there is one already.
        seconds: how long the run may take.

    Raises:
        ArgumentError: arguments were given, and the function was not compiled for the emulator.
    """
    if values and executor.target != "emu":
        raise ArgumentError(
            f"{executor.name} was compiled for {executor.target}, and the explorer counts on the emulator",
            hint='compile it with cute.compile(..., target="emu"), or call explore() without arguments',
        )
    data = collected(run_executor(executor, values or None, seconds))
    file = Path(path) if path is not None else free(executor.name, executor.arch)
    file.write_text(page(data), encoding="utf-8")
    return file


def free(name: str, arch: str) -> Path:
    """A name in the working directory that no file has."""
    stems = itertools.chain([f"{name}.{arch}"], (f"{name}.{arch}.{number}" for number in itertools.count(2)))
    return next(file for stem in stems if not (file := Path(f"{stem}.html")).exists())
