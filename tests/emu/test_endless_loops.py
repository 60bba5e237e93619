"""Kernels that never end: what proves it, what limits and interrupts say, and that a kernel that ends is let be."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.emu.test_instructions import HEAD
from tilewright import Float32, Int32
from tilewright.base import settings
from tilewright.base.errors import ArgumentError, CompileError, EmulationError
from tilewright.emulate import observe, run_ptx


def kernel(body: str, registers: str = "") -> str:
    return f"""{HEAD}
.visible .entry k(.param .u64 out)
{{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; {registers}
  .shared .align 8 .b8 flag[16];
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
  {body}
  st.global.u32 [%d1], %r2; ret;
}}
"""


def complaint(body, block=64, **options):
    with pytest.raises(EmulationError) as caught:
        run_ptx(kernel(body), "k", 1, block, [np.zeros(64, np.uint32)], **options)
    return caught.value


PROVEN = {
    "an empty loop": "L: bra L;",
    "nothing changes": "L: add.u32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra L;",
    "a value that comes again": "L: add.u32 %r2, %r2, 1; and.b32 %r2, %r2, 7; setp.lt.u32 %p1, %r2, 8; @%p1 bra L;",
    "memory that no one writes": "L: ld.global.u32 %r3, [%d1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;",
    "a flag in shared memory": "st.shared.u32 [flag], 0; bar.sync 0;\nL: ld.shared.u32 %r3, [flag]; "
    "setp.eq.u32 %p1, %r3, 0; @%p1 bra L;",
    "an inner loop that ends": "L: mov.u32 %r3, 0; M: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 3; @%p1 bra M;\n"
    "setp.gt.u32 %p1, %r3, 2; @%p1 bra L;",
}


@pytest.mark.parametrize("name", PROVEN)
@pytest.mark.parametrize("checks", [True, False])
def test_a_loop_that_comes_back_to_the_same_state_is_endless(name, checks):
    error = complaint(PROVEN[name], checks=checks)
    assert error.kind == "deadlock" and isinstance(error, RuntimeError)
    assert str(error).startswith("Endless loop: no thread can go on, each comes back to a state it was in before\n")
    assert "bra L" in error.values["PTX line"] and "bra L" in error.values["wait 0"]
    assert "written by a thread that still runs" in error.hint


def test_threads_at_a_barrier_beside_a_loop_are_a_deadlock_and_the_loop_comes_first():
    error = complaint("setp.lt.u32 %p2, %r1, 32; @%p2 bra L; bar.sync 0; bra E;\nL: bra L;\nE:")
    assert error.message == "Deadlock: no thread can go on" and error.values["PTX line"].endswith("bra L")
    assert "bar.sync" in error.values["wait 1"]


def test_a_loop_that_another_warp_ends_is_let_be():
    # Warp 1 counts to 20,000 with stores before it raises the flag that warp 0 waits for, by weak loads.
    body = """setp.lt.u32 %p2, %r1, 32; @%p2 bra W;
      C: add.u32 %r2, %r2, 1; st.shared.u32 [flag+8], %r2; setp.lt.u32 %p1, %r2, 20000; @%p1 bra C;
      st.shared.u32 [flag], 1; bra E;
      W: ld.shared.u32 %r3, [flag]; setp.eq.u32 %p1, %r3, 0; @%p1 bra W; mov.u32 %r2, 20000;
      E:"""
    out = np.zeros(64, np.uint32)
    run_ptx(kernel(body), "k", 1, 64, [out], checks=False)
    assert out[0] == 20000


def test_a_loop_that_waits_for_time_is_let_be():
    body = "L: mov.u64 %d2, %clock64; setp.lt.u64 %p1, %d2, 3000000; @%p1 bra L;"
    assert run_ptx(kernel(body), "k", 1, 64, [np.zeros(64, np.uint32)], limit=400_000).ok


def test_a_long_loop_with_few_states_ends():
    body = """mov.u32 %r4, 0;
      L: add.u32 %r2, %r2, 1; and.b32 %r2, %r2, 3; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 60000; @%p1 bra L;"""
    assert run_ptx(kernel(body), "k", 1, 64, [np.zeros(64, np.uint32)], checks=False).ok


def test_callers_that_count_while_a_function_repeats_itself_end():
    text = (
        HEAD
        + """
.func (.param .b32 r) f() { .reg .b32 %r<2>; .reg .pred %p<2>;
  mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4096; @%p1 bra L; st.param.b32 [r], %r1; ret; }
.visible .entry k(.param .u64 out)
{ .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r2, 0;
  L: { .param .b32 r0; call (r0), f; ld.param.b32 %r1, [r0]; }
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 130; @%p1 bra L; st.global.u32 [%d1], %r2; ret; }
"""
    )
    out = np.zeros(1, np.uint32)
    run_ptx(text, "k", 1, 1, [out], checks=False)
    assert out[0] == 130


# Endless, but with stores: no proof, so a limit or Ctrl-C names the loop.

STORES = "L: st.global.u32 [%d1], %r2; add.u32 %r2, %r2, 1; bra L;"
NESTED = """L: mov.u32 %r3, 0;
  M: add.u32 %r3, %r3, 1; st.global.u32 [%d1], %r3; setp.lt.u32 %p1, %r3, 9; @%p1 bra M;
  add.u32 %r2, %r2, 1; bra L;"""
INNER = """mov.u32 %r4, 0;
  O: add.u32 %r4, %r4, 1;
  L: add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2; setp.ge.s32 %p1, %r4, 0; @%p1 bra L; bra O;"""


@pytest.mark.parametrize("body", [STORES, NESTED, INNER])
def test_limits_name_the_loop_that_goes_round(body):
    error = complaint(body, 1, limit=9_000)
    assert error.kind == "limit" and error.message == "The launch ran longer than its limit, in this loop"
    assert error.values["limit"] == "9000 blocks of code" and error.values["kernel"] == "k"
    assert error.values["loop"].endswith("bra L") and "raise the limit" in error.hint


def test_a_time_limit_by_argument_and_by_setting(monkeypatch):
    start = time.monotonic()
    assert complaint(STORES, 1, timeout=0.2).values["limit"] == "0.2 seconds"
    monkeypatch.setenv("TILEWRIGHT_TIMEOUT", "0.1")
    assert complaint(NESTED, 1).values["loop"].endswith("bra L")
    with settings.scope(timeout=0.3):
        assert complaint(STORES, 1).values["limit"] == "0.3 seconds"
    assert time.monotonic() - start < 30
    monkeypatch.setenv("TILEWRIGHT_TIMEOUT", "0")
    assert run_ptx(kernel(""), "k", 1, 1, [np.zeros(1, np.uint32)]).ok


@pytest.mark.parametrize("value", [0, -1.0, float("nan")])
def test_a_time_limit_is_positive(value):
    with pytest.raises(ArgumentError, match=r"a time limit of \S+ seconds"):
        run_ptx(kernel(""), "k", 1, 1, [np.zeros(1, np.uint32)], timeout=value)


@pytest.mark.parametrize("text", ["soon", "-3", "nan"])
def test_a_time_limit_of_the_environment_is_a_number(monkeypatch, text):
    monkeypatch.setenv("TILEWRIGHT_TIMEOUT", text)
    with pytest.raises(CompileError, match="TILEWRIGHT_TIMEOUT"):
        run_ptx(kernel(""), "k", 1, 1, [np.zeros(1, np.uint32)])


# In Python.


@cute.kernel
def forgotten(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    i = Int32(0)
    while i < n:  # i += 1 is forgotten
        x[t] = x[t] + 1.0
        cute.arch.sync_threads()


@cute.jit
def drain(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    i = Int32(0)
    while i < n:  # the helper's
        x[t] = x[t] * 0.5
        cute.arch.sync_threads()


@cute.kernel
def by_helper(x: cute.Tensor, n: Int32):
    drain(x, n)


@cute.kernel
def nothing(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    i = Int32(0)
    while i < n:  # nothing at all
        i = i * 1
    x[t] = Float32(1)


@cute.kernel
def inner(x: cute.Tensor, n: Int32):
    t, _, _ = cute.arch.thread_idx()
    i = Int32(0)
    while i < n:  # the outer one
        for j in cutlass.range(n):
            x[t] = x[t] + Float32(j)
            cute.arch.sync_threads()


@cute.jit
def host(k: cutlass.Constexpr, x: cute.Tensor, n: Int32):
    k(x, n).launch(grid=1, block=32)


def line_of(words: str) -> int:
    found = [n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith(f"# {words}")]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    "k, words",
    [(forgotten, "i += 1 is forgotten"), (by_helper, "the helper's"), (inner, "the outer one")],
)
def test_the_line_of_a_python_loop(k, words):
    x = np.zeros(32, np.float32)
    with observe(timeout=0.3), pytest.raises(EmulationError) as caught:
        host(k, x, 5)
    assert (caught.value.location.file, caught.value.location.line) == (__file__, line_of(words))
    assert "while i < n:" in str(caught.value)
    if k is by_helper:
        assert "drain(x, n)" in str(caught.value.values["called from"])


def test_the_line_of_a_python_loop_that_is_proven_endless():
    with pytest.raises(RuntimeError, match="Endless loop") as caught:
        host(nothing, np.zeros(32, np.float32), 5)
    assert caught.value.location.line == line_of("nothing at all")


def interrupt(after: float) -> threading.Timer:
    timer = threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("k, words", [(forgotten, "i += 1 is forgotten"), (inner, "the outer one")])
def test_ctrl_c_names_kernel_and_loop(k, words):
    x = np.zeros(32, np.float32)
    compiled = cute.compile(host, k, x, 5)
    timer = interrupt(0.7)
    with pytest.raises(KeyboardInterrupt) as caught:
        compiled(k, x, 5)
    timer.join()
    place = f"{__file__}:{line_of(words)}  while i < n:"
    assert str(caught.value).startswith(f"kernel {k.__name__} was running on the emulator, in the loop at {place}")


def test_other_exceptions_of_signal_handlers_get_a_note():
    def late(signum, frame):
        raise TimeoutError("too late")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(TimeoutError, match="too late") as caught:
            run_ptx(kernel(STORES), "k", 1, 1, [np.zeros(1, np.uint32)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "kernel k was running on the emulator, in the loop at PTX line" in caught.value.__notes__[0]


IN_PYTEST = f"""
import numpy as np
from tilewright.emulate import run_ptx
from tilewright.targets.emu import progress
progress.DELAY = progress.LONG = 0.3

def test_it():
    run_ptx('''{kernel(STORES)}''', "k", 1, 1, [np.zeros(1, np.uint32)], timeout=4)
"""


@pytest.mark.parametrize("options", [[], ["-s"]])
def test_pytest_shows_the_line_while_the_test_runs(tmp_path, options):
    (tmp_path / "test_long.py").write_text(IN_PYTEST)
    plain = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", *options, str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *plain]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TILEWRIGHT_")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "kernel k has been running on the emulator for " in done.stderr
    assert "in the loop at PTX line" in done.stderr and "ran longer than its limit" in done.stdout
