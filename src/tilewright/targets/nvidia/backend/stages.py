"""The stages of this back end.

    python ──► cute ──► nvvm ──► llvm ──► ptx ──► cubin ──► sass

What they do is in `lowering.py`, which is loaded when one of them runs: a function from the cache needs none.
"""

from __future__ import annotations

from tilewright.base.lazy import function_at
from tilewright.targets.cute_stage import CUTE, PYTHON
from tilewright.targets.stage import Stage

NVVM_DIALECTS = frozenset(("llvm", "nvvm", "gpu", "builtin"))
_LOWERING = "tilewright.targets.nvidia.backend.lowering"

STAGES = (
    PYTHON,
    CUTE,
    Stage(
        "nvvm",
        function_at(f"{_LOWERING}:to_nvvm"),
        NVVM_DIALECTS,
        extension="nvvm.mlir",
        whole=True,
        replaceable=True,
    ),
    Stage("llvm", function_at(f"{_LOWERING}:to_llvm"), extension="ll", replaceable=True),
    Stage("ptx", function_at(f"{_LOWERING}:to_ptx"), extension="ptx", replaceable=True),
    Stage("cubin", function_at(f"{_LOWERING}:to_cubin"), extension="cubin", replaceable=True),
    Stage("sass", function_at(f"{_LOWERING}:to_sass"), extension="sass"),
)
