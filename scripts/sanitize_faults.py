"""What compute-sanitizer says of the seeded faults of the emulator's suite, on a GPU.

`python scripts/sanitize_faults.py --out FILE.json` needs a GPU of compute capability 9.0 and compute-sanitizer on PATH.
Every kernel of tests/emu/faults.py and each of its mutants runs once bare (right, wrong, or hangs) and once under each
of memcheck, racecheck, initcheck and synccheck, in processes of their own, several at a time. FILE.json holds a row
for each, and the card's name.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.emu import faults  # noqa: E402
from tilewright.targets.nvidia.assemble import assemble  # noqa: E402
from tilewright.targets.nvidia.driver import driver  # noqa: E402

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 25.0
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard")


def launch(name: str, cubin: Path) -> str:
    """Run one kernel on the GPU; "right" or what is wrong."""
    case = next(case for case in faults.CASES if case.name == name)
    cuda = driver()
    cuda.make_current(0)
    kernel = cuda.load_library(cubin.read_bytes()).kernel(name)
    arguments, wanted = case.make()
    buffers: list[Any] = []
    values: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            buffer = cuda.allocate(argument.nbytes)
            cuda.copy_to_device(buffer.address, argument.ctypes.data, argument.nbytes)
            buffers.append((buffer, argument))
            values.append(ctypes.c_uint64(buffer.address))
        else:
            values.append(ctypes.c_int32(argument))
    cuda.launch(kernel, (*case.grid, 1), (*case.block, 1), values, cluster=(case.cluster, 1, 1))
    cuda.synchronize()
    for buffer, argument in buffers:
        cuda.copy_to_host(argument.ctypes.data, buffer.address, argument.nbytes)
    wrong = [at for at, value in wanted.items() if not np.array_equal(arguments[at], value)]
    return f"argument {wrong[0]} is wrong" if wrong else "right"


def judge(row: dict[str, Any]) -> dict[str, Any]:
    """Run one text bare and under every tool."""
    child = [sys.executable, __file__, "--kernel", row["kernel"], "--cubin", row.pop("cubin")]
    row["output"] = _run(child).strip().splitlines()[-1:] or ["nothing"]
    row["output"] = row["output"][0]
    for tool in TOOLS:
        text = _run(["compute-sanitizer", "--tool", tool, *child])
        counts = [int(first or second) for first, second in SUMMARY.findall(text)]
        row[tool] = max(counts) if counts else text.strip().splitlines()[-1] if text.strip() else "nothing"
    return row


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "hangs"
    return done.stdout + (done.stderr if done.returncode else "")


def _texts() -> list[tuple[str, str, str]]:
    """(kernel, change, PTX) of every kernel and mutant."""
    found = []
    for case in faults.CASES:
        found.append((case.name, "", faults.PTX))
        found += [(case.name, mutant.what, mutant.text) for mutant in faults.mutants(case)]
    return found


def main() -> int:
    """Judge all texts, or run one kernel as a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kernel")
    parser.add_argument("--cubin", type=Path)
    given = parser.parse_args()
    if given.kernel:
        print(launch(given.kernel, given.cubin))
        return 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.workers) as pool:
        rows = []
        for number, (kernel, change, text) in enumerate(_texts()):
            path = Path(folder) / f"{number}.cubin"
            path.write_bytes(assemble(text, "sm_90a", use_ptxas=True).data)
            rows.append({"kernel": kernel, "change": change, "cubin": str(path)})
        judged = list(pool.map(judge, rows))
    given.out.write_text(json.dumps({"card": driver().device().name, "rows": judged}, indent=1) + "\n")
    harmful = [row for row in judged if row["change"] and (row["output"] != "right" or any(row[t] for t in TOOLS))]
    print(f"{len(judged)} texts, {len(harmful)} mutants harmful on the GPU or reported by compute-sanitizer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
