"""Start-up: time until a part of the package is imported, in a new interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from bench.runner import Row

# What is run, and the most that it may take beyond an interpreter that does nothing, in seconds.
PROGRAMS = (
    ("import tilewright.layout", "import tilewright.layout", 0.030),
    ("import tilewright.cute", "import tilewright.cute", 0.150),
    ("tilewright --help", "from tilewright.tools.cli import app; app(['--help'])", None),
)


def rows(quick: bool) -> Iterator[Row]:
    """Medians of whole processes, less that of `python -c pass`."""
    samples = 3 if quick else 15
    base = seconds("pass", samples)
    yield Row("python -c pass", base * 1e3, "ms", samples)
    for name, program, target in PROGRAMS:
        extra = seconds(program, samples) - base
        yield Row(name, extra * 1e3, "ms", samples, target=target and target * 1e3, note="beyond the interpreter's own")


def seconds(program: str, samples: int) -> float:
    """Median wall time of `python -c program`, after one run that warms the file cache."""
    times = []
    for _ in range(samples + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
