"""What no output needs is dropped."""

from __future__ import annotations

from tilewright.lib.epilogue import networks as nx
from tilewright.lib.epilogue.nodes import StoreNode
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase


class PassNoOpElimination(EVTPassBase):
    """Removes variables that are no outputs, their users taking what was assigned, and then every node that neither an
    output nor a communication depends on. The accumulator stays."""

    def call(self) -> None:
        for meta in self.dag_ir.nodes_meta:
            if isinstance(meta, StoreNode) and not meta.is_output:
                (source,) = self.dag_ir.get_all_inputs(meta.name)
                self.dag_ir.replace_all_uses_with(meta.name, source)
                self.dag_ir.remove_node(meta.name)
        self._remove_dead()

    def _remove_dead(self) -> None:
        roots = [meta.name for meta in self.dag_ir.nodes_meta if meta.is_output or meta.op == "comm"]
        needed = {"accum", *roots}.union(*(nx.ancestors(self.dag_ir.graph, root) for root in roots))
        for name in self.dag_ir.nodes:
            if name not in needed:
                self.dag_ir.remove_node(name)
