"""Which threads are known to have equal values: against the values that the threads of a block compute."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import passes
from tilewright.passes.uniformity import Uniformity

arch = cute.arch
BLOCK = (8, 4, 3)
THREADS = 96


def known_of(body, block=BLOCK):
    """What is known of the numbers that a kernel stores, in order, and what its threads store."""
    found = []

    class Look(cutlass.Pass):
        name = "look"

        def run(self, module):
            (kernel,) = passes.kernels(module)
            known = Uniformity(kernel, block)
            stores = [op for op in passes.operations(kernel) if op.name == "cute.store"]
            found.extend(known.of(op.operands[0]) for op in stores)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        width, height, _ = arch.block_dim()
        tx, ty, tz = arch.thread_idx()
        i = tx + width * (ty + height * tz)
        for row, number in enumerate(body(x, i)):
            out[row, i] = number

    @cute.jit
    def launch(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=(2, 1, 1), block=block)

    count = block[0] * block[1] * block[2]
    x, out = np.random.default_rng(0).integers(0, 9, count).astype(np.int32), np.zeros((16, count), np.int32)
    compiled = cute.compile(launch, x, out, passes=cutlass.before("annotate-loops", Look()), checks=False)
    compiled(x, out)
    return found, out


def differing(labels, numbers):
    """Threads of equal labels that have other numbers."""
    pairs = set(zip(labels, numbers, strict=True))
    return [label for label in set(labels) if sum(own == label for own, _ in pairs) > 1]


def arithmetic(x, i):
    tx, ty, tz = arch.thread_idx()
    return [
        tx, ty * 2 + tz, i // 32, i % 7 - 3, (i - 50) // 4, i & 12, i ^ 5, i << 2, -i, cutlass.Int32(i < 40),
        cutlass.select_(i < 40, tx, ty), arch.lane_idx() // 8, cute.math.min(i, 11),
    ]  # fmt: skip


def test_arithmetic_on_thread_indices_is_computed():
    found, out = known_of(arithmetic)
    for item, numbers in zip(found, out, strict=False):
        assert item.numbers == tuple(numbers.tolist()) and item.is_sure


def memory_and_warps(x, i):
    at_zero = x[0]
    return [
        x[i], at_zero + i // 16, arch.shuffle_sync(x[i], 3), arch.warp_reduction_sum(x[i], threads_in_group=8),
        arch.vote_ballot_sync(x[i] > 4), arch.shuffle_sync_bfly(x[i], 1), arch.block_idx()[0] * 0 + 4,
    ]  # fmt: skip


def test_labels_hold_for_what_comes_from_memory_and_other_lanes():
    found, out = known_of(memory_and_warps)
    for item, numbers in zip(found, out, strict=False):
        assert not differing(item.labels, numbers.tolist())
    assert not found[0].uniform(32) and not found[0].is_sure
    assert found[1].uniform(16) and not found[1].uniform(32)
    assert found[2].uniform(32) and not found[2].uniform(96)
    assert found[3].uniform(8) and not found[3].uniform(16)
    assert found[4].uniform(32)
    assert not found[5].uniform(2)
    assert found[6].uniform(96) and found[6].by_block and found[6].is_sure


@cute.jit
def control_flow(x, i):
    by_warp, by_thread, counted, carried = i * 0, i * 0, i * 0, i * 0
    if i // 32 == 1:
        by_warp = i * 0 + 7
    if x[i] > 4:
        by_thread = i * 0 + 1
    for k in cutlass.range(i // 32 + 1):
        counted = counted + k
    for _ in cutlass.range(3):
        carried = carried * 2 + by_warp
    looped = i // 32
    while looped < 5:
        looped = looped + 2
    return [by_warp, by_thread, counted, carried, looped]


def test_branches_and_loops():
    found, out = known_of(control_flow)
    for item, numbers in zip(found, out, strict=False):
        assert not differing(item.labels, numbers.tolist())
    assert [item.uniform(32) for item in found] == [True, False, True, True, True]
    assert not any(item.uniform(96) for item in found)


@pytest.mark.parametrize("body", (lambda x, i: [i * 0 + 3, x[1] * 2, arch.grid_dim()[0]],))
def test_what_is_equal_in_all_threads(body):
    found, _ = known_of(body)
    assert all(item.uniform(THREADS) for item in found)
    assert [item.is_sure for item in found] == [True, False, True]


def test_numbers_that_wrap_are_not_followed():
    found, out = known_of(lambda x, i: [(i + 1) * 100_000_000])
    assert found[0].numbers is None and not differing(found[0].labels, out[0].tolist())
