"""`cute.compile_parallel`: compilations in processes beside each other.

A forked process has the functions, the arguments and all that was imported; it compiles into the cache, and gives what
it made through a pipe. This process then finds everything there. What could not be kept, because it failed or depends
on what no key covers, is compiled here, where its errors and warnings belong.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.base.interrupts import raised_by_signal
from tilewright.base.notebook import NotebookBar, display_module
from tilewright.compiler import build, hooks
from tilewright.compiler.cache import lookup
from tilewright.compiler.executor import Executor
from tilewright.compiler.plan import Plan

_PAUSE: Final = 0.005
"""Seconds between two looks at the processes."""
_OWN: Final = frozenset(("observers", "after_pass", "validate", "override", "no_cache"))
"""Arguments of `cute.compile` with which this process compiles."""

Call = functools.partial[Any]
Memory = dict[Any, bytes]


def compile_parallel(
    calls: Sequence[Call], plans: Callable[[Call], Plan], *, processes: int | None, progress: bool | None,
    caught: tuple[type[Exception], ...] = (),
) -> list[Any]:  # fmt: skip
    """Compile several functions at once; see `tilewright.compiler.jit.compile_parallel`.

    Args:
        calls: calls of `cute.compile` that are not made yet.
        plans: the plan of one; it raises where the call would.
        processes: how many to run at a time; by default one for each processor.
        progress: whether to show a bar; None for the setting.
        caught: errors that are given in the place of the function that raised them.
    """
    if processes is not None and processes < 1:
        raise ArgumentError(f"processes is at least 1, not {processes}", hint="leave it out for one a processor")
    count = min(processes or len(os.sched_getaffinity(0)), len(calls))
    with _cache_in_use():
        wanted = {number: found for number, call in enumerate(calls) if (found := _plan(call, plans)) is not None}
        with _bar(len(wanted), progress) as step:
            made = _compile_all(wanted, count, step)
        return [_finished_or(caught, call, number in made) for number, call in enumerate(calls)]


def _plan(call: Call, plans: Callable[[Call], Plan]) -> Plan | None:
    """What to compile in another process; None for what this process has to compile, or refuses."""
    if not _OWN.isdisjoint(call.keywords):
        return None
    try:
        return plans(call)
    except Exception as error:
        if raised_by_signal(error):
            raise
        return None  # it is raised again where the call is made


@contextmanager
def _cache_in_use() -> Iterator[None]:
    """Where the cache is off, the processes hand over what they made in memory alone."""
    if not settings.get("no_cache"):
        yield
        return
    with settings.scope(no_cache=False, no_file_cache=True):
        try:
            yield
        finally:
            lookup.forget()


def _compile_all(plans: dict[int, Plan], count: int, step: Any) -> set[int]:
    """Compile in `count` processes at a time; gives the numbers of the plans that were compiled."""
    waiting, running, made = list(plans.items()), dict[int, tuple[int, int, bytearray]](), set[int]()
    try:
        while waiting or running:
            while waiting and len(running) < count:
                number, plan = waiting.pop(0)
                running[number] = (*_start(plan), bytearray())
            for number, (process, pipe, data) in list(running.items()):
                if _read(pipe, data):
                    continue
                os.close(pipe)
                os.waitpid(process, 0)
                del running[number]
                if data:
                    lookup.remember(_unpacked(bytes(data)))
                    made.add(number)
                step()
            time.sleep(_PAUSE)
    finally:
        for process, pipe, _ in running.values():  # an interrupt
            os.kill(process, 9)
            os.waitpid(process, 0)
            os.close(pipe)
    return made


def _start(plan: Plan) -> tuple[int, int]:
    """A process that compiles `plan`, and the pipe through which it gives what it made."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12's, of forks beside threads: see ir/forking.py
        process = os.fork()
    if process == 0:
        try:
            os.close(out)
            _work(plan, into)
        finally:
            os._exit(0)
    os.close(into)
    os.set_blocking(out, False)
    return process, out


def _work(plan: Plan, into: int) -> None:
    """Compile in silence: this process's own words would be said twice."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.stdout = sys.stderr = open(nowhere, "w", closefd=False)  # noqa: SIM115
    before = lookup.in_memory()
    build.compile_for_cache(plan)
    new = {key: data for key, data in lookup.in_memory().items() if key not in before}
    with open(into, "wb", closefd=True) as pipe:
        pipe.write(_packed(new))


def _read(pipe: int, data: bytearray) -> bool:
    """Take what the pipe has; False at its end."""
    while True:
        try:
            part = os.read(pipe, 1 << 20)
        except BlockingIOError:
            return True
        if not part:
            return False
        data += part


def _packed(memory: Memory) -> bytes:
    header = json.dumps([[*key, len(data)] for key, data in memory.items()]).encode()
    return b"".join((len(header).to_bytes(8, "little"), header, *memory.values()))


def _unpacked(data: bytes) -> Memory:
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for kind, key, size in json.loads(data[8:start]):
        found[kind, key] = data[start : start + size]
        start += size
    return found


def _finished_or(caught: tuple[type[Exception], ...], call: Call, elsewhere: bool) -> Executor | Exception:
    try:
        return _finish(call, elsewhere)
    except caught as error:
        return error


def _finish(call: Call, elsewhere: bool) -> Executor:
    """The compiled function; hooks hear of one that another process compiled too."""
    executor: Executor = call()
    if elsewhere and executor.cached:
        hooks.compiled(executor)
    return executor


def _bar_in_a_cell(bar: NotebookBar, total: int) -> Iterator[Any]:
    """The same below the cell of a notebook."""
    counted = itertools.count(1)

    def show(done: int) -> None:
        bar.show(done, total, f"compiling  {done}/{total}")

    show(0)
    try:
        yield lambda: show(next(counted))
    finally:
        bar.clear()


@contextmanager
def _bar(total: int, wanted: bool | None) -> Iterator[Any]:
    """A function that moves a bar on by one."""
    wanted = settings.get("progress") if wanted is None else wanted
    in_tests, display = "pytest" in sys.modules or settings.get("ci"), display_module()
    if wanted is False or (wanted is None and (in_tests or not (display or sys.stderr.isatty()))):
        yield lambda: None
        return
    if display is not None:
        yield from _bar_in_a_cell(NotebookBar(display), total)
        return
    rich = importlib.import_module("rich.progress")
    console = importlib.import_module("rich.console").Console(stderr=True)
    with rich.Progress(
        rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeElapsedColumn(),
        console=console,
    ) as progress:  # fmt: skip
        task = progress.add_task("compiling", total=total)
        yield lambda: progress.advance(task)
