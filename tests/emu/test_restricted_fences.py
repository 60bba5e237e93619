"""Fences with `.sync_restrict` order shared memory only; fences beside relaxed accesses to mbarriers."""

import numpy as np
import pytest

from tilewright.emulate import run_ptx

TEXT = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 o)
{{
  .reg .b64 %d<4>; .reg .b32 %r<12>; .reg .pred %p<8>;
  .shared .align 8 .b64 bar; .shared .align 8 .b32 data[2]; .shared .align 4 .u32 flag;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [o]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra LAST;
  mov.u32 %r3, 0; st.shared.u32 [flag], %r3; st.shared.u32 [data], %r3; mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
LAST:
  barrier.cluster.arrive; barrier.cluster.wait;
  @%p1 bra END;
  mov.u32 %r4, data; mov.u32 %r5, flag; mov.u32 %r6, bar;
  mapa.shared::cluster.u32 %r7, %r5, 0; mapa.shared::cluster.u32 %r8, %r6, 0; mapa.shared::cluster.u32 %r9, %r4, 1;
  setp.eq.u32 %p2, %r2, 0; @%p2 bra READER;
  mov.u32 %r3, 42; st.{space} {place}, %r3;
  {release}
  bra END;
READER:
  {acquire}
  ld.{from_} %r3, {source};
  st.global.u32 [%d2], %r3;
END:
  barrier.cluster.arrive; barrier.cluster.wait; ret;
}}
"""
SPACES = {
    "shared": {"space": "shared.u32", "place": "[data]", "from_": "shared::cluster.u32", "source": "[%r9]"},
    "global": {"space": "global.u32", "place": "[%d1]", "from_": "global.u32", "source": "[%d1]"},
}
RELEASE, ACQUIRE = "fence.release.sync_restrict::shared::cta.cluster;", \
    "fence.acquire.sync_restrict::shared::cluster.cluster;"  # fmt: skip
FLAG = "mov.u32 %r3, 1; st.relaxed.cluster.shared::cluster.u32 [%r7], %r3;"
POLL = "W: ld.relaxed.cluster.shared::cta.u32 %r3, [flag]; setp.ne.u32 %p3, %r3, 1; @%p3 bra W;"
ARRIVE = "mbarrier.arrive.{}.cluster.shared::cluster.b64 _, [%r8];"
WAIT = "W: mbarrier.try_wait.parity.{}.cluster.shared.b64 %p3, [bar], 0; @!%p3 bra W;"
FULL = "fence.acq_rel.cluster;"


def races(space, release, acquire):
    """Whether a race is found, the same with every seed."""
    found = set()
    for seed in range(3):
        x, out = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        text = TEXT.format(release=release, acquire=acquire, **SPACES[space])
        report = run_ptx(text, "k", 2, 32, [x, out], cluster=2, checks="collect", seed=seed)
        assert out[0] == 42 and not report.errors
        assert all("other access" in race.values for race in report.races)
        found.add(bool(report.races))
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(("release", "acquire", "shared", "global_"), [
    (FULL, FULL, False, False), (RELEASE, ACQUIRE, False, True), (FULL, ACQUIRE, False, True),
    (RELEASE, FULL, False, True), ("", ACQUIRE, True, True), (RELEASE, "", True, True), (ACQUIRE, RELEASE, True, True),
    (RELEASE + FULL, FULL, False, False), (FULL, ACQUIRE + FULL, False, False),
])  # fmt: skip
@pytest.mark.parametrize("carrier", ["flag", "mbarrier"])
def test_restricted_fences_order_shared_memory_only(carrier, release, acquire, shared, global_):
    store, poll = (FLAG, POLL) if carrier == "flag" else (ARRIVE.format("relaxed"), WAIT.format("relaxed"))
    assert races("shared", release + store, poll + acquire) == shared
    assert races("global", release + store, poll + acquire) == global_


def test_relaxed_arrivals_and_waits_need_fences_on_their_side_only():
    for space in SPACES:
        assert not races(space, ARRIVE.format("release"), WAIT.format("acquire"))
        assert not races(space, FULL + ARRIVE.format("relaxed"), WAIT.format("acquire"))
        assert not races(space, ARRIVE.format("release"), WAIT.format("relaxed") + FULL)
        assert races(space, ARRIVE.format("relaxed"), WAIT.format("acquire"))
        assert races(space, ARRIVE.format("release"), WAIT.format("relaxed"))
    narrow = "fence.acq_rel.cta;"
    assert races("global", narrow + ARRIVE.format("relaxed"), WAIT.format("relaxed") + narrow)


def test_what_counts_for_shared_memory_only_goes_on_with_barriers():
    """All threads of the reader's block read after a barrier; only the first has acquired."""
    all_of_block_0 = "setp.eq.u32 %p2, %r2, 0; and.pred %p5, %p1, %p2; mov.u32 %r4, data; " \
        "mapa.shared::cluster.u32 %r9, %r4, 1; @%p5 bra OTHER; @%p1 bra END;"  # fmt: skip
    for space, wrong in (("shared", False), ("global", True)):
        acquire = POLL + ACQUIRE + "OTHER: bar.sync 1, 64;"
        text = TEXT.format(release=RELEASE + FLAG, acquire=acquire, **SPACES[space])
        text = text.replace("wait;\n  @%p1 bra END;", f"wait; {all_of_block_0}")
        x, out = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        report = run_ptx(text, "k", 2, 64, [x, out], cluster=2, checks="collect")
        assert out[0] == 42 and bool(report.races) == wrong
