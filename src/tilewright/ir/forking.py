"""Forking, and ending the process, while something compiles.

A forked process has the thread that forked, and no other: a lock that another thread held is held for ever, in LLVM's
and MLIR's own code too. So a fork waits until no other thread compiles, for `PATIENCE` seconds at most (a compilation
may be waiting for the very thread that forks).
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
PATIENCE: Final = 20.0
MAX_WORKERS: Final = 4


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
    _waiting.clear()
    _workers.clear()


os.register_at_fork(before=_close, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


class Background(Generic[T]):
    """A call that another thread makes meanwhile. In a process that was forked before it ended it is made again.

    (Of primitive locks: an interrupt can leave Python's own pools, futures and conditions locked for ever.)
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._process = os.getpid()
        self._values: list[T] = []
        self._errors: list[BaseException] = []
        self._ended = threading.Lock()
        self._ended.acquire()
        _waiting.append(self)
        if len(_workers) < MAX_WORKERS:
            _workers.append(None)
            try:
                _thread.start_new_thread(_work, ())
            except RuntimeError:  # the process is ending, or has no room for a thread: `result` makes the call
                _workers.pop()

    def result(self) -> T:
        """What the call gave; waits for it, or makes the call where no thread has begun it."""
        if self._process != os.getpid() or _taken(self):
            self.run()
        while not self._values and not self._errors:
            self._ended.acquire(timeout=0.1)  # once, or again where an interrupt ended an earlier wait
        if self._errors:
            raise self._errors[0]
        return self._values[0]

    def run(self) -> None:
        """Make the call, unless it was made."""
        if self._values or self._errors:
            return
        try:
            with compiling(waits=False):
                self._values.append(self._call())
        except BaseException as error:  # noqa: BLE001  (raised by `result`)
            self._errors.append(error)
        finally:
            self._ended.release()


_waiting: deque[Background[Any]] = deque()
_workers: list[None] = []


def _taken(item: Background[Any]) -> bool:
    """Whether `item` was waiting still; no other thread begins it then."""
    try:
        _waiting.remove(item)
    except ValueError:
        return False
    return True


def _work() -> None:
    with compiling():  # nothing is taken while another thread forks: whoever needs it makes the call then
        while _waiting:
            with suppress(IndexError):  # another thread took the last
                _waiting.popleft().run()
    _workers.pop()


def _end() -> None:
    _waiting.clear()
    _close()


# Python ends daemon threads where they are: inside MLIR that ends the process by an abort.
atexit.register(_end)
