"""Kernels of Triton that `bench_warm_start` starts beside ours. Triton reads their source from this file."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(a, b, c, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + places, tl.load(a + places) + tl.load(b + places))


@triton.jit
def subtract_kernel(a, b, c, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + places, tl.load(a + places) - tl.load(b + places))


@triton.jit
def gemm_kernel(a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        x = tl.load(a + rows[:, None] * k + depth[None, :])
        y = tl.load(b + depth[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))
