"""The debugger on a Hopper kernel: phases of mbarriers, tensor copies under way, warps with different tasks."""

from pathlib import Path

import pytest

from tests.lang import test_tma_pipelines
from tests.tools.test_debug_speed import best
from tilewright.tools.debugger.plan import Program
from tilewright.tools.debugger.session import Session

PROGRAM = str(Path(__file__).parent / "programs" / "hopper_gemm.py")
GEMM = Program(f"{PROGRAM}:gemm", ("f16[64,128]", "f16[64,128]", "zeros:f32[64,64]"), "--opt-level 0")
SOURCE = Path(test_tma_pipelines.__file__)


def line_of(text, number=0):
    return [n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line][number]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_copies_and_phases(seed):
    session = Session(Program(GEMM.place, GEMM.arguments, GEMM.options, seed=seed))
    try:
        session.start()
        session.add_breakpoint(f"{SOURCE}:{line_of('state.advance()')}", "warp == 4")
        session.go()
        # Two stages of two tiles, 64 x 32 halves each: the first is on its way, counted by the first mbarrier.
        first = session.ask("copies", session.focus)
        assert [line.partition(", 4096")[0] for line in first] == [
            "tensor load at (0, 0) to shared 0x400..0x1400", "tensor load at (0, 0) to shared 0x2400..0x3400",
        ]  # fmt: skip
        assert all("4096 bytes of thread 128, counted by the mbarrier at 0x0" in line for line in first)
        session.go()
        assert len(session.ask("copies", session.focus)) == 4
        parities = [line.partition(" under way")[0] for line in session.ask("barriers", session.focus)[:4]]
        # With an odd seed copies land when someone looks: then both phases are still those of the beginning.
        both = "01"[seed == 0]
        assert parities == [
            f"mbarrier at 0x0: phase of parity {both}", f"mbarrier at 0x8: phase of parity {both}",
            "mbarrier at 0x10: phase of parity 0", "mbarrier at 0x18: phase of parity 0",
        ]  # fmt: skip
        session.breakpoints.clear()
        session.add_breakpoint(f"{SOURCE}:{line_of('warpgroup.fence()')}")
        stop = session.go()
        assert stop.threads == 128 and stop.focus.thread == 0
        left = session.ask("copies", session.focus)  # the warpgroup has waited for the first stage
        assert len(left) == 2 and all("counted by the mbarrier at 0x8" in line for line in left)
        assert {row[1] for row in session.ask("threads")} == {0, 4}
        before = stop.moment
        assert session.back("instruction").moment < before
    finally:
        session.close()


def test_steps_and_steps_back_are_as_fast_as_on_ampere():
    session = Session(Program(GEMM.place, ("f16[256,64]", "f16[128,64]", "zeros:f32[256,128]"), GEMM.options))
    try:
        session.start()
        assert best(6, lambda: session.go("line"))[0] < 0.2
        session.add_breakpoint(f"{SOURCE}:{line_of('warpgroup.fence()')}")
        stop = session.go()
        assert stop.reason == "breakpoint"
        assert best(6, lambda: session.go("instruction"))[0] < 0.2
        assert best(3, lambda: session.back("line"))[0] < 1
        assert best(3, lambda: session.back("instruction"))[0] < 1
    finally:
        session.close()
