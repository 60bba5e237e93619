"""Start-up: time until a part of the package is imported or a first kernel is compiled, in a new interpreter.

The modules' bytecode is cached, as it is where the package was installed by pip."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.runner import Row

FIRST_COMPILE = """
import numpy as np
import tilewright.cute as cute
from bench.kernels import vector_add
a = np.zeros(1024, np.float32)
cute.compile(vector_add, a, a, a, target="emu", no_cache=True)
"""

# What is run, and the most that it may take beyond an interpreter that does nothing, in seconds.
PROGRAMS = (
    ("import tilewright.layout", "import tilewright.layout", 0.030),
    ("import tilewright.cute", "import tilewright.cute", 0.150),
    ("first compile, for the emulator", FIRST_COMPILE, 0.750),
    ("tilewright --help", "from tilewright.tools.cli import app; app(['--help'])", None),
)


def rows(quick: bool) -> Iterator[Row]:
    """Medians of whole processes, less that of `python -c pass`."""
    samples = 3 if quick else 15
    with tempfile.TemporaryDirectory() as cache:
        environment = _environment(cache)
        base = seconds("pass", samples, environment)
        yield Row("python -c pass", base * 1e3, "ms", samples)
        for name, program, target in PROGRAMS:
            extra = seconds(program, samples, environment) - base
            note = "beyond the interpreter's own"
            yield Row(name, extra * 1e3, "ms", samples, target=target and target * 1e3, note=note)


def _environment(cache: str) -> dict[str, str]:
    """This process's environment, with bytecode kept in the folder `cache`."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": cache}


def seconds(program: str, samples: int, environment: dict[str, str]) -> float:
    """Median wall time of `python -c program`, after one run that fills the caches."""
    times = []
    for _ in range(samples + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
