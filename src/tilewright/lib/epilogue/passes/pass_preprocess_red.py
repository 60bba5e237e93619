"""Reductions move into the stores that keep their results."""

from __future__ import annotations

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.nodes import CommNode, ComputeNode, StoreNode
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase


class PassPreprocessRed(EVTPassBase):
    """Folds each reduction node into its store, whose `reg_reduce_fn` and `gmem_reduce_fn` it becomes.

    A reduction is complete only when all of the grid is done, so its result can be stored, and sent to others, but not
    computed with. The stores' names go to `dag_ir.reduction_names`.
    """

    def call(self) -> None:
        for meta in self.dag_ir.nodes_meta:
            if isinstance(meta, ComputeNode) and meta.is_reduction:
                self._fold(meta)

    def _fold(self, meta: ComputeNode) -> None:
        dag = self.dag_ir
        users = [dag.get_node_meta(user) for user in dag.get_users(meta.name)]
        store = users[0] if len(users) == 1 else None
        if not isinstance(store, StoreNode) or any(
            not isinstance(dag.get_node_meta(user), CommNode) for user in dag.get_users(store.name)
        ):
            raise EpilogueError(
                f"The reduction {meta.name} is used by something else than one variable.",
                location=meta.location,
                values={"users": ", ".join(user.name for user in users) or "none"},
                hint="a reduction is known only when the kernel is done: assign it to a variable and return that alone",
            )
        (operand,) = dag.get_all_inputs(meta.name)
        assert isinstance(meta.fn, tuple)
        store.reg_reduce_fn, store.gmem_reduce_fn = meta.fn
        store.reduce_dims = meta.kwargs.get("dim")
        dag.remove_node(meta.name)
        dag.add_edge(operand, store.name, 0)
        dag.reduction_names.append(store.name)

    def ensures(self) -> None:
        assert not any(isinstance(meta, ComputeNode) and meta.is_reduction for meta in self.dag_ir.nodes_meta)
