"""Exceptions that come from outside: Ctrl-C, a test's time limit, whatever a signal handler raises.

Python runs signal handlers in the main thread, between two of its instructions. An exception raised there belongs to no
operation: it must come out of a call as itself, and leave nothing behind. Where native code calls Python back it would
be lost; so either no instruction of Python runs there (`ir/walk.py`), or `reraise_lost` catches what was lost.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_NUMBERS = (int, signal.Signals)
_CO_VARARGS = 0x04  # `inspect.CO_VARARGS`, without the time that the import of `inspect` takes


def is_outside(error: BaseException | None) -> bool:
    """True for what is no error of the work under way: no `Exception` at all, or one that a signal handler raised."""
    if error is None or isinstance(error, GeneratorExit):
        return False
    return not isinstance(error, Exception) or raised_by_signal(error)


def outside_of(error: BaseException | None) -> BaseException | None:
    """The exception from outside that `error` is, or that was under way when `error` was raised; None without one."""
    while error is not None:
        if is_outside(error):
            return error
        error = None if error.__suppress_context__ else error.__context__
    return None


def raised_by_signal(error: BaseException) -> bool:
    """True where a signal handler raised `error`: a function that was given a number and the frame it interrupted."""
    trace = error.__traceback__
    while trace is not None:
        if _handles_signals(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _handles_signals(function: FrameType) -> bool:
    code = function.f_code
    names = [*code.co_varnames[: code.co_argcount]]
    if code.co_flags & _CO_VARARGS:
        names.append(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
    if not 1 <= len(names) <= 4:  # `(signum, frame)`, and what a method or a partial function is given before
        return False
    given: list[Any] = []
    for value in [function.f_locals.get(name) for name in names]:
        # By `type`: an `isinstance` may ask a value of the user for its `__class__`.
        given += value if type(value) is tuple else [value]
    return any(type(frame) is FrameType and type(number) in _NUMBERS for number, frame in itertools.pairwise(given))


def reraise_lost(work: Callable[[], T], stack: list[Any] | None = None) -> T:
    """Run `work`; an exception from outside that native code lost on the way is raised when it has ended.

    `stack` becomes as long again as it was. (A `with` block does not suffice: Python may stop at the first instruction
    of an `__exit__` written in Python. There is no such place in the `finally` here.)
    """
    stack = [] if stack is None else stack
    depth, before, lost = len(stack), sys.unraisablehook, list[BaseException]()
    main = threading.main_thread().ident
    here = threading.get_ident()

    def note(unraisable: Any) -> None:
        if threading.get_ident() == here and is_outside(unraisable.exc_value):
            lost.append(unraisable.exc_value)
        else:
            before(unraisable)

    try:
        if here == main:  # the only thread that runs signal handlers
            sys.unraisablehook = note
        result = work()
    except BaseException as error:
        found = outside_of(error)  # what it left half done may have raised another error on the way
        if found is error or (found is None and not lost):
            raise
        lost += [found] if found is not None else []
    finally:
        if here == main:
            sys.unraisablehook = before
        del stack[depth:]
    if lost:
        raise lost[0]
    return result


def uninterrupted(work: Callable[[], T]) -> T:
    """Run `work` to its end; what signal handlers have to say waits until then.

    For what cannot be done again when it was left half done: importing modules, those written in C above all. (Python
    itself may keep its import lock where an import is interrupted: then other threads wait for it for ever.)
    """
    if threading.get_ident() != threading.main_thread().ident:  # only the main thread runs signal handlers
        return work()
    later = _Later()
    try:
        later.begin()
        return work()
    finally:
        later.end()


class _Later:
    """Keeps signals from their handlers for a while."""

    def __init__(self) -> None:
        self.under_way = True
        self.handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self.came: dict[int, FrameType | None] = {}

    def begin(self) -> None:
        """Take the place of every handler written in Python."""
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler):
                self.handlers[number] = handler
                signal.signal(number, self.take)

    def take(self, number: int, frame: FrameType | None) -> None:
        """Note a signal, or hand it on where an interrupt kept `end` from its end."""
        if self.under_way:
            self.came[number] = frame
        else:
            self._restore(number)
            self.handlers[number](number, frame)

    def end(self) -> None:
        """Put the handlers back, and let them handle what came; the first of their errors is raised."""
        self.under_way = False
        for number in self.handlers:
            self._restore(number)
        error: BaseException | None = None
        for number, frame in self.came.items():
            try:
                self.handlers[number](number, frame)
            except BaseException as raised:  # noqa: BLE001  (raised when all have been called)
                error = error or raised
        if error is not None:
            raise error

    def _restore(self, number: int) -> None:
        if signal.getsignal(number) == self.take:  # `work` may have set another
            signal.signal(number, self.handlers[number])
