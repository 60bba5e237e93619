"""From a graph of an epilogue, after its passes, to the operations of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import NoImplementationError
from tilewright.cute import Float32, Float64, Int32, Numeric
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.lowering.compose import Epilogue
from tilewright.lib.epilogue.lowering.computes import Compute
from tilewright.lib.epilogue.lowering.folds import Fold
from tilewright.lib.epilogue.lowering.functions import FUNCTIONS
from tilewright.lib.epilogue.lowering.loads import Accumulator, Immediate, MaskLoad, NumberLoad, TensorLoad
from tilewright.lib.epilogue.lowering.op import EpilogueOp, View
from tilewright.lib.epilogue.lowering.reductions import ReductionStore
from tilewright.lib.epilogue.lowering.stores import MaskStore, NoStore, TensorStore
from tilewright.lib.epilogue.lowering.topk import TopKSoftmax
from tilewright.lib.epilogue.nodes import CommNode, ComputeNode, LoadNode, NodeBase, StoreNode, TopKSoftmaxNode

_FOLDS = {"plus": "sum", "maximum": "max", "minimum": "min"}


@dataclass(frozen=True)
class Reduced:
    """How a kernel's tiles lie to a reduction: see `ReductionStore`."""

    over_m: bool
    over_n: bool
    over_l: tuple[bool, ...]
    way: str


def epilogue_of(
    dag: DAGIR, views: Mapping[str, View], reductions: Mapping[str, Reduced], accumulator: str | None = None
) -> Epilogue:
    """The operations of a graph's nodes, in its order.

    Args:
        dag: the graph, after the passes.
        views: of each tensor that is loaded or stored, by the name of its node.
        reductions: of each output that does not change along a mode of the kernel, likewise.
        accumulator: the load whose value the kernel hands over as `tile.accumulator`.

    Raises:
        NoImplementationError: no operation stands for a node.
    """
    ops: list[EpilogueOp] = []
    for meta in dag.nodes_meta:
        inputs = tuple(dag.get_all_inputs(meta.name))
        if isinstance(meta, LoadNode):
            ops.append(_load(meta, views, accumulator))
        elif isinstance(meta, StoreNode):
            ops.append(_store(meta, inputs, dag, views, reductions))
        else:
            ops.append(_compute(meta, inputs))
    return Epilogue(tuple(ops))


def _load(meta: LoadNode, views: Mapping[str, View], accumulator: str | None) -> EpilogueOp:
    if meta.name == accumulator:
        return Accumulator(meta.name, ())
    if meta.example.is_scalar:
        value: Any = meta.example.value
        dtype = meta.example.element
        return Immediate(meta.name, (), value, dtype) if meta.is_immediate else NumberLoad(meta.name, (), dtype)
    kind = MaskLoad if meta.example.bits else TensorLoad
    return kind(meta.name, (), views[meta.name])


def _compute(meta: NodeBase, inputs: tuple[str, ...]) -> EpilogueOp:
    own: EpilogueOp | None = meta.operation(inputs)
    if own is not None:
        return own
    if isinstance(meta, CommNode):
        raise NoImplementationError(
            f"No kernel shares {meta.name} between participants.",
            location=meta.location,
            values={"placement": meta.placement, "scope": meta.scope},
            hint="share an output: put the communication after a variable that is returned, and give a collective",
        )
    if isinstance(meta, TopKSoftmaxNode):
        return TopKSoftmax(meta.name, inputs, meta.kwargs["k"], meta.element_compute, _result(meta))
    if not isinstance(meta, ComputeNode) or not isinstance(meta.fn, str) or meta.fn not in FUNCTIONS:
        fn = getattr(meta, "fn", meta.op)
        raise NoImplementationError(
            f"No kernel computes node {meta.name}.",
            location=meta.location,
            values={"function": fn},
            hint="tilewright.epilogue.register_device_function(name, function) says how",
        )
    return Compute(meta.name, inputs, meta.fn, meta.element_compute, _result(meta))


def _result(meta: ComputeNode) -> type[Numeric] | None:
    """The type of a node's value, where it is not that in which it computes."""
    return meta.element_output if meta.element_output is not meta.element_compute else None


def _store(
    meta: StoreNode, inputs: tuple[str, ...], dag: DAGIR, views: Mapping[str, View], reductions: Mapping[str, Reduced]
) -> EpilogueOp:
    if not meta.is_output or meta.disabled:
        return NoStore(meta.name, inputs)
    how = reductions.get(meta.name)
    if how is None:
        kind = MaskStore if meta.tensor is not None and meta.tensor.bits else TensorStore
        return kind(meta.name, inputs, views[meta.name])
    fold = fold_of(dag, meta)
    return ReductionStore(meta.name, inputs, views[meta.name], fold, how.over_m, how.over_n, how.over_l, how.way)


def fold_of(dag: DAGIR, meta: StoreNode) -> Fold:
    """What a reduction computes, in a type of at least 32 bits.

    What is no reduction but does not change along a mode is stored once: the greatest of equal values is one of them.
    """
    return Fold(_FOLDS[meta.reg_reduce_fn or "maximum"], _folding_type(dag, meta))


def _folding_type(dag: DAGIR, meta: StoreNode) -> type[Numeric]:
    element = dag.get_all_inputs_meta(meta.name)[0].element_output or dag.element_compute
    if element.is_float:
        return Float64 if element is Float64 else Float32
    return element if element.width >= 32 else Int32
