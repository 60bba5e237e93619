"""Make the development environment: `python3 scripts/setup_venv.py .venv STAMP`.

Needs Python 3.11 or newer and nothing else. Debian splits pip off the standard library (package python3-venv), so
there is a second and a third way to a virtual environment; when none works, the message says what to install.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
TORCH_MISSING = """
No CPU build of PyTorch was found at the configured package index. Setup goes on without it; the tests that need torch
are skipped. To have it, install the version of requirements-torch.txt into .venv from PyTorch's index of CPU wheels:
    make torch TORCH_INDEX=<address of that index>
"""


def main(arguments: Sequence[str]) -> int:
    """Create `venv`, install the pinned packages and the project into it, then write `stamp`."""
    venv, stamp = Path(arguments[0]), Path(arguments[1])
    if sys.version_info < OLDEST:
        sys.exit(f"Python {'.'.join(map(str, OLDEST))} or newer is needed, this is {sys.version.split()[0]}: "
                 "run make PYTHON=<a newer python3>")  # fmt: skip
    python = venv / "bin" / "python"
    if not has_pip(python):
        create(venv, python)
    pip(python, "install", "-r", "requirements-dev.txt", check=True)
    pip(python, "install", "--no-deps", "--no-build-isolation", "-e", ".", check=True)
    if not pip(python, "install", "-r", "requirements-torch.txt", check=False):
        print(TORCH_MISSING, file=sys.stderr)
    for old in venv.glob("setup-*.stamp"):
        old.unlink()
    stamp.touch()
    return 0


def create(venv: Path, python: Path) -> None:
    """Make a virtual environment with pip in the first way that works here."""
    for name, command in ways(venv):
        print(f"setup: {name}")
        if subprocess.run(command, cwd=ROOT, check=False).returncode == 0 and has_pip(python):
            return
        if python.exists() and has_system_pip():
            system_pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "pip"]
            if subprocess.run(system_pip, cwd=ROOT, check=False).returncode == 0 and has_pip(python):
                return
    sys.exit("No way to make a virtual environment with pip was found. On Debian or Ubuntu: apt install python3-venv")


def ways(venv: Path) -> list[tuple[str, list[str]]]:
    """The commands that can make the environment here, best first."""
    found = []
    if importlib.util.find_spec("ensurepip"):
        found.append(("venv with ensurepip", [sys.executable, "-m", "venv", "--clear", str(venv)]))
    if importlib.util.find_spec("virtualenv"):
        found.append(("virtualenv", [sys.executable, "-m", "virtualenv", "--clear", str(venv)]))
    if uv := shutil.which("uv"):
        found.append(("uv", [uv, "venv", "--seed", "--clear", "--python", sys.executable, str(venv)]))
    found.append(("venv without pip", [sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)]))
    return found


def has_pip(python: Path) -> bool:
    """Whether `python` is an interpreter new enough and with pip."""
    if not python.exists():
        return False
    test = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
    return subprocess.run([python, "-c", test], capture_output=True, check=False).returncode == 0


def has_system_pip() -> bool:
    """Whether the Python that runs this script has pip."""
    return importlib.util.find_spec("pip") is not None


def pip(python: Path, *arguments: str, check: bool) -> bool:
    """Run pip of `python`; with `check`, end the script when it fails."""
    quiet = ["-q", "--disable-pip-version-check"]
    environment = {**os.environ, "PIP_NO_INPUT": "1"}
    command = [python, "-m", "pip", *arguments, *quiet]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=not check, check=False)
    if check and done.returncode != 0:
        sys.exit(f"setup failed: pip {' '.join(arguments)}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
