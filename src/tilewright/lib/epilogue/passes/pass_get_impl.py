"""Which implementation each node gets, from its name and the strides of its last two modes, M and N."""

from __future__ import annotations

from tilewright.base.errors import EpilogueError, NoImplementationError
from tilewright.lib.epilogue.nodes import LoadNode, NodeBase, StoreNode, TopKSoftmaxNode
from tilewright.lib.epilogue.passes.pass_fix_element_d import PassFixElementD
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.passes.pass_no_op_elimination import PassNoOpElimination
from tilewright.lib.epilogue.passes.pass_shape_type_propagation import PassShapeTypePropagation

# By whether memory moves along M, and along N.
_LOADS = {
    (True, True): "aux_load",
    (False, True): "row_broadcast",
    (True, False): "column_broadcast",
    (False, False): "scalar_broadcast",
}
_REDUCTIONS = {
    (False, True): "row_reduction",
    (True, False): "column_reduction",
    (False, False): "scalar_reduction",
    (True, True): "batch_reduction",
}
_STORES = {
    (False, True): "row_store",
    (True, False): "column_store",
    (False, False): "scalar_store",
    (True, True): "aux_store",
}
_WHOLE = ("load_src", "aux_load", "store_d", "aux_store")
"""Implementations that take several strides in a mode."""
_OTHERS = {"compute": "compute", "comm": "communication", "dag": "topo_visitor"}


class PassGetImpl(EVTPassBase):
    """Sets `underlying_impl`:

    * loads: `accumulator`, `load_src` (C in full), `aux_load`, `row_broadcast`, `column_broadcast`, `scalar_broadcast`,
      `immediate`;
    * stores: `store_d` (D in full), `aux_store`; `row_store`, `column_store`, `scalar_store`, of values that are the
      same along the other modes; `row_reduction`, `column_reduction`, `scalar_reduction`, `batch_reduction` (over L
      alone); `no_op`;
    * `compute`, `topk_softmax`, `communication`, `topo_visitor`.

    A row is broadcast along M, and a row reduction leaves one value per column. What remains is cleaned up by
    `PassNoOpElimination`.
    """

    dependencies = (PassShapeTypePropagation, PassFixElementD)

    def requires(self) -> None:
        if not self.dag_ir.has_node("accum"):
            raise EpilogueError("The graph has no node accum.", hint="trace an epilogue that has an argument accum")

    def call(self) -> None:
        for meta in self.dag_ir.nodes_meta:
            meta.underlying_impl = implementation(meta)

    def ensures(self) -> None:
        PassNoOpElimination(self.dag_ir)()


def implementation(meta: NodeBase) -> str:
    """The name of a node's implementation.

    Raises:
        NoImplementationError: none has its strides.
    """
    if isinstance(meta, StoreNode) and not meta.is_output:
        return "no_op"
    if isinstance(meta, LoadNode | StoreNode):
        assert meta.tensor is not None
        found = _of_load(meta) if isinstance(meta, LoadNode) else _of_store(meta)
        if found is None or not (meta.tensor.is_plain or found in _WHOLE):
            raise NoImplementationError(
                f"No matching op for node {meta.name} with stride {meta.tensor.stride}.",
                location=meta.location,
                hint="a row or a column has one stride, the example of an output no two elements at one place, "
                "and a mask of bits the accumulator's shape",
            )
        return found
    if isinstance(meta, TopKSoftmaxNode):
        return "topk_softmax"
    return _OTHERS.get(meta.op, type(meta).__name__)


def _moving(meta: NodeBase) -> tuple[bool, bool]:
    """Whether memory moves along M, and along N; a mode of one element counts as what keeps the tensor whole."""
    assert meta.tensor is not None
    along_m, along_n = (any(stride for _, stride in mode) for mode in meta.tensor.modes[-2:])
    return along_m, along_n


def _of_load(meta: LoadNode) -> str | None:
    assert meta.tensor is not None
    if meta.name == "accum":
        return "accumulator"
    if meta.is_immediate:
        return "immediate"
    if meta.name == "C" and not meta.tensor.broadcast_modes:
        return "load_src"
    return _LOADS[_moving(meta)]


def _of_store(meta: StoreNode) -> str | None:
    assert meta.tensor is not None
    if meta.is_reduction:
        return _REDUCTIONS[_kept(meta)]
    if not meta.tensor.broadcast_modes:
        return "store_d" if meta.name == "D" else "aux_store"
    overlaps = meta.store_tensor is None or meta.store_tensor.broadcast_modes
    return None if overlaps or meta.tensor.bits else _STORES[_kept(meta)]


def _kept(meta: StoreNode) -> tuple[bool, bool]:
    """Whether an output has several elements along M, and along N."""
    kept_m, kept_n = (moves and extent > 1 for moves, extent in zip(_moving(meta), meta.shape[-2:], strict=True))
    return kept_m, kept_n
