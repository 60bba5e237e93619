"""Pairs of accesses that nothing orders, in both orders of execution: the verdict must not depend on the schedule.

Two threads, each a piece of PTX that touches one location; the second starts after the first has ended its access, or
the other way round. A relaxed flag of a scope that includes both says so: it orders the execution and no memory.
"""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

SEEDS = (0, 1, 6)
HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
# place: (grid, block, cluster, which thread runs, where the location is)
PLACES = {
    "global, two blocks": (2, 32, 1, "mov.u32 %n, %ctaid.x;", "global", ""),
    "global, two warps": (1, 64, 1, "shr.u32 %n, %l, 5;", "global", ""),
    "shared, two warps": (1, 64, 1, "shr.u32 %n, %l, 5;", "shared", "mov.u64 %a, s;"),
    "shared::cluster": (2, 32, 2, "mov.u32 %n, %ctaid.x;", "shared::cluster",
                        "mov.u64 %t, s; mapa.shared::cluster.u64 %a, %t, 1;"),
}  # fmt: skip
ACCESSES = {
    "weak read": ("ld.{s}.u32 %r1, [%a];", False, False),
    "relaxed read": ("ld.relaxed.gpu.{s}.u32 %r1, [%a];", False, True),
    "acquire read": ("ld.acquire.gpu.{s}.u32 %r1, [%a];", False, True),
    "volatile read": ("ld.volatile.{s}.u32 %r1, [%a];", False, True),
    "weak write": ("st.{s}.u32 [%a], {v};", True, False),
    "relaxed write": ("st.relaxed.gpu.{s}.u32 [%a], {v};", True, True),
    "release write": ("st.release.gpu.{s}.u32 [%a], {v};", True, True),
    "atomic": ("atom.relaxed.gpu.{s}.add.u32 %r1, [%a], {v};", True, True),
    "reduction": ("red.relaxed.gpu.{s}.add.u32 [%a], {v};", True, True),
}


def kernel(place, codes, late):
    """Both codes, `late` (0 or 1) after the other. The location is 16 bytes, zero (and written) at first."""
    _, _, _, choose, _, find = PLACES[place]
    wait = "W: ld.relaxed.sys.global.u32 %w, [%f]; setp.eq.u32 %p, %w, 0; @%p bra W;"
    done = "st.relaxed.sys.global.u32 [%f], 1;"
    bodies = [(wait if late == k else "") + code + ("" if late == k else done) for k, code in enumerate(codes)]
    meet = "barrier.cluster.arrive; barrier.cluster.wait;" if "cluster" in place else "bar.sync 0;"
    return f"""{HEAD}
.visible .entry k(.param .u64 x, .param .u64 flag)
{{
  .reg .pred %p; .reg .b32 %n, %l, %r<9>, %w; .reg .b64 %a, %f, %t, %d<3>;
  .shared .align 16 .b8 s[16];
  ld.param.u64 %a, [x]; ld.param.u64 %f, [flag];
  mov.u32 %l, %tid.x; {choose} {find}
  setp.eq.u32 %p, %l, 0; @%p st.shared.v2.u64 [s], {{0, 0}};
  {meet}
  and.b32 %l, %l, 31; setp.ne.u32 %p, %l, 0; @%p bra END;
  setp.eq.u32 %p, %n, 1; @%p bra SECOND;
  {bodies[0]}
  bra END;
SECOND:
  {bodies[1]}
END: {meet if "cluster" in place else ""}
  ret;
}}
"""


def races(place, codes, late):
    """The races of each seed. The late thread's memory shows the first one's access as past."""
    grid, block, cluster, *_ = PLACES[place]
    found = []
    for seed in SEEDS:
        args = [np.zeros(4, np.uint32), np.zeros(1, np.uint32)]
        report = run_ptx(kernel(place, codes, late), "k", grid, block, args, cluster=cluster, seed=seed,
                         checks="collect", limit=50_000)  # fmt: skip
        assert not report.errors, report.errors[0]
        found.append(report.races)
    return found


def racy(place, codes):
    """Whether there is a race; both orders and all seeds must agree, and each finding names both accesses."""
    verdicts = {bool(one) for late in (0, 1) for one in races(place, codes, late)}
    assert len(verdicts) == 1
    return verdicts.pop()


def texts(place, first, second):
    space = PLACES[place][4]
    return [ACCESSES[name][0].format(s=space, v=v) for v, name in ((1, first), (2, second))]


STRONGER = [name for name in ACCESSES if ACCESSES[name][2]]


def test_weak_accesses_race_whichever_runs_first(place_and_pair):
    place, first, second = place_and_pair
    (_, writes, strong), (_, also, too) = ACCESSES[first], ACCESSES[second]
    assert racy(place, texts(place, first, second)) == ((writes or also) and not (strong and too))


def pairs():
    """A weak access beside each other one, and strong ones of two kinds, at each place."""
    weak = [(a, b) for a in ("weak read", "weak write") for b in ACCESSES]
    strong = [(a, b) for a in STRONGER for b in STRONGER if a < b]
    return [(place, *pair) for place in PLACES for pair in (strong if "blocks" in place else []) + weak]


@pytest.fixture(params=pairs(), ids=" / ".join)
def place_and_pair(request):
    return request.param


SCOPED = (
    "ld.relaxed.{c}.{s}.u32 %r1, [%a];",
    "st.relaxed.{c}.{s}.u32 [%a], 1;",
    "red.relaxed.{c}.{s}.add.u32 [%a], 2;",
)


@pytest.mark.parametrize(("place", "scopes", "wanted"), [
    ("global, two blocks", ("cta", "cta"), True), ("global, two blocks", ("gpu", "cta"), True),
    ("global, two blocks", ("cluster", "gpu"), True), ("global, two blocks", ("gpu", "sys"), False),
    ("global, two warps", ("cta", "cta"), False), ("shared, two warps", ("cta", "gpu"), False),
    ("shared::cluster", ("cta", "cluster"), True), ("shared::cluster", ("cluster", "cluster"), False),
])  # fmt: skip
@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (0, 2), (1, 2), (2, 2)])
def test_strong_accesses_race_where_a_scope_is_too_narrow(place, scopes, wanted, first, second):
    codes = [SCOPED[k].format(c=scope, s=PLACES[place][4]) for k, scope in zip((first, second), scopes, strict=True)]
    assert racy(place, codes) == wanted


@pytest.mark.parametrize("place", ["global, two blocks", "shared, two warps", "shared::cluster"])
@pytest.mark.parametrize(("first", "second", "wanted"), [
    ("st.{s}.u8 [%a+3], 1;", "ld.{s}.u32 %r1, [%a];", True), ("st.{s}.u8 [%a+4], 1;", "ld.{s}.u32 %r1, [%a];", False),
    ("st.{s}.u16 [%a+2], 1;", "ld.{s}.u16 %r1, [%a];", False), ("st.{s}.u64 [%a], 1;", "ld.{s}.u32 %r1, [%a+4];", True),
    ("st.{s}.v4.u32 [%a], {{1, 1, 1, 1}};", "ld.{s}.u8 %r1, [%a+15];", True),
    ("st.{s}.v2.u32 [%a], {{1, 1}};", "ld.{s}.v2.u32 {{%r1, %r2}}, [%a+8];", False),
    ("red.relaxed.gpu.{s}.add.u32 [%a+4], 1;", "ld.{s}.u8 %r1, [%a+7];", True),
    ("red.relaxed.gpu.{s}.add.u32 [%a+4], 1;", "ld.{s}.u8 %r1, [%a+3];", False),
    ("ld.relaxed.gpu.{s}.u64 %d1, [%a+8];", "st.{s}.u8 [%a+9], 1;", True),
    ("ld.relaxed.gpu.{s}.u64 %d1, [%a];", "st.{s}.u8 [%a+9], 1;", False),
    ("ld.relaxed.gpu.{s}.u64 %d1, [%a];", "st.relaxed.gpu.{s}.u32 [%a], 1;", True),  # not morally strong: mixed sizes
    ("ld.relaxed.gpu.{s}.v2.u32 {{%r1, %r2}}, [%a];", "st.relaxed.gpu.{s}.u32 [%a+4], 1;", False),
])  # fmt: skip
def test_races_are_byte_by_byte(place, first, second, wanted):
    space = PLACES[place][4]
    codes = [code.format(s=space) for code in (first, second)]
    assert racy(place, codes) == wanted


@pytest.mark.parametrize("late", [0, 1])
def test_both_lines_are_named(late):
    codes = texts("global, two blocks", "relaxed read", "weak write")
    (race,) = races("global, two blocks", codes, late)[0]
    assert race.kind == "race" and race.message == "Error: Race condition in global memory access"
    lines = [str(race.values["PTX line"]), str(race.values["other access"])]
    assert sorted("st.global" in line for line in lines) == [False, True]
    assert any("ld.relaxed" in line for line in lines)


CROWD = (
    HEAD
    + """
.visible .entry k(.param .u64 x, .param .u64 flag)
{
  .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %a, %f;
  ld.param.u64 %a, [x]; ld.param.u64 %f, [flag];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
  setp.eq.u32 %p, %r1, 3; @%p bra READ;
  COUNT
  setp.eq.u32 %q, %r2, 0; @!%q bra END;
  SIGNAL
  bra END;
READ:
  setp.eq.u32 %q, %r2, 0; @!%q bra END;
W: ld.acquire.gpu.global.u32 %r3, [%f]; setp.ne.u32 %p, %r3, 3; @%p bra W;
  ld.global.u32 %r4, [%a];
END: ret;
}
"""
)


@pytest.mark.parametrize(("meet", "racy"), [("", True), ("bar.sync 0;", False)])
def test_every_one_of_many_atomics_must_be_ordered(meet, racy):
    """All threads of three blocks count; a thread of each says that it has: the others only if they have met it."""
    text = CROWD.replace("COUNT", f"red.relaxed.gpu.global.add.u32 [%a], 1; {meet}")
    text = text.replace("SIGNAL", "red.release.gpu.global.add.u32 [%f], 1;")
    for seed in range(6):
        report = run_ptx(text, "k", 4, 64, [np.zeros(1, np.uint32), np.zeros(1, np.uint32)], seed=seed,
                         checks="collect")  # fmt: skip
        assert bool(report.races) == racy and not report.errors


def test_a_write_behind_equal_writes_must_be_ordered_after_each():
    """Two threads write 1, the third, ordered after one of them, writes 2: the other's 1 may land last."""
    first = "st.global.u32 [%a], 1; st.release.gpu.global.u32 [%f], 1;"
    text = f"""{HEAD}
.visible .entry k(.param .u64 x, .param .u64 flag)
{{
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %a, %f;
  ld.param.u64 %a, [x]; ld.param.u64 %f, [flag];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r2, 0; @%p bra END;
  setp.eq.u32 %p, %r1, 0; @%p bra ONE; setp.eq.u32 %p, %r1, 1; @%p bra TWO;
W: ld.acquire.gpu.global.u32 %r3, [%f]; setp.eq.u32 %p, %r3, 0; @%p bra W;
  st.global.u32 [%a], 2; bra END;
ONE: {first} bra END;
TWO: st.global.u32 [%a], 1;
END: ret;
}}
"""
    for seed in range(8):
        with pytest.raises(EmulationError, match="Race condition in global memory"):
            run_ptx(text, "k", 3, 32, [np.zeros(1, np.uint32), np.zeros(1, np.uint32)], seed=seed)


WARP = (
    HEAD
    + """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<4>;
  .shared .align 4 .b8 s[4];
  mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p, %r1, 0;
  @%p st.shared.u32 [s], 7;
  bar.sync 0;
  setp.ne.u32 %p, %r2, WARP; @%p bra END;
  ld.shared.u32 %r3, [s];
  setp.ne.u32 %p, %r1, LANE; @%p bra END;
  st.shared.u32 [s], 8;
END: ret;
}
"""
)


@pytest.mark.parametrize("warp", [0, 2])
def test_reads_of_the_own_warp_are_a_matter_of_lockstep(warp):
    """All lanes of a warp read, then one of them writes: no race but for `lockstep=True`."""
    text = WARP.replace("WARP", str(warp)).replace("LANE", str(32 * warp + 5))
    run_ptx(text, "k", 1, 96, [None])
    with pytest.raises(EmulationError, match="Race condition in shared memory"):
        run_ptx(text, "k", 1, 96, [None], lockstep=True)
    other = text.replace(f"setp.ne.u32 %p, %r2, {warp}; @%p bra END;", "")
    with pytest.raises(EmulationError, match="Race condition in shared memory"):
        run_ptx(other, "k", 1, 96, [None])
