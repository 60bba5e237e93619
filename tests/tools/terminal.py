"""A program in a pseudo-terminal: a test types lines and reads what appears."""

import contextlib
import os
import pty
import re
import select
import sys
import time

PROMPT = "(tilewright) "
TIMEOUT = 300
CONTROLS = re.compile(r"\x1b\[[?\d;]*[a-zA-Z]|\r")


class Terminal:
    """Runs `tilewright ARGUMENTS` in a pseudo-terminal."""

    def __init__(self, *arguments):
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            main = "from tilewright.tools.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", main, *arguments])
        self.text = ""

    def until(self, wanted=PROMPT):
        """What appears up to `wanted`."""
        limit = time.monotonic() + TIMEOUT
        while wanted not in self.text:
            ready, _, _ = select.select([self.end], [], [], limit - time.monotonic())
            assert ready, f"no {wanted!r} in: {self.text}"
            try:
                self.text += CONTROLS.sub("", os.read(self.end, 65536).decode())
            except OSError:
                raise AssertionError(f"the program has ended: {self.text}") from None
        shown, _, self.text = self.text.partition(wanted)
        return shown

    def type(self, line):
        """The answer to a command."""
        self.send(line + "\n")
        return self.until().partition("\n")[2]

    def send(self, text):
        os.write(self.end, text.encode())

    def close(self):
        """Leave the program; its exit status."""
        self.send("quit\n")
        limit = time.monotonic() + TIMEOUT
        while time.monotonic() < limit:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                os.close(self.end)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.end], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.end, 65536)
        raise AssertionError("the program does not end")
