"""Races: seeded faults are reported, correct kernels are not, verdicts follow the PTX memory model."""

import numpy as np
import pytest

from tests.emu import faults
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

QUICK = ("row_sum", "copy_ring", "named_barriers", "message", "last_block")


@pytest.mark.parametrize("case", faults.CASES, ids=lambda case: case.name)
def test_correct_kernels_are_not_reported(case):
    for seed in faults.SEEDS:
        assert faults.run(case, faults.PTX, True, seed) == ""
        assert faults.run(case, faults.PTX, False, seed) == ""


@pytest.mark.parametrize("name", QUICK)
def test_removed_synchronisation_is_reported(name):
    case = next(case for case in faults.CASES if case.name == name)
    removed = [m for m in faults.mutants(case) if "without" in m.what or "relaxed" in m.what]
    assert removed
    for mutant in removed:
        report = faults.run(case, mutant.text, True, 0)
        assert report.startswith(("Error: Race condition in", "Deadlock", "A value that was never")), mutant.what


@pytest.mark.slow
@pytest.mark.parametrize("case", faults.CASES, ids=lambda case: case.name)
def test_every_harmful_mutant_is_reported(case):
    verdicts = [faults.judge(mutant) for mutant in faults.mutants(case)]
    assert [v.mutant.what for v in verdicts if v.kind == "missed"] == []
    silent = [v.mutant.what for v in verdicts if "without" in v.mutant.what and v.kind != "reported"]
    assert silent == []


def test_a_race_names_both_lines_and_threads():
    case = faults.CASES[0]
    mutant = next(m for m in faults.mutants(case) if "bar.sync" in m.what)
    args, _ = case.make()
    with pytest.raises(EmulationError) as caught:
        run_ptx(mutant.text, case.name, case.grid, case.block, args)
    text = str(caught.value)
    assert text.startswith("Error: Race condition in shared memory access")
    assert "PTX line" in text and "other access" in text and "st.shared" in text and "ld.shared" in text
    assert "other thread" in text and "block (0, 0, 0), thread (" in text


# ---- litmus tests: two blocks (or one), one thread each, on words x and y ---------------------------------------


def litmus(first, second, same_block=False, scope_block=64):
    """The races of two threads, of two blocks or of two warps of one block. %d1 is x, %d2 is y."""
    choose = "shr.u32 %r9, %r8, 5;" if same_block else "mov.u32 %r9, %ctaid.x;"
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out)
{{
  .reg .pred %p<9>; .reg .b32 %r<19>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u64 %d3, [out];
  mov.u32 %r8, %tid.x;
  and.b32 %r7, %r8, 31; setp.ne.u32 %p8, %r7, 0; @%p8 bra END;
  {choose}
  setp.eq.u32 %p7, %r9, 1; @%p7 bra SECOND;
  {first}
  bra END;
SECOND:
  {second}
END: ret;
}}
"""
    grid, block = (1, scope_block) if same_block else (2, 32)
    reports = [
        run_ptx(text, "k", grid, block, list(np.zeros((3, 4), np.int32)), checks="collect", seed=s) for s in (0, 1, 2)
    ]
    return max(len(report.races) for report in reports)


SPIN = "W: {load} %r1, [%d2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;"
READ = "ld.global.u32 %r2, [%d1]; st.global.u32 [%d3], %r2;"


@pytest.mark.parametrize("same_block", [False, True])
@pytest.mark.parametrize(
    ("publish", "load", "after", "races"),
    [
        ("st.release.gpu.global.u32 [%d2], 1;", "acquire.gpu", "", False),
        ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%d2], 1;", "relaxed.gpu", "fence.acq_rel.gpu;", False),
        ("fence.sc.gpu; st.volatile.global.u32 [%d2], 1;", "volatile", "fence.sc.gpu;", False),
        ("membar.gl; red.relaxed.gpu.global.add.u32 [%d2], 1;", "relaxed.gpu", "membar.gl;", False),
        ("atom.release.gpu.global.exch.b32 %r3, [%d2], 1;", "acquire.gpu", "", False),
        ("st.relaxed.gpu.global.u32 [%d2], 1;", "acquire.gpu", "", True),
        ("st.release.gpu.global.u32 [%d2], 1;", "relaxed.gpu", "", True),
        ("st.volatile.global.u32 [%d2], 1;", "volatile", "", True),
        ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%d2], 1;", "relaxed.gpu", "", True),
    ],
)
def test_message_passing(publish, load, after, races, same_block):
    observe = SPIN.format(load=f"ld.{load}.global.u32") + after
    found = litmus(f"st.global.u32 [%d1], 42; {publish}", f"{observe} {READ}", same_block)
    assert bool(found) == races


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [
        ("st.global.u32 [%d1], 1;", "st.global.u32 [%d1], 2;", True),
        ("st.global.u32 [%d1], 1;", READ, True),
        ("st.relaxed.gpu.global.u32 [%d1], 1;", "ld.relaxed.gpu.global.u32 %r2, [%d1];", False),
        ("st.relaxed.gpu.global.u32 [%d1], 1;", "ld.global.u32 %r2, [%d1];", True),
        ("atom.global.add.u32 %r2, [%d1], 1;", "atom.global.add.u32 %r2, [%d1], 1;", False),
        ("red.relaxed.cta.global.add.u32 [%d1], 1;", "red.relaxed.cta.global.add.u32 [%d1], 1;", True),
        ("atom.global.add.u32 %r2, [%d1], 1;", "st.global.u32 [%d1], 5;", True),
        ("st.volatile.global.u32 [%d1], 1;", "ld.volatile.global.u32 %r2, [%d1];", False),
        ("ld.global.u32 %r2, [%d1];", "ld.global.u32 %r2, [%d1];", False),
    ],
)
def test_conflicting_accesses_of_two_blocks(first, second, races):
    assert bool(litmus(first, second)) == races


def test_release_acquire_of_block_scope_does_not_order_two_blocks():
    publish = "st.global.u32 [%d1], 42; st.release.cta.global.u32 [%d2], 1;"
    observe = SPIN.format(load="ld.acquire.cta.global.u32") + READ
    assert litmus(publish, observe)
    assert not litmus(publish, observe, same_block=True)


def test_bytes_of_one_word_are_apart():
    first, second = ("st.global.u8 [%d1], 1;", "st.global.u8 [%d1+1], 2;")
    assert not litmus(first, second)
    assert litmus(first, "st.global.u16 [%d1], 2;")


def test_writing_what_is_there_already_is_no_race():
    assert not litmus("st.global.u32 [%d1], 0;", "st.global.u32 [%d1], 0;")


LOCKSTEP = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %d<9>;
  .shared .align 4 .b8 s[128];
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;
  st.shared.u32 [%r4], %r1;
  SYNC
  xor.b32 %r5, %r2, 4; add.u32 %r5, %r3, %r5;
  ld.shared.u32 %r6, [%r5];
  mul.wide.u32 %d2, %r2, 1; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r6;
  ret;
}
"""


def test_lockstep_is_a_class_of_its_own():
    out = np.zeros(32, np.int32)
    bare, synced = (LOCKSTEP.replace("SYNC", sync) for sync in ("", "bar.warp.sync -1;"))
    run_ptx(bare, "k", 1, 32, [out])
    run_ptx(synced, "k", 1, 32, [out], lockstep=True)
    with pytest.raises(EmulationError, match="Error: Race condition in shared memory access"):
        run_ptx(bare, "k", 1, 32, [out], lockstep=True)
