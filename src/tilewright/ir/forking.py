"""Forking, and ending the process, while something compiles.

A forked process has the thread that forked, and no other: a lock that another thread held is held for ever, in LLVM's
and MLIR's own code too. So a fork waits until no other thread compiles, for `PATIENCE` seconds at most (a compilation
may be waiting for the very thread that forks).
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
PATIENCE: Final = 20.0


class _Gate:
    """How often each thread has entered a compilation.

    Take its `lock`, not `changed`: a condition is left by Python code, where an interrupt would keep it locked.
    """

    def __init__(self) -> None:
        self.renew()
        self.inside: Counter[int] = Counter()
        self.closed_by: int | None = None  # the thread that forks, or ends the process

    def renew(self) -> None:
        """Make a lock that nobody holds."""
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)


_gate = _Gate()


@contextmanager
def compiling(anew: bool = False, waits: bool = True) -> Iterator[None]:
    """Inside the block this thread compiles: other threads do not fork. With `anew` it is inside no other such block.

    (What an interrupt left behind is then forgotten.) A thread that helps another one `waits` for no fork: the fork
    waits for the other.
    """
    thread = threading.get_ident()
    with _gate.lock:
        if waits and not _gate.inside[thread]:
            _gate.changed.wait_for(lambda: _gate.closed_by in (None, thread), PATIENCE)
        _gate.inside[thread] = 1 if anew else _gate.inside[thread] + 1
    try:
        yield
    finally:
        with _gate.lock:
            _gate.inside[thread] -= 1
            if _gate.inside[thread] <= 0:
                del _gate.inside[thread]
            _gate.changed.notify_all()


def _close() -> None:
    """Let no other thread begin a compilation, and wait for those under way."""
    thread = threading.get_ident()
    with _gate.lock:
        _gate.closed_by = thread
        _gate.changed.wait_for(lambda: all(other == thread for other in _gate.inside), PATIENCE)


def _after_in_parent() -> None:
    with _gate.lock:
        _gate.closed_by = None
        _gate.changed.notify_all()


def _after_in_child() -> None:
    # The lock may have been another thread's, which is not here. This thread may be compiling still.
    _gate.renew()
    _gate.inside = Counter({thread: count for thread, count in _gate.inside.items() if thread == threading.get_ident()})
    _gate.closed_by = None
    _Pool.executor = None


os.register_at_fork(before=_close, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
# Python ends daemon threads where they are: inside MLIR that ends the process by an abort.
atexit.register(_close)


class _Pool:
    executor: ThreadPoolExecutor | None = None


class Background(Generic[T]):
    """A call that another thread makes meanwhile. In a process that was forked before it ended it is made again."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._process = os.getpid()
        if _Pool.executor is None:
            _Pool.executor = ThreadPoolExecutor(max_workers=4, thread_name_prefix="tilewright")
        self._future: Future[Any] | None
        try:
            self._future = _Pool.executor.submit(_compile, call)
        except RuntimeError:  # the process is ending, and pools with it
            self._future = None

    def result(self) -> T:
        """What the call gave; waits for it."""
        if self._future is None or (self._process != os.getpid() and not self._future.done()):
            self._future = Future()
            self._future.set_result(self._call())
        made: T = self._future.result()
        return made


def _compile(call: Callable[[], T]) -> T:
    with compiling(waits=False):
        return call()
