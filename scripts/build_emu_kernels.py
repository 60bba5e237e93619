"""Compile the CUDA kernels of the emulator's differential suite to PTX, kept beside them as test data.

Run where nvcc is: `python scripts/build_emu_kernels.py [--nvcc PATH] [--check]`. The comment `// kernel: {...}` before
a kernel becomes its row of manifest.json; its keys are the fields of `tests.emu.kernels.Kernel` with `in` for the
inputs. `--check` compiles nothing and fails if the manifest does not match the sources.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "tests" / "emu" / "data" / "cuda"
FLAGS = ["-ptx", "-arch=compute_90a", "-O3", "-fmad=false"]
START = r"^KERNEL(?:_OF\(\d+\))? "
ROW = re.compile(r"^// kernel: (\{.*\})\s*\n" + START[1:] + r"(\w+)\(", re.MULTILINE)
NOISE = re.compile(r"^\s*(//.*)?\n", re.MULTILINE)


def main() -> int:
    """Compile everything, or only check; the exit status."""
    arguments = parse_arguments()
    rows = [row for source in sources() for row in read_rows(source)]
    lines = ",\n".join(json.dumps(row) for row in rows)
    manifest = f'{{"flags": "{" ".join(FLAGS)}", "kernels": [\n{lines}\n]}}\n'
    path = FOLDER / "manifest.json"
    if arguments.check:
        return 0 if path.read_text() == manifest else complain("manifest.json does not match the sources")
    for source in sources():
        compile_source(arguments.nvcc, source)
    path.write_text(manifest)
    print(f"{len(rows)} kernels in {len(sources())} files")
    return 0


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", default="nvcc", help="the compiler to use")
    parser.add_argument("--check", action="store_true", help="only compare the manifest with the sources")
    return parser.parse_args()


def sources() -> list[Path]:
    """The CUDA files, in a fixed order."""
    return sorted(FOLDER.glob("*.cu"))


def read_rows(source: Path) -> list[dict[str, Any]]:
    """The manifest rows of a source file; every kernel must have one."""
    text = source.read_text()
    found = ROW.findall(text)
    if len(found) != len(re.findall(START, text, re.MULTILINE)):
        raise SystemExit(f"{source.name}: a kernel has no `// kernel:` comment right before it")
    rows = []
    for comment, name in found:
        row = json.loads(comment)
        rows.append({"name": name, "file": source.stem, "inputs": row.pop("in"), **row})
    return rows


def compile_source(nvcc: str, source: Path) -> None:
    """Write SOURCE.ptx, without the compiler's comments and empty lines."""
    target = source.with_suffix(".ptx")
    subprocess.run([nvcc, *FLAGS, str(source), "-o", str(target)], check=True)
    target.write_text(NOISE.sub("", target.read_text()))


def complain(message: str) -> int:
    """Say what is wrong; the exit status for that."""
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
