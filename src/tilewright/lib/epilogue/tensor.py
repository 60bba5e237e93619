"""Tensors as an epilogue sees them: a shape over the memory of an array, and the views that move between shapes.

A mode is a list of factors `(extent, stride)`, slowest first: one where a single stride goes through it, several where
a reshape joined modes that do not follow each other in memory. Stride 0 is a broadcast. Strides count elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.base.lazy import cached_property
from tilewright.lang.numbers.numeric import Numeric
from tilewright.layout import Layout, make_layout
from tilewright.lib.epilogue.elements import element_of, numpy_dtype, scalar_element

Mode = tuple[tuple[int, int], ...]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """`shape` over the memory of an array by `modes`. A scalar of the host has a `value` and no memory.

    The strides of `bits` count bits: see `bits.Bits`.
    """

    element: type[Numeric]
    modes: tuple[Mode, ...]
    value: float | int | None = None
    bits: bool = False

    @classmethod
    def of(cls, element: Any, shape: Sequence[int], stride: Sequence[int] | None = None) -> Tensor:
        """A tensor of plain strides; compact and row-major without them."""
        shape = tuple(int(extent) for extent in shape)
        if stride is None or 0 in shape:  # NumPy gives arrays of no elements strides of 0
            stride = row_major([max(extent, 1) for extent in shape])
        return cls(element_of(element), tuple(((e, s),) for e, s in zip(shape, stride, strict=True)))

    @classmethod
    def like(cls, name: str, example: Any) -> Tensor:
        """What an example stands for: a `Tensor` as it is, a number, an array of NumPy, a tensor of any framework.

        Raises:
            EpilogueError: it is none of these.
        """
        if isinstance(example, Tensor):
            return example
        if hasattr(example, "__epilogue_tensor__"):
            made: Tensor = example.__epilogue_tensor__()
            return made
        if isinstance(example, bool | int | float | np.generic):
            return cls(
                scalar_element(example), (), value=example.item() if isinstance(example, np.generic) else example
            )
        if isinstance(example, np.ndarray):
            steps = tuple(step // example.itemsize for step in example.strides)
            return cls.of(example.dtype, example.shape, steps)
        if not all(hasattr(example, part) for part in ("shape", "dtype", "stride")):
            raise EpilogueError(
                f"The example of {name} is a {type(example).__name__}, which is neither a tensor nor a number.",
                hint="give an array of NumPy, a tensor of PyTorch, an epilogue Tensor or a number",
            )
        stride = example.stride() if callable(example.stride) else example.stride
        return cls.of(example.dtype, tuple(example.shape), tuple(stride))

    @cached_property
    def shape(self) -> Shape:
        """The extent of each mode."""
        return tuple(math.prod(extent for extent, _ in mode) for mode in self.modes)

    @cached_property
    def stride(self) -> tuple[Any, ...]:
        """The stride of each mode: a number, or a tuple of those of its factors, slowest first."""
        strides = (tuple(stride for _, stride in mode) for mode in self.modes)
        return tuple(mode[0] if len(mode) == 1 else mode for mode in strides)

    @property
    def rank(self) -> int:
        """How many modes it has."""
        return len(self.modes)

    @property
    def is_scalar(self) -> bool:
        """True where it is a number of the host, known when the kernel is called or (immediates) compiled."""
        return self.value is not None

    @property
    def is_plain(self) -> bool:
        """True where each mode has one stride."""
        return all(len(mode) == 1 for mode in self.modes)

    @property
    def broadcast_modes(self) -> tuple[int, ...]:
        """The modes of more than one element along which the memory does not move."""
        return tuple(
            index for index, mode in enumerate(self.modes) if self.shape[index] > 1 and all(s == 0 for _, s in mode)
        )

    @property
    def layout(self) -> Layout:
        """As a layout of CuTe, whose nested modes go fastest first."""
        fast = [mode[::-1] for mode in self.modes]
        shape = tuple(mode[0][0] if len(mode) == 1 else tuple(e for e, _ in mode) for mode in fast)
        stride = tuple(mode[0][1] if len(mode) == 1 else tuple(s for _, s in mode) for mode in fast)
        return make_layout(shape, stride=stride)

    def with_element(self, element: type[Numeric]) -> Tensor:
        """The same shape and memory order with elements of another type."""
        return replace(self, element=element)

    def broadcast(self, shape: Shape) -> Tensor:
        """This tensor seen as one of `shape`, by NumPy's rules.

        Raises:
            ValueError: it does not broadcast.
        """
        missing = len(shape) - self.rank
        if missing < 0:
            raise ValueError(shape)
        return replace(
            self,
            modes=(
                *(((extent, 0),) for extent in shape[:missing]),
                *(_broadcast(mode, extent, shape) for mode, extent in zip(self.modes, shape[missing:], strict=True)),
            ),
        )

    def permute(self, indices: Sequence[int]) -> Tensor:
        """Mode `i` of the result is mode `indices[i]` of this tensor."""
        return replace(self, modes=tuple(self.modes[index] for index in indices))

    def reshape(self, shape: Shape) -> Tensor:
        """The same elements in row-major order under another shape; modes get factors where one stride is not enough.

        Raises:
            ValueError: factors of the modes would have to be cut where they do not divide.
        """
        if math.prod(shape) != math.prod(self.shape):
            raise ValueError(shape)
        return replace(self, modes=_cut(_joined([factor for mode in self.modes for factor in mode]), shape))

    @property
    def span(self) -> tuple[int, int]:
        """How many elements lie before the first one, and from it on, up to the last: strides may be negative."""
        moves = [(extent - 1) * stride for mode in self.modes for extent, stride in mode]
        if 0 in self.shape:
            return 0, 0
        return -sum(move for move in moves if move < 0), 1 + sum(move for move in moves if move > 0)

    def view(self, array: np.ndarray[Any, Any], start: int = 0) -> np.ndarray[Any, Any]:
        """These elements of `array`, in which the tensor begins at `start`: a view with an axis per factor."""
        factors = [factor for mode in self.modes for factor in mode]
        steps = tuple(stride * array.itemsize for _, stride in factors)
        shape = tuple(extent for extent, _ in factors)
        # Not as_strided, which does not know all types of ml_dtypes.
        return np.ndarray(shape, array.dtype, buffer=array.view(np.uint8), offset=start * array.itemsize, strides=steps)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy type of the elements."""
        return numpy_dtype(self.element)

    def __str__(self) -> str:
        return f"{self.element}{self.shape}:{self.stride}"


def row_major(shape: Sequence[int]) -> Shape:
    """The strides of a compact tensor whose last mode is the fastest."""
    return tuple(math.prod(shape[index + 1 :]) for index in range(len(shape)))


def _broadcast(mode: Mode, extent: int, shape: Shape) -> Mode:
    own = math.prod(e for e, _ in mode)
    if own == extent:
        return mode
    if own != 1:
        raise ValueError(shape)
    return ((extent, 0),)


def _joined(factors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The factors with neighbours joined that one stride goes through, and those of one element dropped."""
    joined: list[tuple[int, int]] = []
    for extent, stride in factors:
        if extent == 1:
            continue
        if joined and joined[-1][1] == extent * stride:
            joined[-1] = (joined[-1][0] * extent, stride)
        else:
            joined.append((extent, stride))
    return joined


def _cut(factors: list[tuple[int, int]], shape: Shape) -> tuple[Mode, ...]:
    """The factors dealt out to the modes of `shape`, from the fastest on."""
    modes: list[Mode] = []
    rest = list(factors)
    for wanted in reversed(shape):
        mode: list[tuple[int, int]] = []
        while wanted > 1:
            extent, stride = rest.pop()
            common = math.gcd(extent, wanted)
            if common not in (extent, wanted):
                raise ValueError(shape)
            mode.append((common, stride))
            wanted //= common
            if extent > common:
                rest.append((extent // common, stride * common))
        modes.append(tuple(_joined(mode[::-1])) or ((1, 0),))
    return tuple(reversed(modes))
