"""The log of accesses that stand beside each other: it is kept small, and says the same of few accesses."""

import numpy as np
import pytest

from tests.emu import faults
from tests.emu.test_litmus import READ_X, WRITE_X, until, verdict
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu.checks.history import concurrent
from tilewright.targets.emu.checks.order.epochs import CLOCK_SHIFT

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
COUNT = f"""{HEAD}.visible .entry k(.param .u64 a, .param .u32 rounds)
{{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [a]; ld.param.u32 %r9, [rounds]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 64, %r1;
L:
  mad.lo.u32 %r3, %r3, 1664525, 1013904223; shr.u32 %r4, %r3, 20; and.b32 %r4, %r4, 63;
  mul.wide.u32 %d2, %r4, 4; add.u64 %d2, %d2, %d1; red.global.add.u32 [%d2], 1;
  sub.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0; @%p1 bra L;
  AFTER
  ret;
}}
""".replace("%r<9>", "%r<10>")


@pytest.fixture
def small(monkeypatch):
    """Logs of a few hundred entries; the greatest number that was in one after it was put in order."""
    monkeypatch.setattr(concurrent, "MOST", 200)
    monkeypatch.setattr(concurrent, "COMPACT", 300)
    sizes = [0]
    original = concurrent.ConcurrentAccesses._compact

    def compact(self):
        original(self)
        sizes.append(self.entries)

    monkeypatch.setattr(concurrent.ConcurrentAccesses, "_compact", compact)
    original_init = concurrent.ConcurrentAccesses.__init__
    limited = lambda self, *rest: (original_init(self, *rest), setattr(self, "limit", 300))[0]  # noqa: E731
    monkeypatch.setattr(concurrent.ConcurrentAccesses, "__init__", limited)
    return sizes


def count(after="", rounds=20, grid=40):
    words = np.zeros(64, np.uint32)
    run_ptx(COUNT.replace("AFTER", after), "k", grid, 64, [words, rounds])
    return words


def test_many_atomics_keep_a_small_log(small):
    assert count().sum() == 40 * 64 * 20
    assert len(small) > 10 and max(small) <= 200


def test_a_race_with_many_atomics_is_still_found(small):
    with pytest.raises(EmulationError, match="Race condition in global memory access") as caught:
        count("st.global.u32 [%d2], %r1;")
    assert "red.global.add.u32" in str(caught.value)
    with pytest.raises(EmulationError, match="Race condition in global memory access"):
        count("ld.global.u32 %r5, [%d2];")


@pytest.mark.parametrize("name", ["message", "last_block", "lock", "cluster_exchange"])
def test_correct_kernels_are_not_reported_with_a_small_log(name, small, monkeypatch):
    monkeypatch.setattr(concurrent, "MOST", 4)
    monkeypatch.setattr(concurrent, "COMPACT", 4)
    case = next(case for case in faults.CASES if case.name == name)
    for seed in faults.SEEDS:
        assert faults.run(case, faults.PTX, True, seed) == ""


def test_a_thread_that_polls_does_not_push_out_others(small):
    """All reads of one thread and instruction are one entry, however often it looks."""
    poll = until("%y", 1, "relaxed")
    assert verdict(f"{WRITE_X} fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%y], 1;", poll + READ_X)
    assert not verdict(
        f"{WRITE_X} fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%y], 1;", f"{poll} fence.acq_rel.gpu; {READ_X}"
    )


@pytest.mark.parametrize("seed", range(6))
def test_what_stays(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4000))
    numbers, clocks, who = rng.integers(0, 30, n), np.arange(n) + 1, rng.integers(0, 40, n)
    stamps = (clocks.astype(np.uint64) << np.uint64(CLOCK_SHIFT)) | who.astype(np.uint64)
    last = {(int(c), int(w)): k for k, (c, w) in enumerate(zip(numbers, who, strict=True))}
    kept = concurrent.last_of_each(numbers, stamps)
    assert kept.tolist() == sorted(last.values())
    for most in (1, 31, 100, 2000):
        few = concurrent.latest(numbers, most)
        counts = np.bincount(numbers, minlength=30)
        each = max([1, *(k for k in range(1, n + 1) if np.minimum(counts, k).sum() <= most)])
        wanted = [k for k in range(n) if np.count_nonzero(numbers[k + 1 :] == numbers[k]) < each]
        assert few.tolist() == wanted


def test_what_writes_make_forget_counts_too(monkeypatch):
    """A log that only grows by what is dropped from it is put in order as well."""
    monkeypatch.setattr(concurrent, "COMPACT", 1000)
    log = concurrent.ConcurrentAccesses(64, 2)
    log.limit = 1000
    cells, stamps = np.arange(64), np.full(64, 1 << CLOCK_SHIFT, np.uint64)
    for _ in range(200):
        log.note(cells[:4], stamps[:4])
        log.mark(cells, stamps, None)
        log.forget(cells)
    assert len(log.log) + len(log.gone) < 60
    assert len(log.of(cells)[0]) == 0
