"""How fast the debugger answers on a matrix product of 256 x 128 x 64 by cp.async, ldmatrix and mma.sync.

Each figure is the best of several, as other processes may take the processor in between.
"""

import time
from pathlib import Path

import pytest

from tilewright.kernels import gemm_sm80
from tilewright.tools.debugger.plan import Program
from tilewright.tools.debugger.session import Session

PROGRAM = str(Path(__file__).parent / "programs" / "ampere_gemm.py")
GEMM = Program(f"{PROGRAM}:gemm", ("f16[256,64]", "f16[128,64]", "zeros:f32[256,128]"), "--opt-level 0")
PRODUCTS = "cute.gemm(tiled, sums"


@pytest.fixture(scope="module")
def session():
    made = Session(GEMM)
    made.start()
    yield made
    made.close()


def best(count, move):
    """The fewest seconds that a move takes, and where the last one has led."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        stop = move()
        times.append(time.perf_counter() - start)
    return min(times), stop


def test_steps_and_steps_back(session):
    lines = Path(gemm_sm80.__file__).read_text().splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if PRODUCTS in text]
    assert best(5, lambda: session.go("line"))[0] < 0.2
    session.add_breakpoint(f"{gemm_sm80.__file__}:{line}")
    for _ in range(4):  # two parts of two steps along K
        stop = session.go()
        assert stop.reason == "breakpoint" and stop.stack[0].line == line
    assert [place.function for place in stop.stack] == ["accumulate", "gemm_kernel"]
    assert best(5, lambda: session.go("instruction"))[0] < 0.2
    seconds, stop = best(3, lambda: session.back("line"))
    assert seconds < 1 and stop.stack[0].line < line
    seconds, stop = best(3, lambda: session.back("instruction"))
    assert seconds < 1
    seconds, stop = best(1, lambda: session.back("run"))
    assert stop.stack[0].line == line and session.ask("evaluate", session.focus, "step") == "1"


def test_up_to_the_caller(session):
    here = session.stop.moment
    points, session.breakpoints = session.breakpoints, {}
    stop = session.go("out")
    assert stop.stack[0].function == "gemm_kernel" and stop.moment > here
    stop = session.goto(here)
    assert stop.stack[0].function == "accumulate" and stop.moment == here
    session.breakpoints = points


def test_what_there_is_to_see(session):
    names = {row.name: row for row in session.ask("variables", session.focus)}
    assert names["sums"].text.startswith("f32 rmem ((2,2),4,8):((1,2),4,16)")
    assert names["shared_a"].text.startswith("f16 smem S<2,3,3> o 0 o ")
    rows = session.ask("draw", session.focus, "shared_a").splitlines()
    assert len(rows) == 2 + 32 + 1 and rows[-1].strip() == "96 more rows, 80 more columns"


def test_copies_under_way(session):
    session.back("run")
    while session.stop.reason != "beginning":
        session.back("run")
    session.breakpoints.clear()
    lines = Path(gemm_sm80.__file__).read_text().splitlines()
    first = next(number for number, text in enumerate(lines, 1) if "cp_async_wait_group(plan.stages - 2)" in text)
    session.add_breakpoint(f"{gemm_sm80.__file__}:{first}")
    session.go()
    copies = session.ask("copies", session.focus)
    # Both tiles of two stages: 128 x 32 halves, by 128 threads, 16 bytes each, in two groups.
    assert sum("cp.async" in line for line in copies) == 2 * 2 * 4
    assert all("16 bytes each of 128 threads (0 to 127), committed" in line for line in copies)
    assert {line.rpartition("committed, ")[2][0] for line in copies} == {"0", "1"}
