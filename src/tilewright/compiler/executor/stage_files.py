"""Stages written to files that replace no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.base.interrupts import raised_by_signal


def write_stages(executor: Any, folder: str | Path, names: Sequence[str]) -> list[Path]:
    """Write stages as `<function>.<arch>.<extension>`; with several kernels each has its own file.

    A file that holds something else is kept: the new one gets a number.

    Raises:
        CompileError: the folder cannot be made.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if raised_by_signal(error):
            raise
        raise CompileError(
            f"cannot write into the folder {str(folder)!r}",
            values={"reason": error.strerror},
            hint="name a folder, or a path where one can be made, by DumpDir or TILEWRIGHT_DUMP_DIR",
        ) from error
    written = []
    for name in names:
        content = executor.stages[name]
        parts = content if isinstance(content, dict) else {executor.name: content}
        extension = executor.back_end.stage(name).extension
        written += [_write_new(target, f"{stem}.{executor.arch}", extension, data) for stem, data in parts.items()]
    return written


def keep_files(executor: Any) -> None:
    """Write the stages that the options ask to keep. Host code alone has no stages of kernels, and nothing to keep."""
    options, back_end = executor.artifact.options, executor.back_end
    names = [name for name in options.kept_stages() if executor.kernels or back_end.stage(name).whole]
    if names:
        write_stages(executor, options.dump_dir or ".", names)


def _write_new(folder: Path, stem: str, extension: str, data: Any) -> Path:
    raw = data if isinstance(data, bytes) else str(data).encode()
    number = 0
    while True:
        path = folder / (f"{stem}.{extension}" if number == 0 else f"{stem}.{number}.{extension}")
        if not path.exists():
            path.write_bytes(raw)
            return path
        if path.read_bytes() == raw:
            return path
        number += 1
