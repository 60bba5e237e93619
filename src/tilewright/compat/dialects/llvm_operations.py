"""Operations of MLIR's dialect `llvm` that public kernels call with values for which they do nothing."""

from __future__ import annotations

from typing import Any

from tilewright.ir import build


def addrspacecast(res: Any, arg: Any, *, loc: object = None, ip: object = None) -> Any:
    """The pointer `arg` in the memory space of type `res`: itself where it lies there.

    Pointers of tensors in global memory name that space here already.
    """
    return arg if arg.type == res else build.value("llvm.addrspacecast", res, (arg,))
