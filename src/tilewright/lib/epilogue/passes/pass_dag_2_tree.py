"""The graph as a tree, for kernels that visit one: what is used several times is fused into nodes of its own."""

from __future__ import annotations

from tilewright.lib.epilogue import networks as nx
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import TopoVisitorNode
from tilewright.lib.epilogue.passes.pass_get_impl import PassGetImpl
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.passes.pass_shape_type_propagation import PassShapeTypePropagation


class PassDAG2Tree(EVTPassBase):
    """Fuses the region from each node with several users to the first node that depends on all of them into a
    `TopoVisitorNode`; where there is none, to what D is made of.

    Kernels of this project take a graph as it is, so the pass runs on request only. `DAGIR.expanded` undoes it.
    """

    dependencies = (PassShapeTypePropagation, PassGetImpl)

    def call(self) -> None:
        while (name := next((n for n in self.dag_ir.nodes if self.dag_ir.out_degree(n) > 1), None)) is not None:
            self._fuse(name)

    def ensures(self) -> None:
        assert all(self.dag_ir.out_degree(name) <= 1 for name in self.dag_ir.nodes)

    def _fuse(self, name: str) -> None:
        dag = self.dag_ir
        users = dag.get_users(name)
        common = set.intersection(*({user, *dag.all_reachable_nodes(user)} for user in users))
        end = next((n for n in dag.nodes if n in common), None)
        below = set(dag.all_reachable_nodes(name))
        if end is None:
            end = self._producer_of_d(below | {name})
            region = {name, *below} - ({"D"} if end != "D" and "D" in below else set())
        else:
            after = set(dag.all_reachable_nodes(end))
            region = {name, *(below - after)}
        self._replace(region, end)

    def _producer_of_d(self, candidates: set[str]) -> str:
        """D's producer where it is one of them, else the last of them."""
        if self.dag_ir.has_node("D") and "D" in candidates:
            return self.dag_ir.get_all_inputs("D")[0]
        return [name for name in self.dag_ir.nodes if name in candidates][-1]

    def _replace(self, region: set[str], end: str) -> None:
        """Move the nodes of the region into a node that has the value of `end`."""
        dag = self.dag_ir
        region = _closed(dag, region, end)
        inner = DAGIR(dag.cc, dag.element_compute)
        for member in sorted(region):
            inner.add_node(dag.get_node_meta(member))
        made = TopoVisitorNode(dag.unique_name(f"dag_{end}"), inner, dag.get_node_meta(end))
        made.underlying_impl = "topo_visitor"
        edges = [(source, target, data["weight"]) for source, target, data in dag.graph.edges(data=True)]
        outside = sorted({source for source, target, _ in edges if target in region and source not in region})
        for source, target, weight in edges:
            if source in region and target in region:
                inner.link(source, target, weight)
            elif target in region:
                made.entries.append((outside.index(source), target, weight))
        users = [(user, dag.get_edge_weight(end, user)) for user in dag.get_users(end) if user not in region]
        dag.add_node(made)
        for position, source in enumerate(outside):
            dag.link(source, made.name, position)
        for member in region:
            dag.remove_node(member)
        for user, weight in users:
            dag.link(made.name, user, weight)


def _closed(dag: DAGIR, region: set[str], end: str) -> set[str]:
    """The region with all nodes on paths between its members, so that fusing it makes no cycle, and with the users of
    its members other than `end`, so that it has one value."""
    made = set(region)
    while True:
        above = set().union(*(nx.ancestors(dag.graph, member) for member in made))
        below = set().union(*(nx.descendants(dag.graph, member) for member in made))
        leaving = {user for member in made - {end} for user in dag.get_users(member)}
        grown = made | (above & below) | leaving
        if grown == made:
            return made
        made = grown
