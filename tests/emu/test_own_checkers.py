"""Checkers of a user's own: alone, beside the standard ones, as guards, for PTX and for compiled functions."""

import numpy as np
import pytest

from tilewright import cute
from tilewright.base.errors import ArgumentError, CompileError, EmulationError
from tilewright.emulate import STANDARD, Bounds, Fault, HappensBefore, Observer, Races, observe, run_ptx
from tilewright.targets.emu import load

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a)
{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
  .shared .align 16 .b8 s[1024];
  ld.param.u64 %d1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2;
"""


class Odd(Observer):
    """Reports odd values that are stored to global memory."""

    def global_access(self, access):
        if access.writes:
            odd = np.flatnonzero(np.broadcast_to(access.value, (access.L.n,)) % 2 == 1)
            if len(odd):
                self.batch.report(Fault("custom", "An odd value is stored", access.site, odd, {}, None, access.L))


def run(body, args=None, threads=64, **options):
    args = [np.zeros(64, np.uint32)] if args is None else args
    return run_ptx(f"{HEAD} {body} ret; }}", "k", 1, threads, args, **options), args[0]


STORE = "st.global.u32 [%d2], %r1;"
RACY = "st.global.u32 [%d1], %r1;"


def test_a_finding_has_place_and_threads():
    with pytest.raises(EmulationError) as caught:
        run(STORE, checks=[Odd])
    error = caught.value
    assert (error.kind, error.message) == ("custom", "An odd value is stored")
    assert error.values["PTX line"].endswith(f": {STORE[:-1]}") and error.values["thread"] == (1, 0, 0)
    assert error.values["also"] == "31 other threads at the same instruction"


def test_it_stands_beside_the_standard_ones_or_in_their_place():
    report, _ = run(STORE + RACY, checks=[Odd], collect=True)
    assert [error.kind for error in report.errors] == ["custom", "custom"] and not report.races
    report, _ = run(STORE + RACY, checks=[True, Odd], collect=True)
    assert [error.kind for error in report.errors] == ["custom", "custom"] and len(report.races) == 1
    report, _ = run(STORE + RACY, checks=[*STANDARD], collect=True)
    assert not report.errors and len(report.races) == 1


def test_an_even_kernel_is_fine():
    report, out = run("shl.b32 %r1, %r1, 1;" + STORE, checks=[True, Odd])
    assert report.ok
    np.testing.assert_array_equal(out, 2 * np.arange(64))


def test_a_guard_leaves_threads_out_and_loads_give_them_zeros():
    class First(Observer):
        def before_global(self, access):
            return np.flatnonzero(access.L.thread >= 8)

    body = "ld.global.u32 %r2, [%d2]; add.u32 %r2, %r2, %r1; st.shared.u32 [s], %r2;" + STORE
    _, out = run(body, [np.full(64, 100, np.uint32)], checks=[First])
    np.testing.assert_array_equal(out, [*range(8), *[100] * 56])
    _, out = run("ld.global.u32 %r1, [%d2]; add.u64 %d2, %d2, 0;" + STORE, [np.full(64, 3, np.uint32)], checks=[First])
    np.testing.assert_array_equal(out, np.full(64, 3))


@pytest.mark.parametrize(("space", "event"), [("shared", "before_shared"), ("local", "before_local")])
def test_guards_of_other_memories(space, event):
    kind = type("Guard", (Observer,), {event: lambda self, access: np.array([2]) if not access.writes else None})
    array = "" if space == "shared" else ".local .align 4 .b8 l[16];"
    place = "shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r3, %r3, %r4;" if space == "shared" else "mov.u32 %r3, l;"
    body = f"{array} {place} add.u32 %r5, %r1, 10; st.{space}.u32 [%r3], %r5; ld.{space}.u32 %r1, [%r3]; {STORE}"
    _, out = run(body, checks=[True, kind])
    np.testing.assert_array_equal(out, [10, 11, 0, *range(13, 74)])


def test_several_guards_leave_out_what_any_names():
    low = type("Low", (Observer,), {"before_global": lambda self, access: np.array([0, 1])})
    high = type("High", (Observer,), {"before_global": lambda self, access: np.array([1, 62, 63])})
    none = type("None_", (Observer,), {"before_global": lambda self, access: None})
    _, out = run(f"add.u32 %r1, %r1, 1; {STORE}", checks=[low, none, high])
    np.testing.assert_array_equal(out, [0, 0, *range(3, 63), 0, 0])


def test_without_bounds_an_access_out_of_bounds_ends_the_launch():
    far = "add.u64 %d2, %d2, 100000;" + STORE
    with pytest.raises(EmulationError) as caught:
        run(far, checks=[Odd], collect=True)
    assert caught.value.kind == "bounds"
    report, _ = run(far, checks=[Bounds], collect=True)
    assert [error.kind for error in report.errors] == ["bounds"]


def test_a_checker_asks_what_is_ordered():
    """Threads' clocks of the happens-before service: a barrier moves them."""
    clocks = []

    class Clocks(Observer):
        def __init__(self, batch):
            super().__init__(batch)
            self.order = batch.service(HappensBefore)

        def global_access(self, access):
            clocks.append(self.order.clocks.clock[access.L.ids].tolist())

    run(f"{STORE} bar.sync 0; {STORE}", checks=[Clocks])
    assert clocks == [[1] * 64, [2] * 64]


def test_a_launch_with_several_batches_has_one_object_for_all():
    class Total:
        def __init__(self, batch):
            self.threads = 0

    totals = []

    class Count(Observer):
        def global_access(self, access):
            total = self.batch.of_launch(Total)
            total.threads += access.L.n
            totals.append(total)

    run_ptx(f"{HEAD} {RACY} ret; }}", "k", 300, 128, [np.zeros(64, np.uint32)], checks=[Count])
    assert len(set(map(id, totals))) == 1 and totals[-1].threads == 300 * 128 and len(totals) > 1


def test_a_checker_that_fails_is_named():
    class Broken(Observer):
        def global_access(self, access):
            return {}[access.site]

    with pytest.raises(EmulationError) as caught:
        run(STORE, checks=[True, Broken])
    error = caught.value
    assert error.message.startswith("Checker Broken failed at this instruction: KeyError") and error.kind == "custom"
    assert error.values["PTX line"].endswith(f": {STORE[:-1]}") and isinstance(error.__cause__, KeyError)


def test_a_service_is_asked_for_at_the_start():
    class Late(Observer):
        def global_access(self, access):
            self.batch.service(HappensBefore)

    with pytest.raises(EmulationError, match="HappensBefore is asked for while a kernel runs") as caught:
        run(STORE, checks=[Late])
    assert "Late" in caught.value.message and "__init__" in str(caught.value)
    assert run(STORE, checks=[Races, Late])[0].ok  # it is there already


def test_code_without_observers_tells_of_nothing():
    body = f"ld.shared.u32 %r2, [s]; bar.sync 0; add.u32 %r2, %r2, %r1; shfl.sync.idx.b32 %r1, %r1, 0, 31, -1; {STORE}"
    program = load(f"{HEAD} {body} ret; }}")
    assert "S.on." not in program.image("k", False).code.source
    assert "S.on." in program.image("k", True).code.source


@cute.kernel
def doubled(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] * 2 + 1


@cute.jit
def double(x: cute.Tensor):
    doubled(x).launch(grid=1, block=32)


def test_compiled_functions_take_checkers():
    x = np.arange(32, dtype=np.int32)
    compiled = cute.compile(double, x, target="emu", checks=[True, Odd])
    with pytest.raises(EmulationError) as caught:
        compiled(x)
    assert caught.value.kind == "custom" and caught.value.location.file == __file__
    with observe(checks=[Races, Odd], collect=True) as reports:
        cute.compile(double, x, target="emu")(x)
    assert [error.kind for error in reports[0].errors] == ["custom"]


@pytest.mark.parametrize("checks", ["races", [Races, 5]])
def test_what_is_no_checker_is_an_error(checks):
    with pytest.raises(ArgumentError, match=r"races|5"):
        run(STORE, checks=checks)
    x = np.arange(32, dtype=np.int32)
    with pytest.raises((ArgumentError, CompileError), match=r"races|5"):
        cute.compile(double, x, target="emu", checks=checks)
