"""Pass Name: emit
Purpose: Write the C++ of each kernel from its statements and the registry of intrinsics.

Input Expectations:
- Kernels that verify-protocol accepts, with their arguments numbered

Output Guarantees:
- tt.cpp: the text of reader.cpp, compute.cpp or writer.cpp for the API profile of the compilation
- Every operation has a row in the registry and as many operands as that says

Example:
    Before: tt.cb.push_back(cb_a, 1)
    After:  tt.cpp = '...cb_push_back(cb_a, 1);...'

Testing:
    pytest tests/tenstorrent/test_emit.py
"""

from __future__ import annotations

from typing import Any

from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.emit.kernel_generators import KernelGenerator
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import PrimFunc


@func_pass(opt_level=0)
def Emit(func: PrimFunc, mod: Any, ctx: PassContext) -> PrimFunc:
    """Write C++."""
    if "tt.kernel_role" not in func.attrs:
        return func
    return func.with_attr("tt.cpp", KernelGenerator(func, ctx.options.profile).text())


known(Emit)
