"""Make `.venv-tenstorrent`: ttnn and wolfpine, and a compiler where ttnn looks for one.

Run from anywhere: `python scripts/tenstorrent_isa/setup.py`. It needs CPython 3.12 or 3.10, since ttnn 0.81.1 has no
wheel for 3.11 (TENSTORRENT_PYTHON names one that is not on the PATH), 1.2 GB of disk, and of Debian
gcc-riscv64-unknown-elf, picolibc-riscv64-unknown-elf and libstdc++-12-dev, which it installs where it runs as root. It
prints what is missing and exits with 1 where it cannot go on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE.parents[1] / ".venv-tenstorrent"
PACKAGES = ("ttnn==0.81.1", "wolfpine==2.2", "ml_dtypes")
DEBIAN = ("gcc-riscv64-unknown-elf", "picolibc-riscv64-unknown-elf", "libstdc++-12-dev")
GXX = "riscv64-unknown-elf-g++"
VERSIONS = ("3.12", "3.10")
BANKS = "00000120"  # the size of l1_bank_to_noc_xy in firmware for 72 banks of L1: two networks, 16 bits each


def main() -> int:
    """Set up what is missing."""
    python = interpreter()
    if python is None:
        print(f"no interpreter: ttnn 0.81.1 has wheels for CPython {' and '.join(VERSIONS)}; put one on the PATH")
        return 1
    if not compiler():
        print(f"no compiler: apt-get install {' '.join(DEBIAN)}")
        return 1
    if not (VENV / "ready").exists():
        subprocess.run([python, "-m", "venv", "--clear", str(VENV)], check=True)
        subprocess.run([str(VENV / "bin/python"), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    (root,) = VENV.glob("lib/python*/site-packages/ttnn")
    firmware = VENV / "firmware"
    shutil.rmtree(firmware, ignore_errors=True)
    shutil.copytree(firmware_for_72_banks(root), firmware)
    wrapper = root / "runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(f'#!/bin/sh\nFIRMWARE="{firmware}" exec "{VENV}/bin/python" "{HERE / "gxx.py"}" "$@"\n')
    wrapper.chmod(0o755)
    (VENV / "ready").touch()
    print(f"{VENV}: {python}, {', '.join(PACKAGES)}, {GXX}")
    return 0


def interpreter() -> str | None:
    """A Python that ttnn has a wheel for."""
    named = [os.environ["TENSTORRENT_PYTHON"]] if "TENSTORRENT_PYTHON" in os.environ else []
    found = [path for version in VERSIONS if (path := shutil.which(f"python{version}"))]
    pyenv = [str(path) for version in VERSIONS for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    uv = shutil.which("uv")
    managed = []
    if uv and not (named or found or pyenv):
        done = subprocess.run([uv, "python", "find", VERSIONS[0]], capture_output=True, text=True, check=False)
        managed = [done.stdout.strip()] if done.returncode == 0 else []
    return next((path for path in (*named, *found, *pyenv, *managed) if works(path)), None)


def works(path: str) -> bool:
    """Whether an interpreter runs, and is one of the versions."""
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() in VERSIONS


def compiler() -> bool:
    """Whether the RISC-V compiler is there, installed where that is possible."""
    wanted = (Path("/usr/lib/picolibc/riscv64-unknown-elf/include"), Path("/usr/include/c++/12"))
    if shutil.which(GXX) and all(path.exists() for path in wanted):
        return True
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *DEBIAN], check=False)
    return shutil.which(GXX) is not None


def firmware_for_72_banks(root: Path) -> Path:
    """The first set of firmware in the wheel that is built for as many banks of L1 as the simulated chip has.

    The hash by which ttnn looks for a set matches none in the wheel, so this is a substitution.
    """
    for folder in sorted((root / "tt_metal/pre-compiled").iterdir()):
        program = folder / "brisc/brisc.elf"
        symbols = subprocess.run(
            ["riscv64-unknown-elf-nm", "-S", str(program)], capture_output=True, text=True, check=False
        )
        rows = [line.split() for line in symbols.stdout.splitlines() if line.endswith("l1_bank_to_noc_xy")]
        if any(BANKS in row for row in rows):
            return folder
    raise SystemExit("no firmware for 72 banks in the wheel")


if __name__ == "__main__":
    sys.exit(main())
