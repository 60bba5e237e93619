"""Barriers that some threads do not reach: as the DSL has it, and as PTX has it."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.base.errors import EmulationError
from tilewright.emulate import observe, run_ptx


def compiled(body, block=64):
    """A kernel of one block with this body; it is given 256 zeros."""
    text = "@cute.kernel\ndef k(x: cute.Tensor):\n    i, _, _ = cute.arch.thread_idx()\n"
    text += "".join(f"    {line}\n" for line in body.split("\n"))
    text += f"@cute.jit\ndef launch(x: cute.Tensor):\n    k(x).launch(grid=1, block={block})\n"
    space = {"cute": cute, "cutlass": cutlass}
    exec(text, space)
    return cute.compile(space["launch"], np.zeros(256, np.int32), target="emu")


def found(body, block=64):
    with pytest.raises(EmulationError) as caught:
        compiled(body, block)(np.zeros(256, np.int32))
    return caught.value


SYNC = "cute.arch.sync_threads()"
MISSING = {
    "part of a warp": (f"if i < 16:\n    {SYNC}\nx[i] = 1", "thread (16, 0, 0) and 47 more"),
    "one warp of two": (f"if i < 32:\n    {SYNC}\nx[i] = 1", "thread (32, 0, 0) and 31 more"),
    "as many times as they like": (f"for k in range(i % 3):\n    {SYNC}\nx[i] = 1", "thread (0, 0, 0) and 21 more"),
    "every second thread": (f"if i % 2 == 0:\n    {SYNC}\n    x[i] = 3", "thread (1, 0, 0) and 31 more"),
    "all but one": (f"if i != 63:\n    {SYNC}\n    x[i] = 3", "thread (63, 0, 0): ended without it"),
    "what a value decides": (f"if x[i] + i > 9:\n    {SYNC}\nx[i] = 2", "thread (0, 0, 0) and 9 more"),
    "half-warps that count as one warp": (
        "if i % 2 == 0:\n    cute.arch.barrier(barrier_id=1, number_of_threads=32)\nx[i] = 1",
        "thread (1, 0, 0) and 31 more",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_barrier_that_some_threads_do_not_reach(case):
    body, missing = MISSING[case]
    error = found(body)
    assert error.kind == "barrier"
    assert error.message == "Some threads do not reach a barrier at which others wait"
    assert missing in error.values["missing"]
    line = 4 + body.split("\n").index(next(text for text in body.split("\n") if "barrier" in text or "sync" in text))
    assert f"<string>:{line}" in str(error) and "PTX line" in error.values
    assert "outside of the branch or loop" in error.hint


@pytest.mark.parametrize(("condition", "missing"), [
    ("i % 32 < 16", "thread (16, 0, 0) and 31 more"), ("i % 2 == 1", "thread (0, 0, 0) and 31 more"),
    ("i != 40", "thread (40, 0, 0): ended without it"),
])  # fmt: skip
def test_a_barrier_of_a_warp_that_some_threads_do_not_reach(condition, missing):
    error = found(f"if {condition}:\n    cute.arch.sync_warp()\nx[i] = 1")
    assert error.kind == "diverged" and missing in error.values["missing"]
    assert error.message == "Some threads do not reach a barrier of their warp at which others wait"


@pytest.mark.parametrize("body", [
    f"{SYNC}\nx[i] = 1", "cute.arch.sync_warp()\nx[i] = 1",
    "if i < 32:\n    cute.arch.barrier(barrier_id=1, number_of_threads=32)\nx[i] = 1",
    "if i % 32 < 16:\n    cute.arch.sync_warp(0xffff)\nx[i] = 1",
    "if i % 32 < 16:\n    cute.arch.sync_warp()\nelse:\n    cute.arch.sync_warp()\nx[i] = 1",
    f"b, _, _ = cute.arch.block_idx()\nif b < 1:\n    {SYNC}\n    x[i] = 1",
    f"for k in range(3):\n    {SYNC}\nx[i] = 1",
    "if i < 32:\n    cute.arch.barrier_arrive(barrier_id=1, number_of_threads=64)\n"
    "else:\n    cute.arch.barrier(barrier_id=1, number_of_threads=64)\nx[i] = 1",
])  # fmt: skip
@pytest.mark.parametrize("block", [64])
def test_barriers_that_all_reach(body, block):
    x = np.zeros(256, np.int32)
    compiled(body, block)(x)
    assert x.tolist() == [1] * block + [0] * (256 - block)


@pytest.mark.parametrize("block", [1, 31, 40, 63, 65, 100])
def test_threads_that_do_not_exist_are_not_missing(block):
    x = np.zeros(256, np.int32)
    compiled(f"{SYNC}\ncute.arch.sync_warp()\nx[i] = 1", block)(x)
    assert x.sum() == block


def test_findings_are_collected():
    x = np.zeros(256, np.int32)
    with observe(checks="collect") as reports:
        compiled(f"if i < 16:\n    {SYNC}\nx[i] = 1")(x)
    assert [error.kind for error in reports[0].errors] == ["barrier"]
    assert x.sum() == 64


HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{ .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<5>; .shared .align 8 .b8 s[64];
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;
"""
STORE = "st.global.u32 [%d3], %r1;"


def leave(condition, barrier, end):
    """Threads with %r1 `condition` go to E, the others meet at a barrier first."""
    return f"{HEAD} setp.{condition}; @%p1 bra E; {barrier} {STORE} {end} E: "


@pytest.mark.parametrize(("code", "kind"), [
    # That threads have ended releases a barrier of all.
    (leave("ge.u32 %p1, %r1, 40", "bar.sync 0;", "") + "ret;", None),
    (leave("ge.u32 %p1, %r1, 40", "bar.sync 0;", "ret;") + f"{STORE} ret;", None),
    (leave("ge.u32 %p1, %r1, 32", "bar.sync 0;", "") + f"{STORE} ret;", None),
    (leave("ge.u32 %p1, %r1, 40", "bar.warp.sync 0xffffffff;", "") + "ret;", None),
    (leave("ge.u32 %p1, %r1, 40", "barrier.sync 0;", "") + f"{STORE} ret;", None),
    # No thread of a warp goes round it.
    (leave("ge.u32 %p1, %r1, 40", "bar.sync 0;", "") + f"{STORE} ret;", "barrier"),
    (leave("ge.u32 %p1, %r1, 40", "barrier.sync.aligned 0;", "") + f"{STORE} ret;", "barrier"),
    (leave("eq.u32 %p1, %r1, 5", "bar.red.popc.u32 %r2, 0, %p1;", "") + f"{STORE} ret;", "barrier"),
    (leave("eq.u32 %p1, %r1, 5", "bar.warp.sync 0xffffffff;", "") + f"{STORE} ret;", "diverged"),
    (f"{HEAD} setp.lt.u32 %p1, %r1, 40; @%p1 bar.sync 0; {STORE} ret;", "barrier"),
    # A number of threads counts whole warps.
    (f"{HEAD} and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; bar.sync 1, 32; E: ret;", "barrier"),
    (f"{HEAD} and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra E; barrier.sync 1, 32; E: ret;", None),
])  # fmt: skip
def test_as_ptx_has_it(code, kind):
    for seed in range(3):
        try:
            run_ptx(f"{code} }}", "k", 1, 64, [np.zeros(64, np.uint32)], seed=seed)
            assert kind is None
        except EmulationError as error:
            assert error.kind == kind, error
            assert "PTX line" in error.values and "missing" in error.values
