"""The programs that run in wolfpine: arrays, options, and what they must give."""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright.cute as cute
import tilewright.tile as tile
from examples.tenstorrent import gemm, row_sum
from tests.tenstorrent import test_random_programs
from tests.tenstorrent.programs import BF16, launched, random, zeros
from tilewright import Float32
from tilewright.targets.tenstorrent.stages import files_of


def _binary(function):
    def body(x, y, z):
        row, column, _ = cute.arch.block_idx()
        a, b = (tile.load(item, (row, column), (32, 32)) for item in (x, y))
        tile.store(z, (row, column), function(a, b))

    return body


@cute.jit
def _bias_body(a, b, bias, c):
    """C = A B + bias. The packer's relu is no part of wolfpine."""
    acc = tile.zeros((32, 64), Float32)
    for step in range(2):
        acc = tile.dot(tile.load(a, (0, step), (32, 64)), tile.load(b, (step, 0), (64, 64)), acc)
    tile.store(c, (0, 0), (acc + tile.load(bias, (0, 0), (1, 64)).to(Float32)).to(c.element_type))


def _max_body(x, y):
    values = tile.load(x, (0, 0), (32, 64))
    tile.store(y, (0, 0), tile.max(values, 1))


def _scaled_body(x, y, z):
    values = tile.load(x, (0, 0), (32, 64)).to(Float32)
    column = tile.load(y, (0, 0), (32, 1)).to(Float32)
    tile.store(z, (0, 0), ((values - column) * 0.5 + 1.0).to(z.element_type))


@dataclass(frozen=True)
class Program:
    """`function(*arrays, *constants)`; the last array is written. `bound` is on the relative error against float64."""

    function: Any
    arrays: tuple[Any, ...]
    expected: Any
    bound: float
    options: str = "--core-grid 1x1"
    constants: tuple[Any, ...] = ()

    def compiled(self):
        return cute.compile(
            self.function, *self.arrays, *self.constants, target="tenstorrent", options=self.options
        )  # fmt: skip


def _wide(*arrays):
    return [item.astype(np.float64) for item in arrays]


def _product(options="--core-grid 1x1", bound=2.5e-3, m=64, n=64, k=64):
    a, b = random(m, k), random(k, n, seed=1)
    return Program(gemm.main, (a, b, zeros(m, n)), np.matmul(*_wide(a, b)), bound, options, (32, 32, 32))


def _elementwise(function, expected, size=64):
    a, b = random(size, size), random(size, size, seed=1)
    arrays = (a, b, zeros(size, size))
    main = launched(_binary(function), *arrays, grid=(size // 32, size // 32, 1))
    return Program(main, arrays, expected(*_wide(a, b)), 3e-3)


def _one(body, *arrays, expected, bound=3e-3):
    return Program(launched(body, *arrays), arrays, expected(*_wide(*arrays[:-1])), bound)


GRIDS = ("1x1", "2x2")


def _random(seed, grid):
    kernel, arrays, expected, tiles, _ = test_random_programs.program(seed)
    options = f"--core-grid {GRIDS[grid]}"
    return Program(test_random_programs.main, tuple(arrays), expected, 5e-3, options, (kernel, *tiles))


def _is_small(seed, most=12):
    """Whether a random program has few enough tiles for a simulator of instructions."""
    _, arrays, _, tiles, _ = test_random_programs.program(seed)
    extents = (*arrays[0].shape, arrays[1].shape[1])
    return math.prod(math.ceil(extent / size) * size // 32 for extent, size in zip(extents, (*tiles[::2], tiles[1]),
                                                                                   strict=True)) <= most  # fmt: skip


def named():
    """The programs by name."""
    x = random(64, 128)
    return {
        "gemm": _product(),
        "gemm_bf16": _product("--core-grid 1x1 --dst bf16", 1.5e-2),
        "gemm_8_cores": _product("--core-grid 4x2", m=96, n=160, k=64),
        "add": _elementwise(lambda a, b: a + b, np.add),
        "subtract": _elementwise(lambda a, b: a - b, np.subtract),
        "multiply": _elementwise(lambda a, b: a * b, np.multiply),
        "row_sum": Program(row_sum.main, (x, zeros(64, 1)), _wide(x)[0].sum(1, keepdims=True), 3e-3),
        "bias": _one(_bias_body, random(32, 128), random(128, 64), random(1, 64), zeros(32, 64),
                     expected=lambda a, b, bias: a @ b + bias),
        "maximum": _one(_max_body, -abs(random(32, 64)) - BF16(1), zeros(32, 1),
                        expected=lambda x: x.max(1, keepdims=True)),
        "scaled": _one(_scaled_body, random(32, 64), random(32, 1), zeros(32, 64),
                       expected=lambda x, y: (x - y) * 0.5 + 1),
    }  # fmt: skip


RANDOM = list(itertools.islice(filter(_is_small, itertools.count(0, 3)), 20))
"""Seeds of random programs: products, whose shapes and tiles differ."""


def random_programs():
    """Random programs, each on two grids of cores."""
    return {f"random_{seed}_{grid}": _random(seed, grid) for seed in RANDOM for grid in (0, 1)}


def digest(compiled):
    """What says whether the C++ of a program has changed."""
    compiled.stages["cpp"]
    files = files_of(compiled.job)
    return hashlib.sha256("".join(files[name] for name in sorted(files) if name.endswith(".cpp")).encode()).hexdigest()
