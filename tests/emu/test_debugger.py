"""Traces, breakpoints, watched addresses and the NaN watch."""

from pathlib import Path

import numpy as np

from tilewright.emulate import Debugger, run_ptx, trace

PTX = (Path(__file__).parent / "data" / "engine" / "engine.ptx").read_text()


def collatz(**options):
    a = np.array([6, 1, 5], np.uint32)
    out = np.zeros(3, np.uint32)
    run_ptx(PTX, "collatz", 1, 32, [a, out, 3], **options)
    return a, out


def test_trace_of_a_thread():
    steps = trace(PTX, "collatz", 1, 32, [np.array([6, 1, 5], np.uint32), np.zeros(3, np.uint32), 3], at_thread=2)
    assert all(step.thread == (2, 0, 0) and step.block == (0, 0, 0) for step in steps)
    load = next(step for step in steps if step.instruction.startswith("ld.global"))
    assert list(load.registers.values()) == [5]
    store = steps[-1]
    assert store.instruction.startswith("st.global") and store.address is not None
    assert "5 (0x5)" in str(load) and str(load.ptx_line) in str(load)


def test_breakpoint_reads_any_register_of_any_lane():
    line = next(
        n
        for n, text in enumerate(PTX.splitlines(), 1)
        if "st.global.u32" in text and n > PTX[: PTX.index("collatz")].count("\n")
    )
    register = PTX.splitlines()[line - 1].split()[-1].rstrip(";")
    seen = []
    debugger = Debugger(
        break_at=[line], on_break=lambda stop: seen.append((stop.threads, stop.register(register).tolist()))
    )
    _, out = collatz(debugger=debugger)
    assert sorted(value for _, values in seen for value in values) == sorted(out.tolist()) == [0, 5, 8]
    assert {thread[0] for threads, _ in seen for _, thread in threads} == {0, 1, 2}


def test_watched_address():
    a, b, c = np.zeros((3, 64), np.float32)
    debugger = Debugger(watch=[c.ctypes.data + 4 * 40])
    run_ptx(PTX, "add", 1, 64, [a, b.copy(), c, 64], debugger=debugger)
    (step,) = debugger.steps
    assert step.why == "watch" and step.thread == (40, 0, 0) and step.instruction.startswith("st.global")


def test_first_nan_of_each_instruction():
    a = np.ones(64, np.float32)
    b = a.copy()
    b[[17, 33]] = np.nan
    debugger = Debugger(nan=True)
    run_ptx(PTX, "add", 1, 64, [a, b, a.copy(), 64], debugger=debugger)
    assert [(step.why, step.thread[0]) for step in debugger.steps] == [("nan", 17), ("nan", 17)]
    assert debugger.steps[0].instruction.startswith("ld.global") and debugger.steps[1].instruction.startswith("add")
