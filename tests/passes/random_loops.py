"""Random kernels of loops whose wishes (`prefetch_stages=`, `vectorize=`) must change nothing."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute

THREADS, COLUMNS, MOST = 32, 48, 9  # indices of loops go from 0 to 3 * MOST at most

HEAD = """
@cute.kernel
def kernel(a: cute.Tensor, index: cute.Tensor, x: cute.Tensor, out: cute.Tensor, left: cute.Tensor, n: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    shared = smem.allocate_tensor(cutlass.Float32, cute.make_layout(({threads}, {columns}), stride=({columns}, 1)), 16)
    for i in cutlass.range_constexpr({columns}):
        shared[t, i] = cutlass.Float32(i)
    cute.arch.sync_threads()
    values = cute.make_rmem_tensor({columns}, cutlass.Float32)
    values.fill(1.0)
    total, other, place = cutlass.Float32(1), cutlass.Float32(2), cutlass.Int32(0)
"""
TAIL = """
    left[t, 0], left[t, 1], left[t, 2] = total, other, cutlass.Float32(place)
    for i in cutlass.range_constexpr({columns}):
        left[t, 3 + i] = values[i] + shared[t, i]


@cute.jit
def launch(a: cute.Tensor, index: cute.Tensor, x: cute.Tensor, out: cute.Tensor, left: cute.Tensor, n: cutlass.Int32):
    kernel(a, index, x, out, left, n).launch(grid=(1, 1, 1), block=({threads}, 1, 1))
"""


class Program:
    """The text of a kernel; `text(True)` has the wishes, `text(False)` none."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        for number in range(self.random.randint(1, 3)):
            self.loop(1, f"i{number}", "")

    def text(self, wishes: bool) -> str:
        sizes = {"threads": THREADS, "columns": COLUMNS}
        body = "\n".join(self.lines)
        return (HEAD + (body if wishes else _without(body)) + TAIL).format(**sizes)

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def loop(self, depth: int, index: str, outer: str) -> None:
        dice = self.random
        bounds = dice.choice(["n", "0, n", "1, n", "n, 0, -1", "0, n, 2", "4, n", "7", "0, 8", "8", "2, 9, 3", "n, 3"])
        wish = dice.choice(
            ["prefetch_stages=1", "prefetch_stages=2", "prefetch_stages=5", "pipelining=3", "vectorize=True",
             "vectorize=True", "vectorize=True, prefetch_stages=2", "prefetch_stages=2, unroll=2", "unroll_full=False"]
        )  # fmt: skip
        self.emit(depth, f"for {index} in cutlass.range({bounds}, {wish}):")
        self.emit(depth + 1, f"v = a[t, {index}]")
        for _ in range(dice.randint(1, 5)):
            self.statement(depth + 1, index, outer)

    def statement(self, depth: int, index: str, outer: str) -> None:
        dice = self.random
        i = dice.choice([index, index, f"{index} + 2", f"2 * {index}", outer or index])
        kinds: list[Any] = [
            f"v = a[t, {i}]",
            f"v = v * 2 + a[t, {i}]",
            f"v = a[(t + {dice.randint(1, 31)}) % {THREADS}, index[t, {i}]]",
            "total = total * 0.5 + v",
            f"other = other + a[t, {i}] * v",
            "place = index[t, place]",
            "total = total + a[t, place]",
            f"out[t, {i}] = v + total",
            f"out[t, {i}] = v * 3",
            f"x[t, {i}] = x[t, {i}] + v",
            f"v = x[t, {i}]",
            f"x[t, {dice.choice([i, '5'])}] = v",
            f"values[{i}] = values[{i}] * 2 + v",
            f"v = values[{i}]",
            f"shared[t, {i}] = v",
            f"v = shared[t, {i}] + 1",
            "v = cute.arch.shuffle_sync_bfly(v, 1)",
            "sync",
            "if",
            "loop",
        ]
        kind = dice.choice(kinds)
        if kind == "sync":
            self.emit(depth, "cute.arch.sync_threads()")
        elif kind == "if":
            self.emit(depth, f"if v > {dice.randint(-2, 2)}:")
            self.emit(depth + 1, dice.choice([f"total = total + a[t, {i}]", f"out[t, {i}] = v", "v = v + 1"]))
        elif kind == "loop":
            if not outer:
                self.loop(depth, f"{index}j", index)
        else:
            self.emit(depth, kind)


def _without(body: str) -> str:
    lines = []
    for line in body.splitlines():
        head, wished, rest = line.partition("cutlass.range(")
        if wished:
            kept = [part for part in rest.removesuffix("):").split(", ") if "=" not in part]
            line = f"{head}range({', '.join(kept)}):"
        lines.append(line)
    return "\n".join(lines)


def arrays(seed: int) -> list[np.ndarray]:
    """The arguments of a program, but for `n`."""
    dice = np.random.default_rng(seed)
    shape = (THREADS, COLUMNS)
    return [
        dice.integers(-3, 4, shape).astype(np.float32),
        dice.integers(0, COLUMNS, shape).astype(np.int32),
        dice.integers(-3, 4, shape).astype(np.float32),
        np.zeros(shape, np.float32),
        np.zeros((THREADS, 3 + COLUMNS), np.float32),
    ]


def compiled(text: str, name: str, given: list[np.ndarray], target: str) -> Any:
    """The program's executor."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"cute": cute, "cutlass": cutlass}
    exec(compile(text, name, "exec", dont_inherit=True), names)
    return cute.compile(names["launch"], *given, 0, target=target, options="--fp-contract off")


def differing(seed: int, trips: range, target: str = "emu") -> list[str]:
    """Where a program with wishes leaves other numbers than without, in words."""
    program, given, problems = Program(seed), arrays(seed), []
    with_, without = (
        compiled(program.text(wishes), f"<random loops {seed}, {wishes}>", given, target) for wishes in (True, False)
    )
    for n in trips:
        mine, wanted = ([array.copy() for array in given] for _ in range(2))
        with_(*mine, n)
        without(*wanted, n)
        for name, got, right in zip(("a", "index", "x", "out", "left"), mine, wanted, strict=True):
            if not np.array_equal(got, right, equal_nan=True):
                problems.append(f"seed {seed}, n {n}: {name} differs\n{program.text(True)}")
    return problems
