"""The debugger in a terminal: a shell of short commands."""

from __future__ import annotations

import cmd
import re
import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.base.errors import ArgumentError, TilewrightError
from tilewright.tools.debugger.inspector import Named, Thread
from tilewright.tools.debugger.lines import text_at
from tilewright.tools.debugger.plan import Kind, SourceLine, Stop
from tilewright.tools.debugger.session import Session

HELP = """
going on     step  next  finish  stepi  continue     (s, n, f, si, c: a line, a line with its calls, up to the caller,
                                                      an instruction of the PTX, to a breakpoint)
going back   back  backnext  backi  rcontinue        (b, bn, bi, rc: the same, backwards)
stopping     break PLACE [if CONDITION]              a line, FUNCTION, FILE:LINE, ptx:LINE
             watch TENSOR  watch TENSOR[I, J] [reads]
             breaks  delete N  disable N  enable N
threads      thread [BLOCK] THREAD  warp [BLOCK] WARP [LANE]  threads        BLOCK and THREAD: 5 or 1,2,0
looking      where  list [LINE]  ptx [LINE]  print EXPRESSION  display EXPRESSION
             variables  registers [NAME ...]  layout TENSOR  barriers  copies
             quit
An empty line repeats the last command. A condition is Python: thread == 5 and i > 2, lane < 4, %r3 == 0.
""".strip()
AROUND = 4
"""Lines that are listed on each side."""


class Shell(cmd.Cmd):
    """Reads commands for a session and prints what they tell."""

    prompt = "(tilewright) "

    def __init__(self, session: Session, **streams: Any) -> None:
        super().__init__(**streams)
        self.session = session
        self.displayed: list[str] = []
        self._printed = ""

    # The loop.

    def begin(self) -> None:
        """Compile, run to the first instruction, and read commands until the session ends."""
        self.show(self.session.start())
        while True:
            try:
                self.cmdloop()
                return
            except KeyboardInterrupt:  # at the prompt
                self.say("")

    def onecmd(self, line: str) -> bool:
        """Run a command; what is wrong with it is printed. An interrupt from the keyboard stops the running program."""
        try:
            with interrupts_to(self.session.pause):
                return bool(super().onecmd(line))
        except TilewrightError as error:
            self.say(f"error: {error.message}")
            for name, value in error.values.items():
                self.say(f"  {name}: {value}")
            if error.hint:
                self.say(f"  hint: {error.hint}")
        return False

    def default(self, line: str) -> None:
        raise ArgumentError(f"there is no command {line.split()[0]}", hint="`help` lists them")

    def say(self, text: str) -> None:
        """Print a line."""
        self.stdout.write(text + "\n")
        self.stdout.flush()

    # What is shown.

    def show(self, stop: Stop) -> None:
        """Print where the program has stopped, and why."""
        if len(stop.printed) > len(self._printed):
            self.say(stop.printed[len(self._printed) :].rstrip("\n"))
            self._printed = stop.printed
        if stop.ended:
            self.say("the program has ended")
            self.say(stop.message)
            return
        self.say(headline(stop))
        for line in place_lines(stop.stack[0] if stop.stack else None, stop.ptx_line, stop.instruction):
            self.say(line)
        for text in self.displayed:
            self.onecmd(f"print {text}")

    def _go(self, kind: Kind, argument: str) -> None:
        for _ in range(count(argument)):
            self.show(self.session.go(kind))
            if self.session.stop.reason != "step":
                break

    def _back(self, kind: Kind, argument: str) -> None:
        for _ in range(count(argument)):
            self.show(self.session.back(kind))

    # Going on and back.

    def do_step(self, argument: str) -> None:
        self._go("line", argument)

    def do_next(self, argument: str) -> None:
        self._go("over", argument)

    def do_finish(self, argument: str) -> None:
        self._go("out", argument)

    def do_stepi(self, argument: str) -> None:
        self._go("instruction", argument)

    def do_continue(self, argument: str) -> None:
        self._go("run", argument)

    def do_back(self, argument: str) -> None:
        self._back("line", argument)

    def do_backnext(self, argument: str) -> None:
        self._back("over", argument)

    def do_backi(self, argument: str) -> None:
        self._back("instruction", argument)

    def do_rcontinue(self, argument: str) -> None:
        self._back("run", argument)

    do_s, do_n, do_f, do_si, do_c = do_step, do_next, do_finish, do_stepi, do_continue
    do_b, do_bn, do_bi, do_rc = do_back, do_backnext, do_backi, do_rcontinue

    # Breakpoints.

    def do_break(self, argument: str) -> None:
        place, _, condition = re.sub(r"(^|\s)if\s", "\0", argument, count=1).partition("\0")
        if not place.strip():
            self.do_breaks("")
            return
        made = self.session.add_breakpoint(place, condition.strip())
        self.say(f"breakpoint {made.number} at {made}")

    def do_watch(self, argument: str) -> None:
        text = re.sub(r"\s+reads$", "", argument.strip())
        made = self.session.add_watch(text, reads=text != argument.strip())
        self.say(f"watch {made.number}: {made}")

    def do_breaks(self, argument: str) -> None:
        for point in self.session.breakpoints.values():
            self.say(f"{point.number:>3}  {point}")
        for watch in self.session.watches.values():
            self.say(f"{watch.number:>3}  watch {watch}")
        if not self.session.breakpoints and not self.session.watches:
            self.say("there are no breakpoints")

    def do_delete(self, argument: str) -> None:
        for number in numbers(argument):
            self.session.remove(number)

    def do_disable(self, argument: str) -> None:
        for number in numbers(argument):
            self.session.enable(number, False)

    def do_enable(self, argument: str) -> None:
        for number in numbers(argument):
            self.session.enable(number, True)

    # Threads.

    def do_thread(self, argument: str) -> None:
        words = argument.split()
        if words:
            block = coordinates(words[0]) if len(words) > 1 else self.session.focus.block
            self.session.look_at(block, coordinates(words[-1]))
        self._show_focus()

    def do_warp(self, argument: str) -> None:
        words = [int(word) for word in numbers(argument)]
        if not 1 <= len(words) <= 3:
            raise ArgumentError(
                "warp takes a warp, and may take a block before and a lane behind it", hint="warp 0 3 5"
            )
        block = words.pop(0) if len(words) == 3 else self.session.focus.block
        warp, lane = words[0], words[1] if len(words) > 1 else 0
        self.session.look_at(block, 32 * warp + lane)
        self._show_focus()

    def _show_focus(self) -> None:
        thread: Thread = self.session.ask("thread", self.session.focus)
        self.say(f"block {thread.place[0]}, thread {thread.place[1]}, warp {thread.focus.thread // 32} lane "
                 f"{thread.focus.thread % 32}: {thread.state}")  # fmt: skip
        for line in place_lines(thread.stack[0] if thread.stack else None, thread.ptx_line, thread.instruction):
            self.say(line)

    def do_threads(self, argument: str) -> None:
        for block, first, last, threads, state, thread in self.session.ask("threads"):
            warps = f"warp {first}" if first == last else f"warps {first} to {last}"
            where = short(thread.stack[0]) if thread.stack else f"PTX line {thread.ptx_line}"
            self.say(f"block {block:>4}  {warps:<16} {threads:>5} threads  {state}, {where}")

    # Looking.

    def do_where(self, argument: str) -> None:
        thread: Thread = self.session.ask("thread", self.session.focus)
        for number, line in enumerate(thread.stack):
            self.say(f"#{number} {line.function or '?'} at {line.file}:{line.line}")
            self.say(f"     {text_at(line.file, line.line).strip()}")
        self.say(f"PTX line {thread.ptx_line}: {thread.instruction}")

    def do_list(self, argument: str) -> None:
        thread: Thread = self.session.ask("thread", self.session.focus)
        if not thread.stack:
            raise ArgumentError("the code here has no source line", hint="`ptx` lists the PTX")
        here = thread.stack[0]
        middle = int(argument) if argument.strip().isdigit() else here.line
        for number in range(max(middle - AROUND, 1), middle + AROUND + 1):
            mark = "->" if number == here.line else "  "
            self.say(f"{mark} {number:>4}  {text_at(here.file, number)}")

    def do_ptx(self, argument: str) -> None:
        lines = self.session.ask("ptx").splitlines()
        thread: Thread = self.session.ask("thread", self.session.focus)
        middle = int(argument) if argument.strip().isdigit() else thread.ptx_line
        for number in range(max(middle - AROUND, 1), min(middle + AROUND, len(lines)) + 1):
            mark = "->" if number == thread.ptx_line else "  "
            self.say(f"{mark} {number:>5}  {lines[number - 1]}")

    def do_print(self, argument: str) -> None:
        text = self.session.ask("evaluate", self.session.focus, argument)
        self.say(f"{argument.strip()} = {text}")

    def do_display(self, argument: str) -> None:
        if argument.strip():
            self.displayed.append(argument.strip())
            self.do_print(argument)
        else:
            self.displayed.clear()

    def do_layout(self, argument: str) -> None:
        self.say(self.session.ask("layout", self.session.focus, argument.strip()))

    def do_variables(self, argument: str) -> None:
        rows = self.session.ask("variables", self.session.focus)
        self._table(rows)
        if not rows:
            self.say("no variable has a value yet" if self.session.program.pinned else "this build pins no variables")

    def do_registers(self, argument: str) -> None:
        wanted = argument.split()
        rows = self.session.ask("special", self.session.focus) + self.session.ask("registers", self.session.focus)
        self._table([row for row in rows if not wanted or row.name in wanted])

    def _table(self, rows: list[Named]) -> None:
        width = max((len(row.name) for row in rows), default=0)
        for row in rows:
            self.say(f"  {row.name:<{width}}  {row.kind:<8} {row.text}")

    def do_barriers(self, argument: str) -> None:
        self._lines(
            self.session.ask("barriers", self.session.focus), "no thread waits at a barrier, and no mbarrier is set up"
        )

    def do_copies(self, argument: str) -> None:
        self._lines(self.session.ask("copies", self.session.focus), "no asynchronous copy is under way")

    def _lines(self, lines: list[str], otherwise: str) -> None:
        for line in lines or [otherwise]:
            self.say(line)

    do_w, do_bt, do_l, do_p, do_r, do_v, do_t = (
        do_where, do_where, do_list, do_print, do_registers, do_variables, do_thread,
    )  # fmt: skip

    # Leaving.

    def do_help(self, argument: str) -> None:
        self.say(HELP)

    def do_quit(self, argument: str) -> bool:
        return True

    def do_EOF(self, argument: str) -> bool:
        self.say("")
        return True

    do_q = do_quit


@contextmanager
def interrupts_to(action: Callable[[], None]) -> Iterator[None]:
    """An interrupt from the keyboard calls `action`; in the main thread, the only one that hears of interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: action())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def headline(stop: Stop) -> str:
    """Why and where a program has stopped, in a line or, with a finding, several."""
    block, thread = stop.place
    numbers = " ".join(map(str, stop.numbers))
    reason = {
        "breakpoint": f"breakpoint {numbers}".strip(), "watch": f"watch {numbers}", "pause": "interrupted",
        "entry": "the first instruction", "beginning": "back at the beginning",
        "finding": "the emulator found",
    }.get(stop.reason, "")  # fmt: skip
    where = f"{stop.kernel}, block {block}, thread {thread}, {stop.threads} threads"
    first = f"{reason}: {where}" if reason else where
    return "\n".join([first, *([stop.message] if stop.message else [])])


def place_lines(line: SourceLine | None, ptx_line: int, instruction: str) -> Iterator[str]:
    """The source line and the instruction that come next."""
    if line is not None:
        yield f"{short(line)} {line.function}: {text_at(line.file, line.line).strip()}"
    yield f"  PTX {ptx_line}: {instruction}"


def short(line: SourceLine) -> str:
    """A line by the last part of its path."""
    return f"{line.file.rpartition('/')[2]}:{line.line}"


def count(argument: str) -> int:
    """How often to repeat a command."""
    found = numbers(argument)
    return found[0] if found else 1


def numbers(argument: str) -> list[int]:
    """Numbers between blanks.

    Raises:
        ArgumentError: one is no number.
    """
    words = shlex.split(argument)
    if wrong := [word for word in words if not word.isdigit()]:
        raise ArgumentError(f"{wrong[0]!r} is no number")
    return [int(word) for word in words]


def coordinates(word: str) -> int | tuple[int, int, int]:
    """`5`, `1,2` or `1,2,0`.

    Raises:
        ArgumentError: it is none of these.
    """
    parts = word.strip("()").split(",")
    if not all(part.strip().isdigit() for part in parts) or len(parts) > 3:
        raise ArgumentError(f"{word!r} is no block or thread", hint="a number, or x,y,z")
    values = [int(part) for part in parts]
    if len(values) == 1:
        return values[0]
    x, y, z = values + [0] * (3 - len(values))
    return x, y, z
