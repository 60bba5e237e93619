"""One process at a time for one key: the others wait and find what it made."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # pragma: no cover  (no POSIX)
    fcntl = None  # type: ignore[assignment]

PATIENCE: Final = 120.0
"""Seconds to wait for another process; then both compile, and the file of the last one stays."""

_open: set[int] = set()
_mine = threading.local()


@contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Hold the lock `path` inside the block; False where none is to be had: a read-only folder, patience at an end.

    The file goes when it is let go. A process that is killed lets go too. A thread that holds it has it again.
    """
    held = _held()
    if path in held or fcntl is None:
        yield path in held
        return
    handle = _take(path)
    if handle is None:
        yield False
        return
    held.add(path)
    try:
        yield True
    finally:
        held.discard(path)
        with suppress(OSError):
            path.unlink()
        _open.discard(handle)
        os.close(handle)


def _held() -> set[Path]:
    found: set[Path] | None = getattr(_mine, "paths", None)
    if found is None:
        found = _mine.paths = set()
    return found


def _take(path: Path) -> int | None:
    """An open file that is locked, and still the one of that name."""
    until, pause = time.monotonic() + PATIENCE, 0.001
    while time.monotonic() < until:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_named(handle, path):
                _open.add(handle)
                return handle
            os.close(handle)
        except BlockingIOError:
            os.close(handle)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        except OSError:  # a file system without locks
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
    return None


def _is_named(handle: int, path: Path) -> bool:
    """Whether nobody took the file away before it was locked."""
    try:
        return os.fstat(handle).st_ino == os.stat(path).st_ino
    except OSError:
        return False


def _after_fork() -> None:
    """A child does not hold its parent's locks: its copies of the files would hold them beyond the parent's end."""
    for handle in _open:
        os.close(handle)
    _open.clear()
    _mine.__dict__.clear()


os.register_at_fork(after_in_child=_after_fork)
