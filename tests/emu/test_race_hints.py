"""What helps against a race: the hint fits who the two threads are and what they did."""

import numpy as np
import pytest

from tests.emu.test_instructions import HEAD
from tilewright.emulate import EmulationError, run_ptx
from tilewright.targets.emu.checks.history import hints


def complaint(body, grid=1, block=64, target=HEAD, **options):
    text = f"""{target}
.visible .entry k(.param .u64 data)
{{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<5>; .shared .align 16 .b8 tile[1024];
  ld.param.u64 %d1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d2, %r1, 4;
  {body}
  ret; }}
"""
    with pytest.raises(EmulationError) as caught:
        run_ptx(text, "k", grid, block, [np.zeros(4096, np.uint32)], **options)
    assert caught.value.kind == "race"
    return caught.value


NEIGHBOUR = "add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r1; xor.b64 %d4, %d2, 252; add.u64 %d4, %d1, %d4; "
BETWEEN_BLOCKS = {
    "both write": "st.global.u32 [%d1], %r2;",
    "one reads": "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%d1], 1; @!%p1 ld.global.u32 %r3, [%d1];",
    "a sum": "ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, %r2; st.global.u32 [%d1], %r3;",
    "with barriers": "st.global.u32 [%d1], %r2; bar.sync 0; ld.global.u32 %r3, [%d1];",
}


@pytest.mark.parametrize("name", BETWEEN_BLOCKS)
@pytest.mark.parametrize("seed", [0, 3])
def test_between_blocks_no_barrier_of_a_block_helps(name, seed):
    error = complaint(BETWEEN_BLOCKS[name], grid=(4, 1, 1), block=1, seed=seed)
    assert error.hint == hints.BLOCKS and "two launches" in error.hint and "atomics" in error.hint
    assert error.values["block"] != (0, 0, 0) or "block (0, 0, 0)" not in error.values["other thread"]


def test_between_many_readers_of_several_blocks():
    body = "ld.global.u32 %r3, [%d1]; setp.eq.u32 %p1, %r2, 5; @%p1 st.global.u32 [%d1], 1;"
    error = complaint(body, grid=6)
    assert error.hint == hints.BLOCKS and error.values["other thread"] == "several"


@pytest.mark.parametrize(
    "body",
    [
        NEIGHBOUR + "ld.global.u32 %r3, [%d4];",
        "shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r5, %r4, %r3; st.shared.u32 [%r5], %r1;"
        "xor.b32 %r3, %r3, 252; add.u32 %r5, %r4, %r3; ld.shared.u32 %r6, [%r5];",
        "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [tile], 1;setp.eq.u32 %p2, %r1, 40; @%p2 st.shared.u32 [tile], 2;",
    ],
)
def test_within_a_block_a_barrier_helps(body):
    assert complaint(body).hint == "put a barrier between the two accesses"


@pytest.mark.parametrize("memory", ["st.global.u32 [%d1], %r1;", "st.shared.u32 [tile], %r1;"])
def test_threads_that_write_one_place_at_once(memory):
    error = complaint(memory)
    assert error.hint == hints.SAME_PLACE and "a place of its own" in error.hint


def test_within_a_warp():
    body = NEIGHBOUR.replace("252", "4") + "ld.global.u32 %r3, [%d4];"
    assert complaint(body, block=32, lockstep=True).hint == hints.WARP


@pytest.mark.parametrize("load", ["ld.global.nc.u32 %r3, [%d3];", "ld.global.nc.u32 %r3, [%d4]; "])
def test_read_only_loads_of_what_the_kernel_writes(load):
    assert complaint(NEIGHBOUR + "bar.sync 0;" + load).hint == hints.READ_ONLY


@pytest.mark.parametrize(
    "body", ["atom.global.cta.add.u32 %r3, [%d1], 1;", "red.relaxed.cta.global.add.u32 [%d1], 1;",
             "setp.eq.u32 %p1, %r2, 0; @%p1 st.relaxed.gpu.global.u32 [%d1], 1;"
             "@!%p1 ld.relaxed.cta.global.u32 %r3, [%d1];"]
)  # fmt: skip
def test_scopes_that_are_too_narrow(body):
    error = complaint(body, grid=3, block=1)
    assert error.hint == hints.SCOPE and "scope gpu" in error.hint


def test_atomics_beside_plain_accesses_of_another_block():
    body = "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%d1], 1; @!%p1 atom.global.add.u32 %r3, [%d1], 1;"
    assert complaint(body, grid=2, block=1).hint == hints.BLOCKS


def test_shared_memory_of_a_cluster():
    body = """mov.u32 %r3, tile; mapa.shared::cluster.u32 %r4, %r3, 0; setp.eq.u32 %p1, %r1, 0;
      @%p1 st.shared::cluster.u32 [%r4], %r2; barrier.cluster.arrive; barrier.cluster.wait;"""
    assert complaint(body, grid=2, cluster=2).hint == hints.CLUSTER


def test_copies_that_were_not_waited_for():
    body = """mov.u32 %r3, tile; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; add.u64 %d3, %d1, %d2;
      cp.async.ca.shared.global [%r3], [%d3], 4; cp.async.commit_group; bar.sync 0; ld.shared.u32 %r5, [%r3];"""
    assert complaint(body).hint == hints.WAIT
