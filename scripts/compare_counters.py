"""The emulator's counters beside those of Nsight Compute, for kernels of known access pattern.

`python scripts/compare_counters.py` needs a GPU and ncu on PATH; it prints a table and exits with 1 where figures
differ.
"""

from __future__ import annotations

import csv
import ctypes
import io
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.emu.test_counters import kernel  # noqa: E402
from tilewright.emulate import run_ptx  # noqa: E402
from tilewright.targets.nvidia.devices.driver import driver  # noqa: E402
from tilewright.targets.nvidia.toolkit.assemble import assemble  # noqa: E402

PATTERNS = (
    ("global", 1, "b32"), ("global", 2, "b32"), ("global", 8, "b32"), ("global", 0, "b32"),
    ("global", 1, "v4.b32"), ("global", 2, "v4.b32"),
    ("shared", 1, "b32"), ("shared", 2, "b32"), ("shared", 32, "b32"), ("shared", 33, "b32"),
    ("shared", 1, "b64"), ("shared", 1, "v4.b32"), ("shared", 2, "v4.b32"),
)  # fmt: skip
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
THREADS = 64


def text_of(access: str, stride: int, size: str) -> str:
    """The pattern's PTX; what is loaded is stored, so that no assembler drops it."""
    text = kernel(access, stride, size)
    if access == "global":
        register = "%d5" if size == "b64" else "%r5"
        kind = "b64" if size == "b64" else "b32"
        text = text.replace("  ret;", f"  st.shared.{kind} [%r3], {register};\n  ret;")
    return text


def launch_all() -> None:
    """Launch every pattern once, for ncu to watch."""
    cuda = driver()
    cuda.make_current(0)
    buffer = cuda.allocate(1 << 16)
    for pattern in PATTERNS:
        made = cuda.load_library(assemble(text_of(*pattern), "sm_90a").data).kernel("k")
        cuda.launch(made, (1, 1, 1), (THREADS, 1, 1), [ctypes.c_uint64(buffer.address)])
        cuda.synchronize()


def measured() -> list[dict[str, float]]:
    """ncu's figures by launch, in the order of the launches."""
    command = ["ncu", "--csv", "--metrics", f"{SECTORS},{WAVEFRONTS}", sys.executable, __file__, "--child"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    table = done.stdout[done.stdout.index('"ID"') :]
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        found.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [found[key] for key in sorted(found, key=int)]


def main() -> int:
    """Compare, print, and say whether all figures are equal."""
    if "--child" in sys.argv:
        launch_all()
        return 0
    wrong = 0
    for pattern, figures in zip(PATTERNS, measured(), strict=True):
        report = run_ptx(text_of(*pattern), "k", 1, THREADS, [np.zeros(1 << 16, np.uint8)], counters=True)
        name, ours = (SECTORS, report.sectors) if pattern[0] == "global" else (WAVEFRONTS, report.wavefronts)
        same = figures[name] == ours
        wrong += not same
        print(f"{pattern!s:28} emulator {ours:6} ncu {figures[name]:8.0f} {'' if same else 'DIFFERENT'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
