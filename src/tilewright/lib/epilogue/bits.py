"""Masks of bits as operands and outputs: a bit for each element, as the backward pass of relu wants it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.lang.numbers.numeric import Boolean
from tilewright.lib.epilogue.tensor import Tensor

_BYTE = 8


class Bits:
    """Bytes seen as a tensor of Booleans: element n of a row is bit n % 8 of byte n // 8.

    Attributes:
        array: of NumPy or PyTorch, of uint8, (..., at least `extent` / 8), with stride 1 along the bytes.
        shape: (..., extent).
    """

    def __init__(self, array: Any, extent: int) -> None:
        name = str(array.dtype).rpartition(".")[2]
        wanted = -(-extent // _BYTE)
        step = array.strides[-1] if isinstance(array, np.ndarray) else array.stride(-1)
        if name != "uint8" or array.shape[-1] < wanted or (step != 1 and array.shape[-1] > 1):
            raise EpilogueError(
                f"A mask of {extent} bits in a row needs {wanted} bytes there that lie behind each other.",
                values={"type": name, "shape": tuple(array.shape), "stride of the last mode": step},
                hint="numpy.zeros((rows, -(-columns // 8)), numpy.uint8) has them",
            )
        self.array = array
        self.shape = (*tuple(array.shape[:-1]), extent)

    @property
    def strides(self) -> tuple[int, ...]:
        """In bits."""
        steps = self.array.strides if isinstance(self.array, np.ndarray) else self.array.stride()
        return (*(step * _BYTE for step in steps[:-1]), 1)

    def __epilogue_tensor__(self) -> Tensor:
        return Tensor(
            Boolean, tuple(((e, s),) for e, s in zip(self.shape, self.strides, strict=True)), bits=True
        )  # fmt: skip

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        """The Booleans, for references on NumPy."""
        array = self.array if isinstance(self.array, np.ndarray) else self.array.cpu().numpy()
        found = np.unpackbits(array, axis=-1, count=self.shape[-1], bitorder="little")
        return found.astype(np.bool_ if dtype is None else dtype)
