"""What options show and keep of a compiled function that is found in the cache, in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tilewright.base.settings import environment

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
import tilewright.cute as cute
from tests.compiler.support import double, floats
options = cute.PtxasOptions("-v"), cute.KeepPTX, cute.KeepCUBIN, cute.DumpDir(sys.argv[1]), cute.GPUArch("sm_90")
chosen = cute.compile[options]
executor = chosen(double, *floats(), target="emu")
x, out = floats()
executor(x, out)
assert (out == 2 * x).all()
print("log", "Compiling entry function" in executor.ptxas_log)
print("remarks", [remark.text.split(":")[0] for remark in executor.report().kernels[0].remarks])
"""


def run(folder, kept):
    changes = {"TILEWRIGHT_NO_CACHE": "0", "TILEWRIGHT_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", PROGRAM, str(folder / kept)]
    done = subprocess.run(command, cwd=ROOT, env=environment(changes), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_a_hit_shows_and_keeps_what_a_compilation_does(tmp_path):
    first, second = run(tmp_path, "first"), run(tmp_path, "second")
    assert first.stdout.splitlines()[0].startswith("compiled double for sm_90 in")
    assert second.stdout.splitlines()[0] == "found double for sm_90 in the cache (disk)"
    assert first.stdout.splitlines()[1:] == second.stdout.splitlines()[1:] and "log True" in second.stdout
    for done in (first, second):
        assert done.stderr.count("Compiling entry function 'double_kernel' for 'sm_90'") == 1
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")]
    assert files[0] == files[1] and sorted(files[0]) == ["double.sm_90.cubin", "double.sm_90.ptx"]
