"""`cutlass._mlir_helpers.arith`."""

from __future__ import annotations

from typing import Any

from tilewright.ir import build
from tilewright.lang.numbers.numeric import Numeric


def bitcast(src: Any, res_elem_type: Any, *, loc: object = None, ip: object = None) -> Any:
    """The bits of an MLIR value (or number) as a value of another MLIR type of the same width."""
    value = src.ir_value() if isinstance(src, Numeric) else src
    return value if value.type == res_elem_type else build.value("arith.bitcast", res_elem_type, (value,))
