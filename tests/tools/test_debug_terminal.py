"""The debugger in a pseudo-terminal: a session that finds a planted race, and one that finds a wrong index."""

import re
import time
from pathlib import Path

import pytest

from tests.tools.terminal import Terminal

PROGRAMS = Path(__file__).parent / "programs"
LINES = (PROGRAMS / "debugged.py").read_text().splitlines()
ARGUMENTS = "--arg", "f32[64,32]=arange", "--arg", "zeros:f32[32,64]"


def line_of(text):
    """The number of the only line that contains a text."""
    (found,) = [number for number, line in enumerate(LINES, 1) if text in line]
    return found


STORED = line_of("tile[row, column] = source")
READ = line_of("taken = tile[column, row]")
WRITTEN = line_of("target[row, block * N + column] = taken")


@pytest.fixture
def debug():
    """Starts the debugger on a function of `programs/debugged.py`."""
    made = []

    def start(function, *more):
        made.append(Terminal("debug", f"{PROGRAMS / 'debugged.py'}:{function}", *ARGUMENTS, *more))
        return made[-1], made[-1].until()

    yield start
    for terminal in made:
        assert terminal.close() == 0


def test_a_session(debug):
    terminal, shown = debug("transpose")
    assert "This is a debug build" in shown and "Its code differs" in shown
    assert "the first instruction: transpose_kernel, block (0, 0, 0), thread (0, 0, 0), 256 threads" in shown

    # Breakpoints by line and condition; variables and registers of any lane.
    assert f"debugged.py:{WRITTEN} if thread == 100" in terminal.type(f"break {WRITTEN} if thread == 100")
    shown = terminal.type("continue")
    assert "breakpoint 1: transpose_kernel, block (0, 0, 0), thread (100, 0, 0)" in shown
    assert f"debugged.py:{WRITTEN} transpose_kernel: target[row, block * N + column] = taken" in shown
    assert terminal.type("print row").strip() == "row = 3"
    assert terminal.type("print column + 10 * row").strip() == "column + 10 * row = 34"
    assert terminal.type("print taken").strip() == "taken = 131"  # element (4, 3) of the source
    assert terminal.type("registers tid").split() == ["tid", "(100,", "0,", "0)"]
    terminal.type("warp 1 5")
    assert terminal.type("print taken").strip() == "taken = 161"  # element (5, 1), of lane 5 of warp 1
    assert ["thread", "i32", "37"] in [row.split() for row in terminal.type("variables").splitlines()]
    assert "warps 0 to 3       128 threads  stand here" in terminal.type("threads")

    # A tensor is drawn as its layout has it; its offsets show the swizzle.
    rows = terminal.type("print tile").splitlines()
    assert rows[0] == "tile = f32 smem S<5,0,5> o 0 o (32,32):(32,1) at 0x0"
    assert rows[3].split() == ["1", *map(str, range(32, 48))]
    assert terminal.type("layout tile").splitlines()[3].split()[:5] == ["1", "33", "32", "35", "34"]
    assert terminal.type("print tile[5, 1]").strip() == "tile[5, 1] = 161"

    # Back, and forward again.
    assert f"debugged.py:{READ} transpose_kernel" in terminal.type("back")
    assert f"debugged.py:{WRITTEN} transpose_kernel" in terminal.type("next")
    terminal.type("delete 1")

    # Watched memory, forwards and backwards. Thread 37 writes element (1, 5) of the target.
    terminal.type("watch target[1, 5]")
    shown = terminal.type("continue")
    assert "watch 2: transpose_kernel, block (0, 0, 0), thread (37, 0, 0)" in shown
    assert "target[1, 5]: 0 -> 161" in shown
    terminal.type("watch tile[5, 1]")
    shown = terminal.type("rcontinue")
    assert "watch 3" in shown and "tile[5, 1]: 0 -> 161" in shown
    assert terminal.type("print tile[5, 1]").strip() == "tile[5, 1] = 161"
    assert "tile[5, 1] = 0" in [terminal.type("backi"), terminal.type("print tile[5, 1]")][1]

    terminal.type("delete 2")
    terminal.type("delete 3")
    shown = terminal.type("continue")
    assert "the program has ended" in shown and "zeros:f32[32,64]: 0 32 64 96 128 160 ..." in shown
    assert "fidelity: of " in shown and "recorded bit for bit on an H100" in shown
    assert "error: the program has ended" in terminal.type("step")
    assert "block (0, 0, 0), thread (33, 0, 0)" in terminal.type("back")  # which wrote tile[5, 1]


def test_finds_a_race(debug):
    terminal, _ = debug("racing")
    shown = terminal.type("continue")
    assert "the emulator found" in shown and "Race condition in shared memory access" in shown
    assert (
        f"debugged.py:{STORED}" in shown and f"debugged.py:{READ} transpose_kernel: taken = tile[column, row]" in shown
    )
    assert "thread (1, 0, 0)" in shown.splitlines()[0]
    shown = terminal.type("continue")
    assert "error: the program cannot go on behind what the emulator found" in shown
    terminal.type(f"break {STORED} if thread == 32 and step == 7")
    assert f"debugged.py:{STORED}" in terminal.type("rcontinue")
    assert terminal.type("print row").strip() == "row = 29"


def test_finds_a_wrong_index(debug):
    """The last warp takes elements of the row below: its variables say so. Before, mistakes are explained."""
    terminal, _ = debug("misplaced")
    assert "error: there is no command fly" in terminal.type("fly")
    assert "error: 900 has no code of this kernel" in terminal.type("break 900")
    assert "is no condition" in terminal.type(f"break {READ} if thread ==")
    assert "error: the thread has no variable tile: none has a value yet" in terminal.type("print tile")
    assert "error: thread 900 of block 0 does not exist" in terminal.type("thread 900")
    assert "error: this is the beginning" in terminal.type("back")
    assert "error: there is no breakpoint or watch 7" in terminal.type("delete 7")
    assert "register %r9999 holds nothing here" in terminal.type("print %r9999")
    terminal.type(f"break {WRITTEN} if taken != (32 * block + column) * 32 + row")
    shown = terminal.type("continue")
    assert "thread (96, 0, 0)" in shown
    assert terminal.type("print row").strip() == "row = 3"
    assert terminal.type("print taken").strip() == "taken = 4"
    assert "(row + thread // 96) % N" in terminal.type("back")


def test_the_code_of_other_builds(debug):
    terminal, shown = debug("transpose", "--release")
    assert "debug build" not in shown
    assert "this build pins no variables" in terminal.type("variables")
    terminal.type(f"break {WRITTEN}")
    assert f"debugged.py:{WRITTEN} transpose_kernel" in terminal.type("continue")
    line = int(re.search(r"PTX (\d+):", terminal.type("stepi"))[1])
    assert f"at PTX line {line + 2}" in terminal.type(f"break ptx:{line + 2}")
    terminal.type("disable 1")
    assert "(disabled)" in terminal.type("breaks") and f"PTX {line + 2}: " in terminal.type("continue")
    terminal.type("enable 1")
    assert "breakpoint 1:" in terminal.type("rcontinue")
    assert terminal.type("display lane").strip() == "lane = 0"
    assert "lane = 0" in terminal.type("stepi")


def test_the_program_can_be_interrupted(debug):
    terminal, _ = debug("spinning", "--no-checks")
    terminal.send("\x03")  # at the prompt: nothing
    terminal.until()
    terminal.send("continue\n")
    shown = ""
    while "interrupted" not in shown:  # as long as the shell has not read the command, an interrupt only prompts again
        time.sleep(0.5)
        terminal.send("\x03")
        shown += terminal.until()
    assert "interrupted: spin_kernel" in shown and shown.count("round and round") == 1
    assert terminal.type("print turns > 0").strip() == "turns > 0 = True"


def test_refusals():
    terminal = Terminal("debug")
    assert "nothing to debug" in terminal.until("--dap")
    terminal = Terminal("debug", f"{PROGRAMS / 'debugged.py'}:nothing")
    assert "ArgumentError" in terminal.until("has no 'nothing'")
