"""`cute.testing`: assertions of the running program, timing, tuning."""

from tilewright.compiler.benchmark import JitArguments, benchmark, get_workspace_count
from tilewright.compiler.convert_tensors import convert
from tilewright.compiler.tuning import CantImplementError, autotune_jit, tune
from tilewright.lang.printing import assert_

__all__ = [
    "CantImplementError", "JitArguments", "assert_", "autotune_jit", "benchmark", "convert", "get_workspace_count",
    "tune",
]  # fmt: skip
