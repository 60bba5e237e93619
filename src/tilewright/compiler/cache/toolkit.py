"""The compiler and its tools, as parts of a key.

Our own sources count by content. Reading them takes 30 ms, so the folder of the cache keeps a list of the files with
their times and sizes, and the digest that they had. What this process runs is what the files hold only where none was
changed since it started; else it neither reads the cache nor writes to it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import is_
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from tilewright.base import patched
from tilewright.base.patched import ROOT
from tilewright.compiler.cache.owners import UNRELATED

_SUFFIXES: Final = (".py", ".ll", ".c", ".h", ".json", ".so")
_CLOCK_STEP: Final = 20_000_000
"""Nanoseconds by which the time stamp of a file may lag behind the clock."""


def digest(folder: Path) -> str | None:
    """The digest of our sources; None where they were changed since this process started.

    `folder` is the cache's; its list of files saves reading them.
    """
    if patched.PATCHED:
        return None
    known = _digests.get(ROOT)
    if known is None:
        loaded = set(sys.modules)
        known = _digests[ROOT] = _digest(folder / "toolkit")
        _checked.update(loaded)
    return known if known and _loaded_unchanged() else None


_digests: dict[Path, str] = {}


def _digest(manifest: Path) -> str:
    """The digest; "" where a file is newer than this process."""
    kept = _Manifest.read(manifest)
    state, newest = _state(kept.files) if kept else ("", 0)
    if kept is None or state != kept.state:
        files = tuple(map(str, _files()))
        state, newest = _state(files)
        kept = _Manifest(files, state, _content(files))
        kept.write(manifest)
    return kept.digest if newest < patched.STARTED - _CLOCK_STEP else ""


@dataclass(frozen=True)
class _Manifest:
    """The files and folders of the compiler, their state, and the digest of their content."""

    files: tuple[str, ...]
    state: str
    digest: str

    @classmethod
    def read(cls, path: Path) -> _Manifest | None:
        """What `write` wrote; None where that is not what the file holds, or it is of another folder."""
        try:
            total, _, text = path.read_text(encoding="utf-8").partition("\n")
        except (OSError, ValueError):
            return None
        if total != _digest_of(text.encode()):
            return None
        root, state, digest, *files = text.split("\n")
        return cls(tuple(files), state, digest) if root == str(ROOT) else None

    def write(self, path: Path) -> None:
        """Write it down; where that fails it is made again by the next process."""
        text = "\n".join((str(ROOT), self.state, self.digest, *self.files))
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            temporary.write_text(f"{_digest_of(text.encode())}\n{text}", encoding="utf-8")
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)


def _digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _state(paths: Iterable[str]) -> tuple[str, int]:
    """A digest of the times and sizes of files and folders, and when the newest of the files was changed."""
    stamps, newest = [], 0
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            return "", 0
        stamps.append(f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size}")
        if not stat.S_ISDIR(found.st_mode):  # Python writes into folders what it compiled
            newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
    return _digest_of("\n".join(stamps).encode()), newest


def _files() -> Iterator[Path]:
    """The folders and files that make up the compiler."""
    waiting = [ROOT]
    while waiting:
        folder = waiting.pop()
        yield folder
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.is_dir():
                if entry.name not in (*UNRELATED, "__pycache__"):
                    waiting.append(Path(entry.path))
            elif entry.name.endswith(_SUFFIXES):
                yield Path(entry.path)


def _content(files: Iterable[str]) -> str:
    made = hashlib.blake2b(digest_size=20)
    for path in sorted(files):
        if not os.path.isdir(path):
            data = Path(path).read_bytes()
            made.update(f"{os.path.relpath(path, ROOT)}\0{len(data)}\0".encode())
            made.update(data)
    return made.hexdigest()


_checked: set[str] = set()
_count = [0]


def _loaded_unchanged() -> bool:
    """Whether the files of our modules that were loaded meanwhile are older than this process."""
    if _count[0] == len(sys.modules):
        return True
    for name, module in list(sys.modules.items()):
        if name not in _checked and name.startswith("tilewright."):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and _state([file])[1] >= patched.STARTED - _CLOCK_STEP:
                return False
            _checked.add(name)
    _count[0] = len(sys.modules)
    return True


_seen: dict[int, tuple[type, list[Any], list[tuple[str, str, FunctionType]]]] = {}


def patched_classes() -> list[tuple[str, str, FunctionType]]:
    """Methods that were put into the classes of the language from outside, as (class, name, function)."""
    return [item for cls in _public_classes() for item in _patched(cls)]


def _patched(cls: type) -> list[tuple[str, str, FunctionType]]:
    values = list(vars(cls).values())
    seen = _seen.get(id(cls))
    if seen is None or len(values) != len(seen[1]) or not all(map(is_, values, seen[1])):
        name = f"{cls.__module__}.{cls.__qualname__}"
        found = [
            (name, key, value)
            for key, value in vars(cls).items()
            if type(value) is FunctionType and not _is_ours(value.__code__.co_filename)
        ]
        seen = _seen[id(cls)] = cls, values, found
    return seen[2]


def _is_ours(file: str) -> bool:
    """True for the file of code that our classes have from us or from the standard library."""
    return file.startswith((str(ROOT), "<")) or (
        file.startswith(os.path.dirname(os.__file__)) and "-packages" not in file
    )


def _public_classes() -> Iterable[type]:
    """The classes of ours that sources in the language name or get."""
    names = ("face", "cute", "lang.tensors.tensor", "lang.tensors.tensor_ssa", "lang.tensors.pointer",
             "lang.numbers.numeric")  # fmt: skip
    found = [sys.modules.get(f"tilewright.{name}") for name in names]
    modules = [vars(module) for module in found if module is not None]
    classes = {id(value): value for entries in modules for value in entries.values() if isinstance(value, type)}
    return [cls for cls in classes.values() if cls.__module__.startswith("tilewright.")]


def tools(files: Iterable[Path]) -> dict[str, str | None]:
    """The libraries and programs that compile, by name: their times and sizes, None for what is not installed."""
    found = {name: _package(name, inside) for name, inside in _LIBRARIES}
    found.update({path.name: _version(path) for path in files})
    return found


_LIBRARIES: Final = (("llvm", "lib/libLLVM.so"), ("mlir", "_mlir_libs/libMLIRPythonCAPI.so"))


def _package(name: str, inside: str) -> str | None:
    for folder in _folders_of(name):
        version = _version(Path(folder, inside))
        if version is not None:
            return version
    return None


@functools.cache
def _folders_of(package: str) -> tuple[str, ...]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ()
    return tuple(spec.submodule_search_locations or ()) if spec else ()


def _version(path: Path) -> str | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return f"{found.st_size} {found.st_mtime_ns}"


@functools.cache
def machine() -> str:
    """The processor, for which host code is made."""
    kept = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "CPU variant", "Features")
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).partition("\n\n")[0]
    except OSError:
        first = platform.processor()
    lines = [line for line in first.splitlines() if line.partition("\t")[0].strip() in kept]
    return "\n".join([platform.machine(), sys.platform, *lines])
