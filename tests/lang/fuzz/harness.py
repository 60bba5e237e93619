"""Runs random programs: by plain Python with the model, and compiled."""

from __future__ import annotations

import contextlib
import ctypes
import io
import linecache
import math
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.fuzz.generator import COLUMNS, NEAR, NUMBERS, RESULTS, SIGNATURE, Generator
from tests.lang.fuzz.model import ALL_TYPES, TYPES
from tests.lang.fuzz.scope import LANES, Warp, scope
from tests.lang.fuzz.tensors import Tensor

DTYPES = {"BFloat16": ml_dtypes.bfloat16} | {
    name: np.dtype(name.lower()) for name in NUMBERS if name != "BFloat16"
}  # fmt: skip
TOGETHER = 6  # programs of one kernel
MANY = 200  # problems; who finds more, reads no more
PARAMETERS = SIGNATURE.removeprefix("t, ")
TENSORS = ", ".join(f"{name}: cute.Tensor" for name in PARAMETERS.split(", "))
LAUNCH = f"""
@cute.kernel
def kernel({PARAMETERS}):
    t, _, _ = cute.arch.thread_idx()
%s

@cute.jit
def launch({TENSORS}):
    kernel({PARAMETERS}).launch(grid=(1, 1, 1), block=({LANES}, 1, 1))
"""

HOST = f"""
@cute.jit
def on_host(t: Int32, {TENSORS}):
%s
"""


@dataclass(frozen=True)
class Outcome:
    """What programs left: a row for each thread, and what they printed, in any order of the threads."""

    ints: np.ndarray
    floats: np.ndarray
    near: np.ndarray
    printed: list[str]


def texts(seeds: range, budget: int, target: str = "emu", kind: type[Generator] = Generator) -> str:
    """The programs of some seeds, and a kernel (or a host function of one thread) that runs them all."""
    device = target != "host"
    programs = "".join(kind(seed, number, budget, device=device).program() for number, seed in enumerate(seeds))
    calls = "".join(f"    program_{number}({SIGNATURE})\n" for number in range(len(seeds)))
    return programs + LAUNCH % calls + ("" if device else HOST % calls)


def code_of(text: str, name: str) -> CodeType:
    """The text as a module that tracebacks and `inspect` can find."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec", dont_inherit=True)


def inputs(seed: int) -> dict[str, np.ndarray]:
    """Numbers of each type for each thread: small ones, and the ends of the range."""
    generator = np.random.default_rng(seed)
    return {f"g_{name}": _numbers(name, generator) for name in NUMBERS}


def _numbers(name: str, generator: np.random.Generator) -> np.ndarray:
    shape, type_ = (LANES, COLUMNS), TYPES[name]
    if type_.kind == "f":
        values = generator.standard_normal(shape) * generator.choice([1e-3, 1.0, 100.0, 3e4], shape)
        special = generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], shape)
        with np.errstate(over="ignore"):
            return np.where(generator.random(shape) < 0.05, special, values).astype(DTYPES[name])
    low, high = (
        (-(1 << (type_.width - 1)), (1 << (type_.width - 1)) - 1) if type_.kind == "i" else (0, (1 << type_.width) - 1)
    )
    values = generator.integers(low, high, shape, DTYPES[name], endpoint=True)
    small = generator.integers(max(low, -12), 12, shape, DTYPES[name], endpoint=True)
    ends = generator.choice(np.array([low, high, 0, 1], DTYPES[name]), shape)
    return np.where(generator.random(shape) < 0.6, small, np.where(generator.random(shape) < 0.3, ends, values))


def check_type(value: Any, name: str) -> Any:
    """The value, if it is a number of type `name`."""
    assert value.dtype.__name__ == name, f"{value.dtype} is no {name}"
    return value


def registers(type_: Any, count: int) -> Any:
    return cute.make_rmem_tensor(count, type_)


def shared(type_: Any, shape: tuple[int, ...]) -> Any:
    return shared_like(type_, cute.make_layout(shape, stride=(shape[1], 1)))


def shared_like(type_: Any, layout: Any) -> Any:
    return cutlass.utils.SmemAllocator().allocate_tensor(type_, layout, 16)


def put_near(near: Any, lane: Any, column: int, value: Any, name: str) -> None:
    """Leave a result of `cute.math`, which need not be exact."""
    near[lane, column] = cutlass.Float64(value)


def compiled_scope() -> dict[str, Any]:
    """The names of a program, for the compiler."""
    names = {name: getattr(cutlass, name) for name in ALL_TYPES}
    return {
        **names, "cute": cute, "const_expr": cutlass.const_expr, "range_constexpr": cutlass.range_constexpr,
        "check_type": check_type, "registers": registers, "shared": shared, "shared_like": shared_like,
        "put_near": put_near, "NamedTuple": NamedTuple, "dataclass": dataclass, "replace": replace,
    }  # fmt: skip


def _results(count: int) -> list[np.ndarray]:
    return [
        np.zeros((LANES, count * RESULTS), np.int64),
        np.zeros((LANES, count * RESULTS), np.float64),
        np.zeros((LANES, count * NEAR), np.float64),
    ]


@contextlib.contextmanager
def captured() -> Iterator[list[str]]:
    """The lines that the block prints, by Python or by a driver; they come when it ends."""
    lines: list[str] = []
    sys.stdout.flush()
    before = os.dup(1)
    with tempfile.TemporaryFile() as file, contextlib.redirect_stdout(io.StringIO()) as text:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            lines += file.read().decode().splitlines() + text.getvalue().splitlines()


def run_compiled(
    code: CodeType, given: dict[str, np.ndarray], count: int, target: str, contract: str = "off"
) -> Outcome:
    """What the programs leave when they are compiled for `target`, with or without contraction."""
    names = compiled_scope()
    exec(code, names)
    results = _results(count)
    arguments = [*(array.copy() for array in given.values()), *results]
    if target == "host":
        native = cute.compile(names["on_host"], 0, *arguments)
        with captured() as printed:
            for lane in range(LANES):
                native(lane, *arguments)
        return Outcome(*results, sorted(printed))
    native = cute.compile(names["launch"], *arguments, target=target, options=f"--fp-contract {contract}")
    with captured() as printed:
        native(*arguments)
    return Outcome(*results, sorted(printed))


def run_model(code: CodeType, given: dict[str, np.ndarray], count: int) -> Outcome:
    """The same by plain Python, a thread of Python's for each thread."""
    warp = Warp()
    names = scope(warp)
    names["cute"].kernel = lambda function: function
    names["cute"].Tensor = object
    exec(code, names)
    memory = [Tensor.of(TYPES[name.removeprefix("g_")], array) for name, array in given.items()]
    kinds = [TYPES["Int64"], TYPES["Float64"], TYPES["Float64"]]
    results = [Tensor.rows(type_, array.shape) for type_, array in zip(kinds, _results(count), strict=True)]
    problems: list[BaseException] = []

    def thread(lane: int) -> None:
        warp.local.lane, warp.local.allocations = lane, 0
        try:
            names["kernel"](*memory, *results)
        except BaseException as error:  # noqa: BLE001  (raised below, in the thread of the test)
            problems.append(error)
            warp.barrier.abort()

    threads = [threading.Thread(target=thread, args=(lane,)) for lane in range(LANES)]
    for item in threads:
        item.start()
    for item in threads:
        item.join()
    for problem in problems:
        if not isinstance(problem, threading.BrokenBarrierError):
            raise problem
    return Outcome(*(_array(result) for result in results), sorted(warp.printed))


def _array(result: Tensor) -> np.ndarray:
    values = [0 if item is None else item.value for item in result.cells.items]  # type: ignore[union-attr]
    return np.array(values, np.int64 if result.type.kind == "i" else np.float64).reshape(LANES, -1)


def disagreements(seeds: range, budget: int, target: str, kind: type[Generator] = Generator) -> list[str]:
    """Where compiled programs and plain Python differ, in words."""
    text = texts(seeds, budget, target, kind)
    code = code_of(text, f"<random programs {seeds.start} to {seeds.stop - 1}>")
    given = inputs(random.Random(seeds.start).randrange(1 << 30))
    expected = run_model(code, given, len(seeds))
    found = run_compiled(code, given, len(seeds), target)
    problems = []
    for name in ("ints", "floats"):
        right, got = getattr(expected, name), getattr(found, name)
        same = (right == got) & (np.signbit(right) == np.signbit(got)) | (np.isnan(right) & np.isnan(got))
        problems += _places(text, seeds, target, name, right, got, same, RESULTS)
    right, slack, got = expected.near[:, ::2], expected.near[:, 1::2], found.near[:, ::2]
    with np.errstate(invalid="ignore"):
        same = (right == got) | (abs(right - got) <= slack) | (np.isnan(right) & np.isnan(got))
    problems += _places(text, seeds, target, "near", right, got, same, NEAR // 2)
    if expected.printed != found.printed:
        lost, made = _difference(expected.printed, found.printed), _difference(found.printed, expected.printed)
        problems.append(f"seeds {seeds}: plain Python prints {lost[:4]}, {target} {made[:4]}")
    return problems


def contracted_differently(seeds: range, budget: int, target: str, kind: type[Generator] = Generator) -> list[str]:
    """Where programs that were compiled with contraction differ between `target` and the emulator, in words."""
    text = texts(seeds, budget, target, kind)
    code = code_of(text, f"<random programs {seeds.start} to {seeds.stop - 1}, contracted>")
    given = inputs(random.Random(seeds.start).randrange(1 << 30))
    expected, found = (run_compiled(code, given, len(seeds), where, "on") for where in ("emu", target))
    problems = []
    for name in ("ints", "floats"):
        right, got = getattr(expected, name), getattr(found, name)
        same = (right == got) & (np.signbit(right) == np.signbit(got)) | (np.isnan(right) & np.isnan(got))
        problems += _places(text, seeds, target, name, right, got, same, RESULTS)
    return problems


def survey(
    seeds: range,
    budget: int,
    target: str,
    kind: type[Generator] = Generator,
    *,
    seconds: float = math.inf,
    compare: Callable[..., list[str]] = disagreements,
) -> tuple[int, list[str]]:
    """Programs of these seeds, while there is time: how many ran, and all that is wrong with them, in words."""
    start, problems = time.monotonic(), []
    for first in range(0, len(seeds), TOGETHER):
        if time.monotonic() - start > seconds or len(problems) > MANY:
            return first, problems
        some = seeds[first : first + TOGETHER]
        try:
            problems += compare(some, budget, target, kind)
        except Exception as error:  # noqa: BLE001  (told with the others)
            problems.append(f"{kind.__name__}, seeds {some}: {type(error).__name__}: {error}")
    return len(seeds), problems


def _difference(some: list[str], others: list[str]) -> list[str]:
    return list((Counter(some) - Counter(others)).elements())


def _places(
    text: str, seeds: range, target: str, name: str, right: Any, got: Any, same: Any, columns: int
) -> list[str]:
    """The first disagreement of each column, with what the program writes there."""
    problems = {}
    for lane, column in np.argwhere(~same)[::-1]:
        place = f"seed {seeds[column // columns]}, {name}[{lane}, {column}]"
        start = f"near, t, {2 * column}," if name == "near" else f"{name}[t, {column}] ="
        line = next((line.strip() for line in text.splitlines() if start in line), "")
        values = f"plain Python {right[lane, column]}, {target} {got[lane, column]}"
        problems[column] = f"{place}: {values}\n    {line}"
    return list(problems.values())
