"""NVTX ranges around compilation and launches, for the timeline of a profiler.

They are made where the setting `nvtx` says so, which profilers switch on by the variables that they set, through the
library of the packages `nvidia-nvtx` (`libnvtx3interop`) or of a toolkit (`libnvToolsExt`).
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tilewright.base import settings
from tilewright.base.notices import say_once

_NAMES: Final = ("libnvtx3interop.so*", "libnvToolsExt.so*")
_FOLDERS: Final = ("cu13/lib", "cu12/lib", "nvtx/lib", "nvtx/lib64")


def wanted() -> bool:
    """Whether ranges are made: a profiler is there, or the setting says so, and the library is found."""
    return bool(settings.get("nvtx")) and _library(str(settings.get("toolkit"))) is not None


@contextmanager
def span(text: str) -> Iterator[None]:
    """A range of the calling thread around a block, where ranges are made."""
    library = _library(str(settings.get("toolkit"))) if settings.get("nvtx") else None
    if library is None:
        yield
        return
    library.nvtxRangePushA(text.encode())
    try:
        yield
    finally:
        library.nvtxRangePop()


def around(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """`function` with a range around each call."""

    def ranged(*args: Any, **kwargs: Any) -> Any:
        with span(text):
            return function(*args, **kwargs)

    return ranged


@functools.cache
def _library(toolkit: str) -> Any:
    """The library, or None: then it is said once what brings it."""
    for path in _candidates(toolkit):
        try:
            found = ctypes.CDLL(str(path))
            found.nvtxRangePushA.argtypes, found.nvtxRangePushA.restype = (ctypes.c_char_p,), ctypes.c_int
            found.nvtxRangePop.argtypes, found.nvtxRangePop.restype = (), ctypes.c_int
        except (OSError, AttributeError):
            continue
        return found
    say_once("no NVTX ranges are made: pip install nvidia-nvtx brings the library", None)
    return None


def _candidates(toolkit: str) -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    bases = [Path(base) for base in (spec.submodule_search_locations or ())] if spec is not None else []
    folders = [Path(toolkit, name) for name in ("lib64", "lib")] if toolkit else []
    for folder in [*folders, *(base / name for base in bases for name in _FOLDERS)]:
        for name in _NAMES:
            yield from sorted(folder.glob(name), reverse=True)
    yield from (Path(name.removesuffix("*") + ".1") for name in _NAMES)  # where the loader finds them
