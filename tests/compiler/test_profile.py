"""`cute.profile` on the emulator, where what a region takes is an exact number of instructions."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats, refused
from tilewright import CompileError
from tilewright.targets.artifact_bytes import from_bytes, to_bytes


@cute.profile
@cute.kernel
def powers_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 64 + thread
    value = x[i]
    with cute.profile("five"):
        for _ in range(5):
            with cute.profile("one"):
                value = value * 3.0
    y[i] = value


@cute.jit
def powers(x: cute.Tensor, y: cute.Tensor):
    powers_kernel(x, y).launch(grid=4, block=64)


def rows_of(profile):
    return {row.name: row for row in profile.rows()}


@pytest.fixture(scope="module")
def timed():
    x, y = floats(256)
    compiled = cute.compile(powers, x, y, target="emu")
    compiled(x, y)
    assert (y == x * 243).all() and compiled.last_report[0].ok
    return compiled, compiled.profile()


def test_instructions_are_counted_without_those_of_the_recording(timed):
    rows = rows_of(timed[1])
    assert list(rows) == ["powers_kernel", "five", "one"]
    assert [(row.warps, row.runs, row.depth) for row in rows.values()] == [(8, 8, 0), (8, 8, 1), (8, 40, 2)]
    assert (rows["five"].least, rows["five"].most) == (5, 5) and (rows["one"].least, rows["one"].most) == (1, 1)
    plain = cute.compile(powers, *floats(256), target="emu", options="--profile=off")
    plain(*floats(256))
    (report,) = plain.last_report
    # All but `ret`, and what LLVM puts before the record begins, such as the loads of parameters.
    assert 0 <= report.instructions / 256 - 1 - rows["powers_kernel"].mean <= 3


def test_a_table_that_says_what_its_numbers_are(timed):
    lines = str(timed[1]).splitlines()
    assert lines[0] == "instructions of each warp's first thread, counted by the emulator: no times"
    assert lines[1].split() == ["region", "warps", "runs", "total", "mean", "min", "max", "share"]
    assert lines[3].split()[:7] == ["five", "8", "8", "40", "5", "5", "5"] and lines[3].startswith("  five")


def test_a_trace_file_for_perfetto(timed, tmp_path):
    made = json.loads(timed[1].save(tmp_path / "trace.json").read_text())
    assert made["otherData"]["unit"].endswith("no times")
    names = {e["pid"]: e["args"]["name"] for e in made["traceEvents"] if e["ph"] == "M"}
    assert sorted(names.values()) == [f"powers_kernel, launch 0, block {n}" for n in range(4)]
    spans = [e for e in made["traceEvents"] if e["ph"] == "X"]
    assert {(names[e["pid"]][-1], e["tid"]) for e in spans} == {(str(b), w) for b in range(4) for w in range(2)}
    for pid, tid in {(e["pid"], e["tid"]) for e in spans}:
        whole, five, *ones = [e for e in spans if (e["pid"], e["tid"]) == (pid, tid)]
        assert [e["name"] for e in (whole, five, *ones)] == ["powers_kernel", "five", *["one"] * 5]
        assert whole["ts"] <= five["ts"] and five["ts"] + five["dur"] <= whole["ts"] + whole["dur"]
        assert [e["ts"] - five["ts"] for e in ones] == [0, 1, 2, 3, 4] and sum(e["dur"] for e in ones) == five["dur"]


def test_calls_add_up_until_somebody_looks(timed):
    compiled, _ = timed
    x, y = floats(256)
    compiled(x, y)
    compiled(x, y)
    found = compiled.profile()
    assert {span.launch for span in found.spans} == {0, 1} and rows_of(found)["five"].warps == 16
    first, second = ([span for span in found.spans if span.launch == n] for n in (0, 1))
    assert min(span.begin for span in second) >= max(span.end for span in first)
    assert compiled.profile().spans == ()


def test_regions_that_the_first_thread_of_a_warp_does_not_enter():
    @cute.kernel
    def kernel(x: cute.Tensor):
        one, two, three = cute.arch.thread_idx()
        thread = (three * 4 + two) * 16 + one
        if thread >= 96:
            with cute.profile("last warp"):
                x[thread] = 1.0
        if thread % 32 == 7:
            with cute.profile("another thread"):
                x[thread] = 2.0
        if thread < x[200]:
            with cute.profile("by data"):
                x[thread] = 3.0

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=(16, 4, 2))

    x = np.zeros(256, np.float32)
    x[200] = 40
    compiled = cute.compile(host, x, target="emu")
    compiled(x)
    seen = {(span.name, span.warp) for span in compiled.profile().spans if span.depth}
    assert seen == {("last warp", 3), ("by data", 0), ("by data", 1)}
    assert x[7] == 3 and x[71] == 2 and x[127] == 1


def test_every_form_of_decorator():
    @cute.profile
    def plain(x, i):
        x[i] = x[i] + 1.0

    @cute.profile
    @cute.jit
    def helper(x, i):
        x[i] = x[i] + 1.0

    @cute.profile
    @cutlass.dsl_user_op
    def operation(x, i, *, loc=None, ip=None):
        x[i] = x[i] + 1.0

    @cute.kernel
    def calls(x: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        plain(x, i)
        helper(x, i)
        operation(x, i)

    @cute.kernel
    @cute.profile
    def below(x: cute.Tensor):
        x[cute.arch.thread_idx()[0]] = 0.0

    @cute.kernel
    def untimed(x: cute.Tensor):
        x[cute.arch.thread_idx()[0]] = 9.0

    @cute.jit
    def host(x: cute.Tensor):
        below(x).launch(grid=1, block=32)
        calls(x).launch(grid=1, block=32)
        untimed(x).launch(grid=1, block=32)

    x = np.ones(32, np.float32)
    compiled = cute.compile(host, x, target="emu")
    compiled(x)
    assert [row.name for row in compiled.profile().rows()] == ["below", "calls", "plain", "helper", "operation"]
    everything = cute.compile(cute.profile(host), x, target="emu")
    everything(x)
    assert {row.name for row in everything.profile().rows()} >= {"below", "calls", "untimed"}
    assert (x == 9).all() and not host.profiled and plain.__name__ == "plain"


def test_a_block_of_host_code_times_what_is_launched_in_it():
    @cute.kernel
    def first(x: cute.Tensor):
        x[cute.arch.thread_idx()[0]] = 1.0

    @cute.kernel
    def second(x: cute.Tensor):
        x[cute.arch.thread_idx()[0]] = 2.0

    @cute.jit
    def host(x: cute.Tensor):
        first(x).launch(grid=1, block=32)
        with cute.profile("timed"):
            second(x).launch(grid=1, block=32)

    x = np.ones(32, np.float32)
    compiled = cute.compile(host, x, target="emu")
    compiled(x)
    assert [row.name for row in compiled.profile().rows()] == ["second"]


def test_direct_calls():
    @cute.jit
    def direct(x: cute.Tensor, y: cute.Tensor):
        powers_kernel(x, y).launch(grid=4, block=64)

    error = refused(lambda: direct.profile(), CompileError, "direct was not called from Python")
    assert "call it first" in error.hint
    direct(*floats(256))
    assert rows_of(direct.profile())["five"].total == 40


def test_off_leaves_nothing():
    off = cute.compile(powers, *floats(256), target="emu", options="--profile=off")
    assert "clock64" not in off.stages["ptx"] and "profile=false" in off.pipeline
    error = refused(lambda: off.profile(), CompileError, "nothing was timed")
    assert "@cute.profile above the kernel" in error.hint
    with pytest.raises(CompileError, match="nothing was timed"):
        cute.compile(double, *floats(), target="emu").profile()


def test_room_for_some_warps_and_events():
    x, y = floats(256)
    compiled = cute.compile(powers, x, y, target="emu", options="--profile-warps 3 --profile-events 4")
    compiled(x, y)
    found = compiled.profile()
    assert (found.warps, found.asked, found.lost) == (3, 8, 3 * (12 - 4)) and (y == x * 243).all()
    assert str(found).splitlines()[-2:] == [
        "3 of 8 warps were recorded; --profile-warps N records more",
        "24 events found no room; --profile-events N gives each warp more",
    ]
    with pytest.raises(CompileError, match="room for one warp and one event at least"):
        cute.compile(powers, x, y, target="emu", options="--profile-warps 0")


@pytest.mark.parametrize("wrong", ["", "two\nlines"])
def test_names_of_regions(wrong):
    with pytest.raises(CompileError, match="a timed region needs a name of printable characters"):
        cute.profile(wrong)


def test_what_cannot_be_timed():
    with pytest.raises(CompileError, match="takes a function or the name of a region, not int"):
        cute.profile(3)
    with pytest.raises(CompileError, match="works only inside"), cute.profile("outside"):
        pass


def test_the_names_are_part_of_the_artifact(timed):
    again = from_bytes(to_bytes(timed[0].artifact))
    assert again.kernels[0].stages["profile"] == "five\none"
