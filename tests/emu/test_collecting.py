"""`checks="collect"`: the threads at fault are named and left out, the others go on."""

import numpy as np
import pytest

from tests.emu.practice.pairs import Pair, arguments
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

ONE = "setp.eq.u32 %p1, %t, 37;"
FAR = f"mov.u64 %d1, %d36; {ONE} @%p1 add.u64 %d1, %d1, 100000;"
BEYOND = f"mov.u32 %r1, %r59; {ONE} @%p1 add.u32 %r1, %r1, 8192; st.shared.u32 [%r59], %t;"
LOCAL = f".local .align 4 .b8 loc[16]; mov.u32 %r1, loc; {ONE} @%p1 add.u32 %r1, %r1, 64;"
FAULTS = {
    "global": f"{FAR} st.global.u32 [%d1], %t; ld.global.u32 %r2, [%d1];",
    "generic": f"{FAR} st.u32 [%d1], %t; ld.u32 %r2, [%d1];",
    "generic, several spaces": f"{FAR} cvt.u64.u32 %d2, %r59; cvta.shared.u64 %d2, %d2; setp.lt.u32 %p2, %t, 32; "
    "selp.b64 %d1, %d2, %d1, %p2; st.u32 [%d1], %t; ld.u32 %r2, [%d1];",
    "global atomic": f"{FAR} atom.global.add.u32 %r2, [%d1], %t; red.global.add.u32 [%d1], 1;",
    "generic atomic": f"{FAR} atom.add.u32 %r2, [%d1], %t;",
    "shared": f"{BEYOND} st.shared.u32 [%r1], %t; ld.shared.u32 %r2, [%r1];",
    "shared atomic": f"{BEYOND} atom.shared.add.u32 %r2, [%r1], %t; red.shared.add.u32 [%r1], 1;",
    "local": f"{LOCAL} st.local.u32 [%r1], %t; ld.local.u32 %r2, [%r1];",
    "cp.async from": f"{FAR} cp.async.ca.shared.global [%r59], [%d1], 4; cp.async.wait_all;",
    "cp.async to": f"{BEYOND} cp.async.ca.shared.global [%r1], [%d37], 4; cp.async.wait_all;",
    "ldmatrix": f"st.shared.u32 [%r59], %t; bar.sync 0; mad.lo.u32 %r1, %l, 16, %s; {ONE} @%p1 add.u32 %r1, %r1, 8192;"
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("place", FAULTS)
def test_the_others_go_on(place, seed):
    pair = Pair("fault", f"{FAULTS[place]} add.u64 %d30, %d36, 8192; st.global.u32 [%d30], 5;")
    args = arguments()
    report = run_ptx(pair.text(), "k", 1, 64, args, checks="collect", seed=seed)
    assert {error.kind for error in report.errors} == {"bounds"} and not report.races
    assert {error.values["thread"] for error in report.errors} == {(37, 0, 0)}
    assert all("also" not in error.values for error in report.errors)
    assert (args[2][2048:2112] == 5).all()


def test_without_checks_the_thread_is_named_too():
    for place in ("generic, several spaces", "generic atomic", "ldmatrix", "cp.async to"):
        with pytest.raises(EmulationError) as caught:
            run_ptx(Pair("fault", FAULTS[place]).text(), "k", 1, 64, arguments(), checks=False)
        assert caught.value.values["thread"] == (37, 0, 0)


@pytest.mark.parametrize("checks", [True, "collect"])
def test_a_race_in_one_of_several_buffers_names_its_threads(checks):
    """Threads below 32 write `c`, the others `b`, of which 40 the word that 36 wrote."""
    code = """setp.lt.u32 %p1, %t, 32; add.u32 %r1, %t, -32; setp.eq.u32 %p2, %t, 72; selp.u32 %r1, 4, %r1, %p2;
    mad.wide.u32 %d1, %r1, 4, %y; selp.b64 %d1, %d36, %d1, %p1; st.global.u32 [%d1], %t;"""
    try:
        report = run_ptx(Pair("race", code).text(), "k", 1, 96, arguments(), checks=checks)
        (error,) = report.races
    except EmulationError as caught:
        error = caught
    assert error.values["thread"] == (36, 0, 0) and error.values["other thread"] == "block (0, 0, 0), thread (72, 0, 0)"


@pytest.mark.parametrize("checks", [True, "collect"])
def test_a_guard_does_not_shift_the_threads(checks):
    """Under a guard, the threads that take part are counted anew; what is named is who they are."""
    code = """setp.ge.u32 %p1, %t, 50; ld.shared.u32 %r1, [%r59]; @%p1 st.global.u32 [%d36], %r1;"""
    try:
        report = run_ptx(Pair("guard", code).text(), "k", 1, 64, arguments(), checks=checks)
        (error,) = report.errors
    except EmulationError as caught:
        error = caught
    assert error.values["thread"] == (50, 0, 0) and error.values["also"].startswith("13 other")


@pytest.mark.parametrize("checks", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_blocks_start_in_any_order_among_those_nearby(checks):
    """A block may wait for any of lower number, however many there are: windows of blocks start one after another."""
    code = """{leader END} mov.u32 %r2, 0; setp.eq.u32 %p1, %b, 0; mad.wide.u32 %d1, %b, 4, %c; @%p1 bra PUB;
W: ld.acquire.gpu.global.u32 %r2, [%d1+-4]; setp.eq.u32 %p2, %r2, 0; @%p2 bra W;
PUB: add.u32 %r2, %r2, 1; st.release.gpu.global.u32 [%d1], %r2;"""
    args = arguments()
    run_ptx(Pair("chain", code).text(), "k", 400, 1024, args, checks=checks, seed=3)
    assert np.array_equal(args[2][:400], np.arange(1, 401))
