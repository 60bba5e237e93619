"""`cutlass._mlir_helpers`: functions on MLIR values that public kernels use of NVIDIA's compiler."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import missing as _missing

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, {"math": "tilewright.cute.math", "op": "tilewright.compat.mlir_helpers.op"})
