"""The graph as a tree, for kernels that visit one: what is used several times is fused into nodes of its own."""

from __future__ import annotations

import networkx as nx

from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import TopoVisitorNode
from tilewright.lib.epilogue.passes.pass_get_impl import PassGetImpl
from tilewright.lib.epilogue.passes.pass_manager import EVTPassBase
from tilewright.lib.epilogue.passes.pass_shape_type_propagation import PassShapeTypePropagation


class PassDAG2Tree(EVTPassBase):
    """Fuses the region from each node with several users to the first node that depends on all of them into a
    `TopoVisitorNode`; where there is none, to what D is made of.

    Kernels of this project take a graph as it is, so the pass runs on request only. `expanded` undoes it.
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
        for source, target, data in dag.graph.edges(data=True):
            if source in region and target in region:
                inner.link(source, target, data["weight"])
            elif target in region:
                made.entries.append((source, target, data["weight"]))
        users = [(user, dag.get_edge_weight(end, user)) for user in dag.get_users(end) if user not in region]
        dag.add_node(made)
        for position, source in enumerate(sorted({source for source, _, _ in made.entries})):
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


def expanded(dag: DAGIR) -> DAGIR:
    """The graph with the nodes inside `TopoVisitorNode`s in their place again."""
    made = dag.copy()
    while (meta := next((m for m in made.nodes_meta if isinstance(m, TopoVisitorNode)), None)) is not None:
        _expand(made, meta)
    return made


def _expand(dag: DAGIR, meta: TopoVisitorNode) -> None:
    inner: DAGIR = meta.subgraph
    users = [(user, dag.get_edge_weight(meta.name, user)) for user in dag.get_users(meta.name)]
    dag.remove_node(meta.name)
    for name in inner.nodes:
        dag.add_node(inner.get_node_meta(name))
    for source, target, data in inner.graph.edges(data=True):
        dag.link(source, target, data["weight"])
    for source, target, weight in meta.entries:
        dag.link(source, target, weight)
    for user, weight in users:
        dag.link(meta.output_node.name, user, weight)
