"""Compile the kernels of CUB, libcu++ and cooperative groups of the emulator's tests to PTX, kept beside them.

    python scripts/build_library_ptx.py --include DIR [--nvcc PATH]

DIR holds the headers of CCCL (`cub`, `cuda`): `include/cccl` of the PyPI package nvidia-cuda-cccl, for one. The PTX in
the repository is that of CCCL 3.3 and nvcc 13.5. tests/emu/test_libraries.py runs the kernels against NumPy.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "emu" / "data" / "libraries"
FLAGS = ["-ptx", "-arch=compute_90", "-O3", "-std=c++17", "--diag-suppress", "20054"]
NOISE = re.compile(r"^\s*(//.*)?\n", re.MULTILINE)


def main() -> None:
    """Compile each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True, help="the folder of CCCL's headers")
    parser.add_argument("--nvcc", default="nvcc", help="the compiler to use")
    arguments = parser.parse_args()
    for source in sorted(FOLDER.glob("*.cu")):
        target = source.with_suffix(".ptx")
        subprocess.run([arguments.nvcc, *FLAGS, "-I", arguments.include, str(source), "-o", str(target)], check=True)
        target.write_text(NOISE.sub("", target.read_text()))
        print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
