"""`cute.experimental`: CuTe DSL's experimental part, of which the markers of in-kernel tracing are here."""

from typing import TYPE_CHECKING

from tilewright.base.not_built import EXPERIMENTAL as _EXPERIMENTAL
from tilewright.base.not_built import missing as _missing
from tilewright.cute.experimental import iket as iket

if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_EXPERIMENTAL)
