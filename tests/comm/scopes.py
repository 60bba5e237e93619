"""The collectives of each scope over all types, operations and shapes of groups, against NumPy: for tests on the
emulator and on devices."""

from __future__ import annotations

import numpy as np

import tilewright.cute as cute
from tests.comm import cases

WARP_WIDTHS = (2, 8, 32)
BLOCKS = (
    (64, 1, 1),
    (96, 1, 1),
    (256, 1, 1),
    (288, 1, 1),
    (1024, 1, 1),
    (20, 1, 1),
    (300, 1, 1),
    (7, 5, 3),
    (4, 8, 16),
)
CLUSTERS = (((2, 1, 1), (64, 1, 1)), ((4, 1, 1), (40, 1, 1)), ((2, 2, 1), (128, 1, 1)), ((8, 1, 1), (256, 1, 1)))


def warp(dtype, width, run=None, threads=96, arch=None):
    """All operations of a warp by groups of `width` lanes of a block."""
    ops, source = cases.ops_of(dtype), min(3, (threads - 1) % width)  # of which the last group has one too

    def body(x, _):
        reduced = [cute.warp_allreduce(x, op, width=width) for op in ops]
        scans = [cute.warp_scan(x, op, exclusive, width) for op in ops for exclusive in (False, True)]
        return [*reduced, *scans, cute.warp_broadcast(x, source, width)]

    x = cases.inputs(dtype, threads)
    found, _ = cases.rows(body, x, 3 * len(ops) + 1, block=(threads, 1, 1), run=run, **_for(arch))
    groups = [(x[first : first + width], slice(first, first + width)) for first in range(0, threads, width)]
    for group, place in groups:
        _check_rows(ops, dtype, found[:, place], group)
        assert (found[-1, place] == group[source]).all()


def block(dtype, shape, run=None, arch=None, dynamic=False):
    """All operations of blocks of a shape; two blocks."""
    ops, threads = cases.ops_of(dtype), cases.threads_of(shape)

    def body(x, _):
        values, reduced = (x,) * len(ops), cute.block_allreduce(x, ops[0])
        together = cute.block_allreduce(values, ops)
        inclusive, exclusive = cute.block_scan(values, ops), cute.block_scan(values, ops, exclusive=True)
        scans = [item for pair in zip(inclusive, exclusive, strict=True) for item in pair]
        return [reduced, *together[1:], *scans, cute.block_broadcast(x, threads - 2)]

    x = cases.inputs(dtype, 2 * threads)
    found, _ = cases.rows(
        body, x, 3 * len(ops) + 1, grid=(2, 1, 1), block=shape, run=run, dynamic=dynamic, **_for(arch)
    )
    for number in (0, 1):
        place = slice(number * threads, (number + 1) * threads)
        _check_rows(ops, dtype, found[:, place], x[place])
        assert (found[-1, place] == x[place][-2]).all()


def cluster(dtype, cluster_shape, shape, run=None, mode="auto"):
    """All operations of clusters; two of them."""
    ops, threads, blocks = cases.ops_of(dtype), cases.threads_of(shape), cases.threads_of(cluster_shape)

    def body(x, _):
        values, reduced = (x,) * len(ops), cute.cluster_allreduce(x, ops[0], mode)
        together = cute.cluster_allreduce(values, ops, mode)
        inclusive, exclusive = cute.cluster_scan(values, ops), cute.cluster_scan(values, ops, exclusive=True)
        scans = [item for pair in zip(inclusive, exclusive, strict=True) for item in pair]
        return [reduced, *together[1:], *scans, cute.cluster_broadcast(x, blocks - 1)]

    grid = (2 * cluster_shape[0], cluster_shape[1], 1)
    x = cases.inputs(dtype, 2 * threads * blocks)
    found, _ = cases.rows(body, x, 3 * len(ops) + 1, grid=grid, block=shape, cluster=cluster_shape, run=run)
    numbers = np.arange(2 * blocks).reshape(cluster_shape[1], 2, cluster_shape[0])  # (y, cluster, x)
    for number in (0, 1):
        members = numbers[:, number].reshape(-1)  # by rank: x fastest
        place = (members[:, None] * threads + np.arange(threads)).reshape(-1)
        _check_rows(ops, dtype, found[:, place], x[place])
        assert (found[-1, place] == x[members[-1] * threads]).all()


def grid(dtype, blocks, threads, run=None):
    """All operations of a cooperative grid, several times in one launch."""
    ops = cases.ops_of(dtype)

    def body(x, work):
        values, reduced = (x,) * len(ops), cute.grid_reduce(x, ops[0], work)
        together = cute.grid_allreduce(values, ops, work)
        return [reduced, *together[1:], cute.grid_broadcast(x, work, blocks - 1)]

    x = cases.inputs(dtype, blocks * threads)
    found, _ = cases.rows(
        body, x, len(ops) + 1, grid=(blocks, 1, 1), block=(threads, 1, 1), cooperative=True,
        work=cute.grid_workspace(blocks, len(ops)), run=run,
    )  # fmt: skip
    for op, row in zip(ops, found, strict=False):
        assert cases.equal_bits(row)
        cases.check(op, dtype, row, x)
    assert (found[-1] == x[(blocks - 1) * threads]).all()


def _check_rows(ops, dtype, found, group):
    for number, op in enumerate(ops):
        assert cases.equal_bits(found[number]), op
        cases.check(op, dtype, found[number], group)
        for exclusive in (False, True):
            cases.check_scan(op, dtype, found[len(ops) + 2 * number + exclusive], group, exclusive)


def _for(arch):
    return {} if arch is None else {"arch": arch}
