"""A graph evaluated on NumPy, at any point between tracing and lowering: what a pass leaves must give the same.

Loads and outputs go through their views, as a kernel's would; what is computed between them is NumPy's broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.elements import converted, numpy_dtype
from tilewright.lib.epilogue.functions import FUNCTIONS, REDUCE, Array, reduced_modes
from tilewright.lib.epilogue.nodes import CommNode, LoadNode, NodeBase, StoreNode
from tilewright.lib.epilogue.tensor import Tensor


class Graph(Protocol):
    """What is asked of a graph."""

    return_names: tuple[str, ...]

    @property
    def nodes_meta(self) -> list[NodeBase]:
        """The nodes, each after its inputs."""

    def get_all_inputs(self, name: str) -> list[str]:
        """The operands of a node."""


Collective = Callable[[CommNode, Array], Array]


def evaluate(dag: Graph, arrays: Mapping[str, Any], collective: Collective | None = None) -> dict[str, Array]:
    """The outputs by name, in the order of the user's `return` where it is known."""
    values: dict[str, Array] = {}
    outputs: dict[str, Array] = {}
    for meta in dag.nodes_meta:
        sources = dag.get_all_inputs(meta.name)
        inputs = [values[source] for source in sources]
        if isinstance(meta, LoadNode):
            values[meta.name] = _loaded(meta, arrays)
        elif isinstance(meta, CommNode) and collective is not None and sources[0] in outputs:
            # After an output, what is stored is communicated; nothing in the kernel uses it.
            outputs[sources[0]] = collective(meta, outputs[sources[0]])
            values[meta.name] = inputs[0]
        elif isinstance(meta, CommNode) and collective is not None:
            values[meta.name] = collective(meta, inputs[0])
        else:
            values[meta.name] = meta.evaluate(*inputs)
        if isinstance(meta, StoreNode) and meta.is_output:
            outputs[meta.name] = _stored(meta, values[meta.name])
    order = dag.return_names or tuple(outputs)
    return {name: outputs[name] for name in order if name in outputs}


def _loaded(meta: LoadNode, arrays: Mapping[str, Any]) -> Array:
    example = meta.example
    given = arrays.get(meta.argument, example.value)
    if given is None:
        raise EpilogueError(
            f"No array is given for {meta.argument}.", location=meta.location, hint=f"pass {meta.argument}= to evaluate"
        )
    array = np.asarray(given)
    if array.size != int(np.prod(example.shape)):
        raise EpilogueError(
            f"{meta.argument} has another shape than its example.",
            location=meta.location,
            values={"example": example.shape, "given": array.shape},
            hint="trace the epilogue again with examples of that shape",
        )
    memory, start = memory_of(example, array.reshape(example.shape))
    view = meta.tensor or example
    return view.view(memory, start).reshape(view.shape)


def memory_of(example: Tensor, array: Array | None = None) -> tuple[Array, int]:
    """Memory in which the example's strides hold, filled from `array`, else with zeros; and where in it they start."""
    before, after = example.span
    memory = np.zeros(before + after, numpy_dtype(example.element))
    if array is not None and array.size:
        example.view(memory, before)[...] = array.astype(memory.dtype)
    return memory, before


def _stored(meta: StoreNode, value: Array) -> Array:
    """The output's array after the store, in the shape of the user's example."""
    target = meta.store_tensor
    if target is None:
        raise EpilogueError(
            f"Output {meta.name} has no tensor to store to.", location=meta.location, hint="set its store_tensor"
        )
    memory, start = memory_of(target)
    if meta.reg_reduce_fn is not None and value.size == 0:
        memory[...] = converted(np.array([FUNCTIONS[meta.reg_reduce_fn].neutral]), memory.dtype)
        return target.view(memory, start).reshape(target.shape).copy()
    view = meta.tensor or target
    reduced = _reduced(meta, value, view)
    strided = view.view(memory, start)
    fitting = reduced.reshape(reduced.shape[max(reduced.ndim - view.rank, 0) :])
    strided[...] = converted(np.broadcast_to(fitting, view.shape), memory.dtype).reshape(strided.shape)
    return target.view(memory, start).reshape(target.shape).copy()


def _reduced(meta: StoreNode, value: Array, view: Tensor) -> Array:
    """The value, reduced where the store does: over `reduce_dims`, or where the view is broadcast."""
    if meta.reg_reduce_fn is None:
        return value
    if meta.tensor is None:
        axes = reduced_modes(meta.reduce_dims, value.ndim)
        return np.asarray(REDUCE[meta.reg_reduce_fn](value, axis=axes, keepdims=True))
    full = np.broadcast_to(value, view.shape)
    return np.asarray(REDUCE[meta.reg_reduce_fn](full, axis=view.broadcast_modes, keepdims=True))
