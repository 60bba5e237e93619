"""Approximate functions of one instruction, under CUDA's names. Their errors are those of the hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.numbers.numeric import Float32, as_numeric


def _approximate(kind: str, doc: str) -> Callable[..., Float32]:
    def function(a: Any, *, loc: object = None, ip: object = None) -> Float32:
        trace.device(f"{kind}.approx")
        operand = Float32(as_numeric(a)).ir_value()
        result = build.cute("approx", (operand.type,), ((operand,),), kind=build.string(kind)).results[0]
        return Float32.from_ir(result)

    function.__doc__ = doc
    function.__name__ = kind
    return function


rcp_approx = _approximate("rcp", "1 / x, in Float32; denormals count as 0.")
rsqrt_approx = _approximate("rsqrt", "1 / sqrt(x), in Float32; denormals count as 0.")
exp2 = _approximate("exp2", "2 to the x, in Float32; denormals count as 0.")
log2 = _approximate("log2", "Logarithm to base 2, in Float32; denormals count as 0.")
tanh_approx = _approximate("tanh", "Hyperbolic tangent, in Float32.")


def exp(a: Any, *, loc: object = None, ip: object = None) -> Float32:
    """e to the x as 2 to the x / ln 2, in Float32."""
    return exp2(Float32(as_numeric(a)) * 1.4426950408889634)
