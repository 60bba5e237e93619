"""`cutlass.vector`: functions of vectors beside their operators."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.tensors.tensor_ssa import TensorSSA, full


def broadcast_to(vector: TensorSSA, shape: Any, *, loc: object = None, ip: object = None) -> TensorSSA:
    """The vector repeated along modes of extent 1, and new leading modes, to `shape`."""
    return vector.broadcast_to(tuple(shape))


def outerproduct(a: TensorSSA, b: TensorSSA, *, loc: object = None, ip: object = None) -> TensorSSA:
    """The products of each element of `a` with each of `b`: element (i, j) is `a[i] * b[j]`.

    Raises:
        CompileError: one of them has more than one mode.
    """
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise CompileError(
            "outerproduct takes two vectors of one mode", location=user_location(), values={"a": a, "b": b}
        )
    shape = (a.size, b.size)
    return a.reshape((a.size, 1)).broadcast_to(shape) * b.broadcast_to(shape)


__all__ = ["broadcast_to", "full", "outerproduct"]
