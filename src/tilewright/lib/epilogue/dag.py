"""The graph of an epilogue, with EVT's interface: a directed graph of names on networkx, a node object at each.

An edge's weight is the position of the operand. There are no parallel edges: a second one between two nodes goes
through an `autogen_identity` node. All orders are the lexicographical topological one, so that equal epilogues give
equal text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.base.errors import EpilogueError, EpilogueSyntaxError
from tilewright.lang.numbers.numeric import Float32
from tilewright.lib.epilogue import evaluation
from tilewright.lib.epilogue import networks as nx
from tilewright.lib.epilogue.capability import architecture_of
from tilewright.lib.epilogue.functions import Array
from tilewright.lib.epilogue.nodes import CommNode, ComputeNode, Element, LoadNode, NodeBase, StoreNode, TopoVisitorNode


class DAGIR:
    """An epilogue's graph for devices of compute capability `cc` (80, 86, 89, 90, 100, ...), computed in
    `element_compute`.

    `reduction_names` are the stores that reduce, `return_names` the outputs in the order of the user's `return`.
    """

    def __init__(self, cc: int = 90, element_compute: Element = Float32) -> None:
        self.cc = cc
        self.arch = architecture_of(cc)
        self.element_compute = element_compute
        self._graph = nx.DiGraph()
        self._metas: dict[str, NodeBase] = {}
        self._order: list[str] | None = None  # of `nodes`, until an edge or node changes
        self.reduction_names: list[str] = []
        self.return_names: tuple[str, ...] = ()
        self.passes_run: list[str] = []
        # What passes find out: PassGetArgumentType, PassSharedMemoryBudget.
        self.arguments: tuple[Any, ...] = ()
        self.smem_bytes: dict[tuple[int, int], int] = {}

    # Nodes

    @property
    def nodes(self) -> list[str]:
        """The names, each after those of its inputs.

        Raises:
            EpilogueError: the graph has a cycle.
        """
        if self._order is not None:
            return list(self._order)
        try:
            self._order = list(nx.lexicographical_topological_sort(self._graph))
            return list(self._order)
        except nx.NetworkXUnfeasible:
            cycle = " -> ".join(source for source, _ in nx.find_cycle(self._graph))
            raise EpilogueError(f"The epilogue's graph has a cycle: {cycle}.", hint="remove one of its edges") from None

    @property
    def nodes_meta(self) -> list[NodeBase]:
        """The node objects, in the order of `nodes`; a list of its own, so that a pass may change the graph."""
        return [self.get_node_meta(name) for name in self.nodes]

    def nodes_topological_order(self) -> list[str]:
        """`nodes`, under EVT's name."""
        return self.nodes

    def node_metas_topological_order(self) -> list[NodeBase]:
        """`nodes_meta`, under EVT's name."""
        return self.nodes_meta

    def has_node(self, name: str) -> bool:
        """True where a node has that name."""
        return name in self._metas

    def add_node(self, meta: NodeBase) -> None:
        """Add a node.

        Raises:
            EpilogueSyntaxError: the name is taken.
        """
        if self.has_node(meta.name):
            raise EpilogueSyntaxError(
                f"Variable '{meta.name}' cannot be defined twice.",
                location=meta.location,
                hint="give each value of an epilogue a name of its own",
            )
        self._graph.add_node(meta.name, meta=meta)
        self._metas[meta.name] = meta
        self._order = None

    def get_node_meta(self, name: str) -> NodeBase:
        """The node of that name.

        Raises:
            EpilogueSyntaxError: there is none.
        """
        if name not in self._metas:
            raise self._undefined(name)
        return self._metas[name]

    def set_node_meta(self, name: str, meta: NodeBase) -> None:
        """Put another node in the place of that of that name; edges stay."""
        self._defined(name)
        self._graph.nodes[name]["meta"] = self._metas[name] = meta

    def remove_node(self, name: str) -> None:
        """Remove a node with its edges."""
        self._defined(name)
        self._graph.remove_node(name)
        del self._metas[name]
        self._order = None

    def unique_name(self, base: str) -> str:
        """`base`, or the first of `base_0`, `base_1`, ... that is free."""
        name, count = base, 0
        while self.has_node(name):
            name, count = f"{base}_{count}", count + 1
        return name

    def loads(self) -> list[LoadNode]:
        """The load nodes."""
        return [meta for meta in self.nodes_meta if isinstance(meta, LoadNode)]

    def outputs(self) -> list[StoreNode]:
        """The stores that are outputs."""
        return [meta for meta in self.nodes_meta if isinstance(meta, StoreNode) and meta.is_output]

    # Edges

    def has_edge(self, src: str, dst: str) -> bool:
        """True where `dst` has `src` as an operand."""
        return bool(self._graph.has_edge(src, dst))

    def add_edge(self, src: str, dst: str, weight: int | None = None) -> None:
        """Make `src` the operand `weight` of `dst`; the next one where no weight is given.

        A communication node gets the users of `src` with its first edge, since what they want is the value after it.

        Raises:
            EpilogueSyntaxError: one of the names is undefined.
        """
        self._defined(src)
        self._defined(dst)
        weight = self.in_degree(dst) if weight is None else weight
        if isinstance(self.get_node_meta(dst), CommNode) and self.in_degree(dst) == 0:
            self.replace_all_uses_with(src, dst)
        if self.has_edge(src, dst):
            src = self._identity_of(src)
        self.link(src, dst, weight)

    def link(self, src: str, dst: str, weight: int) -> None:
        """Set the edge as it is, for passes that rebuild a graph: no users move, and no identity is made."""
        self._graph.add_edge(src, dst, weight=weight)
        self._order = None

    def remove_edge(self, src: str, dst: str) -> None:
        """Remove the edge, if it is there."""
        if self.has_edge(src, dst):
            self._graph.remove_edge(src, dst)
            self._order = None

    def get_edge_weight(self, src: str, dst: str) -> int:
        """Which operand of `dst` the node `src` is."""
        return int(self._graph.get_edge_data(src, dst)["weight"])

    def in_degree(self, name: str) -> int:
        """How many operands a node has."""
        self._defined(name)
        return len(self._graph.pred[name])

    def out_degree(self, name: str) -> int:
        """How many users a node has."""
        self._defined(name)
        return len(self._graph.succ[name])

    def in_edges(self, name: str) -> list[tuple[str, str]]:
        """The edges into a node, by operand."""
        return [(source, name) for source in self.get_all_inputs(name)]

    def out_edges(self, name: str) -> list[tuple[str, str]]:
        """The edges out of a node, by name of the user."""
        return [(name, user) for user in self.get_users(name)]

    def get_users(self, name: str) -> list[str]:
        """The nodes of which it is an operand, by name."""
        self._defined(name)
        return sorted(self._graph.succ[name])

    def get_all_inputs(self, name: str) -> list[str]:
        """The operands, in their order."""
        self._defined(name)
        edges = self._graph.pred[name]
        return sorted(edges, key=lambda source: int(edges[source]["weight"]))

    def operand_positions(self, name: str) -> list[int]:
        """The weights of the edges into a node, in order: 0, 1, ... in a graph that is whole."""
        self._defined(name)
        return sorted(int(edge["weight"]) for edge in self._graph.pred[name].values())

    def get_all_inputs_meta(self, name: str) -> list[NodeBase]:
        """The node objects of the operands, in their order."""
        return [self.get_node_meta(source) for source in self.get_all_inputs(name)]

    def replace_all_uses_with(self, old: str, new: str) -> None:
        """Let the users of `old` take `new` instead; `new` itself keeps `old`."""
        self._defined(new)
        for user in self.get_users(old):
            if user == new:
                continue
            weight = self.get_edge_weight(old, user)
            self.remove_edge(old, user)
            self.add_edge(new, user, weight)

    def all_reachable_nodes(self, name: str) -> list[str]:
        """The nodes that depend on a node, by name."""
        self._defined(name)
        return sorted(nx.descendants(self._graph, name))

    def has_path(self, src: str, dst: str) -> bool:
        """True where `dst` depends on `src`, or is it."""
        self._defined(src)
        self._defined(dst)
        return bool(nx.has_path(self._graph, src, dst))

    # The whole

    @property
    def graph(self) -> nx.DiGraph:
        """The networkx graph below, for its algorithms; read-only."""
        return self._graph.copy(as_view=True)

    def copy(self) -> DAGIR:
        """The graph with node objects of its own."""
        made = DAGIR(self.cc, self.element_compute)
        for name in self._graph.nodes:
            made.add_node(copied(self.get_node_meta(name)))
        made._graph.add_edges_from(self._graph.edges(data=True))
        made.reduction_names, made.return_names = list(self.reduction_names), self.return_names
        made.passes_run = list(self.passes_run)
        made.arguments, made.smem_bytes = self.arguments, dict(self.smem_bytes)
        return made

    def take(self, other: DAGIR) -> None:
        """Become what `other` is: its nodes and edges. Passes that rebuild a graph use it."""
        self._graph, self._metas, self._order = other._graph, other._metas, None

    def expanded(self) -> DAGIR:
        """A copy in which the nodes inside `TopoVisitorNode`s stand in their place."""
        made = self.copy()
        while (meta := next((m for m in made.nodes_meta if isinstance(m, TopoVisitorNode)), None)) is not None:
            made._expand(meta)
        return made

    def _expand(self, meta: TopoVisitorNode) -> None:
        inner: DAGIR = meta.subgraph
        users = [(user, self.get_edge_weight(meta.name, user)) for user in self.get_users(meta.name)]
        operands = self.get_all_inputs(meta.name)
        self.remove_node(meta.name)
        for name in inner.nodes:
            self.add_node(inner.get_node_meta(name))
        edges = [(source, target, data["weight"]) for source, target, data in inner.graph.edges(data=True)]
        entries = [(operands[position], target, weight) for position, target, weight in meta.entries]
        for source, target, weight in (*edges, *entries):
            self.link(source, target, weight)
        for user, weight in users:
            self.link(meta.output_node.name, user, weight)

    def evaluate(self, *, collective: evaluation.Collective | None = None, **arrays: Any) -> dict[str, Array]:
        """The outputs by name on NumPy, from arrays and numbers by the names of loads; what is not given is its
        example's number.

        `collective(node, array)` says what a communication node gives; without it, a participant is alone.

        Raises:
            EpilogueError: an array is missing or has another shape than its example.
        """
        return evaluation.evaluate(self.expanded(), arrays, collective)

    def text(self) -> str:
        """One line per node: name, class, operands, tensor."""
        return "\n".join(self._line(meta) for meta in self.nodes_meta)

    def _line(self, meta: NodeBase) -> str:
        operands = ", ".join(self.get_all_inputs(meta.name))
        tail = "" if meta.tensor is None else f"  {meta.tensor}"
        implementation = f"  [{meta.underlying_impl}]" if meta.underlying_impl else ""
        return f"{meta.op:<8}{meta.label()}({operands}){tail}{implementation}"

    def __str__(self) -> str:
        return self.text()

    def _defined(self, name: str) -> None:
        if name not in self._metas:
            raise self._undefined(name)

    def _undefined(self, name: str) -> EpilogueSyntaxError:
        return EpilogueSyntaxError(
            f"Variable '{name}' is undefined.", hint=f"the graph has {', '.join(self._metas) or 'no nodes'}"
        )

    def _identity_of(self, src: str) -> str:
        """A new node that hands `src` on, for a second edge between the same nodes."""
        producer = self.get_node_meta(src)
        name = self.unique_name("autogen_identity")
        self.add_node(ComputeNode(name, "identity", self.element_compute, producer.location))
        self.link(src, name, 0)
        return name


def copied(meta: NodeBase, name: str | None = None) -> NodeBase:
    """A node of its own with the same attributes, under `name` if one is given."""
    made = object.__new__(type(meta))
    made.__dict__.update(
        {key: dict(value) if isinstance(value, Mapping) else value for key, value in meta.__dict__.items()}
    )
    made.name = name or meta.name
    return made
