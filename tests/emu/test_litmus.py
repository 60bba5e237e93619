"""Litmus tests of the PTX memory model, as race verdicts.

Each test is a few threads, each a piece of PTX in a block (or warp) of its own. `x` and `y` (global words, zero at
first) hold data and flags. A verdict is True where the model lets a plain access see a write that nothing orders: the
emulator must report a race, under every seed; else it must report nothing. Where all accesses are strong there is no
race whatever the outcome: the model may allow weak outcomes, the emulator shows those of some interleaving only. Names
of NVlabs/mixedproxy (Lustig, Cooksey, Giroux, ISCA 2022) where it has the test; all kernels are our own.
"""

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

SEEDS = range(6)
HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def threads(*codes, warps=False):
    """(findings of all seeds by number, set of all outcomes `out`) of threads in blocks, or in warps of one block."""
    index = "shr.u32 %n, %l, 5;" if warps else "mov.u32 %n, %ctaid.x;"
    jumps = "".join(f"setp.eq.u32 %p1, %n, {k}; @%p1 bra T{k}; " for k in range(len(codes)))
    bodies = "".join(f"T{k}: {{ {code} }} bra END;\n" for k, code in enumerate(codes))
    text = f"""{HEAD}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{{
  .reg .pred %p<3>; .reg .b32 %n, %l, %r<9>; .reg .b64 %x, %y, %out;
  ld.param.u64 %x, [a]; ld.param.u64 %y, [b]; ld.param.u64 %out, [c];
  mov.u32 %l, %tid.x; {index} and.b32 %l, %l, 31;
  setp.ne.u32 %p2, %l, 0; @%p2 bra END;
  {jumps} bra END;
  {bodies}
END: ret;
}}
"""
    grid, block = (1, 32 * len(codes)) if warps else (len(codes), 32)
    races, outcomes = [], set()
    for seed in SEEDS:
        x, y, out = np.zeros(2, np.int32), np.zeros(2, np.int32), np.full(8, -1, np.int32)
        report = run_ptx(text, "k", grid, block, [x, y, out], checks="collect", seed=seed, limit=100_000)
        races.append(len(report.races))
        assert not report.errors
        outcomes.add(tuple(out[:4].tolist()))
    return races, outcomes


def verdict(*codes, **options):
    """Whether a race is reported; all seeds must agree."""
    races, _ = threads(*codes, **options)
    assert len({bool(n) for n in races}) == 1, races
    return bool(races[0])


def until(address, value, order, label="W", scope="gpu"):
    """Wait until a word has a value, by loads of this order."""
    kind = order if order == "volatile" else f"{order}.{scope}"
    return f"{label}: ld.{kind}.global.u32 %r1, [{address}]; setp.ne.u32 %p1, %r1, {value}; @%p1 bra {label};"


READ_X = "ld.global.u32 %r2, [%x]; st.global.u32 [%out], %r2;"
WRITE_X = "st.global.u32 [%x], 42;"


# ---- message passing --------------------------------------------------------------------------------------------

RELEASES = {
    "release": "st.release.{0}.global.u32 [%y], 1;",
    "fence": "fence.acq_rel.{0}; st.relaxed.{0}.global.u32 [%y], 1;",
    "sc": "fence.sc.{0}; st.relaxed.{0}.global.u32 [%y], 1;",
    "atom": "atom.release.{0}.global.exch.b32 %r1, [%y], 1;",
    "relaxed": "st.relaxed.{0}.global.u32 [%y], 1;",
}
ACQUIRES = {
    "acquire": lambda scope: until("%y", 1, "acquire", scope=scope),
    "fence": lambda scope: until("%y", 1, "relaxed", scope=scope) + f"fence.acq_rel.{scope};",
    "relaxed": lambda scope: until("%y", 1, "relaxed", scope=scope),
}


@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
@pytest.mark.parametrize("acquire", ACQUIRES)
@pytest.mark.parametrize("release", RELEASES)
def test_mp(release, acquire, scope):
    """MP_cta, MP_gpu: ordered by a release and an acquire whose scopes include both threads, and by nothing less."""
    first, second = WRITE_X + RELEASES[release].format(scope), ACQUIRES[acquire](scope) + READ_X
    ordered = release != "relaxed" and acquire != "relaxed"
    assert verdict(first, second, warps=True) == (not ordered)
    assert verdict(first, second) == (not ordered or scope == "cta")


@pytest.mark.parametrize(("there", "here"), [("cta", "gpu"), ("gpu", "cta")])
def test_mp_with_a_scope_too_small_on_one_side(there, here):
    first = WRITE_X + RELEASES["release"].format(there)
    assert verdict(first, ACQUIRES["acquire"](here) + READ_X)


def test_isa2():
    """ISA2: a release of block scope, then one of gpu scope by the thread that acquired: order is transitive."""
    first = WRITE_X + "st.release.cta.global.u32 [%y], 1;"
    second = until("%y", 1, "acquire", scope="cta") + "st.release.gpu.global.u32 [%y+4], 1;"
    third = until("%y+4", 1, "acquire") + READ_X
    text = f"""{HEAD}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %x, %y, %out;
  ld.param.u64 %x, [a]; ld.param.u64 %y, [b]; ld.param.u64 %out, [c];
  mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra END;
  mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 1; @%p1 bra OTHER;
  setp.eq.u32 %p1, %r3, 32; @%p1 bra SECOND;
  {{ {first} }} bra END;
SECOND: {{ {second} }} bra END;
OTHER: setp.ne.u32 %p1, %r3, 0; @%p1 bra END;
  {{ {third} }}
END: ret;
}}
"""
    for changed, races in (("", False), ("gpu", True)):
        used = text.replace("st.release.gpu", "st.relaxed.gpu") if changed else text
        for seed in SEEDS:
            words = [np.zeros(2, np.int32) for _ in range(3)]
            report = run_ptx(used, "k", 2, 64, words, checks="collect", seed=seed)
            assert bool(report.races) == races and words[2][0] == 42


def test_comp_volatile():
    """CoMP_volatile: a plain and a volatile store before a plain load of another block: no order."""
    first = "st.global.u32 [%x], 1; st.volatile.global.u32 [%x], 2;"
    assert verdict(first, "ld.global.u32 %r2, [%x]; ld.volatile.global.u32 %r3, [%x]; st.global.u32 [%out], %r3;")
    assert not verdict(first.replace("st.global", "st.volatile.global"),
                       "ld.volatile.global.u32 %r2, [%x]; st.global.u32 [%out], %r2;")  # fmt: skip


def test_release_acquire_pattern():
    """Release_acquire_pattern: the reader sees a later relaxed store of the releasing thread.

    The PTX ISA ("Release and Acquire Patterns") makes a release
    operation followed by a strong write to the same word a release pattern.
    """
    first = "st.global.u32 [%x], 42; st.release.sys.global.u32 [%y], 1; st.relaxed.sys.global.u32 [%y], 2;"
    second = until("%y", 2, "relaxed", scope="sys") + "fence.acq_rel.sys;" + READ_X
    assert not verdict(first, second)


def test_release_sequence_of_another_thread_goes_on_by_read_modify_write_only():
    first = "st.global.u32 [%x], 42; st.release.gpu.global.u32 [%y], 1;"
    third = until("%y", 3, "relaxed") + "ld.acquire.gpu.global.u32 %r4, [%y];" + READ_X
    by_atomic = until("%y", 1, "relaxed") + "atom.relaxed.gpu.global.add.u32 %r3, [%y], 2;"
    by_store = until("%y", 1, "relaxed") + "st.relaxed.gpu.global.u32 [%y], 3;"
    assert not verdict(first, by_atomic, third)
    assert verdict(first, by_store, third)


# ---- store buffering, load buffering, coherence, IRIW ------------------------------------------------------------

ORDERS = {
    "relaxed": ("st.relaxed.gpu.global.u32", "", "ld.relaxed.gpu.global.u32"),
    "release": ("st.release.gpu.global.u32", "", "ld.acquire.gpu.global.u32"),
    "sc": ("st.relaxed.gpu.global.u32", "fence.sc.gpu;", "ld.relaxed.gpu.global.u32"),
}


def out(register, place):
    return f"st.global.u32 [%out+{4 * place}], {register};"


@pytest.mark.parametrize("order", ORDERS)
def test_sb(order):
    """SB: both threads reading 0 needs fence.sc to be forbidden; strong accesses never race."""
    store, fence, load = ORDERS[order]
    one = f"{store} [%x], 1; {fence} {load} %r2, [%y]; {out('%r2', 0)}"
    two = f"{store} [%y], 1; {fence} {load} %r2, [%x]; {out('%r2', 1)}"
    races, outcomes = threads(one, two)
    assert not any(races) and (0, 0) not in {o[:2] for o in outcomes}


def test_sb_of_plain_accesses():
    """SB_cta: fence.sc forbids both reading 0, but does not make two plain accesses one after the other."""
    one = f"st.global.u32 [%x], 1; fence.sc.cta; ld.global.u32 %r2, [%y]; {out('%r2', 0)}"
    two = f"st.global.u32 [%y], 2; fence.sc.cta; ld.global.u32 %r2, [%x]; {out('%r2', 1)}"
    races, outcomes = threads(one, two, warps=True)
    assert all(races) and (0, 0) not in {o[:2] for o in outcomes}


@pytest.mark.parametrize("second", ["atom", "plain strong"])
def test_sb_rmw(second):
    """SB_rmw, SB_rmw_2: atomics and relaxed accesses do not race, ordered or not."""
    atom = "atom.acq_rel.gpu.global.add.u32"
    one = f"{atom} %r2, [%x], 1; {atom} %r3, [%y], 1; {out('%r3', 0)}"
    two = f"{atom} %r2, [%y], 1; {atom} %r3, [%x], 1; {out('%r3', 1)}"
    if second != "atom":
        two = f"st.relaxed.gpu.global.u32 [%y], 1; ld.relaxed.gpu.global.u32 %r3, [%x]; {out('%r3', 1)}"
    races, outcomes = threads(one, two)
    assert not any(races) and (0, 0) not in {o[:2] for o in outcomes}


@pytest.mark.parametrize("order", ORDERS)
def test_lb(order):
    """LB: neither thread reads what the other writes after its own read; no values out of thin air."""
    store, fence, load = ORDERS[order]
    one = f"{load} %r2, [%x]; {fence} {store} [%y], 1; {out('%r2', 0)}"
    two = f"{load} %r2, [%y]; {fence} {store} [%x], 1; {out('%r2', 1)}"
    races, outcomes = threads(one, two)
    assert not any(races) and (1, 1) not in {o[:2] for o in outcomes}


@pytest.mark.parametrize(("store", "load", "races"), [
    ("st.relaxed.gpu", "ld.relaxed.gpu", False), ("st.volatile", "ld.volatile", False),
    ("st", "ld.relaxed.gpu", True), ("st.relaxed.gpu", "ld", True), ("st.relaxed.cta", "ld.relaxed.cta", True),
    ("st.relaxed.cta", "ld.relaxed.gpu", True), ("st.relaxed.sys", "ld.relaxed.gpu", False),
])  # fmt: skip
def test_corr(store, load, races):
    """CoRR: two reads of one word, strong with scopes that include both threads, never go back in time."""
    one = f"{store}.global.u32 [%x], 1;"
    two = f"{load}.global.u32 %r2, [%x]; {load}.global.u32 %r3, [%x]; {out('%r2', 0)} {out('%r3', 1)}"
    found, outcomes = threads(two, one)  # the writer comes first in every schedule tried
    assert all(found) == any(found) == races and (1, 0) not in {o[:2] for o in outcomes}


def test_a_strong_read_before_a_plain_write_races_too():
    one = "st.global.u32 [%x], 1;"
    two = f"ld.relaxed.gpu.global.u32 %r2, [%x]; {out('%r2', 0)}"
    races, outcomes = threads(one, two)
    assert {o[0] for o in outcomes} == {0}
    assert all(races)


@pytest.mark.parametrize(("code", "value"), [
    ("st.global.u32 [%x], 1; ld.global.u32 %r2, [%x];", 1),  # CoWR
    ("ld.global.u32 %r2, [%x]; st.global.u32 [%x], 1;", 0),  # CoRW1
    ("st.global.u32 [%x], 1; st.global.u32 [%x], 2; ld.global.u32 %r2, [%x];", 2),  # CoWW
])  # fmt: skip
def test_coherence_of_one_thread(code, value):
    """A thread's plain accesses to a word are in order and race with nothing."""
    races, outcomes = threads(code + out("%r2", 0))
    assert not any(races) and {o[0] for o in outcomes} == {value}


@pytest.mark.parametrize("order", ORDERS)
def test_iriw(order):
    """IRIW: two readers disagree about two independent writes; only fence.sc forbids it in the model."""
    store, fence, load = ORDERS[order]
    writers = [f"{store} [%x], 1;", f"{store} [%y], 1;"]
    readers = [
        f"{load} %r2, [%{a}]; {fence} {load} %r3, [%{b}]; {out('%r2', k)} {out('%r3', k + 1)}"
        for k, (a, b) in ((0, "xy"), (2, "yx"))
    ]
    races, outcomes = threads(*writers, *readers)
    assert not any(races) and (1, 0, 1, 0) not in outcomes


def test_iriw_of_plain_accesses():
    writers = ["st.global.u32 [%x], 1;", "st.global.u32 [%y], 1;"]
    readers = [f"ld.global.u32 %r2, [%{a}]; ld.global.u32 %r3, [%{b}]; {out('%r2', k)} {out('%r3', k + 1)}"
               for k, (a, b) in ((0, "xy"), (2, "yx"))]  # fmt: skip
    assert verdict(*writers, *readers)


# ---- proxies ----------------------------------------------------------------------------------------------------

PROXY = (
    HEAD
    + """
.visible .entry k(.param .u64 a)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<3>;
  .shared .align 16 .b8 s[16];
  ld.param.u64 %d1, [a];
  mov.u32 %r1, %tid.x; mov.u32 %r2, s;
  setp.eq.u32 %p1, %r1, 32; @%p1 bra COPY;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra MEET;
  st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};
  WRITER
MEET:
  bar.sync 0;
  bra END;
COPY:
  bar.sync 0;
  READER
  cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r2], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END: ret;
}
"""
)
FENCE = "fence.proxy.async;"


@pytest.mark.parametrize(("writer", "reader", "races"), [
    ("", "", True), (FENCE, "", False), ("", FENCE, False), (FENCE, FENCE, False),
    ("fence.acq_rel.cta;", "fence.sc.sys;", True), ("fence.proxy.async.shared::cta;", "", False),
])  # fmt: skip
def test_mp_across_proxies(writer, reader, races):
    """MP_cta with the asynchronous proxy in the place of surfaces: the proxy fence may be on either side of the
    barrier, and no other fence does."""
    text = PROXY.replace("WRITER", writer).replace("READER", reader)
    for seed in SEEDS:
        report = run_ptx(text, "k", 1, 64, [np.full(4, 7, np.int32)], checks="collect", seed=seed)
        assert bool(report.races) == races
        assert all("across proxies" in str(error) for error in report.races)


@pytest.mark.parametrize("access", [
    "suld.b.1d.b32.trap {%r2}, [s, {%r3}];", "sust.b.1d.b32.trap [s, {%r3}], {%r2};",
    "tex.1d.v4.f32.s32 {%r2, %r2, %r2, %r2}, [s, {%r3}];",
])  # fmt: skip
def test_other_proxies_are_refused_by_name(access):
    """The tests of mixedproxy with textures and surfaces: these are not executed, and nothing is guessed."""
    text = f"{HEAD}.visible .entry k() {{ .reg .b32 %r<5>; mov.u32 %r3, 0; {access} ret; }}"
    with pytest.raises(EmulationError) as caught:
        run_ptx(text, "k", 1, 32, [])
    assert access.split()[0].rstrip(";").split(".")[0] in str(caught.value)
