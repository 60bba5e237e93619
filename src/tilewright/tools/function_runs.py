"""FILE:FUNCTION with `--arg`s: compiled for the emulator, and run there once for what each line counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import tilewright.cute as cute
from tilewright.base import settings
from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.compiler import hooks
from tilewright.compiler.decorated import BoundFunction, Decorated
from tilewright.emulate import Report, observe
from tilewright.tools.arguments import Argument, TensorArgument, values
from tilewright.tools.commands.compile import compile_argument
from tilewright.tools.function_lookup import load_function
from tilewright.tools.profiling.line_counts import Counts
from tilewright.tools.profiling.ncu_lines import Recording

SECONDS: Final = 60.0
"""How long a run on the emulator may take."""
NOT_RUN: Final = "the function was not run: give arguments with all extents"
REFUSED: Final = "--no-run was given"


@dataclass(frozen=True)
class Run:
    """A function, what was compiled of it, and reports of the kernels that ran; `missing` says why there are none.

    `measured` is what ncu says of each instruction of a kernel, by offset, where a GPU was measured."""

    name: str
    executors: Sequence[Any]
    reports: Sequence[Report] = ()
    missing: str = ""
    measured: Mapping[str, Mapping[int, Counts]] = field(default_factory=dict)
    by_kernel: dict[str, list[Report]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for report in self.reports:
            self.by_kernel.setdefault(report.kernel, []).append(report)

    @property
    def arch(self) -> str:
        """The chip that it was compiled for."""
        return str(self.executors[0].arch)

    def beside(self, recording: Recording) -> Run:
        """The same run with what ncu measured of its kernels.

        Raises:
            ArgumentError: ncu measured other kernels, or other code of these.
        """
        kernels = {name: executor for executor in self.executors for name in executor.kernels}
        known = [name for name in recording.counts if name in kernels]
        if not known:
            raise ArgumentError(
                f"ncu measured no kernel of {self.name}",
                values={"measured": ", ".join(recording.counts), "compiled": ", ".join(kernels)},
            )
        for name in known:
            recording.check(name, kernels[name].machine_code(name).instructions)
        return replace(self, measured={name: recording.counts[name] for name in known})


def run_executor(executor: Any, given: Sequence[Any] | None, seconds: float = SECONDS, why_not: str = NOT_RUN) -> Run:
    """Call a compiled function once, for its counters; with None for arguments it is not called."""
    if given is None:
        return Run(executor.name, [executor], missing=why_not)
    reports, missing = _counted(lambda: executor(*given), seconds)
    return Run(executor.name, [executor], reports, missing)


def run_place(
    place: str,
    words: Sequence[Argument],
    *,
    arch: str | None = None,
    options: Any = "",
    seconds: float = SECONDS,
    run: bool = True,
) -> Run:
    """Compile and run `FILE:FUNCTION`.

    A `@cute.jit` function is compiled for the arguments. Any other is called, and what it compiles is looked at, such
    as kernels of the library's operators.

    Raises:
        ArgumentError: the function compiled nothing.
    """
    function = load_function(place)
    complete = not any(isinstance(item, TensorArgument) and None in item.shape for item in words)
    why_not = "" if run and complete else NOT_RUN if run else REFUSED
    if not isinstance(function, Decorated | BoundFunction):
        return _called(function, place, words, arch, options, seconds)
    executor = cute.compile(function, *map(compile_argument, words), options=options, arch=arch, target="emu")
    return run_executor(executor, None if why_not else values(words), seconds, why_not)


def _called(
    function: Callable[..., Any], place: str, words: Sequence[Argument], arch: str | None, options: Any, seconds: float
) -> Run:
    """Call a function of Python; all that it compiles is kept."""
    if options:
        raise ArgumentError(f"{place} is no @cute.jit function, so --options has nothing to apply to")
    found: list[Any] = []
    chosen = {"target": "emu", "no_cache": True, **({"arch": arch} if arch is not None else {})}
    with settings.scope(**chosen), hooks.after_compile(found.append):
        reports, missing = _counted(lambda: function(*values(words)), seconds)
    if not found:
        raise ArgumentError(
            f"{place} compiled nothing", hint="name a @cute.jit function, or one that calls such functions"
        )
    return Run(place.rpartition(":")[2], found, reports, missing)


def _counted(call: Callable[[], Any], seconds: float) -> tuple[list[Report], str]:
    """The reports of a call, or why it ended too soon."""
    with _watched(seconds) as reports:
        try:
            call()
        except TilewrightError as error:
            return list(reports), f"the emulator did not run it: {error}"
    return list(reports), ""


@contextmanager
def _watched(seconds: float) -> Iterator[list[Report]]:
    with observe(counters=True, collect=True, checks="collect", timeout=seconds) as reports:
        yield reports
