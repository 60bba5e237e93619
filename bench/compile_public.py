"""Compile what a public source compiles, again and again: `python -m bench.compile_public SAMPLES FILE ARGUMENTS`.

The last line is the seconds of each stage as JSON, of each compilation but the first. Nothing is launched: PyTorch's
device `cuda` stands for the CPU, and the first call of `cute.compile` ends the process.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any, NoReturn

import cuda_on_cpu  # of scripts/compat

import tilewright.cute as cute
import tilewright.dropin  # noqa: F401  (makes `import cutlass` resolve)


class _Measuring:
    """Stands for `cute.compile`."""

    def __init__(self, compile_: Any, samples: int) -> None:
        self._compile = compile_
        self._samples = samples

    def __call__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        timings = []
        for _ in range(self._samples + 1):
            executor = self._compile(*arguments, **keywords, no_cache=True)
            executor.stages["cubin"]
            timings.append(executor.timings)
        print(json.dumps(timings[1:]), flush=True)
        os._exit(0)  # whatever threads and exit handlers the source has

    def __getitem__(self, options: Any) -> _Measuring:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compile, name)


def main() -> int:
    """Run the file; reaching its end is a failure."""
    samples, file, *arguments = sys.argv[1:]
    cuda_on_cpu.install()
    cute.compile = _Measuring(cute.compile, int(samples))
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).parent))
    runpy.run_path(file, run_name="__main__")
    print(f"{file} compiles nothing", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
