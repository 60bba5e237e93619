"""What every graph of an epilogue must be like, checked after each pass."""

from __future__ import annotations

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.functions import FUNCTIONS
from tilewright.lib.epilogue.nodes import (
    CommNode,
    ComputeNode,
    LayoutNode,
    LoadNode,
    NodeBase,
    StoreNode,
)


def validate(dag_ir: DAGIR) -> bool:
    """True where the graph is in order.

    Raises:
        EpilogueError: it has a cycle, a node with too few or too many operands, or an output without a tensor.
    """
    for meta in dag_ir.nodes_meta:
        weights = dag_ir.operand_positions(meta.name)
        wanted = _operands(meta)
        if weights != list(range(len(weights))) or (wanted is not None and len(weights) != wanted):
            raise EpilogueError(
                f"Node {meta.name} has operands {weights}.",
                location=meta.location,
                values={"wanted": "any number" if wanted is None else list(range(wanted))},
                hint="a pass that removes or adds a node gives its users an edge for each operand, with its position",
            )
        if isinstance(meta, StoreNode) and meta.is_output and meta.store_tensor is None:
            raise EpilogueError(
                f"Output {meta.name} has no tensor to store to.", location=meta.location, hint="set its store_tensor"
            )
    return True


def _operands(meta: NodeBase) -> int | None:
    """How many operands a node takes; None for any."""
    if isinstance(meta, LoadNode):
        return 0
    if isinstance(meta, LayoutNode | StoreNode | CommNode):
        return 1
    if isinstance(meta, ComputeNode):
        return FUNCTIONS[meta.fn].arity if isinstance(meta.fn, str) and meta.fn in FUNCTIONS else None
    return None
