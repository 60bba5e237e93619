"""Fences: each form of the PTX ISA has its meaning or is refused by name; a fence orders what its scope includes."""

import numpy as np
import pytest

from tests.emu.test_litmus import READ_X, WRITE_X, threads, until, verdict
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def alone(fence):
    run_ptx(f"{HEAD}.visible .entry k() {{ .reg .b64 %d<3>; {fence} ret; }}", "k", 1, 32, [])


@pytest.mark.parametrize("fence", [
    *(f"fence{sem}.{scope};" for sem in ("", ".sc", ".acq_rel", ".acquire", ".release")
      for scope in ("cta", "cluster", "gpu", "sys")),
    "membar.cta;", "membar.gl;", "membar.sys;", "membar.proxy.alias;", "fence.proxy.alias;", "fence.proxy.async;",
    "fence.proxy.async.global;", "fence.proxy.async.shared::cta;", "fence.proxy.async.shared::cluster;",
    "fence.mbarrier_init.release.cluster;", "fence.proxy.tensormap::generic.release.gpu;",
])  # fmt: skip
def test_forms_that_have_a_meaning(fence):
    alone(fence)


@pytest.mark.parametrize("fence", [
    "fence;", "fence.proxy;", "fence.proxy.texture;", "fence.proxy.surface;", "fence.proxy.constant;", "membar.gpu;",
    "fence.acq_rel.gl;", "fence.relaxed.gpu;", "fence.proxy.generic::async.acquire.cta;",
    "fence.mbarrier_init.acquire.cluster;", "fence.mbarrier_init.release.gpu;", "fence.proxy.async.local;",
    "membar.proxy.texture;",
])  # fmt: skip
def test_other_forms_are_refused_by_name(fence):
    with pytest.raises(EmulationError) as caught:
        alone(fence)
    assert fence.rstrip(";") in caught.value.message and "PTX line" in caught.value.values
    assert caught.value.kind == "program"


def passed(release, acquire, warps=False):
    """Message passing by a relaxed flag of gpu scope, with these fences; whether a race is found."""
    first = f"{WRITE_X} {release} st.relaxed.gpu.global.u32 [%y], 1;"
    return verdict(first, until("%y", 1, "relaxed") + acquire + READ_X, warps=warps)


@pytest.mark.parametrize(("release", "acquire", "blocks", "warps"), [
    ("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", False, False), ("fence.sc.sys;", "fence.acq_rel.gpu;", False, False),
    ("fence.acq_rel.cta;", "fence.acq_rel.gpu;", True, False), ("fence.gpu;", "fence.acq_rel.cta;", True, False),
    ("fence.acq_rel.cta;", "fence.acq_rel.cta;", True, False), ("membar.cta;", "membar.gl;", True, False),
    ("fence.acq_rel.cluster;", "fence.acq_rel.cluster;", True, False), ("membar.gl;", "membar.sys;", False, False),
    ("fence.release.gpu;", "fence.acquire.gpu;", False, False),
    ("fence.acquire.gpu;", "fence.acquire.gpu;", True, True),
    ("fence.release.gpu;", "fence.release.gpu;", True, True), ("fence.proxy.async;", "fence.proxy.async;", True, True),
    ("fence.proxy.alias;", "fence.proxy.alias;", True, True),
    ("fence.acq_rel.gpu; fence.acq_rel.cta;", "fence.acq_rel.cta; fence.acq_rel.gpu;", False, False),
])  # fmt: skip
def test_fences_order_what_their_scope_includes(release, acquire, blocks, warps):
    assert passed(release, acquire) == blocks
    assert passed(release, acquire, warps=True) == warps


def test_a_wide_fence_orders_what_precedes_it_and_a_narrow_one_after_it_does_not():
    """The write between the two fences is released to the block only."""
    first = f"fence.acq_rel.gpu; {WRITE_X} fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%y], 1;"
    second = until("%y", 1, "relaxed") + "fence.acq_rel.gpu;" + READ_X
    assert verdict(first, second) and not verdict(first, second, warps=True)


def test_what_comes_after_a_value_was_read_is_not_acquired_with_it():
    """A reader of the first count acquires nothing of the second counter, however late its fence is."""
    count = "fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%y], 1;"
    told = "st.relaxed.gpu.global.u32 [%y+4], 2;"  # no fence before it: it releases nothing
    second = until("%y+4", 1, "relaxed") + "st.global.u32 [%x+4], 9;" + told + count
    third = (until("%y", 1, "relaxed") + "st.relaxed.gpu.global.u32 [%y+4], 1;"
             + until("%y+4", 2, "relaxed", "V") + "fence.acq_rel.gpu; ld.global.u32 %r2, [%x+4];")  # fmt: skip
    assert all(threads(count, second, third)[0])


CLUSTER = (
    HEAD
    + """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<3>;
  .shared .align 8 .b8 s[16];
  ld.param.u64 %d1, [out]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %tid.x; mov.u32 %r3, s; xor.b32 %r4, %r1, 1;
  setp.eq.u32 %p, %r2, 0;
  WRITE
  ARRIVE barrier.cluster.wait;
  mapa.shared::cluster.u32 %r5, %r3, %r4;
  READ
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}
"""
)
DATA = ("@%p st.shared.u32 [s], %r1;", "@%p ld.shared::cluster.u32 %r6, [%r5];")
BARRIER = ("@%p mbarrier.init.shared.b64 [s], 1;", "@%p mbarrier.arrive.shared::cluster.b64 _, [%r5];")


@pytest.mark.parametrize(("what", "fence", "arrive", "racy"), [
    (DATA, "", "barrier.cluster.arrive;", False), (DATA, "", "barrier.cluster.arrive.release;", False),
    (DATA, "", "barrier.cluster.arrive.relaxed;", True),
    (DATA, "fence.acq_rel.cluster;", "barrier.cluster.arrive.relaxed;", False),
    (DATA, "fence.acq_rel.cta;", "barrier.cluster.arrive.relaxed;", True),
    (DATA, "fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed;", True),
    (BARRIER, "fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed;", False),
    (BARRIER, "", "barrier.cluster.arrive.relaxed;", True), (BARRIER, "", "barrier.cluster.arrive;", False),
])  # fmt: skip
def test_a_relaxed_arrival_at_a_cluster_barrier_orders_what_was_fenced(what, fence, arrive, racy):
    text = CLUSTER.replace("WRITE", f"{what[0]} {fence}").replace("ARRIVE", arrive).replace("READ", what[1])
    for seed in range(6):
        report = run_ptx(text, "k", 2, 64, [np.zeros(4, np.int32)], cluster=2, checks="collect", seed=seed)
        assert bool(report.races) == racy and not report.errors
