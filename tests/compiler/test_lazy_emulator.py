"""Compiling for the emulator does not load it: the first launch does."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy as np
import tilewright as cutlass
import tilewright.cute as cute

@cute.kernel
def doubled(x: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x[t] = x[t] * 2.0

@cute.jit
def launch(x: cute.Tensor):
    doubled(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

def loaded():
    return any(name.startswith("tilewright.targets.emu") for name in sys.modules)

x = np.arange(32, dtype=np.float32)
made = cute.compile(launch, x, target="emu", no_cache=True)
made.stages["ptx"]
print(loaded())
made(x)
print(loaded(), (x == 2 * np.arange(32)).all())
try:
    cute.compile(launch, x, target="emu", no_cache=True, checks=[int])
except cutlass.ArgumentError as error:
    print(error.message)
"""


def test_the_first_launch_loads_the_emulator(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[:2] == ["False", "True True"], done.stderr
    assert "int" in done.stdout.splitlines()[2]
