"""Votes, shuffles, matches, reductions and elections: meeting points of a warp that runs in lockstep, no order else."""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{ .reg .b32 %r<20>; .reg .b64 %d<4>; .reg .pred %p<6>;
  .shared .align 8 .b8 s[1024]; .shared .align 8 .b8 m[8]; .shared .align 4 .b8 count[4];
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r7, 0; ld.param.u64 %d1, [out];
  mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; shl.b32 %r10, %r1, 2; mov.u32 %r11, s; add.u32 %r10, %r11, %r10;
  @%p1 bra B; st.shared.u32 [s], 5; st.shared.u32 [count], %r7; mbarrier.init.shared.b64 [m], 128;
B: bar.sync 0;
  USE
  MEET
  and.b32 %r3, %r1, 31; setp.ne.u32 %p2, %r3, 0; @%p2 bra END;
  fence.sc.cta; atom.shared.add.acquire.cta.u32 %r4, [count], 1;
  setp.ne.u32 %p3, %r4, 3; @%p3 bra END;
  LAST
END: ret; }
"""
READ = "ld.shared.u32 %r2, [s]; st.global.u32 [%d1], %r2;"
WAIT = (
    "mbarrier.arrive.shared.b64 %d3, [m]; W: mbarrier.try_wait.shared.b64 %p5, [m], %d3; @!%p5 bra W;"
    " bar.warp.sync 0xffffffff;"
)
WRITE = "st.shared.u32 [%r10], %r1;"
USES = {
    "a read, then a write": (READ, "st.shared.u32 [s], 9;"),
    "a wait, then the end of the mbarrier": (
        WAIT.replace(" bar.warp.sync 0xffffffff;", ""),
        "mbarrier.inval.shared.b64 [m];",
    ),
    "writes, then reads": (WRITE, "ld.shared.u32 %r5, [s+508]; ld.shared.u32 %r6, [s+4];"),
}
MEETINGS = {
    "match": "match.any.sync.b32 %r5, %r7, 0xffffffff;", "vote": "vote.sync.ballot.b32 %r5, %p1, 0xffffffff;",
    "shfl": "shfl.sync.idx.b32 %r5, %r7, 0, 31, 0xffffffff;", "redux": "redux.sync.add.s32 %r5, %r7, 0xffffffff;",
    "elect": "elect.sync %r5|%p4, 0xffffffff;", "match all": "match.all.sync.b32 %r5, %r7, 0xffffffff;",
}  # fmt: skip


def race(use, meeting, lockstep):
    code, last = USES[use]
    text = KERNEL.replace("USE", code).replace("MEET", meeting).replace("LAST", last)
    try:
        run_ptx(text, "k", 1, 128, [np.zeros(128, np.uint32)], lockstep=lockstep)
    except EmulationError as error:
        assert error.kind == "race"
        return True
    return False


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_threads_in_lockstep_meet_there_and_by_the_letter_they_do_not(use, meeting):
    assert not race(use, MEETINGS[meeting], False)
    assert race(use, MEETINGS[meeting], True)


@pytest.mark.parametrize("use", USES)
def test_a_barrier_of_the_warp_orders_in_any_case(use):
    assert not race(use, "bar.warp.sync 0xffffffff;", True)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("nothing", ["", "activemask.b32 %r5;", "mov.u32 %r5, %laneid;"])
def test_without_a_meeting_it_is_a_race(use, nothing):
    assert race(use, nothing, False)


def test_who_is_not_of_the_mask_has_not_met():
    some = "setp.lt.u32 %p4, %r1, 64; @!%p4 bra N; {} N:"
    half = "and.b32 %r12, %r1, 31; setp.lt.u32 %p4, %r12, 16; @%p4 vote.sync.ballot.b32 %r5, %p1, 0x0000ffff;"
    assert race("a read, then a write", some.format(MEETINGS["vote"]), False)
    assert race("a read, then a write", half, False)


def test_what_comes_behind_the_meeting_is_not_ordered():
    code = f"{MEETINGS['vote']} {READ}"
    assert race("a read, then a write", code, False)
