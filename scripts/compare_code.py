"""What compiled kernels cost, and how that differs between two checkouts of this repository.

    python scripts/compare_code.py --save before.json                         (in one checkout)
    python scripts/compare_code.py --save after.json --against before.json    (in the other)

The kernels are those of the demonstration, those that the tests of `SUITE` compile, and with `--cutlass DIR`, a
checkout of NVIDIA/cutlass whose Python package of the DSL is never read, those of the public examples for Ampere. A
source runs in a process of its own; every program that it compiles is compiled to a cubin, and none is run. Of each
kernel it is noted how many instructions, registers and bytes of spills it has, and how many lines of PTX; of each
program the seconds of each stage, the least of `--repeats` compilations. A kernel is known by its source, its name and
which of that name it is.

Ends with status 1 where the sum of instructions rose, or a kernel gained more than `--instructions` per cent of
instructions, `--registers` registers or a spill.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

EXAMPLES = ("ampere/", "cta_norm", "ampere_gemm_with_fake_tensor")
SUITE = (
    "tests/lang/atoms", "tests/lang/control", "tests/lang/test_tensors.py", "tests/lang/test_sub_byte.py",
    "tests/lang/test_arch.py", "tests/lang/test_atomics.py", "tests/lang/test_math.py",
    "tests/lang/test_pipelines.py", "tests/lang/test_swizzled_memory.py", "tests/lang/test_structs.py",
    "tests/lang/test_state_in_regions.py", "tests/lang/test_packed.py", "tests/passes",
    "tests/compiler/test_stages.py", "tests/docs",
)  # fmt: skip
STAGES = ("cute", "nvvm", "llvm", "ptx", "cubin")


@dataclass(frozen=True)
class Kernel:
    """One compiled kernel. Spills in bytes, stores and loads together."""

    source: str
    name: str
    instructions: int
    registers: int
    spills: int
    stack: int
    ptx_lines: int

    @property
    def key(self) -> str:
        return f"{self.source} {self.name}"


@dataclass(frozen=True)
class Program:
    """One compiled function: operations after stage `cute`, lines of `nvvm`, seconds of each stage."""

    source: str
    name: str
    operations: int
    nvvm_lines: int
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.source} {self.name}"

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


@dataclass
class Record:
    """What the sources compiled."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        rows = {name: [asdict(item) for item in getattr(self, name).values()] for name in ("kernels", "programs")}
        path.write_text(json.dumps(rows, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Record:
        rows = json.loads(path.read_text())
        kernels = [Kernel(**row) for row in rows["kernels"]]
        programs = [Program(**row) for row in rows["programs"]]
        return cls({item.key: item for item in kernels}, {item.key: item for item in programs})

    def add(self, other: Record) -> None:
        self.kernels.update(other.kernels)
        self.programs.update(other.programs)


def sources(cutlass: Path | None, only: str) -> list[tuple[str, list[str], Path]]:
    """Name, arguments of `compat/record_code.py` and working directory of each source."""
    found: list[tuple[str, list[str], Path]] = [("demo", ["demo"], ROOT)]
    if cutlass is not None:
        with (ROOT / "scripts" / "compat" / "files.csv").open() as file:
            for row in csv.DictReader(file):
                path = cutlass / row["path"].removesuffix("::pytest")
                if row["repository"] == "cutlass" and any(part in row["path"] for part in EXAMPLES) and path.exists():
                    command = ["--emulated", str(path), *shlex.split(row["arguments"])]
                    found.append((path.name, command, path.parent))
    found += [(name, ["suite", name], ROOT) for name in SUITE if (ROOT / name).exists()]
    return [item for item in found if only in item[0]]


def record(name: str, arguments: list[str], folder: Path, repeats: int, cutlass: Path | None) -> Record:
    """Run one source in a process of its own."""
    paths = [ROOT / "src", ROOT, ROOT / "scripts", ROOT / "src" / "tilewright" / "dropin_path"]
    paths += [cutlass / "examples/python/CuTeDSL"] if cutlass is not None else []
    environment = {**os.environ, "TILEWRIGHT_TARGET": "emu", "PYTHONPATH": os.pathsep.join(map(str, paths))}
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "record.json"
        child = ROOT / "scripts" / "compat" / "record_code.py"
        command = [sys.executable, str(child), name, str(out), str(repeats), *arguments]
        subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
        return Record.read(out) if out.exists() else Record()


def differences(before: Record, after: Record, limits: argparse.Namespace) -> tuple[str, bool]:
    """The comparison as text, and whether it is within the limits."""
    common = [key for key in after.kernels if key in before.kernels]
    pairs = [(before.kernels[key], after.kernels[key]) for key in common]
    lines = [f"{len(pairs)} kernels in both, {len(before.kernels.keys() ^ after.kernels.keys())} in one"]
    good = True
    for name in ("instructions", "registers", "spills", "stack", "ptx_lines"):
        old, new = (sum(getattr(pair[side], name) for pair in pairs) for side in (0, 1))
        lines.append(f"  {name:<13}{old:>10} -> {new:<10}{_change(old, new)}")
        good = good and not (name == "instructions" and new > old)
    for old, new in pairs:
        verdict = _verdict(old, new, limits)
        good = good and verdict != "WORSE"
        if verdict:
            lines.append(
                f"  {verdict:<7}{new.key}: instructions {old.instructions} -> {new.instructions}, registers"
                f" {old.registers} -> {new.registers}, spills {old.spills} -> {new.spills}, stack {old.stack} ->"
                f" {new.stack}"
            )
    lines.append(_times(before, after))
    return "\n".join(lines), good


def _verdict(old: Kernel, new: Kernel, limits: argparse.Namespace) -> str:
    if new.instructions > old.instructions * (1 + limits.instructions / 100) or (
        new.registers > old.registers + limits.registers or new.spills > old.spills
    ):
        return "WORSE"
    better = new.instructions < old.instructions * 0.98 or new.registers < old.registers - 2 or new.spills < old.spills
    return "better" if better else ""


def _times(before: Record, after: Record) -> str:
    """Seconds of the programs in both, by source, and of those that changed most."""
    common = [key for key in after.programs if key in before.programs]
    by_source: dict[str, list[tuple[Program, Program]]] = {}
    for key in common:
        by_source.setdefault(after.programs[key].source, []).append((before.programs[key], after.programs[key]))
    lines = ["milliseconds to a cubin", f"  {'':<36}{'before':>9}{'after':>9}{'':>9}   " + "  ".join(STAGES)]
    for source, pairs in by_source.items():
        lines.append(_time_row(source, pairs))
        if len(pairs) <= 4:
            lines += [_time_row("  " + new.name, [(old, new)]) for old, new in pairs]
    return "\n".join(lines)


def _time_row(name: str, pairs: list[tuple[Program, Program]]) -> str:
    old, new = (sum(pair[side].total for pair in pairs) * 1e3 for side in (0, 1))
    stages = [
        "{:.0f}->{:.0f}".format(*(sum(pair[side].seconds[stage] for pair in pairs) * 1e3 for side in (0, 1)))
        for stage in STAGES
    ]
    return f"  {name:<36}{old:>9.1f}{new:>9.1f}{_change(old, new):>9}   " + "  ".join(stages)


def _change(old: float, new: float) -> str:
    return f"{(new / old - 1) * 100:+.1f} %" if old else ""


def main(arguments: list[str]) -> int:
    """The command line; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, help="write the figures to this file")
    parser.add_argument("--read", type=Path, help="take figures that were saved, instead of compiling")
    parser.add_argument("--against", type=Path, help="compare with figures that were saved")
    parser.add_argument("--cutlass", type=Path, help="a checkout of NVIDIA/cutlass, for its examples")
    parser.add_argument("--only", default="", help="sources whose name holds this text")
    parser.add_argument("--repeats", type=int, default=0, help="compilations more of each program, for the seconds")
    parser.add_argument("--instructions", type=float, default=2.0, help="per cent that a kernel may gain")
    parser.add_argument("--registers", type=int, default=2, help="registers that a kernel may gain")
    given = parser.parse_args(arguments)
    cutlass = given.cutlass.resolve() if given.cutlass else None
    made = Record.read(given.read) if given.read else Record()
    for name, command, folder in () if given.read else sources(cutlass, given.only):
        sys.stderr.write(f"{name}\n")
        made.add(record(name, command, folder, given.repeats, cutlass))
        if given.save:
            made.write(given.save)
    if given.against is None:
        sys.stdout.write(f"{len(made.kernels)} kernels, {sum(k.instructions for k in made.kernels.values())}"
                         " instructions\n")  # fmt: skip
        return 0
    text, good = differences(Record.read(given.against), made, given)
    sys.stdout.write(text + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
