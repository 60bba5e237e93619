"""Runs random programs: by plain Python with the model, and compiled."""

from __future__ import annotations

import linecache
import random
import threading
from types import CodeType
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.language.fuzz.generator import COLUMNS, NUMBERS, RESULTS, SIGNATURE, Generator
from tests.language.fuzz.model import LANES, TYPES, Memory, Warp, scope

DTYPES = {"BFloat16": ml_dtypes.bfloat16} | {
    name: np.dtype(name.lower()) for name in NUMBERS if name != "BFloat16"
}  # fmt: skip
LAUNCH = f"""
@cute.kernel
def kernel({SIGNATURE.removeprefix("t, ")}):
    t, _, _ = cute.arch.thread_idx()
%s

@cute.jit
def launch({", ".join(f"{name}: cute.Tensor" for name in SIGNATURE.removeprefix("t, ").split(", "))}):
    kernel({SIGNATURE.removeprefix("t, ")}).launch(grid=(1, 1, 1), block=({LANES}, 1, 1))
"""


HOST = f"""
@cute.jit
def on_host(t: Int32, {", ".join(f"{name}: cute.Tensor" for name in SIGNATURE.removeprefix("t, ").split(", "))}):
%s
"""


def texts(seeds: range, budget: int, target: str = "emu") -> str:
    """The programs of some seeds, and a kernel (or a host function of one thread) that runs them all."""
    device = target != "host"
    programs = "".join(Generator(seed, number, budget, device=device).program() for number, seed in enumerate(seeds))
    calls = "".join(f"    program_{number}({SIGNATURE})\n" for number in range(len(seeds)))
    return programs + LAUNCH % calls + ("" if device else HOST % calls)


def code_of(text: str, name: str) -> CodeType:
    """The text as a module that tracebacks and `inspect` can find."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec")


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
    return cutlass.utils.SmemAllocator().allocate_tensor(type_, cute.make_layout(shape, stride=(shape[1], 1)))


def compiled_scope() -> dict[str, Any]:
    """The names of a program, for the compiler."""
    names = {name: getattr(cutlass, name) for name in TYPES}
    return {
        **names, "cute": cute, "const_expr": cutlass.const_expr, "range_constexpr": cutlass.range_constexpr,
        "check_type": check_type, "registers": registers, "shared": shared,
    }  # fmt: skip


def run_compiled(
    code: CodeType, given: dict[str, np.ndarray], count: int, target: str
) -> tuple[np.ndarray, np.ndarray]:
    """Integer and float results, a row for each thread."""
    names = compiled_scope()
    exec(code, names)
    ints, floats = np.zeros((LANES, count * RESULTS), np.int64), np.zeros((LANES, count * RESULTS), np.float64)
    arguments = [*(array.copy() for array in given.values()), ints, floats]
    if target == "host":
        native = cute.compile(names["on_host"], 0, *arguments)
        for lane in range(LANES):
            native(lane, *arguments)
        return ints, floats
    cute.compile(names["launch"], *arguments, target=target)(*arguments)
    return ints, floats


def run_model(code: CodeType, given: dict[str, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The same by plain Python, a thread of Python's for each thread."""
    warp = Warp()
    names = scope(warp)
    names["cute"].kernel = lambda function: function
    names["cute"].Tensor = object
    exec(code, names)
    memory = [Memory.of(TYPES[name.removeprefix("g_")], array) for name, array in given.items()]
    results = [Memory(TYPES[name], (LANES, count * RESULTS)) for name in ("Int64", "Float64")]
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
    ints, floats = ([item.value for item in result.items] for result in results)
    return np.array(ints, np.int64).reshape(LANES, -1), np.array(floats, np.float64).reshape(LANES, -1)


def disagreements(seeds: range, budget: int, target: str) -> list[str]:
    """Where compiled programs and plain Python differ, in words."""
    text = texts(seeds, budget, target)
    code = code_of(text, f"<random programs {seeds.start} to {seeds.stop - 1}>")
    given = inputs(random.Random(seeds.start).randrange(1 << 30))
    expected = run_model(code, given, len(seeds))
    found = run_compiled(code, given, len(seeds), target)
    problems = []
    for name, right, got in zip(("ints", "floats"), expected, found, strict=True):
        same = (right == got) & (np.signbit(right) == np.signbit(got)) | (np.isnan(right) & np.isnan(got))
        for lane, column in np.argwhere(~same)[:4]:
            place = f"seed {seeds[column // RESULTS]}, {name}[{lane}, {column}]"
            problems.append(f"{place}: plain Python {right[lane, column]}, {target} {got[lane, column]}")
    return problems
