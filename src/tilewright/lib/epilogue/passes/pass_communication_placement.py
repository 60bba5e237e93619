"""Where each communication takes place: on stored tensors, or on values inside the kernel."""

from __future__ import annotations

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.nodes import CommNode, StoreNode
from tilewright.lib.epilogue.passes.pass_get_impl import PassGetImpl
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase

SCOPES = ("auto", "warp", "block", "cluster", "grid", "node")
KINDS = ("allreduce", "allgather", "reduce_scatter", "broadcast")


class PassCommunicationPlacement(EVTPassBase):
    """Sets `placement` of communication nodes: "output" after a store, on the stored tensor when the kernel is done,
    and "value" elsewhere. Where the scope is "auto", an output is shared by the node's devices, a value by the grid.

    Nothing in the kernel may use what comes after a stored tensor.
    """

    dependencies = (PassGetImpl,)

    def call(self) -> None:
        for meta in self.dag_ir.nodes_meta:
            if isinstance(meta, CommNode):
                self._place(meta)

    def _place(self, meta: CommNode) -> None:
        for word, known in ((meta.kind, KINDS), (meta.scope, SCOPES)):
            if word not in known:
                raise EpilogueError(
                    f"Communication {meta.name} is of an unknown sort: {word}.",
                    location=meta.location,
                    hint=f"known are {', '.join(known)}",
                )
        (source,) = self.dag_ir.get_all_inputs_meta(meta.name)
        after_store = isinstance(source, StoreNode) and source.is_output
        meta.placement = "output" if after_store else "value"
        if meta.scope == "auto":
            meta.scope = "node" if after_store else "grid"
        users = self.dag_ir.get_users(meta.name)
        if after_store and users:
            raise EpilogueError(
                f"{users[0]} uses the stored tensor {source.name} after communication {meta.name}.",
                location=meta.location,
                hint="what others share is known when the kernel is done: insert the communication before the store",
            )
