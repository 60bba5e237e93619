"""Tensors of 8-bit floats, which DLPack and most frameworks hold as bytes."""

from __future__ import annotations

import sys
from typing import Any

from tilewright.arguments.runtime_tensor import RuntimeTensor, from_dlpack
from tilewright.base.errors import ArgumentError
from tilewright.lang.numbers.numeric import Numeric

ALIGNMENT = 16


def is_fp8_dtype(dtype: type[Numeric]) -> bool:
    """True for the 8-bit floats."""
    return dtype.is_float and dtype.width == 8


def create_cute_tensor_for_fp8(
    storage_tensor: Any, dtype: type[Numeric], leading_dim: int, source_f32_tensor: Any = None
) -> RuntimeTensor:
    """A tensor of `dtype` with a dynamic layout, over the memory of `storage_tensor`.

    For 8-bit floats `storage_tensor` holds bytes; `source_f32_tensor`, if given, is rounded into them. The memory must
    be aligned to 16 bytes.

    Raises:
        ArgumentError: shapes differ, or the framework does not have the type.
    """
    if is_fp8_dtype(dtype) and source_f32_tensor is not None:
        _round_into(storage_tensor, dtype, source_f32_tensor)
    tensor = from_dlpack(storage_tensor, assumed_align=ALIGNMENT)
    if is_fp8_dtype(dtype):
        tensor.element_type = dtype
    return tensor.mark_layout_dynamic(leading_dim=leading_dim)


_NAMES = {"f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0fnu": "float8_e8m0fnu"}


def _round_into(storage: Any, dtype: type[Numeric], source: Any) -> None:
    """The float tensor as bytes of `dtype`, by the framework that holds both."""
    if tuple(storage.shape) != tuple(source.shape):
        raise ArgumentError(
            "storage and source have different shapes",
            values={"storage": tuple(storage.shape), "source": tuple(source.shape)},
        )
    framework = sys.modules[type(storage).__module__.partition(".")[0]]
    target = getattr(framework, _NAMES.get(dtype.facts.name, ""), None)
    if target is None or not hasattr(storage, "copy_"):
        raise ArgumentError(
            f"{framework.__name__} does not convert to {dtype}", hint="fill the bytes yourself, with ml_dtypes"
        )
    storage.copy_(source.to(target).view(framework.uint8))
