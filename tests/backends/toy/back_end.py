"""What the toy back end owns: stages, options, pass list, its one architecture, and the parts of an artifact."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

from tilewright.base.errors import CompileError
from tilewright.passes.pipeline import PassManager
from tilewright.targets.cute_stage import CUTE, PYTHON
from tilewright.targets.options import Options
from tilewright.targets.overrides import replace_text
from tilewright.targets.stage import Stage
from tilewright.targets.target import BackEnd


@dataclass(frozen=True)
class ToyOptions(Options):
    """`--most-threads N`: refuse launches of more threads. `--fast-sums`: a switch that changes nothing."""

    most_threads: int = 2048
    fast_sums: bool = False


def _count(job):
    """Stage `counts`: how often each operation stands in a kernel."""
    for kernel in job.kernels.values():
        found = Counter(re.findall(r'"?\b((?:cute|arith|scf|math)\.\w+)', kernel.texts["cute"]))
        kernel.texts["counts"] = "".join(f"{name} {number}\n" for name, number in sorted(found.items()))
        kernel.texts["counts"] = f"kernel {kernel.name}\n{kernel.texts['counts']}"
        replace_text(job, kernel, "counts", re.compile(r"^kernel (\w+)$", re.MULTILINE).findall)


class Toy(BackEnd):
    """Kernels and host functions stay as they are at stage `cute`, which the device interprets."""

    name = "toy"
    stages = (PYTHON, CUTE, Stage("counts", _count, extension="counts.txt", replaceable=True))
    options = ToyOptions
    default_arch = "numpy"
    emitted = "cute"
    tests_on = "toy"
    devices: ClassVar = {"toy": "tests.backends.toy.device:ToyDevice"}

    def normalize_arch(self, name):
        if name != "numpy":
            raise CompileError(f"unknown architecture {name!r}", hint="the toy back end has one: numpy")
        return name

    def standard_passes(self, arch, options):
        return PassManager([])

    def completed(self, passes, arch, options):
        return replace(passes, runs=[])

    def parts(self, job):
        return {"cute": job.texts["cute"]}

    def kernel_parts(self, kernel):
        return {}


BACK_END = Toy()
