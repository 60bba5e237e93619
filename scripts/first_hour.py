"""A new user's first steps, timed: `python scripts/first_hour.py dist`.

Makes an environment of its own, installs the wheel that lies in the folder, and goes on as a reader of README
would: the first example, a kernel of one's own, a mistake in it and its message, the kernel in the explorer. Then it
removes the files that `tilewright doctor --unused` lists and runs the demonstration without them. Ends with status 1
at the first step that does not go as README says.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```\n+```text output\n(.*?)^```", re.MULTILINE | re.DOTALL)

OWN_KERNEL = """\
import numpy as np

import tilewright.cute as cute


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + thread
    if i < cute.size(x):
        y[i] = x[i] if x[i] > 0.0 else 0.0


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    relu_kernel(x, y).launch(grid=(cute.ceil_div(cute.size(x), 128), 1, 1), block=(128, 1, 1))


x = np.linspace(-1, 1, 300, dtype=np.float32)
y = np.empty_like(x)
relu(x, y)
assert np.array_equal(y, np.maximum(x, 0))
print("right")
"""
SHOWN = """\
from pathlib import Path

from tilewright.tools.explorer.page import data_of

print(data_of(Path("relu.html").read_text()))
"""
MISTAKE = OWN_KERNEL.replace("if i < cute.size(x):", "if i <= cute.size(x):")


@dataclass(frozen=True)
class Environment:
    """A virtual environment in `folder`."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run one of the environment's programs outside the checkout, on the emulator, with its output as text."""
        program = [str(self.folder / "bin" / command[0]), *command[1:]]
        settings = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "TILEWRIGHT_TARGET": "emu"}
        return subprocess.run(program, cwd=self.folder, env=settings, capture_output=True, text=True, check=False)

    def script(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a script, which lies in a file as a user's does."""
        file = self.folder / "first.py"
        file.write_text(text)
        return self.run("python", str(file))

    def megabytes(self) -> float:
        """What the installed files take."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file()) / 1e6

    def largest_packages(self, count: int = 8) -> list[tuple[str, float]]:
        """The packages that take most, by the files that each lists, in MB."""
        (packages,) = self.folder.glob("lib/python3*/site-packages")
        sizes = []
        for item in importlib.metadata.distributions(path=[str(packages)]):
            files = [Path(item.locate_file(file)) for file in item.files or ()]
            sizes.append((item.name, sum(file.stat().st_size for file in files if file.is_file()) / 1e6))
        return sorted(sizes, key=lambda found: -found[1])[:count]


def main(folder: Path) -> int:
    """Go through the steps and print the time of each; the exit status."""
    (wheel,) = folder.glob("*.whl")
    with tempfile.TemporaryDirectory() as place:
        environment = Environment(Path(place))
        for name, step in steps(environment, wheel):
            start = time.perf_counter()
            problem = step()
            print(f"{time.perf_counter() - start:7.1f} s  {name}{': ' + problem if problem else ''}", flush=True)
            if problem:
                return 1
        print(f"wheel {wheel.stat().st_size / 1e6:.1f} MB, environment {environment.megabytes():,.0f} MB")
        for name, megabytes in environment.largest_packages():
            print(f"{megabytes:7,.0f} MB  {name}")
        if problem := smaller(environment):
            print(f"without unused files: {problem}")
            return 1
    return 0


def steps(environment: Environment, wheel: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """The steps by name; each returns what went wrong, or an empty text."""
    yield "pip install of the wheel", lambda: install(environment, wheel)
    yield "tilewright doctor", lambda: succeeded(environment.run("tilewright", "doctor", "--strict"))
    yield "the example of README", lambda: readme_example(environment)
    yield "the same again, from the cache", lambda: readme_example(environment)
    yield "a kernel of one's own", lambda: succeeded(environment.script(OWN_KERNEL))
    yield "a mistake in it, and its message", lambda: mistake(environment)
    yield "the kernel in the explorer", lambda: explorer(environment)
    yield "tilewright demo", lambda: succeeded(environment.run("tilewright", "demo"))


def install(environment: Environment, wheel: Path) -> str:
    """Make the environment and install the wheel with what it needs, by the pip settings of this machine."""
    venv.create(environment.folder, with_pip=True, clear=True)
    command = [str(environment.folder / "bin" / "python"), "-m", "pip", "install", "-q", str(wheel.resolve())]
    return succeeded(subprocess.run(command, capture_output=True, text=True, check=False))


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    """The output of a program that failed."""
    return "" if done.returncode == 0 else done.stdout + done.stderr


def readme_example(environment: Environment) -> str:
    """Run the first example of README, and compare what it prints with what README says."""
    found = BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if found is None:
        return "README has no example with its output"
    done = environment.script(found[1])
    return "" if done.stdout == found[2] else done.stdout + done.stderr


def mistake(environment: Environment) -> str:
    """The kernel with a wrong guard must end in an error that names the line, the place and the buffer."""
    done = environment.script(MISTAKE)
    wanted = ("EmulationError", "first.py", "hint:")
    missing = [text for text in wanted if text not in done.stderr]
    return f"the message lacks {', '.join(missing)}:\n{done.stderr}" if missing or done.returncode == 0 else ""


def explorer(environment: Environment) -> str:
    """The page of the right kernel must hold its name, and its PTX and machine code."""
    (environment.folder / "first.py").write_text(OWN_KERNEL)
    tensors = ["--arg", "f32[300]", "--arg", "f32[300]"]
    if problem := succeeded(environment.run("tilewright", "explore", "first.py:relu", *tensors, "-o", "relu.html")):
        return problem
    done = environment.run("python", "-c", SHOWN)
    missing = [word for word in ("relu_kernel", "ld.global", "LDG") if word not in done.stdout]
    return f"the page lacks {', '.join(missing)}\n{done.stderr}" if missing else ""


def smaller(environment: Environment) -> str:
    """Without the files that `doctor --unused` lists, all must work as before."""
    listed = environment.run("tilewright", "doctor", "--unused")
    paths = [Path(line) for line in listed.stdout.splitlines()]
    if not paths:
        return "doctor --unused lists nothing\n" + listed.stderr
    for path in paths:
        path.unlink()
    print(f"          {environment.megabytes():,.0f} MB without them")
    commands = (("cache", "clear"), ("doctor", "--strict"), ("demo",))
    return "".join(succeeded(environment.run("tilewright", *command)) for command in commands)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
