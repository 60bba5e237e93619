"""The progress bar: when it appears, what it says, and that it leaves no trace."""

import io
import sys

import numpy as np
import pytest

from tests.emu.test_instructions import HEAD
from tilewright.base import settings
from tilewright.base.notebook import display_module
from tilewright.emulate import Debugger, run_ptx
from tilewright.targets.emu import progress
from tilewright.targets.emu.progress import ERASE, Bar, form_of, line, sentence, short


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Seconds that pass by being asked."""

    def __init__(self, step=0.0):
        self.now, self.step = 100.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_it_appears_after_a_second_and_is_redrawn_four_times_a_second():
    clock, screen = Clock(), Terminal()
    bar = Bar("softmax", 200, True, screen, clock)
    seen = []
    for tick in range(30):
        clock.now = 100 + tick / 8
        if bar.due():
            seen.append(tick)
            bar.show(tick, 1000 * tick)
    assert seen == list(range(8, 30, 2))
    assert screen.getvalue().startswith(f"{ERASE}softmax   4%  0:01 [--------------------] 8 of 200 blocks, 8 k ")
    bar.clear()
    bar.clear()
    assert screen.getvalue().endswith(ERASE) and screen.getvalue().count(ERASE) == len(seen) + 1


def test_what_a_line_says():
    assert line("k", 50, 200, 1_234_567_890, 75.9) == (
        "k  25%  1:15 [#####---------------] 50 of 200 blocks, 1.23 G instructions"
    )
    assert line("_Z9transposedPfS_iiii", 0, 1, 0, 0).startswith("_Z9transposedPfS_...   0%  0:00 [---")
    assert [short(n) for n in (0, 999, 1000, 45_600, 10**6, 3 * 10**12, 5 * 10**15)] == [
        "0", "999", "1 k", "45.6 k", "1 M", "3 T", "5,000 T"
    ]  # fmt: skip


def test_where_what_appears(monkeypatch):
    log = io.StringIO()
    assert form_of(True, None) is None and form_of(False, log) is None and form_of(False, Terminal()) is None
    assert form_of(True, Terminal()) == "bar" and form_of(True, log) == form_of(None, log) == "lines"
    assert form_of(None, Terminal()) == "lines"  # pytest is running
    monkeypatch.delitem(sys.modules, "pytest")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("TILEWRIGHT_PROGRESS", raising=False)
    assert form_of(None, Terminal()) == "bar" and form_of(None, log) == "lines"
    monkeypatch.setenv("CI", "true")
    assert form_of(None, Terminal()) == "lines"
    with settings.scope(progress=True):
        assert form_of(None, Terminal()) == "bar" and form_of(None, log) == "lines"
    monkeypatch.setenv("TILEWRIGHT_PROGRESS", "0")
    assert form_of(None, Terminal()) is None and form_of(None, log) is None


class Cell:
    """What a notebook is given to display; the handle that it returns notes changes."""

    def __init__(self):
        self.shown = []

    def display(self, data, raw, display_id):
        assert raw and display_id
        self.shown.append(data)
        return self

    def update(self, data, raw):
        assert raw
        self.shown.append(data)


def test_a_bar_below_the_cell_of_a_notebook(monkeypatch):
    cell, clock = Cell(), Clock()
    monkeypatch.setattr(progress, "display_module", lambda: cell)
    bar = Bar("soft<max>", 200, True, None, clock)
    for tick in range(13):
        clock.now = 100 + tick / 8
        if bar.due():
            bar.show(50, 1000)
    bar.clear()
    bar.clear()
    assert len(cell.shown) == 4, "three looks from one second on, and one that empties it"
    assert cell.shown[0]["text/plain"] == "soft<max>  25%  0:01 50 of 200 blocks, 1 k instructions"
    assert cell.shown[0]["text/html"] == (
        '<progress value="50" max="200"></progress> '
        "<code>soft&lt;max&gt;  25%  0:01 50 of 200 blocks, 1 k instructions</code>"
    )
    assert cell.shown[-1] == {"text/plain": "", "text/html": ""}


def test_notebooks_are_told_from_terminals(monkeypatch):
    class Shell:
        kernel = None

    ipython = type(sys)("IPython")
    ipython.get_ipython = lambda: Shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", Cell)
    assert display_module() is None, "IPython in a terminal"
    Shell.kernel = object()
    assert display_module() is Cell
    assert form_of(True, sys.stderr) == "notebook" and form_of(True, io.StringIO()) == "lines"
    assert form_of(None, sys.stderr) == "lines", "pytest is running"
    assert form_of(False, sys.stderr) is None
    ipython.get_ipython = lambda: None
    assert display_module() is None


def test_lines_come_after_five_seconds_and_then_rarely():
    clock, log = Clock(), io.StringIO()
    bar = Bar("softmax", 200, True, log, clock)
    seen = []
    for second in range(3000):
        clock.now = 100 + second
        if bar.due():
            seen.append(second)
            bar.show(3, 1000, "k.py:7  while i < n:")
    bar.clear()
    assert seen == [5, 10, 20, 40, 80, 160, 320, 640, 1240, 1840, 2440]
    assert log.getvalue().startswith(sentence("softmax", 3, 200, 1000, 5, "k.py:7  while i < n:"))
    assert log.getvalue().count("has been running") == len(seen)


def test_what_a_sentence_says():
    assert sentence("k", 0, 1, 45_600, 5.2, "k.py:7  while i < n:") == (
        "\ntilewright: kernel k has been running on the emulator for 5 seconds: "
        "0 of 1 blocks have ended, 45.6 k instructions\n  in the loop at k.py:7  while i < n:\n"
    )
    assert sentence("k", 0, 1, 0, 5, None).endswith("0 instructions\n")
    assert line("k", 50, 200, 1, 75.9, "k.py:7").endswith("50 of 200 blocks, k.py:7")


def test_a_terminal_that_is_gone_stops_nothing():
    screen = Terminal()
    bar = Bar("k", 1, True, screen, clock := Clock())
    clock.now += 2
    assert bar.due()
    screen.close()
    bar.show(0, 0)
    bar.clear()
    clock.now += 2
    assert not bar.due()


COUNT = f"""{HEAD}
.visible .entry count(.param .u64 out)
{{ .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0;
L: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5000; @%p1 bra L;
  mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r2; ret;
}}
"""


def terminal(monkeypatch):
    """A terminal as stderr, and a clock on which a second passes with each look."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress.Bar.__init__, "__defaults__", (None, None, Clock(1.0)))
    return screen


def test_a_long_run_shows_its_state_and_cleans_up(monkeypatch):
    screen = terminal(monkeypatch)
    out = np.zeros(40, np.uint32)
    report = run_ptx(COUNT, "count", 40, 1024, [out], checks=False, progress=True)
    assert (out == 5000).all() and report.blocks == 40
    drawn = screen.getvalue().split(ERASE)
    assert drawn[0] == drawn[-1] == "" and all(text.startswith("count ") for text in drawn[1:-1])
    ended = [int(text.split("] ")[1].split(" of 40 blocks")[0]) for text in drawn[1:-1]]
    assert {0, 16, 32} >= set(ended) and ended == sorted(ended) and ended[-1] > 0  # three batches of 16 blocks at most


def test_nothing_if_not_wanted_nor_beside_a_debugger(monkeypatch):
    screen = terminal(monkeypatch)
    out = np.zeros(1, np.uint32)
    run_ptx(COUNT, "count", 1, 32, [out], checks=False, progress=False)
    with settings.scope(progress=False):
        run_ptx(COUNT, "count", 1, 32, [out], checks=False)
    run_ptx(COUNT, "count", 1, 1, [out], checks=False, progress=True, debugger=Debugger())
    assert screen.getvalue() == ""


def test_lines_name_the_loop(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(progress.Bar.__init__, "__defaults__", (None, log, Clock(3.0)))
    run_ptx(COUNT.replace("5000", "50000"), "count", 1, 32, [np.zeros(1, np.uint32)], checks=False)
    first = log.getvalue().split("tilewright: ")[1]
    assert first.startswith("kernel count has been running on the emulator for ")
    assert first.endswith("in the loop at PTX line 8: @%p1 bra L\n\n")


def test_an_error_takes_the_bar_away(monkeypatch):
    screen = terminal(monkeypatch)
    text = COUNT.replace("ret;", "trap; ret;")
    with pytest.raises(Exception, match="trapped"):
        run_ptx(text, "count", 40, 1024, [np.zeros(40, np.uint32)], checks=False, progress=True)
    assert screen.getvalue().endswith(ERASE)
