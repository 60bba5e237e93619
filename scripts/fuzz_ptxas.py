"""Random PTX through ptxas at -O0 and -O3 on a device, and through the emulator: programs on which they disagree.

On a machine with a GPU of compute capability 9.0:

    python scripts/fuzz_ptxas.py --programs 20000 --out found.json --ptxas /opt/cuda-12.9/bin/ptxas --ptxas ptxas

Without a device (`--no-device`) the programs are assembled and emulated: crashes, hangs and refusals of assemblers
show, and what the emulator reports. Every program comes from its number, `--seed`, and so does its input. What differs
is tried again with each mend (`targets/nvidia/mends`: a known fault), and what no mend helps is reduced. docs/ptxas.md
has what was found.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections import Counter
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from tilewright.targets.nvidia.mends.mend_ptx import mend
from tilewright.targets.nvidia.mends.ptxas_faults import MENDS
from tilewright.tools.fuzzing.assemblers import Assembler, found_at
from tilewright.tools.fuzzing.campaign import Finding, Oracle, disagreements, helped, made, survey
from tilewright.tools.fuzzing.known import PROGRAMS
from tilewright.tools.fuzzing.machines import CudaMachine, Machine
from tilewright.tools.fuzzing.reducer import reduced, size
from tilewright.tools.fuzzing.report import Row, row_of

NAMED = 300
"""For how many findings of known faults it is found out which one."""


def main() -> int:
    """Run; the exit status is 1 where something unknown was found."""
    options = arguments()
    assemblers = [one for path in options.ptxas or [shutil.which("ptxas") or "ptxas"] for one in found_at(path)]
    machine = None if options.no_device else CudaMachine()
    seeds = options.seeds or range(options.seed, options.seed + options.programs)
    if options.known:
        return known_faults(assemblers, machine)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, context) as pool:
        start = time.monotonic()
        result = survey(seeds, assemblers, machine, pool, seconds=options.seconds, checks=options.checks)
        print(f"{result.programs} programs, {result.exact} of them exact, {len(result.findings)} findings,"
              f" {time.monotonic() - start:.0f} s", flush=True)  # fmt: skip
        rows = explained(result.findings, assemblers, machine, pool, options.reduce_seconds)
    if isinstance(machine, CudaMachine):
        machine.close()
    summary = {"programs": result.programs, "exact": result.exact, "first seed": options.seed,
               "assemblers": [one.name for one in assemblers], "findings": rows}  # fmt: skip
    if options.out:
        options.out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    show(rows)
    return 1 if any(not row["known"] for row in rows) else 0


def known_faults(assemblers: list[Assembler], machine: Machine | None) -> int:
    """Print which assemblers get which known fault's program wrong; the exit status is 0."""
    for name, programs in PROGRAMS.items():
        for number, program in enumerate(programs):
            found = disagreements(made([program], assemblers, True), assemblers, machine)
            differing = [one for finding in found for one in finding.differing]
            print(f"{name:16} {number}  {' | '.join(differing) or 'none'}")
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first program")
    parser.add_argument("--seeds", type=numbers, help="these programs alone: 3,14,15")
    parser.add_argument("--ptxas", action="append", help="path of a ptxas; may be repeated")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for running programs")
    parser.add_argument("--reduce-seconds", type=float, default=60.0, help="for explaining and reducing what was found")
    parser.add_argument("--known", action="store_true", help="run the programs of the known faults instead")
    parser.add_argument("--no-device", action="store_true", help="assemble and emulate only")
    parser.add_argument("--checks", action="store_true", help="emulate with all checks")
    parser.add_argument("--out", type=Path, help="a JSON file for what was found")
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    """Seeds with commas between."""
    return [int(part) for part in text.split(",")]


def explained(
    findings: list[Finding], assemblers: list[Assembler], machine: Machine | None, pool: Executor, seconds: float
) -> list[Row]:
    """Rows of findings: those that a mend helps, by its name, then the others, the smallest of them reduced."""
    end = time.monotonic() + seconds
    ordered = sorted(findings, key=lambda finding: size(finding.program))
    known = helped(ordered, assemblers, machine, pool, mend)
    names: dict[int, str] = dict.fromkeys(known, "several")
    unnamed = [finding for finding in ordered if finding.program.seed in known][:NAMED]
    for name, change in MENDS:
        by_it = helped(unnamed, assemblers, machine, pool, change)
        names.update(dict.fromkeys(by_it, name))
        unnamed = [finding for finding in unnamed if finding.program.seed not in by_it]
    rows = [row_of(one, known=names[one.program.seed]) for one in ordered if one.program.seed in known]
    unknown = [finding for finding in ordered if finding.program.seed not in known]
    for place, finding in enumerate(unknown):
        left = (end - time.monotonic()) / max(1, min(12, len(unknown) - place))
        rows.append(smaller(finding, assemblers, machine, pool, left) if left > 0.5 else row_of(finding))
    return rows


def smaller(
    finding: Finding, assemblers: list[Assembler], machine: Machine | None, pool: Executor, seconds: float
) -> Row:
    """The row of a finding of which only what matters is left; the known forms are mended on the way."""
    program = reduced(finding.program, Oracle(finding, assemblers, machine, pool, mend), seconds=seconds)
    again = disagreements(made([program], assemblers, True, mend), assemblers, machine)
    return row_of(again[0] if again else finding, whole=True)


def show(rows: list[Row]) -> None:
    """A table by kind, assembler and known fault, and the reduced programs."""
    counted = Counter((row["kind"], " | ".join(row["differing"]), row["known"] or "unknown") for row in rows)
    for (kind, differing, known), count in counted.most_common():
        print(f"{count:6} {kind:9} {known:28} {differing}")
    for row in rows:
        if "ptx" in row:
            print("\n".join(f"{key}: {value}" for key, value in row.items() if key != "ptx"), row["ptx"], sep="\n")


if __name__ == "__main__":
    sys.exit(main())
