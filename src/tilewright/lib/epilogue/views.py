"""View operations: what a layout node does, on tensors, arrays and shapes, and how to undo it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.lib.epilogue.tensor import Shape, Tensor


@dataclass(frozen=True)
class ViewOp:
    """A change of shape that moves no element.

    Every method raises ValueError where it does not fit the shape.
    """

    def on_shape(self, shape: Shape) -> Shape:
        """The shape of the result."""
        raise NotImplementedError

    def on_tensor(self, tensor: Tensor) -> Tensor:
        """The same on strides."""
        raise NotImplementedError

    def on_array(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same on an array of NumPy."""
        raise NotImplementedError

    def inverse(self, shape: Shape) -> ViewOp:
        """What leads back to `shape`, that of the operand."""
        raise NotImplementedError


@dataclass(frozen=True)
class Permute(ViewOp):
    """Mode `i` of the result is mode `indices[i]` of the operand."""

    indices: tuple[int, ...]

    def on_shape(self, shape: Shape) -> Shape:
        if sorted(index % len(shape) for index in self.indices) != list(range(len(shape))):
            raise ValueError(f"permute(indices={self.indices}) of a tensor of {len(shape)} modes")
        return tuple(shape[index] for index in self.indices)

    def on_tensor(self, tensor: Tensor) -> Tensor:
        self.on_shape(tensor.shape)
        return tensor.permute(self.indices)

    def on_array(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self.on_shape(array.shape)
        return array.transpose(self.indices)

    def inverse(self, shape: Shape) -> Permute:
        positive = [index % len(self.indices) for index in self.indices]
        return Permute(tuple(positive.index(mode) for mode in range(len(positive))))

    def __str__(self) -> str:
        return f"permute{self.indices}"


@dataclass(frozen=True)
class Reshape(ViewOp):
    """The elements in row-major order under `new_shape`; one extent may be -1, the one that fits."""

    new_shape: tuple[int, ...]

    def on_shape(self, shape: Shape) -> Shape:
        known = math.prod(extent for extent in self.new_shape if extent != -1)
        size = math.prod(shape)
        free = self.new_shape.count(-1)
        if free > 1 or known < (1 if free else 0) or (size % known if free else size != known):
            raise ValueError(f"reshape(new_shape={self.new_shape}) of a tensor of shape {shape}")
        return tuple(size // known if extent == -1 else extent for extent in self.new_shape)

    def on_tensor(self, tensor: Tensor) -> Tensor:
        return tensor.reshape(self.on_shape(tensor.shape))

    def on_array(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.reshape(self.on_shape(array.shape))

    def inverse(self, shape: Shape) -> Reshape:
        return Reshape(shape)

    def __str__(self) -> str:
        return f"reshape{self.new_shape}"


@dataclass(frozen=True)
class Broadcast(ViewOp):
    """By NumPy's rules to `shape`. It has no inverse."""

    shape: tuple[int, ...]

    def on_shape(self, shape: Shape) -> Shape:
        if np.broadcast_shapes(shape, self.shape) != self.shape:
            raise ValueError(f"broadcast of shape {shape} to {self.shape}")
        return self.shape

    def on_tensor(self, tensor: Tensor) -> Tensor:
        return tensor.broadcast(self.shape)

    def on_array(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.broadcast_to(array, self.shape)

    def inverse(self, shape: Shape) -> ViewOp:
        raise ValueError(f"broadcast to {self.shape}")

    def __str__(self) -> str:
        return f"broadcast{self.shape}"


def normalised(views: tuple[ViewOp, ...], shape: Shape) -> tuple[ViewOp, ...]:
    """The same views from `shape` on, without those that do nothing and with neighbours of one kind joined.

    A permutation that only moves modes of one element counts as a reshape.
    """
    made: list[ViewOp] = []
    shapes = [shape]
    for view in views:
        after = view.on_shape(shapes[-1])
        view = _simplest(view, shapes[-1], after)
        if made and type(made[-1]) is type(view):
            view = _simplest(_joined(made.pop(), view), shapes[-2], after)
            shapes.pop()
        if after != shapes[-1] or isinstance(view, Permute):
            made.append(view)
            shapes.append(after)
    return tuple(made) if tuple(made) == views else normalised(tuple(made), shape)


def _simplest(view: ViewOp, before: Shape, after: Shape) -> ViewOp:
    if isinstance(view, Permute):
        kept = [index % len(before) for index in view.indices if before[index] > 1]
        return Reshape(after) if kept == sorted(kept) else view
    return Reshape(after) if isinstance(view, Reshape) else view


def _joined(first: ViewOp, second: ViewOp) -> ViewOp:
    if isinstance(first, Permute) and isinstance(second, Permute):
        return Permute(tuple(first.indices[index] for index in second.indices))
    return second
