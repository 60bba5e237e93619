"""Limits of the race check: what does not fit is an error that names the limit, and never a race that goes unseen."""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu.checks.order import clocks, epochs, state

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def text(body):
    return f"""{HEAD}.visible .entry k(.param .u64 a)
{{
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<4>;
  .shared .align 16 .b8 s[64];
  ld.param.u64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r5, ROUNDS;
  {body}
  ret;
}}
"""


def fault(ptx, grid=1, block=32, size=64, **options):
    with pytest.raises(EmulationError) as caught:
        run_ptx(ptx, "k", grid, block, [np.zeros(size, np.uint32)], **options)
    assert caught.value.kind == "limit"
    assert "checks=False" in caught.value.hint and caught.value.values
    run_ptx(ptx, "k", grid, block, [np.zeros(size, np.uint32)], checks=False)
    return caught.value


LOOP = "L: {0} sub.u32 %r5, %r5, 1; setp.ne.u32 %p, %r5, 0; @%p bra L;"


@pytest.mark.parametrize("body", [
    "bar.sync 0;", "bar.warp.sync -1;", "fence.acq_rel.gpu;", "red.release.gpu.global.add.u32 [%d1], 1;",
    "barrier.cluster.arrive; barrier.cluster.wait;", "bar.sync 1, 32;", "fence.proxy.async;",
])  # fmt: skip
def test_synchronisations_of_a_thread(body, monkeypatch):
    monkeypatch.setattr(clocks, "MAX_CLOCK", 50)
    error = fault(text(LOOP.format(body)).replace("ROUNDS", "100"))
    assert error.message == f"The race check has run out of room for {clocks.CLOCKS}" and error.values["at most"] == 50
    run_ptx(text(LOOP.format(body)).replace("ROUNDS", "20"), "k", 1, 32, [np.zeros(64, np.uint32)])


@pytest.mark.slow
def test_the_true_number_of_barriers():
    body = LOOP.format("bar.sync 0;")
    run_ptx(text(body).replace("ROUNDS", str(epochs.MAX_CLOCK - 1)), "k", 1, 32, [np.zeros(64, np.uint32)])
    assert fault(text(body).replace("ROUNDS", str(epochs.MAX_CLOCK + 1))).values["at most"] == 262142


def test_groups_of_copies(monkeypatch):
    monkeypatch.setattr(epochs, "MAX_CLOCK", 50)
    body = "shl.b32 %r2, %r1, 2; mov.u32 %r3, s; and.b32 %r2, %r2, 63; add.u32 %r3, %r3, %r2;"
    body = "setp.gt.u32 %p, %r1, 15; @%p bra E;" + body
    copy = "cp.async.ca.shared.global [%r3], [%d1], 4; cp.async.commit_group; cp.async.wait_group 0;"
    error = fault(text(body + LOOP.format(copy) + " E:").replace("ROUNDS", "60"))
    assert "groups of asynchronous operations" in error.message and "cp.async" in error.values["PTX line"]


def test_memory_instructions(monkeypatch):
    monkeypatch.setattr(state, "MOST_SITES", 20)
    check_instructions(20)


@pytest.mark.slow
def test_the_true_number_of_memory_instructions():
    assert epochs.MOST_SITES == 16383
    check_instructions(16383)


def check_instructions(most):
    """One more than fit is an error; a race between the first and the last of those that fit is found."""
    many = "ld.global.u32 %r2, [%d1];\n" * (most + 1)
    error = fault(text(many).replace("ROUNDS", "1"))
    assert "memory instructions" in error.message and "ld.global.u32" in error.values["PTX line"]
    assert error.values["at most"] == most
    few = "ld.global.u32 %r2, [%d1];\n" * (most - 1)
    racy = f"{few} setp.eq.u32 %p, %r1, 40; @%p st.global.u32 [%d1], 1;"
    with pytest.raises(EmulationError) as caught:
        run_ptx(text(racy).replace("ROUNDS", "1"), "k", 1, 64, [np.zeros(4, np.uint32)])
    assert caught.value.kind == "race" and "ld.global.u32" in caught.value.values["other access"]


def test_blocks():
    assert epochs.MOST_BLOCKS == (1 << 20) - 1
    ptx = text("").replace("ROUNDS", "1")
    with pytest.raises(EmulationError) as caught:
        run_ptx(ptx, "k", (1 << 10, 1 << 10), 1, [np.zeros(4, np.uint32)])
    assert caught.value.message == "The race check knows at most 1048575 blocks" and caught.value.kind == "limit"
    assert "checks=False" in caught.value.hint and caught.value.values["grid"] == (1024, 1024, 1)


def test_the_last_block_and_thread_that_fit_have_stamps_of_their_own():
    stamp = epochs.identity(np.array([epochs.MOST_BLOCKS - 1]), np.array([1023])) + epochs.ONE_TICK
    assert epochs.block_of(stamp)[0] == (1 << 20) - 2 and epochs.thread_of(stamp)[0] == 1023
    assert epochs.clock_of(stamp)[0] == 1 and not epochs.is_async(stamp)[0]


def test_asynchronous_operations_of_a_block(monkeypatch):
    monkeypatch.setattr(epochs, "MOST_AGENTS", 40)
    check_agents(32, 4)


@pytest.mark.slow
def test_the_true_number_of_asynchronous_operations():
    check_agents(1024, 511)


def check_agents(block, most):
    """Each thread that stores in bulk to global memory is two agents: 1,023 fit in a block of 1,024 threads."""
    body = """mul.wide.u32 %d2, %r1, 16; add.u64 %d2, %d2, %d1;
    setp.eq.u32 %p, %r1, 0; @%p st.shared.v4.u32 [s], {%r1, %r1, %r1, %r1}; fence.proxy.async; bar.sync 0;
    setp.ge.u32 %p, %r1, ROUNDS; @%p bra E; cp.async.bulk.global.shared::cta.bulk_group [%d2], [s], 16;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; E:"""
    run_ptx(text(body).replace("ROUNDS", str(most)), "k", 1, block, [np.zeros(4096, np.uint32)])
    error = fault(text(body).replace("ROUNDS", str(most + 1)), block=block, size=4096)
    assert "asynchronous operations of a block" in error.message
