"""`cutlass.experimental`: CuTe DSL's experimental part, of which the primitives that public kernels use are here."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import EXPERIMENTAL as _EXPERIMENTAL
from tilewright.base.not_built import missing as _missing
from tilewright.experimental import cuda as cuda
from tilewright.experimental import primitives as primitives

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_EXPERIMENTAL)
