"""One ptxas at one level of optimisation: what it makes of a text, or how it fails."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

SECONDS: Final = 60.0
"""What an assembly of a batch may take; beyond it the assembler hangs."""
ARCH: Final = "sm_90a"


@dataclass(frozen=True)
class Failure:
    """What an assembler did instead of code: `crash`, `hang` or `refusal`, with its words."""

    kind: Literal["crash", "hang", "refusal"]
    text: str


@dataclass(frozen=True)
class Assembler:
    """A ptxas by its path; `version` as it says itself, such as 13.5."""

    path: str
    version: str
    level: int

    @property
    def name(self) -> str:
        """How results name it."""
        return f"ptxas {self.version} -O{self.level}"

    def assemble(self, ptx: str, seconds: float = SECONDS) -> bytes | Failure:
        """The cubin of a text."""
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            source, target = Path(folder, "programs.ptx"), Path(folder, "programs.cubin")
            source.write_text(ptx, encoding="ascii")
            command = [self.path, f"-arch={ARCH}", f"-O{self.level}", str(source), "-o", str(target)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
            except subprocess.TimeoutExpired:
                return Failure("hang", f"no end after {seconds:g} s")
            if done.returncode == 0 and target.is_file():
                return target.read_bytes()
            said = (done.stdout + done.stderr).replace(str(source), "programs.ptx")
        return _failure(done.returncode, said)


def _failure(status: int, said: str) -> Failure:
    errors = [line for line in said.splitlines() if re.search(r"\b(error|fatal)\b", line)]
    if status < 0:
        return Failure("crash", signal.Signals(-status).name)
    if any("internal" in line.lower() for line in errors):
        return Failure("crash", errors[0])
    return Failure("refusal", errors[0] if errors else f"status {status} without a reason")


def found_at(path: str, levels: tuple[int, ...] = (0, 3)) -> list[Assembler]:
    """A ptxas at each of some levels, with the version that it states.

    Raises:
        ValueError: the program does not say which release it is.
    """
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+\.\d+)", said)
    if not release:
        raise ValueError(f"{path} --version names no release:\n{said}")
    return [Assembler(path, release[1], level) for level in levels]
