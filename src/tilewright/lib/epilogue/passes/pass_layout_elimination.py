"""Permutations and reshapes dissolve into the strides of loads and outputs."""

from __future__ import annotations

import math

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
    An output that does not depend on the accumulator may have any shape that broadcasts to the accumulator's.
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
        self._fitting: dict[tuple[str, Views], bool] = {}
        for meta in self.dag_ir.nodes_meta:
            if meta.name in self._back:
                self._place(meta.name, self._back[meta.name])
            elif self._is_root(meta):
                self._drop_trivial_reduction(meta)
                self._place(meta.name, self._free_way(meta))
        self.dag_ir.take(self._made)

    def ensures(self) -> None:
        assert not any(isinstance(meta, LayoutNode) for meta in self.dag_ir.nodes_meta)
        assert all(meta.shape == self._tile for meta in self.dag_ir.nodes_meta)

    def _drop_trivial_reduction(self, meta: NodeBase) -> None:
        """Make a reduction over modes of one element a store, since the accumulator's shape may have more of them."""
        if isinstance(meta, StoreNode) and meta.is_reduction and meta.store_tensor is not None:
            if math.prod(meta.store_tensor.shape) == math.prod(meta.shape):
                meta.reg_reduce_fn = meta.gmem_reduce_fn = meta.reduce_dims = None
                self.dag_ir.reduction_names = [name for name in self.dag_ir.reduction_names if name != meta.name]

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
        """From the shape of an output that does not depend on the accumulator to the accumulator's: by what undoes
        layout nodes on its way and broadcasts then, or in row-major order; the first that its tensors' strides allow.
        """
        ways = self._ways_forth(meta)
        if not ways:
            raise EpilogueError(
                f"Output {meta.name} neither broadcasts to the accumulator's shape nor has as many elements.",
                location=meta.location,
                values={meta.name: meta.shape, "accum": self._tile},
                hint="compute it outside the epilogue",
            )
        if _sums(meta) and math.prod(meta.shape) != math.prod(self._tile):
            raise EpilogueError(
                f"The sum {meta.name} is of a value that does not depend on accum and is smaller.",
                location=meta.location,
                values={"summed": meta.shape, "accum": self._tile},
                hint="sum the operand before the call; max and min of such a value may stay",
            )
        return next((way for way in ways if self._fits(meta, way)), ways[0])

    def _ways_forth(self, meta: NodeBase) -> list[Views]:
        """The ways from the shape of a value that does not depend on the accumulator to the accumulator's."""
        undone: list[tuple[NodeBase, Views]] = [(meta, ())]
        ways: list[Views] = []
        for node, views in undone:  # which grows
            ways += _valid((*views, Broadcast(self._tile)), meta.shape)
            for source in self.dag_ir.get_all_inputs_meta(node.name):
                step = (node.view.inverse(source.shape),) if isinstance(node, LayoutNode) else ()
                undone += [(source, way) for way in _valid((*views, *step), meta.shape) if (source, way) not in undone]
        return [*ways, *_valid((Reshape(self._tile),), meta.shape)]

    def _fits(self, meta: NodeBase, views: Views) -> bool:
        """Whether `views` can move a value with all that it is computed from."""
        if (meta.name, views) not in self._fitting:
            self._fitting[meta.name, views] = self._movable(meta, views) and all(
                self._fits(source, self._views_of(source.name, meta, views))
                for source in self.dag_ir.get_all_inputs_meta(meta.name)
            )
        return self._fitting[meta.name, views]

    def _movable(self, meta: NodeBase, views: Views) -> bool:
        try:
            self._moved(meta, views)
        except EpilogueError:
            return False
        return meta.elementwise or not views

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


def _sums(meta: NodeBase) -> bool:
    return isinstance(meta, StoreNode) and meta.reg_reduce_fn == "plus"


def _valid(views: Views, shape: Shape) -> list[Views]:
    """The views, normalised, where they fit the shape."""
    try:
        return [normalised(views, shape)]
    except ValueError:
        return []


def _shown(views: Views) -> str:
    return ", then ".join(map(str, views)) or "as it is"
