"""Permutations and reshapes dissolve into the strides of loads and outputs."""

from __future__ import annotations

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.dag import DAGIR, copied
from tilewright.lib.epilogue.nodes import LayoutNode, LoadNode, NodeBase, StoreNode
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.passes.pass_shape_type_propagation import PassShapeTypePropagation
from tilewright.lib.epilogue.tensor import Shape, Tensor
from tilewright.lib.epilogue.views import Broadcast, Reshape, ViewOp, normalised

Views = tuple[ViewOp, ...]


class PassLayoutManipulateElimination(EVTPassBase):
    """Rebuilds the graph in the shape (L, M, N) of the accumulator, without layout nodes.

    A value that depends on the accumulator is moved back by what undoes the layout nodes on its way. Every other
    value is placed once for each way in which it is used, by moving views up to its loads, where they change strides.
    """

    dependencies = (PassShapeTypePropagation,)

    def requires(self) -> None:
        if not self.dag_ir.has_node("accum"):
            raise EpilogueError("The graph has no node accum.", hint="trace an epilogue that has an argument accum")

    def call(self) -> None:
        self._tile: Shape = self.dag_ir.get_node_meta("accum").shape
        self._back = self._ways_back()
        self._made = DAGIR(self.dag_ir.cc, self.dag_ir.element_compute)
        self._placed: dict[tuple[str, Views], str] = {}
        for meta in self.dag_ir.nodes_meta:
            if meta.name in self._back:
                self._place(meta.name, self._back[meta.name])
            elif self._is_root(meta):
                self._place(meta.name, self._free_way(meta))
        self.dag_ir.take(self._made)

    def ensures(self) -> None:
        assert not any(isinstance(meta, LayoutNode) for meta in self.dag_ir.nodes_meta)
        assert all(meta.shape == self._tile for meta in self.dag_ir.nodes_meta)

    def _is_root(self, meta: NodeBase) -> bool:
        return meta.op == "comm" or (isinstance(meta, StoreNode) and meta.is_output)

    def _ways_back(self) -> dict[str, Views]:
        """For every value that depends on the accumulator, the views that lead back to the accumulator's shape."""
        back: dict[str, Views] = {"accum": ()}
        for meta in self.dag_ir.nodes_meta:
            inputs = [each for each in self.dag_ir.get_all_inputs_meta(meta.name) if each.name in back]
            if not inputs:
                continue
            first = inputs[0]
            undo = meta.view.inverse(first.shape) if isinstance(meta, LayoutNode) else Reshape(first.shape)
            ways = {normalised((undo, *back[each.name]), meta.shape) for each in inputs}
            if len(ways) > 1:
                raise EpilogueError(
                    f"Unsolved propagation direction: {meta.name} uses the accumulator in two arrangements.",
                    location=meta.location,
                    values={each.name: _shown(back[each.name]) for each in inputs},
                    hint="a tile of the accumulator is at one place only: permute all of its uses alike",
                )
            back[meta.name] = ways.pop()
        return back

    def _free_way(self, meta: NodeBase) -> Views:
        """From the shape of an output that does not depend on the accumulator to the accumulator's."""
        try:
            return normalised((Broadcast(self._tile),), meta.shape)
        except ValueError:
            pass
        try:
            return normalised((Reshape(self._tile),), meta.shape)
        except ValueError:
            raise EpilogueError(
                f"Output {meta.name} has neither the accumulator's shape nor as many elements.",
                location=meta.location,
                values={meta.name: meta.shape, "accum": self._tile},
                hint="compute it outside the epilogue",
            ) from None

    def _place(self, name: str, views: Views) -> str:
        """The node of the new graph that has the value of `name` moved by `views`."""
        if (name, views) not in self._placed:
            self._placed[name, views] = self._new(self.dag_ir.get_node_meta(name), views)
        return self._placed[name, views]

    def _new(self, meta: NodeBase, views: Views) -> str:
        if isinstance(meta, LayoutNode):
            (source,) = self.dag_ir.get_all_inputs(meta.name)
            return self._place(source, self._views_of(source, meta, views))
        if not meta.elementwise and views:
            raise EpilogueError(
                f"{meta.name} works on rows of the accumulator, but its value is in another arrangement.",
                location=meta.location,
                values={"views": _shown(views)},
                hint="permute or reshape after it, not before",
            )
        sources = self.dag_ir.get_all_inputs(meta.name)
        placed = [self._place(source, self._views_of(source, meta, views)) for source in sources]
        made = copied(meta, self._made.unique_name(meta.name))
        made.tensor = self._moved(meta, views)
        self._made.add_node(made)
        for position, source in enumerate(placed):
            self._made.add_edge(source, made.name, position)
        return made.name

    def _views_of(self, source: str, user: NodeBase, views: Views) -> Views:
        """How an operand of `user` is moved when `user` is moved by `views`."""
        if source in self._back:
            return self._back[source]
        own: ViewOp = user.view if isinstance(user, LayoutNode) else Broadcast(user.shape)
        return normalised((own, *views), self.dag_ir.get_node_meta(source).shape)

    def _moved(self, meta: NodeBase, views: Views) -> Tensor:
        tensor = meta.tensor
        assert tensor is not None
        if not isinstance(meta, LoadNode | StoreNode) or (isinstance(meta, StoreNode) and not meta.is_output):
            return Tensor.of(tensor.element, self._tile)
        try:
            for view in views:
                tensor = view.on_tensor(tensor)
        except ValueError:
            raise EpilogueError(
                f"The strides of {meta.name} cannot express how it is permuted and reshaped.",
                location=meta.location,
                values={"tensor": meta.tensor, "views": _shown(views)},
                hint="permute or reshape the tensor before it is passed",
            ) from None
        return tensor


def _shown(views: Views) -> str:
    return ", then ".join(map(str, views)) or "as it is"
