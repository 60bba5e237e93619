"""What a thread has acquired from another block goes on with the barriers that it arrives at (PTX ISA 8.9.5)."""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 o)
{{
  .reg .b64 %d<6>; .reg .b32 %r<12>; .reg .pred %p<8>;
  .shared .align 8 .b64 bar;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u64 %d3, [o];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d4, %r1, 4; add.u64 %d3, %d3, %d4;
  setp.ne.u32 %p1, %r2, 0; setp.ne.u32 %p2, %r1, 0; setp.lt.u32 %p6, %r1, 32; setp.lt.u32 %p3, %r1, 64;
  @%p1 bra OTHER;
  @%p2 bra LAST; st.global.u32 [%d1], 42; st.release.gpu.global.u32 [%d2], 1; bra LAST;
OTHER:
  @%p2 bra READY; mbarrier.init.shared.b64 [bar], 1;
READY:
  bar.sync 0;
  @!%p6 bra REST;
  @%p2 bra FIRST;
POLL: ld.{order}.gpu.global.u32 %r3, [%d2]; setp.ne.u32 %p4, %r3, 1; @%p4 bra POLL;
FIRST:
  {arrive}
REST:
  {wait}
  ld.global.u32 %r4, [%d1]; st.global.u32 [%d3], %r4;
LAST:
  {meet}
END:
  ret;
}}
"""
WAYS = {
    "a whole barrier": ("", "bar.sync 0;", ""),
    "a warp": ("bar.warp.sync -1;", "@!%p6 bra LAST;", ""),
    "a named barrier": ("bar.sync 1, 64; bra LAST;", "@!%p3 bra LAST; bar.sync 1, 64;", ""),
    "bar.arrive": ("bar.arrive 1, 64; bra LAST;", "@!%p3 bra LAST; bar.sync 1, 64;", ""),
    "an mbarrier": (
        "@%p2 bra LAST; mbarrier.arrive.shared.b64 _, [bar]; bra LAST;",
        "V: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra V;",
        "",
    ),
}


def run(arrive, wait, meet, order="acquire", seed=0, grid=2, **options):
    arrays = [np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.zeros(128, np.uint32)]
    run_ptx(TEXT.format(arrive=arrive, wait=wait, meet=meet, order=order), "k", grid, 128, arrays, seed=seed, **options)
    return arrays[2]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", WAYS)
def test_an_acquired_value_is_handed_on(way, seed):
    out = run(*WAYS[way], seed=seed)
    assert set(out[out > 0]) == {42} and len(out[out > 0]) >= 32


@pytest.mark.parametrize("way", WAYS)
def test_a_relaxed_poll_hands_nothing_on(way):
    """The reads of the value race, whatever barrier lies between."""
    with pytest.raises(EmulationError, match="Race condition in global memory access") as caught:
        run(*WAYS[way], order="relaxed")
    assert "st.global.u32 [%d1], 42" in str(caught.value)


@pytest.mark.parametrize("seed", range(4))
def test_a_cluster_hands_on_what_one_of_its_threads_has_acquired(seed):
    """Blocks 2 and 3 form a cluster; only block 2 polls, both read. Block 1 meets block 0 at its cluster's barrier."""
    text = TEXT.replace("setp.lt.u32 %p6, %r1, 32;", "setp.lt.u32 %p6, %r1, 32; setp.ne.u32 %p7, %r2, 2;")
    text = text.replace("@!%p6 bra REST;", "setp.eq.u32 %p5, %r2, 1; @%p5 bra LAST; @%p7 bra REST; @!%p6 bra REST;")
    meet = "setp.gt.u32 %p5, %r2, 1; @%p5 bra END; barrier.cluster.arrive; barrier.cluster.wait;"
    for order, arrive, good in (
        ("acquire", "barrier.cluster.arrive;", True),
        ("acquire", "barrier.cluster.arrive.relaxed;", False),
        ("acquire", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed;", True),
        ("relaxed", "barrier.cluster.arrive;", False),
    ):
        code = text.format(arrive="", wait=f"{arrive} barrier.cluster.wait;", meet=meet, order=order)
        arrays = [np.zeros(1, np.uint32), np.zeros(1, np.uint32), np.zeros(128, np.uint32)]
        if good:
            run_ptx(code, "k", 4, 128, arrays, cluster=2, seed=seed)
            assert (arrays[2] == 42).all()
            continue
        with pytest.raises(EmulationError, match="Race condition in global memory access"):
            run_ptx(code, "k", 4, 128, arrays, cluster=2, seed=seed)
