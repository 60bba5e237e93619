"""`put`, `get`, `signal` and `wait` in kernels of one's own, and multimem, which no kernel may use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import dist, emulate
from tilewright.base.errors import CompileError, EmulationError, LaunchError

COUNT = 48


@cute.kernel
def ring_kernel(box: cute.Tensor, out: cute.Tensor, node: Any, slot: cute.Int32, rounds: cute.Int32):
    """Pass numbers round a ring: each rank adds its own to what comes from the left."""
    thread, _, _ = cute.arch.thread_idx()
    world = cutlass.const_expr(len(node.bases))
    right = (node.rank + 1) % world
    left = (node.rank + world - 1) % world
    have = cute.Int32(thread)
    for number in range(1, rounds + 1):
        if number > 1:  # the right one has taken what was in its box
            if thread == 0:
                dist.wait(node, slot + 1, number - 1)
            cute.arch.sync_threads()
        dist.put(node, right, box.iterator + thread, have)
        cute.arch.sync_threads()
        if thread == 0:
            dist.signal(node, right, slot, number)
            dist.wait(node, slot, number)
        cute.arch.sync_threads()
        have = box[thread] + node.rank
        cute.arch.sync_threads()
        if thread == 0:
            dist.signal(node, left, slot + 1, number)
    out[thread] = have


@cute.jit
def ring(box: cute.Tensor, out: cute.Tensor, node: Any, slot: cute.Int32, rounds: cute.Int32):
    ring_kernel(box, out, node, slot, rounds).launch(grid=1, block=COUNT)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_a_ring(world: int, seed: int) -> None:
    with emulate.devices(world, seed=seed) as devices:
        comms = dist.communicators(devices)
        boxes = [comm.empty(COUNT, np.int32) for comm in comms]
        outs = [device.empty(COUNT, np.int32) for device in devices]
        slots = [comm.signals(2)[0] for comm in comms]
        assert slots == [0] * world
        executor = cute.compile(ring, boxes[0], outs[0], comms[0].node, 0, 1, target="emu")
        for comm, box, out in zip(comms, boxes, outs, strict=True):
            executor(box, out, comm.node, 0, world)
    for out in outs:
        assert np.array_equal(out, np.arange(COUNT) + sum(range(world)))


@cute.kernel
def fetch_kernel(box: cute.Tensor, out: cute.Tensor, node: Any):
    """Each rank publishes a number of its own and reads those of all."""
    thread, _, _ = cute.arch.thread_idx()
    world = cutlass.const_expr(len(node.bases))
    if thread == 0:
        box[0] = 10.0 * (node.rank + 1)
    cute.arch.sync_threads()
    if thread < world:
        dist.signal(node, thread, node.rank, 1)
        dist.wait(node, thread, 1, "eq")
        out[thread] = dist.get(node, thread, box.iterator)


@cute.jit
def fetch(box: cute.Tensor, out: cute.Tensor, node: Any):
    fetch_kernel(box, out, node).launch(grid=1, block=32)


@pytest.mark.parametrize("seed", range(4))
def test_get(seed: int) -> None:
    with emulate.devices(3, seed=seed) as devices:
        comms = dist.communicators(devices)
        boxes, outs = [comm.empty(4, np.float32) for comm in comms], [device.empty(3, np.float32) for device in devices]
        for comm, box, out in zip(comms, boxes, outs, strict=True):
            cute.compile(fetch, box, out, comm.node, target="emu")(box, out, comm.node)
    assert all(np.array_equal(out, [10, 20, 30]) for out in outs)


@cute.kernel
def put_kernel(box: cute.Tensor, node: Any):
    thread, _, _ = cute.arch.thread_idx()
    dist.put(node, (node.rank + 1) % cutlass.const_expr(len(node.bases)), box.iterator + thread, node.rank + 1)


@cute.jit
def put_there(box: cute.Tensor, node: Any):
    put_kernel(box, node).launch(grid=1, block=COUNT)


@cute.kernel
def copy_kernel(box: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    out[thread] = box[thread]


@cute.jit
def copy_here(box: cute.Tensor, out: cute.Tensor):
    copy_kernel(box, out).launch(grid=1, block=COUNT)


def put_and_copy(seed: int, barrier: bool) -> list[Any]:
    """Every rank puts into its neighbour's box in one launch, and copies its own in another."""
    with emulate.devices(3, seed=seed) as devices:
        comms = dist.communicators(devices)
        boxes = [comm.empty(COUNT, np.int32) for comm in comms]
        outs = [device.empty(COUNT, np.int32) for device in devices]
        puts = cute.compile(put_there, boxes[0], comms[0].node, target="emu")
        copies = cute.compile(copy_here, boxes[0], outs[0], target="emu")
        for comm, box, out in zip(comms, boxes, outs, strict=True):
            puts(box, comm.node)
            if barrier:
                comm.barrier()
            copies(box, out)
    return outs


@pytest.mark.parametrize("seed", range(4))
def test_a_barrier_orders_the_launches_of_all_ranks(seed: int) -> None:
    for rank, out in enumerate(put_and_copy(seed, True)):
        assert (out == (rank - 1) % 3 + 1).all()
    with pytest.raises(EmulationError, match="Race condition"):
        put_and_copy(seed, False)


def test_a_signal_that_does_not_come_is_named_by_its_slot() -> None:
    with emulate.devices(2) as devices:
        comms = dist.communicators(devices, timeout=1e-5)
        box, out = comms[0].empty(COUNT, np.int32), devices[0].empty(COUNT, np.int32)
        cute.compile(ring, box, out, comms[0].node, 0, 1, target="emu")(box, out, comms[0].node, 5, 1)
        with pytest.raises(LaunchError, match="Rank 0 has waited in vain for a signal in slot 5") as raised:
            comms[0].synchronize()
    assert re.search(r"block +0\n +slot +5\n", str(raised.value))


@cute.kernel
def compare_kernel(out: cute.Tensor, node: Any):
    dist.wait(node, 0, 1, "lt")
    out[0] = 1.0


@cute.jit
def compare(out: cute.Tensor, node: Any):
    compare_kernel(out, node).launch(grid=1, block=32)


@cute.kernel
def multicast_kernel(x: cute.Tensor):
    cute.arch.inline_ptx("multimem.red.release.sys.global.add.u32 [{$r0}], {$r1};", read_only_args=(x.iterator, 1))


@cute.jit
def multicast(x: cute.Tensor):
    multicast_kernel(x).launch(grid=1, block=32)


def test_what_is_refused_while_compiling() -> None:
    with emulate.devices(2) as devices:
        comm = dist.communicators(devices)[0]
        out = devices[0].empty(4, np.float32)
        with pytest.raises(CompileError, match="wait has no cmp 'lt'") as raised:
            cute.compile(compare, out, comm.node, target="emu")
        assert "one of ge, eq, gt" in str(raised.value)
    with pytest.raises(CompileError, match="multimem instructions are not compiled") as raised:
        cute.compile(multicast, np.zeros(4, np.uint32), target="emu")
    assert "test_device_side.py" in str(raised.value)
    assert "write to each rank's memory, or read from each and combine" in str(raised.value)
