"""Stand-ins for ptxas that miscompile one form at -O3, and a machine that runs what they make."""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path

from tilewright.tools.fuzzing.machines import emulated

SCRIPT = """#!{python}
import sys, time
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print({said!r})
    sys.exit(0)
text = open(next(name for name in arguments if name.endswith(".ptx"))).read()
{answer}
open(arguments[arguments.index("-o") + 1], "w").write(text)
"""


def script(folder: Path, answer: str, said: str = "Cuda compilation tools, release 99.1, V99.1.7") -> str:
    """The path of a program that is called as ptxas is, copies its input and does `answer` before."""
    path = folder / "ptxas"
    path.write_text(SCRIPT.format(python=sys.executable, answer=answer, said=said))
    path.chmod(0o755)
    return os.fspath(path)


@dataclass(frozen=True)
class Planted:
    """An assembler whose cubin is the text, with `wrong` in the place of `form` at -O3."""

    level: int
    form: str = "xor[.]b32 \t"
    wrong: str = "or.b32 \t"

    @property
    def name(self):
        return f"stand-in -O{self.level}"

    def assemble(self, ptx, seconds=0):
        return (re.sub(self.form, self.wrong, ptx) if self.level == 3 else ptx).encode()


class TextMachine:
    """Runs texts on the emulator."""

    def run(self, cubin, programs):
        text = cubin.decode()
        return [emulated(program, text, f"k{number}", checks=False) for number, program in enumerate(programs)]


class Inline(Executor):
    """Does each thing at once, in this thread."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future
