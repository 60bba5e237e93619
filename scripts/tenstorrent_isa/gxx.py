"""Stands where ttnn looks for its RISC-V compiler, which its wheel lacks, and runs Debian's in its place.

It drops the flags that only Tenstorrent's compiler knows, and lets GNU as write the one instruction that it lacks,
`.ttinsn x`, as a word with the bits of x turned left by two. Firmware is not built: kernels run with a set of firmware
from the wheel (FIRMWARE names its folder). Kernels of the vector engine need the compiler's vector types, and are not
compiled this way.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GXX = "riscv64-unknown-elf-g++"
PICOLIBC = "/usr/lib/picolibc/riscv64-unknown-elf"
TTINSN = """
    .macro .ttinsn x
    .word ((((\\x) << 2) | (((\\x) >> 30) & 3)) & 0xffffffff)
    .endm
"""
COMMON = ["-march=rv32im", "-mabi=ilp32", "-D__riscv_xtttensixwh", "-fno-lto", "-w"]
INCLUDES = [
    "-nostdinc++",
    *(f"-isystem{path}" for path in (
        HERE / "include", "/usr/include/c++/12", "/usr/include/x86_64-linux-gnu/c++/12", f"{PICOLIBC}/include"
    )),
]  # fmt: skip
DROPPED = ("-ftt-", "-flto", "-mcpu=tt", "-Werror", "-mtt", "-fno-rvtt", "-g")


def main(arguments: list[str]) -> int:
    """Compile, link, or stand in for what is not built."""
    if "--version" in arguments:
        return subprocess.run([GXX, "--version"], check=False).returncode
    output = Path(arguments[arguments.index("-o") + 1])
    if "c++-header" in arguments:
        output.write_bytes(b"")
        return 0
    if "firmware" in output.parts:
        return firmware(arguments, output)
    kept = [flag for flag in arguments if not flag.startswith(DROPPED)]
    return compile_kernel(kept, output) if "-c" in arguments else link(kept, output)


def firmware(arguments: list[str], output: Path) -> int:
    """An object with nothing in it, or the wheel's program."""
    if "-MF" in arguments:
        Path(arguments[arguments.index("-MF") + 1]).write_text(f"{output}:\n")
    if output.suffix == ".o":
        return subprocess.run([GXX, *COMMON, "-c", "-x", "c++", "/dev/null", "-o", str(output)], check=False).returncode
    name = output.name.partition(".")[0]
    shutil.copy(Path(os.environ["FIRMWARE"]) / output.parent.name / f"{name}.elf", output)
    return 0


def compile_kernel(arguments: list[str], output: Path) -> int:
    """Through assembler text, which gets the macro."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "kernel.s"
        flags = [str(text) if flag == str(output) else "-S" if flag == "-c" else flag for flag in arguments]
        more = ["-fno-tree-loop-distribute-patterns", "-fno-jump-tables", "-MT", str(output)]
        done = subprocess.run([GXX, *flags, *COMMON, *INCLUDES, *more], check=False)
        if done.returncode:
            return done.returncode
        text.write_text(TTINSN + text.read_text())
        return subprocess.run([GXX, *COMMON, "-c", str(text), "-o", str(output)], check=False).returncode


def link(arguments: list[str], output: Path) -> int:
    """A kernel. Of the wheel's objects, which are intermediate code of its compiler, one is built from its source here,
    and those that only firmware uses are left out."""
    kept = [flag for flag in arguments if Path(flag).name not in ("noc.o", "tdma_xmov.o")]
    for place, flag in enumerate(kept):
        if Path(flag).name == "substitutes.o":
            source = next(Path(flag).parents[4].glob("tt_metal/hw/toolchain/substitutes.cpp"))
            kept[place] = str(output.with_name("substitutes.o"))
            root = source.parents[1]
            headers = [f"-I{root / 'inc'}", f"-I{root / 'inc/internal/tt-1xx/wormhole'}", "-DARCH_WORMHOLE"]
            made = [GXX, "-Os", *COMMON, "-fno-exceptions", *headers, *INCLUDES, "-c", str(source), "-o", kept[place]]
            done = subprocess.run(made, check=False)
            if done.returncode:
                return done.returncode
    return subprocess.run([GXX, *kept, *COMMON, "-nostdlib", "-lgcc"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
