"""Finds the function that the user means by `FILE:FUNCTION`."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.base.location import SourceLocation


def load_function(place: str) -> Callable[..., Any]:
    """The function of `FILE:FUNCTION`; `FUNCTION` may be dotted (`Class.method`).

    The file is run as a module that is not `__main__`. Raises ArgumentError for a place that does not exist.
    """
    file, colon, name = place.rpartition(":")
    if not colon or not file or not name:
        raise ArgumentError(f"{place!r} names no function", hint="write FILE:FUNCTION, for example kernels.py:add")
    found: Any = load_module(Path(file))
    for part in name.split("."):
        if not hasattr(found, part):
            raise ArgumentError(f"{file} has no {name!r}", hint=_similar(part, found))
        found = getattr(found, part)
    if not callable(found):
        raise ArgumentError(f"{place} is no function but {type(found).__name__}", hint=_similar(name, found))
    return found


def load_module(path: Path) -> ModuleType:
    """Import the Python file at `path` under a name of its own; its folder is importable, as for a script."""
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder", hint="name a Python file in it")
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}", hint="the path is relative to the working directory")
    path = path.resolve()
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{path} is no Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception) or isinstance(error, TilewrightError):
            raise
        raise ArgumentError(
            f"{path} cannot be imported: {type(error).__name__}: {error}", location=line_at_fault(error, path)
        ) from error
    return module


def line_at_fault(error: Exception, path: Path) -> SourceLocation | None:
    """The line of a file that does not parse, or the line in `path` that raised `error`."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return SourceLocation(error.filename, error.lineno, max((error.offset or 1) - 1, 0))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return SourceLocation(str(path), frames[-1].lineno or 1) if frames else None


def _similar(name: str, owner: object) -> str:
    """A hint with the names that the user may have meant: close ones, else the functions that there are."""
    members = getattr(owner, "__dict__", {})
    public = [key for key, value in members.items() if not key.startswith("__") and callable(value)]
    close = difflib.get_close_matches(name, public, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"it has: {', '.join(sorted(public)) or 'no functions'}"
