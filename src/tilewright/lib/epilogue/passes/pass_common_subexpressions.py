"""What is computed twice from the same operands is computed once."""

from __future__ import annotations

from typing import Any

from tilewright.lib.epilogue.functions import FUNCTIONS
from tilewright.lib.epilogue.nodes import ComputeNode, LayoutNode, LoadNode, NodeBase, StoreNode
from tilewright.lib.epilogue.passes.pass_layout_elimination import PassLayoutManipulateElimination
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase


class PassCommonSubexpressions(EVTPassBase):
    """Merges loads of one number, and compute nodes of one function with the same operands (in any order, where the
    function is commutative). Variables are looked through; stores and communication are never merged."""

    dependencies = (PassLayoutManipulateElimination,)

    def call(self) -> None:
        self._numbers: dict[str, int] = {}
        first: dict[tuple[Any, ...], str] = {}
        for meta in self.dag_ir.nodes_meta:
            key = self._key(meta)
            if isinstance(meta, ComputeNode | LoadNode | LayoutNode) and key in first:
                self.dag_ir.replace_all_uses_with(meta.name, first[key])
                self.dag_ir.remove_node(meta.name)
            else:
                first[key] = meta.name

    def _key(self, meta: NodeBase) -> tuple[Any, ...]:
        operands = [self._value(source) for source in self.dag_ir.get_all_inputs(meta.name)]
        if isinstance(meta, ComputeNode) and isinstance(meta.fn, str):
            function = FUNCTIONS.get(meta.fn)
            operands = sorted(operands) if function is not None and function.commutative else operands
        return (*meta.key(), *operands)

    def _value(self, name: str) -> str:
        """The node that computes a value, below the variables and identities that hand it on."""
        meta = self.dag_ir.get_node_meta(name)
        while isinstance(meta, StoreNode) or (isinstance(meta, ComputeNode) and meta.fn == "identity"):
            (meta,) = self.dag_ir.get_all_inputs_meta(meta.name)
        return meta.name
