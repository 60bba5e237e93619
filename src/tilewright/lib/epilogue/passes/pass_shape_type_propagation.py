"""Shapes and types of all nodes from those of the examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.functions import reduced_modes
from tilewright.lib.epilogue.nodes import LayoutNode, LoadNode, NodeBase, StoreNode
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.passes.pass_preprocess_red import PassPreprocessRed
from tilewright.lib.epilogue.tensor import Shape, Tensor


class PassShapeTypePropagation(EVTPassBase):
    """Forward, every node gets its element types and its shape by NumPy's broadcasting. Backward, every operand is
    broadcast to its user's shape, so that a broadcast is a stride of 0.

    The tensor of an output is its example seen in the shape of the value: modes that the store reduces have stride 0.
    """

    dependencies = (PassPreprocessRed,)

    def call(self) -> None:
        self._full = {"accum", *self.dag_ir.all_reachable_nodes("accum")} if self.dag_ir.has_node("accum") else set()
        for meta in self.dag_ir.nodes_meta:
            self._forward(meta)
        for meta in reversed(self.dag_ir.nodes_meta):
            self._backward(meta)

    def ensures(self) -> None:
        for meta in self.dag_ir.nodes_meta:
            _ = meta.shape

    def _forward(self, meta: NodeBase) -> None:
        inputs = self.dag_ir.get_all_inputs_meta(meta.name)
        if isinstance(meta, LoadNode):
            meta.tensor = meta.tensor or meta.example
            return
        if meta.op in ("layout", "store", "comm"):
            meta.element_output = inputs[0].element_output
            meta.element = meta.element_output
        shape = self._shape(meta, inputs)
        if isinstance(meta, StoreNode) and meta.store_tensor is not None:
            meta.element = meta.store_tensor.element
            meta.tensor = _output_view(meta, meta.store_tensor, shape)
            if meta.name in self._full and math.prod(meta.shape) != math.prod(shape):
                raise _other_shape(meta, shape, meta.store_tensor)
        elif meta.tensor is None or meta.shape != shape:
            assert meta.element_output is not None
            meta.tensor = Tensor.of(meta.element_output, shape)

    def _shape(self, meta: NodeBase, inputs: Sequence[NodeBase]) -> Shape:
        try:
            shape = meta.output_shape(*(each.shape for each in inputs))
        except ValueError as error:
            if isinstance(meta, LayoutNode):
                raise EpilogueError(
                    f"{meta.fn} does not fit {inputs[0].name}{inputs[0].shape}.",
                    location=meta.location,
                    values={"asked": str(error)},
                    hint="permute takes each mode once; reshape keeps the number of elements",
                ) from None
            raise _mismatch(meta, inputs) from None
        # The accumulator's values are there once: they cannot be broadcast.
        if any(each.name in self._full and math.prod(each.shape) != math.prod(shape) for each in inputs):
            raise _mismatch(meta, inputs)
        return shape

    def _backward(self, meta: NodeBase) -> None:
        users = [self.dag_ir.get_node_meta(user) for user in self.dag_ir.get_users(meta.name)]
        output = isinstance(meta, StoreNode) and meta.is_output
        stays = output or isinstance(meta, LayoutNode) or any(isinstance(user, LayoutNode) for user in users)
        shapes = {user.shape for user in users}
        # Users in different shapes get a copy each from PassLayoutManipulateElimination.
        if not stays and len(shapes) == 1 and meta.tensor is not None:
            meta.tensor = meta.tensor.broadcast(shapes.pop())


def _mismatch(meta: NodeBase, inputs: Sequence[NodeBase]) -> EpilogueError:
    shapes = ", ".join(f"{each.name}{each.shape}" for each in inputs)
    return EpilogueError(
        f"Dimension mismatch between {shapes}.",
        location=meta.location,
        hint="shapes broadcast by NumPy's rules; the accumulator itself is never broadcast",
    )


def _output_view(meta: StoreNode, target: Tensor, shape: Shape) -> Tensor:
    """The example of an output seen in the shape of the value.

    Raises:
        EpilogueError: the example has another shape than what is stored.
    """
    try:
        reduced = reduced_modes(meta.reduce_dims, len(shape)) if meta.is_reduction else ()
    except ValueError as error:
        raise EpilogueError(
            f"The reduction {meta.name} is over modes that its value does not have.",
            location=meta.location,
            values={"asked": str(error), "shape of the value": shape},
            hint="modes are counted from 0, or from -1 backwards",
        ) from None
    wanted = tuple(1 if mode in reduced else extent for mode, extent in enumerate(shape))
    given = (1,) * (len(shape) - target.rank) + target.shape
    if _essential(given) == _essential(wanted) and target.rank > len(shape):
        target, given = target.reshape(wanted), wanted
    if given == wanted:
        return target.broadcast(shape)
    if reduced or not _broadcasts(shape, target.shape):
        raise _other_shape(meta, wanted, target)
    return target


def _broadcasts(shape: Shape, to: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _other_shape(meta: StoreNode, wanted: Shape, target: Tensor) -> EpilogueError:
    return EpilogueError(
        f"Output {meta.name} has another shape than its example.",
        location=meta.location,
        values={"stored": wanted, "example": target.shape},
        hint=f"give {meta.name} an example of shape {wanted}",
    )


def _essential(shape: Shape) -> Shape:
    """A shape without the modes of one element in front."""
    while shape and shape[0] == 1:
        shape = shape[1:]
    return shape
