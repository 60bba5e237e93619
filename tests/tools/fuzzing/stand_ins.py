"""A stand-in for ptxas, which copies PTX and miscompiles one form at -O3, and a machine that runs such copies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tilewright.tools.fuzzing.machines import emulated

SCRIPT = """#!{python}
import re, sys, time
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("Cuda compilation tools, release 99.1, V99.1.7")
    sys.exit(0)
source = next(name for name in arguments if name.endswith(".ptx"))
text = open(source).read()
level = next(int(name[2:]) for name in arguments if name.startswith("-O"))
if level == 3:
{faults}
open(arguments[arguments.index("-o") + 1], "w").write(text)
"""
WRONG_XOR = '    text = re.sub(r"xor\\.b32", "or.b32", text)'
CRASH = '    "popc.b32" in text and __import__("os").kill(__import__("os").getpid(), 11)'
REFUSAL = '    "popc.b32" in text and sys.exit("ptxas programs.ptx, line 9; error : no popc here")'


def stand_in(folder: Path, faults: str) -> str:
    """The path of a program that answers as ptxas does, with faults at -O3."""
    path = folder / "ptxas"
    path.write_text(SCRIPT.format(python=sys.executable, faults=faults))
    path.chmod(0o755)
    return os.fspath(path)


class TextMachine:
    """Runs the texts that the stand-in makes, on the emulator."""

    def run(self, cubin, programs):
        text = cubin.decode()
        return [emulated(program, text, f"k{number}", checks=False) for number, program in enumerate(programs)]
