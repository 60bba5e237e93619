"""What compute-sanitizer says of the seeded faults of the emulator's suite, on a GPU.

`python scripts/sanitize_faults.py` needs a GPU of compute capability 9.0 and compute-sanitizer on PATH. Every kernel of
tests/emu/faults.py and each of its mutants runs once bare: it is right, an argument is wrong, it fails, or it hangs.
What does not hang runs once more under each of memcheck, racecheck, initcheck and synccheck. Each run is a process of
its own, killed when its kernel takes longer than `--limit` seconds: a mutant that hangs costs that long and no more.

`--kernels NAME ...` judges some of the kernels. The rows go into `--out` (default: the recorded file), those of other
kernels stay; if that file does not exist yet, they are taken from the recorded one. It is written whenever a kernel is
done. A row names its card if that is not the file's.
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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.emu import faults  # noqa: E402
from tilewright.targets.nvidia.devices.driver import driver  # noqa: E402
from tilewright.targets.nvidia.toolkit.assemble import assemble  # noqa: E402

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
RECORDED = faults.DATA / "sanitizer.json"
START = 30.0  # seconds until a child has loaded its kernel
SLOWER = 4.0  # times that a kernel may take under compute-sanitizer
LOADED = "== loaded"
FINDING = re.compile(r"^=========.*(?:[Ee]rror|[Hh]azard|Uninitialized|Invalid|Race)", re.MULTILINE)
NO_FINDING = re.compile(r"ERROR SUMMARY|RACECHECK SUMMARY|Target application returned an error|Error: process")
Row = dict[str, str]


@dataclass(frozen=True)
class Text:
    """A kernel or a mutant of it, assembled."""

    kernel: str
    change: str
    cubin: Path


# ---- in a child ---------------------------------------------------------------------------------------------------


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
    print(LOADED, flush=True)
    cuda.launch(kernel, (*case.grid, 1), (*case.block, 1), values, cluster=(case.cluster, 1, 1))
    cuda.synchronize()
    for buffer, argument in buffers:
        cuda.copy_to_host(argument.ctypes.data, buffer.address, argument.nbytes)
    wrong = [at for at, value in wanted.items() if not np.array_equal(arguments[at], value)]
    return f"argument {wrong[0]} is wrong" if wrong else "right"


# ---- in the parent ------------------------------------------------------------------------------------------------


def run(command: list[str], limit: float, start: float = START) -> tuple[str, bool]:
    """The output of a command, and whether it ended by itself: within `limit` seconds after it has said `LOADED`."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        deadline, loaded = time.monotonic() + start, False
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            if not loaded and LOADED in _contents(output):
                deadline, loaded = time.monotonic() + limit, True
        ended = process.poll() is not None
        if not ended:
            kill(process)
        return _contents(output), ended


def _contents(file: Any) -> str:
    """All that a file holds, read without moving the writer's place in it."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started; one that the driver still holds is not waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)


def child(text: Text, tool: str = "") -> list[str]:
    """The command that runs a text, bare or under a tool."""
    command = [sys.executable, "-u", __file__, "--child", text.kernel, "--cubin", str(text.cubin)]
    return ["compute-sanitizer", "--tool", tool, *command] if tool else command


def outcome(output: str, ended: bool) -> str:
    """What became of a bare run."""
    if not ended:
        return "hangs"
    return next((line for line in output.splitlines() if line.startswith(("right", "argument"))), "fails")


def finding(output: str) -> str:
    """The first thing that a tool reported, empty if it reported nothing."""
    lines = [line for line in output.splitlines() if FINDING.match(line) and not NO_FINDING.search(line)]
    return lines[0].strip("= ") if lines else ""


def judge(text: Text, limit: float) -> Row:
    """The row of a text: bare, then under each tool, unless it hangs."""
    row = {"kernel": text.kernel, "change": text.change, "output": outcome(*run(child(text), limit))}
    for tool in TOOLS:
        row[tool] = "" if row["output"] == "hangs" else finding(run(child(text, tool), SLOWER * limit)[0])
    return row


def merged(old: dict[str, Any], rows: list[Row], card: str) -> dict[str, Any]:
    """A file's contents with the rows of some kernels in place of those it had, in the order of the suite."""
    if not old:
        old = {"card": card, "rows": []}
    new = [row if card == old["card"] else {**row, "card": card} for row in rows]
    judged = {row["kernel"] for row in rows}
    names = [case.name for case in faults.CASES]
    kept = [row for row in old["rows"] if row["kernel"] not in judged]
    return {**old, "rows": sorted([*kept, *new], key=lambda row: names.index(row["kernel"]))}


def texts(chosen: list[str], folder: Path) -> dict[str, list[Text]]:
    """The chosen kernels and their mutants, by kernel, the correct one first."""
    found: dict[str, list[Text]] = {}
    for case in faults.CASES:
        if case.name in chosen:
            sources = [("", faults.PTX), *((mutant.what, mutant.text) for mutant in faults.mutants(case))]
            for number, (change, source) in enumerate(sources):
                cubin = folder / f"{case.name}_{number}.cubin"
                cubin.write_bytes(assemble(source, "sm_90a", use_ptxas=True).data)
                found.setdefault(case.name, []).append(Text(case.name, change, cubin))
    return found


def judge_all(chosen: list[str], out: Path, limit: float, workers: int) -> list[Row]:
    """Judge the chosen kernels; `out` is written whenever one is done."""
    source = out if out.exists() else RECORDED
    contents = json.loads(source.read_text()) if source.exists() else {}
    card, done = driver().device().name, []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        jobs: dict[str, list[Future[Row]]] = {
            kernel: [pool.submit(judge, text, limit) for text in some]
            for kernel, some in texts(chosen, Path(folder)).items()
        }
        for kernel, futures in jobs.items():
            rows = [future.result() for future in futures]
            contents = merged(contents, rows, card)
            out.write_text(json.dumps(contents, indent=1) + "\n")
            print(f"{kernel}: {sum(row['output'] == 'hangs' for row in rows)} of {len(rows)} hang", flush=True)
            done += rows
    return done


def main() -> int:
    """Judge texts, or run one kernel as a child."""
    names = [case.name for case in faults.CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RECORDED, help="the file to write")
    parser.add_argument(
        "--kernels", nargs="+", choices=names, default=names, help="the kernels to judge (default: all)"
    )
    parser.add_argument("--limit", type=float, default=5.0, help="seconds that a kernel may take, bare")
    parser.add_argument("--workers", type=int, default=8, help="runs at a time")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--cubin", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(launch(given.child, given.cubin), flush=True)
        return 0
    done = judge_all(given.kernels, given.out, given.limit, given.workers)
    harmful = [row for row in done if row["change"] and (row["output"] != "right" or any(row[t] for t in TOOLS))]
    print(f"{len(done)} texts, {len(harmful)} mutants wrong on the GPU or reported by compute-sanitizer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
