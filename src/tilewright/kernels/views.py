"""Strides, alignment and views of tensors, whoever made them, and what a kernel is compiled for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import tilewright.cute as cute
from tilewright import Float8E4M3FN, Float8E5M2
from tilewright.kernels.launching import address_of
from tilewright.torch import dtype as torch_dtype

ACCESS_BITS = 128
_MOST_KEPT = 4096
_DTYPES: dict[str, type[cute.Numeric]] = {
    "float16": cute.Float16, "bfloat16": cute.BFloat16, "float32": cute.Float32, "float64": cute.Float64,
    "int8": cute.Int8, "int16": cute.Int16, "int32": cute.Int32, "int64": cute.Int64, "uint8": cute.Uint8,
    "uint16": cute.Uint16, "uint32": cute.Uint32, "uint64": cute.Uint64, "bool": cute.Boolean,
}  # fmt: skip
DTYPES = tuple(_DTYPES)
_FLOAT8: dict[str, type[cute.Numeric]] = {"float8_e4m3fn": Float8E4M3FN, "float8_e5m2": Float8E5M2}
FLOAT8 = (Float8E4M3FN, Float8E5M2)
_NUMPY: dict[Any, Any] = {
    cute.Float32: np.float32, cute.Float64: np.float64, cute.Int32: np.int32, cute.Int64: np.int64,
    cute.Uint32: np.uint32, cute.Uint64: np.uint64, cute.Int8: np.int8,
}  # fmt: skip


def dtype_of(tensor: Any) -> type[cute.Numeric]:
    """The language's type of a tensor's elements."""
    name = str(tensor.dtype).rpartition(".")[2]
    return _DTYPES.get(name) or _FLOAT8[name]


def facts(tensor: Any) -> tuple[Any, ...]:
    """What the choice of a kernel depends on: type, shape, strides, alignment to 16 bytes, device."""
    if type(tensor) is np.ndarray:
        return tensor.dtype, tensor.shape, tensor.strides, tensor.ctypes.data % 16, None
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr() % 16, tensor.device


def strides_of(tensor: Any) -> tuple[int, ...]:
    """The strides of a tensor, in elements."""
    if isinstance(tensor, np.ndarray):
        return tuple(step // tensor.itemsize for step in tensor.strides)
    return tuple(tensor.stride())


@dataclass(frozen=True)
class Strided:
    """A shape and strides, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[int, int]]) -> Strided:
        """From an extent and a stride for each dimension."""
        return cls(tuple(extent for extent, _ in pairs), tuple(step for _, step in pairs))

    def of(self, tensor: Any) -> Any:
        """The memory of `tensor` from its first element on, in this shape."""
        if isinstance(tensor, np.ndarray):
            steps = [step * tensor.itemsize for step in self.strides]
            if tensor.itemsize > 1:
                return np.lib.stride_tricks.as_strided(tensor, self.shape, steps)
            # NumPy makes no strided view of the types of ml_dtypes that have 8 bits.
            return np.lib.stride_tricks.as_strided(tensor.view(np.uint8), self.shape, steps).view(tensor.dtype)
        return tensor.as_strided(self.shape, self.strides)

    def unless_of(self, shape: Sequence[int], strides: Sequence[int]) -> Strided | None:
        """None where a tensor of this shape and these strides needs no other view."""
        return None if (tuple(shape), tuple(strides)) == (self.shape, self.strides) else self

    def vector(self, dtype: type[cute.Numeric], start: int, cap: int = ACCESS_BITS) -> int:
        """The most elements, in `cap` bits, that every access along the last dimension may take from address `start`.

        The address, the last extent and all other strides are multiples of it. It is 1 if the last stride is not 1.
        """
        count = cap // max(dtype.width, 8) if self.strides[-1] == 1 else 1
        multiples = (self.shape[-1], *self.strides[:-1])
        while count > 1 and (start % (count * dtype.width // 8) or any(item % count for item in multiples)):
            count //= 2
        return count


def vector(tensor: Any, cap: int = ACCESS_BITS) -> int:
    """`Strided.vector` of a tensor."""
    return Strided(tuple(tensor.shape), strides_of(tensor)).vector(dtype_of(tensor), address_of(tensor), cap)


def symbols(rank: int) -> list[Any]:
    """Extents that are known only at run time."""
    return [cute.sym_int() for _ in range(rank)]


def fake(dtype: type[cute.Numeric], shape: Sequence[Any], step: int = 1, dense: bool = True) -> Any:
    """A tensor to compile for: any strides, multiples of `step`, and 1 for the last if `dense`; aligned likewise."""
    strides = [cute.sym_int64(divisibility=step) for _ in shape]
    last = 1 if dense else cute.sym_int64()
    return cute.runtime.make_fake_tensor(
        dtype, shape, stride=(*strides[:-1], last), assumed_align=step * max(dtype.width, 8) // 8
    )


def keep(table: dict[Any, Any], key: Any, value: Any) -> Any:
    """`value`, kept in a table of choices that forgets all when it is full."""
    if len(table) >= _MOST_KEPT:
        table.clear()
    table[key] = value
    return value


def empty(like: Any, shape: Sequence[int], dtype: type[cute.Numeric]) -> Any:
    """A new contiguous tensor where `like` lies."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, _NUMPY[dtype])
    return like.new_empty(shape, dtype=torch_dtype(dtype))


def quick(executor: Any) -> Callable[..., None]:
    """The executor without its own checks: what native code refuses goes to the executor, which handles it or says why.

    For tensors of a GPU that are no subclasses, and are not lazily negated.
    """
    if executor.target != "cuda":
        return cast(Callable[..., None], executor)
    native = executor.native

    def call(*args: Any) -> None:
        try:
            native(*args)
        except Exception:  # noqa: BLE001
            executor(*args)

    return call
