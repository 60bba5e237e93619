"""What the user asks for, as a run: a suite, or one op by itself."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, CudaDriverDependencyError
from tilewright.targets.nvidia.devices import driver
from tilewright.tools.benching import cases
from tilewright.tools.benching.cases import BACKENDS, DTYPES, Case, Suite

ALONE = "standard"
"""The suite whose cases an op has when it is measured by itself."""
TILED = ("copy_transpose",)
"""Ops with the option `tile_size`."""
SHAPE = re.compile(r"[1-9]\d{0,11}(x[1-9]\d{0,11})*")


@dataclass(frozen=True)
class Request:
    """The options of the command; None or empty is what the suite says."""

    suite: str | None = None
    op: str | None = None
    backends: Sequence[str] = ()
    shapes: Sequence[str] = ()
    dtypes: Sequence[str] = ()
    tile_size: int | None = None
    warmup: int | None = None
    iterations: int | None = None
    target: str | None = None


def plan(request: Request, suites: Path) -> tuple[Suite, str]:
    """The suite to run, and on what: cuda or emu.

    Raises:
        ArgumentError: something asked for does not exist.
        CudaDriverDependencyError: there is no GPU, and the emulator was not asked for.
    """
    if importlib.util.find_spec("torch") is None:
        raise ArgumentError("the benchmarks of ops need PyTorch", hint="install a build for your GPU")
    found = cases.read_suites(suites)
    name = request.suite or ALONE
    if name not in found:
        raise ArgumentError(f"there is no suite {name!r}", hint=f"one of: {', '.join(found)}")
    suite = found[name]
    chosen = suite.cases if request.op is None else cases.of_op(suite.cases, request.op)
    target = choose_target(request.target)
    if target == "emu" and not request.shapes:
        chosen = cases.emulated(chosen, cases.read_emulated(suites))
    chosen = tuple(dict.fromkeys(_changed(chosen, request)))
    standalone = request.suite is None
    return Suite(
        name if not standalone else request.op or name,
        chosen,
        _backends(suite, request, target),
        _count("--warmup", request.warmup, 10 if standalone else suite.warmup, 0),
        _count("--iterations", request.iterations, 100 if standalone else suite.iterations, 1),
        suite.clock,
        {} if standalone or request.backends else suite.only,
    ), target


def choose_target(given: str | None) -> str:
    """cuda or emu: what was asked for, else the setting `target`, else cuda if there is a device."""
    name = given or settings.get("target") or "cuda"
    if name not in ("cuda", "emu"):
        raise ArgumentError(f"there is no target {name!r}", hint="cuda or emu")
    if name == "cuda" and not driver.available():
        raise CudaDriverDependencyError(
            f"there is no GPU to time on: {driver.unavailable_reason()}",
            hint="--target emu checks results on small shapes and shows the emulator's counters instead of times",
        )
    return name


def _backends(suite: Suite, request: Request, target: str) -> tuple[str, ...]:
    chosen = cases.known("backend", request.backends, BACKENDS) or suite.backends
    if target == "emu":  # peers have nothing to count
        chosen = tuple(name for name in chosen if name in ("kernel", "ref")) or ("kernel",)
    return chosen


def _changed(chosen: Sequence[Case], request: Request) -> list[Case]:
    """The cases with the shapes, dtypes and tile size that were asked for."""
    dtypes = cases.known("dtype", request.dtypes, DTYPES)
    shapes = [shape(text) for text in request.shapes]
    found = [replace(case, shape=size, dtype=dtype)
             for case in chosen for size in shapes or [case.shape] for dtype in dtypes or [case.dtype]]  # fmt: skip
    if request.tile_size is not None:
        if any(case.op not in TILED for case in found):
            raise ArgumentError("--tile-size is for one op", hint=f"--op {' or '.join(TILED)}")
        found = [replace(case, options=(*case.options, ("tile_size", request.tile_size))) for case in found]
    return found


def shape(text: str) -> tuple[int, ...]:
    """`32768x1024` as (32768, 1024).

    Raises:
        ArgumentError: it is no shape.
    """
    if not SHAPE.fullmatch(text):
        raise ArgumentError(f"{text!r} is not a shape", hint="write it so: 32768x1024")
    return tuple(map(int, text.split("x")))


def _count(option: str, given: int | None, usual: int, least: int) -> int:
    number = usual if given is None else given
    if number < least:
        raise ArgumentError(f"{option} {number} is too small", hint=f"at least {least}")
    return number
