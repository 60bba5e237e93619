"""The folder of the cache: one file for each key, written whole or not at all, at most so many bytes.

    v1/                 mode 0700, the user's own; another one's is not used
      entries/ab/<key>  compiled functions
      records/ab/<key>  which of them a function was compiled to, see `lookup.py`
      tunings/ab/<key>  which configuration was fastest, see `tunings.py`
      locks/<key>       who compiles now
      toolkit           see `toolkit.py`

Only whole files appear under their names: they are written beside and renamed. A process that is killed leaves a file
that nobody reads, which goes when it is a day old.
"""

from __future__ import annotations

import itertools
import os
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tilewright.base import settings
from tilewright.base.interrupts import raised_by_signal
from tilewright.lang.locations import user_location

Kind = Literal["entries", "records", "tunings"]

LAYOUT: Final = "v1"
_ABANDONED: Final = 86_400.0
"""Seconds after which a file that was not finished is taken away."""


class CacheWarning(UserWarning):
    """The cache on disk could not be used; the function was compiled."""


@dataclass(frozen=True)
class StoredFile:
    """A file of the cache: its path, size in bytes, and when it was last used."""

    path: Path
    kind: Kind
    size: int
    used: float

    @property
    def key(self) -> str:
        return self.path.name


class Store:
    """The files of one folder. `limit` is the most bytes that it holds."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder / LAYOUT
        self.limit = limit
        self._total: int | None = None
        self._usable: bool | None = None
        self._writable = True
        self._numbers = itertools.count()

    def usable(self) -> bool:
        """Whether the folder is there, or can be made, and is the user's own."""
        if self._usable is None:
            self._usable = self._prepare()
        return self._usable

    def read(self, kind: Kind, key: str) -> bytes | None:
        """The bytes under a key; None without any. It counts as used now."""
        path = self.path(kind, key)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.warn(path, error.strerror or str(error))
            return None
        with os.fdopen(handle, "rb") as file:
            if not _is_own(os.fstat(handle)):
                self.warn(path, "it is another user's, or others may write to it")
                return None
            data = file.read()
        with suppress(OSError):  # read only, or taken away meanwhile
            os.utime(path)
        return data

    def write(self, kind: Kind, key: str, data: bytes) -> None:
        """Put bytes under a key. Where that fails, the cache does without: a warning says so once."""
        if not self._writable or len(data) > self.limit:
            return
        path = self.path(kind, key)
        temporary = path.parent / f".{key[:16]}.{os.getpid()}.{next(self._numbers)}"
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_new(temporary, data)
            os.replace(temporary, path)
        except OSError as error:
            _discard(temporary)
            if raised_by_signal(error):
                raise
            self._writable = False
            self.warn(path, f"nothing can be written there: {error.strerror or error}")
            return
        except BaseException:
            _discard(temporary)
            raise
        self._grow(len(data))

    def remove(self, kind: Kind, key: str) -> None:
        """Take a file away."""
        _discard(self.path(kind, key))

    def keys(self, kind: Kind, prefix: str) -> list[str]:
        """The keys that begin so, the one used last first."""
        found = [file for file in self._in_folder(self.folder / kind / prefix[:2], kind) if file.key.startswith(prefix)]
        return [file.key for file in sorted(found, key=lambda file: -file.used)]

    def files(self) -> list[StoredFile]:
        """All files, the one used last first."""
        kinds: tuple[Kind, ...] = ("entries", "records", "tunings")
        found = [
            file for kind in kinds for folder in _folders(self.folder / kind) for file in self._in_folder(folder, kind)
        ]
        return sorted(found, key=lambda file: -file.used)

    def clear(self) -> int:
        """Take all files away; gives their number."""
        files = self.files()
        for file in files:
            _discard(file.path)
        self._total = 0
        return len(files)

    def shrink(self, limit: int) -> None:
        """Take away what was not used for longest, until at most `limit` bytes are left."""
        files = self.files()
        total = sum(file.size for file in files)
        for file in reversed(files):
            if total <= limit:
                break
            _discard(file.path)
            total -= file.size
        self._total = total

    def warn(self, path: Path, reason: str) -> None:
        """Say that a file was not used."""
        message, place = f"the cache does not use {path}: {reason}", user_location()
        if place is None:
            warnings.warn(message, CacheWarning, stacklevel=2)
        else:
            warnings.warn_explicit(message, CacheWarning, place.file_here, place.line)

    def path(self, kind: Kind, key: str) -> Path:
        """Where the file of a key lies."""
        return self.folder / kind / key[:2] / key

    def _in_folder(self, folder: Path, kind: Kind) -> Iterator[StoredFile]:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # taken away meanwhile
                continue
            if not entry.name.startswith("."):
                yield StoredFile(Path(entry.path), kind, found.st_size, found.st_mtime)
            elif time.time() - found.st_mtime > _ABANDONED:
                _discard(Path(entry.path))

    def _grow(self, size: int) -> None:
        """Note what was written; where it is too much by now, what was not used for longest goes."""
        if self._total is None:
            self._total = sum(file.size for file in self.files())
        else:
            self._total += size
        if self._total > self.limit:
            self.shrink(self.limit - self.limit // 10)

    def _prepare(self) -> bool:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError as error:
            if raised_by_signal(error):
                raise
            self.warn(self.folder, error.strerror or str(error))
            return False
        if not stat.S_ISDIR(found.st_mode) or not _is_own(found):
            self.warn(self.folder, "it is another user's, or others may write to it")
            return False
        return True


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _discard(path: Path) -> None:
    with suppress(OSError):  # another process was faster, or nothing may be changed here
        path.unlink()


def _write_new(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


_stores: dict[tuple[Path, int, int], Store] = {}


def current_store() -> Store | None:
    """The store that the settings name; None where they turn the disk off or the folder cannot be used."""
    if settings.get("no_cache") or settings.get("no_file_cache"):
        return None
    store = named_store()
    return store if store.usable() else None


def named_store() -> Store:
    """The store of the folder that the settings name, whether it is used or not."""
    folder, limit = settings.cache_folder(), settings.get("cache_size")
    key = folder, limit, os.getpid()
    if key not in _stores:
        _stores[key] = Store(folder, limit)
    return _stores[key]
