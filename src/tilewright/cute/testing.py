"""`cute.testing`: assertions of the running program, timing, tuning."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing
from tilewright.compiler.benchmark import JitArguments, benchmark, get_workspace_count
from tilewright.compiler.convert_tensors import convert
from tilewright.compiler.tuning import CantImplementError, autotune_jit, tune
from tilewright.lang.printing.runtime_print import assert_

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__)

__all__ = [
    "CantImplementError", "JitArguments", "assert_", "autotune_jit", "benchmark", "convert", "get_workspace_count",
    "tune",
]  # fmt: skip
