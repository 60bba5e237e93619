"""What compute-sanitizer says of the seeded faults of the emulator's suite, on a GPU.

`python scripts/sanitize_faults.py --out FILE.json` needs a GPU of compute capability 9.0 and compute-sanitizer on PATH.
Every kernel of tests/emu/faults.py and each of its mutants runs once bare (right, wrong, or hangs) and once under each
of memcheck, racecheck, initcheck and synccheck; the kernels side by side, one's mutants in turn. FILE.json
holds a row for each, and the card's name; it is written anew whenever a kernel is done.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.emu import faults  # noqa: E402
from tilewright.targets.nvidia.assemble import assemble  # noqa: E402
from tilewright.targets.nvidia.driver import driver  # noqa: E402

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 15.0  # for one kernel after another, without a line of output
MARK = "== text "
FINDING = re.compile(r"^=========.*(?:[Ee]rror|[Hh]azard|Uninitialized|Invalid|Race)", re.MULTILINE)
NO_FINDING = re.compile(r"ERROR SUMMARY|RACECHECK SUMMARY|Target application returned an error|Error: process")


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


def sections(kernel: str, cubins: list[str], tool: str) -> list[str]:
    """What is printed for each cubin. A process runs one after the other; when it dies or hangs, a new one goes on."""
    found = ["hangs or ends the process"] * len(cubins)
    start = 0
    while start < len(cubins):
        command = [
            sys.executable,
            "-u",
            __file__,
            "--kernel",
            kernel,
            "--first",
            str(start),
            "--cubins",
            *cubins[start:],
        ]
        text = _run(["compute-sanitizer", "--tool", tool, *command] if tool else command)
        parts = text.split(MARK)[1:]
        for part in parts:
            number, _, body = part.partition("\n")
            found[int(number)] = body
        start = start + len(parts) if parts else start + 1
    return found


def _run(command: list[str]) -> str:
    """The output of a command, killed when it prints nothing for a while."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        size, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            now = os.fstat(output.fileno()).st_size
            if now != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > SECONDS:
                os.killpg(process.pid, signal.SIGKILL)  # with the program that compute-sanitizer started
                process.wait()
        output.seek(0)
        return output.read()


def judge(kernel: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fill in the rows of one kernel: bare, then under each tool."""
    cubins = [row.pop("cubin") for row in rows]
    for row, text in zip(rows, sections(kernel, cubins, ""), strict=True):
        row["output"] = next((line for line in text.splitlines() if line.startswith(("right", "argument"))), "fails")
    for tool in TOOLS:
        for row, text in zip(rows, sections(kernel, cubins, tool), strict=True):
            lines = [line for line in text.splitlines() if FINDING.match(line) and not NO_FINDING.search(line)]
            row[tool] = lines[0].strip("= ") if lines else ""
    return rows


def _texts() -> list[tuple[str, str, str]]:
    """(kernel, change, PTX) of every kernel and mutant."""
    found = []
    for case in faults.CASES:
        found.append((case.name, "", faults.PTX))
        found += [(case.name, mutant.what, mutant.text) for mutant in faults.mutants(case)]
    return found


def _run_each(kernel: str, first: int, cubins: list[Path]) -> None:
    for number, cubin in enumerate(cubins, first):
        print(f"{MARK}{number}", flush=True)
        print(launch(kernel, cubin), flush=True)


def main() -> int:
    """Judge all texts, or run kernels as a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--kernel")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cubins", type=Path, nargs="*")
    given = parser.parse_args()
    if given.kernel:
        _run_each(given.kernel, given.first, given.cubins)
        return 0
    rows: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.workers) as pool:
        for number, (kernel, change, text) in enumerate(_texts()):
            path = Path(folder) / f"{number}.cubin"
            path.write_bytes(assemble(text, "sm_90a", use_ptxas=True).data)
            rows.setdefault(kernel, []).append({"kernel": kernel, "change": change, "cubin": str(path)})
        done: list[dict[str, Any]] = []
        for finished in as_completed([pool.submit(judge, kernel, part) for kernel, part in rows.items()]):
            done += finished.result()
            given.out.write_text(json.dumps({"card": driver().device().name, "rows": done}, indent=1) + "\n")
            print(done[-1]["kernel"], flush=True)
    harmful = [row for row in done if row["change"] and (row["output"] != "right" or any(row[t] for t in TOOLS))]
    print(f"{len(done)} texts, {len(harmful)} mutants wrong on the GPU or reported by compute-sanitizer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
