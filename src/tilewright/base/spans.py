"""Which tensors the 32-bit form of a function takes, and the signature of its 64-bit form.

In the 32-bit form the runtime extents of a tensor travel in 32 bits. A call checks that each tensor has at most
`most_elements` and spans no more, so that no product of its extents, and no offset into it, passes 31 bits. The check
counts an empty mode as one element, so that products of some of the extents are covered too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tilewright.base.dlpack_types import DTYPES
from tilewright.base.errors import ArgumentError
from tilewright.base.signature import Dim, Param, Signature, TensorParam, TupleParam

NARROW_REACH = (1 << 31) - (1 << 20)
"""Bytes, and elements, of the largest tensor: as much below 2^31 as tiles may reach over its end."""

PHRASE = "for the 32-bit form"
"""In the message of the check: what tells it from others."""


class SpanError(ArgumentError):
    """A tensor is beyond the 32-bit form of a function; its 64-bit form takes it."""


def is_narrow(param: TensorParam) -> bool:
    """True when an extent or stride of the tensor travels in 32 bits."""
    return any(dim.value is None and dim.width == 32 for dim in (*param.shape, *param.stride))


def most_elements(param: TensorParam) -> int:
    """The elements that the 32-bit form takes, and reaches."""
    return NARROW_REACH * 8 // max(DTYPES[param.dtype][1], 8)


def counted(param: TensorParam) -> list[bool]:
    """For each mode, whether its extent belongs to products of 32 bits."""
    return [dim.value is not None or dim.width == 32 for dim in param.shape]


def free_product(param: TensorParam) -> int:
    """The greatest product of runtime extents of 32 bits, empty ones left out, in a tensor that passes the check."""
    return most_elements(param) // math.prod(max(dim.value, 1) for dim in param.shape if dim.value is not None)


def too_large(param: TensorParam, shape: Sequence[int], stride: Sequence[int]) -> bool:
    """True for a tensor that needs the 64-bit form of a function that takes it as `param`; counts its elements."""
    if not is_narrow(param):
        return False
    extents = [max(extent, 1) for extent in shape]
    count = math.prod(extent for extent, belongs in zip(extents, counted(param), strict=True) if belongs)
    span = sum((extent - 1) * abs(step) for extent, step in zip(extents, stride, strict=True)) + 1
    return max(count, span) > most_elements(param)


def has_narrow(signature: Signature) -> bool:
    """True when a tensor of the signature, at any depth, is checked."""
    return any(map(_has_narrow, signature.params))


def _has_narrow(param: Param) -> bool:
    if isinstance(param, TupleParam):
        return any(map(_has_narrow, param.items))
    return isinstance(param, TensorParam) and is_narrow(param)


def widened(signature: Signature) -> Signature:
    """The signature of the 64-bit form: every runtime extent and stride in 64 bits."""
    return replace(signature, params=tuple(map(_widened, signature.params)))


def _widened(param: Param) -> Param:
    if isinstance(param, TupleParam):
        return replace(param, items=tuple(map(_widened, param.items)))
    return widened_tensor(param) if isinstance(param, TensorParam) else param


def widened_tensor(param: TensorParam) -> TensorParam:
    """The parameter with every runtime extent and stride in 64 bits."""
    return replace(param, shape=tuple(map(_wide, param.shape)), stride=tuple(map(_wide, param.stride)))


def _wide(dim: Dim) -> Dim:
    return replace(dim, width=64) if dim.value is None else dim
