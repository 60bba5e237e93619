"""`cutlass.base_dsl.tvm_ffi_builder`: how arguments are described to tvm-ffi in NVIDIA's compiler."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.compat.tvm_ffi_builder import spec

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
