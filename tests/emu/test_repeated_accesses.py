"""Accesses that come again, or in rows: the short ways of the race check must hide nothing, and change no mark."""

import numpy as np
import pytest

from tests.emu import test_race_limits
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu.checks.history import concurrent, rows
from tilewright.targets.emu.checks.order.clocks import Clocks
from tilewright.targets.emu.checks.order.epochs import CLOCK_SHIFT, clock_of, identity

ROUNDS = 12


def loop(body, ptx_block=128):
    """A loop over %r5 = 0 to 11; %r2 is the thread's word, %r3 its neighbour's, %p2 whether this is round 7."""
    return f"""{test_race_limits.HEAD}.visible .entry k(.param .u64 a)
{{
  .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %d<4>;
  .shared .align 16 .b8 s[{4 * ptx_block}];
  ld.param.u64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r5, 0; mov.u32 %r9, s; mov.u32 %r7, %r1;
  shl.b32 %r2, %r1, 2; add.u32 %r3, %r2, 4; and.b32 %r3, %r3, {4 * ptx_block - 1};
  mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
  add.u32 %r2, %r2, %r9; add.u32 %r3, %r3, %r9; setp.eq.u32 %p3, %r1, 100;
L:
  setp.eq.u32 %p2, %r5, 7;
  {body}
  add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, {ROUNDS}; @%p1 bra L;
  st.global.u32 [%d1], %r7;
  ret;
}}
"""


GOOD = "st.shared.u32 [%r2], %r7; bar.sync 0; ld.shared.u32 %r7, [%r3]; add.u32 %r7, %r7, 1; bar.sync 0;"


def run(body, grid=1, **options):
    out = np.zeros((grid, 128), np.uint32)[0]
    return run_ptx(loop(body), "k", grid, 128, [out], **options), out


def finding(body, **options):
    with pytest.raises(EmulationError) as caught:
        run(body, **options)
    run(body, checks=False)
    return caught.value


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_correct_loop(seed):
    report, out = run(GOOD, seed=seed)
    assert report.ok
    np.testing.assert_array_equal(out, (np.arange(128) + ROUNDS) % 128 + ROUNDS)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("body", "now"), [
    (GOOD.replace("bar.sync 0; ld", "@%p2 bra A; bar.sync 0; A: ld"), "read now, written before"),
    (GOOD[:-11] + "@%p2 bra A; bar.sync 0; A:", "written now, read before"),
    (GOOD + "@%p2 st.shared.u32 [%r2], 1; @!%p2 bra A; ld.shared.u32 %r8, [%r3]; A: bar.sync 0;", "read now, written"),
    (GOOD + "@!%p2 bra A; ld.shared.u32 %r8, [%r3]; st.shared.u32 [%r2], 1; A: bar.sync 0;", "written now, read"),
    (GOOD + "@!%p2 bra A; @%p3 st.shared.u32 [%r9], 1; A: st.shared.u32 [%r2], %r7; bar.sync 0;", "written before"),
])  # fmt: skip
def test_a_race_in_one_round_of_many(body, now, seed):
    """The other order of the two accesses shows with another seed, so only the kind is sure there."""
    error = finding(body, seed=seed)
    assert error.kind == "race"
    assert seed or now in error.values["address"]


def test_a_race_of_threads_that_read_and_write_in_turn_with_other_sites():
    """A second load in the same round is noted beside the first."""
    body = GOOD.replace("add.u32 %r7, %r7, 1;", "ld.shared.u32 %r8, [%r2]; add.u32 %r7, %r7, 1;")
    assert run(body)[0].ok
    assert finding(body.replace("[%r2]; add", "[%r2]; @%p2 st.shared.u32 [%r2], 3; add")).kind == "race"


def test_threads_that_write_one_word_in_each_round():
    """The same value is no race, another is: the granules are not distinct, which the short way asks for."""
    body = "mov.u32 %r8, 3; st.shared.u32 [%r9], %r8; bar.sync 0; ld.shared.u32 %r8, [%r9]; bar.sync 0;"
    assert run(body)[0].ok
    assert finding(body.replace("mov.u32 %r8, 3;", "mov.u32 %r8, 3; @%p2 mov.u32 %r8, %r1;")).kind == "race"


def test_values_never_written_are_found_in_each_round():
    body = "@%p3 bra A; st.shared.u32 [%r2], %r7; A: bar.sync 0; ld.shared.u32 %r8, [%r3]; bar.sync 0;"
    assert run(body)[0].ok  # nothing uses the value
    report, _ = run(body + "mov.u32 %r7, %r8;", checks="collect")
    assert [error.kind for error in report.errors] == ["uninitialised"]


def test_the_short_way_is_taken(monkeypatch):
    looks = []
    kind = concurrent.ConcurrentAccesses
    original = kind.mark
    monkeypatch.setattr(kind, "mark", lambda self, *rest: (looks.append(1), original(self, *rest))[1])
    run(GOOD)
    assert len(looks) < ROUNDS // 2


@pytest.mark.parametrize("seed", range(8))
def test_marks_of_rows_and_runs_are_those_of_single_accesses(seed, monkeypatch):
    """Random accesses of two blocks, as rows, as runs of one granule and as neither, against the plain way."""
    rng = np.random.default_rng(seed)
    n, count = 2048, 8192
    lanes = np.sort(rng.choice(4096, n, replace=False))
    who = identity(lanes // 1024, lanes % 1024) + np.uint64(9)
    quick, plain = concurrent.ConcurrentAccesses(count, 2), concurrent.ConcurrentAccesses(count, 2)
    for step in range(12):
        kind = step % 4
        if kind == 0:
            cells = (rng.integers(0, count // 32, n // 32)[:, None] * 32 + np.arange(32)).reshape(-1)
        elif kind == 1:
            cells = np.repeat(rng.integers(0, count, n // 16), 16)
        elif kind == 2:
            cells = rng.integers(0, 40, n)
        else:
            cells = (rng.permutation(count // 32)[: n // 32, None] * 32 + np.arange(32)).reshape(-1)
        mine = who | np.uint64((1 + step // 3) << CLOCK_SHIFT)
        floor = [None, np.uint64((step // 3) << CLOCK_SHIFT)][seed % 2]
        found = rows.rows_of(cells)
        assert (found is not None) == (kind in (0, 3))
        quick.mark(cells, mine, floor, found, found is not None and len(set(found.tolist())) == len(found))
        with monkeypatch.context() as patch:
            patch.setattr(concurrent, "SHORT", 1 << 60)
            plain.mark(cells, mine, floor)
        np.testing.assert_array_equal(quick.marks, plain.marks)
        assert quick.well_known(cells, found) == plain.well_known(cells, None)


def test_rows_are_whole_and_aligned():
    run_of = np.arange(2048)
    assert rows.rows_of(run_of + 64).tolist() == list(range(2, 66))
    for cells in (run_of + 4, run_of[:-1], run_of[::-1], run_of[:512], np.append(run_of[:-1], 5), run_of * 2):
        assert rows.rows_of(cells) is None
    table = np.arange(4096)
    cells = np.concatenate((run_of + 1024, run_of))
    found = rows.rows_of(cells)
    np.testing.assert_array_equal(rows.gather(table, cells, found), table[cells])
    rows.scatter(table, cells, found, np.arange(4096) + 7)
    np.testing.assert_array_equal(table[1024:2048], np.arange(2048 + 1024, 4096) + 7)  # the last stays


def test_clocks_that_nobody_asks_for_catch_up():
    clocks = Clocks(2, 32, np.array([5, 6]))
    for _ in range(3):
        assert clocks.everyone_met()
    assert (clocks.level, set(clocks.known), set(clocks.clock)) == (4, {3}, {4})
    assert set(clock_of(clocks.epoch)) == {4}
    clocks.everyone_met()
    clocks.tick(np.array([3]))
    assert clocks.level is None and not clocks.everyone_met()
    assert set(clocks.known) == {4} and clocks.clock[3] == 6 and clocks.clock[4] == 5 == clock_of(clocks.epoch)[4]
