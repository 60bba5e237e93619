"""Functions of numbers that the epilogue itself states are computed once, while it is compiled."""

from __future__ import annotations

import numpy as np

from tilewright.lib.epilogue.nodes import ComputeNode, LoadNode, NodeBase, StoreNode
from tilewright.lib.epilogue.passes.pass_layout_elimination import PassLayoutManipulateElimination
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.tensor import Tensor

_NEUTRAL = {("multiplies", 0): 1, ("multiplies", 1): 1, ("divides", 1): 1, ("minus", 1): 0}
"""An operand of this value, by function and position, leaves the other operand exactly as it is."""


class PassConstantFolding(EVTPassBase):
    """Replaces compute nodes whose operands are all immediates, and those that hand on one operand unchanged.

    `x + 0` stays: it turns -0 into 0. Examples that are numbers stay operands: a call may give others.
    """

    dependencies = (PassLayoutManipulateElimination,)

    def call(self) -> None:
        for meta in self.dag_ir.nodes_meta:
            if isinstance(meta, ComputeNode) and meta.elementwise and not meta.is_reduction:
                self._fold(meta)

    def _fold(self, meta: ComputeNode) -> None:
        sources = self.dag_ir.get_all_inputs(meta.name)
        values = [self._constant(source) for source in sources]
        if all(value is not None for value in values):
            self._replace_by_number(meta, [float(value) for value in values if value is not None])
            return
        for position, value in enumerate(values):
            if value is not None and _NEUTRAL.get((str(meta.fn), position)) == value:
                self._replace(meta, sources[1 - position])
                return

    def _constant(self, name: str) -> float | None:
        """The number that a node is, looking through variables."""
        meta: NodeBase = self.dag_ir.get_node_meta(name)
        while isinstance(meta, StoreNode):
            (meta,) = self.dag_ir.get_all_inputs_meta(meta.name)
        return meta.example.value if isinstance(meta, LoadNode) and meta.is_immediate else None

    def _replace_by_number(self, meta: ComputeNode, values: list[float]) -> None:
        number = float(meta.evaluate(*(np.asarray(value) for value in values)))
        scalar = Tensor(meta.element_compute, (), value=number)
        made = LoadNode(self.dag_ir.unique_name(f"imm_{meta.name}"), scalar, meta.location)
        made.tensor = scalar.broadcast(meta.shape)
        self.dag_ir.add_node(made)
        self._replace(meta, made.name)

    def _replace(self, meta: ComputeNode, name: str) -> None:
        self.dag_ir.replace_all_uses_with(meta.name, name)
        self.dag_ir.remove_node(meta.name)
