"""A kernel as public sources write them: a class whose `__call__` sets attributes on itself while it is traced."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as cutlass
import tilewright.cute as cute


class Order(enum.Enum):
    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True)
class Plan:
    stages: int
    tile: tuple[int, int]


class Machine:
    """`out[i] = stages * x[i] + sum of what was set`."""

    def __init__(self, stages: int) -> None:
        self.stages = stages
        self.layout: Any = None
        self.traced: Any = None

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        self.dtype = x.element_type
        self.layout = cute.make_layout((8, 2), stride=(2, 1))
        self.order = Order.COLUMNS if cutlass.const_expr(self.stages > 2) else Order.ROWS
        self.plan = Plan(self.stages, (4, 2))
        self.numbers = [1, 2.5, None, {"a": self.plan}]
        self.also = self.numbers
        self.atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.dtype)
        self.traced = cute.size(x) + 1

        @cute.struct
        class Storage:
            tile: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 16], 128]

        self.storage = Storage
        self.kernel(x, out).launch(grid=1, block=8)

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor):
        i, _, _ = cute.arch.thread_idx()
        total = cutlass.Float32(0)
        for n in cutlass.range_constexpr(len(self.numbers)):
            total += n
        if cutlass.const_expr(self.order is Order.COLUMNS):
            total += 1
        out[i] = x[i] * self.plan.stages + total


def arguments() -> tuple[np.ndarray, np.ndarray]:
    """x, and room for the result."""
    return np.arange(8, dtype=np.float32), np.zeros(8, np.float32)


def expected(stages: int) -> np.ndarray:
    """What the kernel writes."""
    return np.arange(8, dtype=np.float32) * stages + 6 + (stages > 2)


def facts(machine: Machine) -> list[str]:
    """What tracing left on a machine, as text."""
    storage = machine.storage
    return [
        machine.dtype.__name__, str(machine.layout), str(machine.order), str(machine.plan), str(machine.numbers),
        str(machine.also is machine.numbers), str(machine.numbers[3]["a"] == machine.plan), str(machine.atom),
        f"{storage.__name__} {storage.size_in_bytes()} {storage.alignment()}",
    ]  # fmt: skip
