"""Building a graph node by node, under the names that EVT gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.base.errors import EpilogueError, EpilogueSyntaxError
from tilewright.base.location import SourceLocation
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Float32
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.functions import function_named
from tilewright.lib.epilogue.nodes import (
    ComputeNode,
    Element,
    LayoutNode,
    LoadNode,
    NodeBase,
    StoreNode,
    TopKSoftmaxNode,
)
from tilewright.lib.epilogue.tensor import Tensor


class GraphBuilder:
    """Adds nodes to `dag`; each method returns the name of its node. Names in `reserved` are the user's variables."""

    def __init__(self, cc: int = 90, element_compute: Element = Float32, reserved: Iterable[str] = ()) -> None:
        self.dag = DAGIR(cc, element_compute)
        self.reserved = frozenset(reserved)
        self._counts: dict[str, int] = {}

    def load(self, name: str, example: Any, location: SourceLocation | None = None) -> str:
        """An operand; `accum` of rank 2 gets a batch of one in front."""
        tensor = Tensor.like(name, example)
        if name == "accum" and tensor.rank == 2:
            tensor = tensor.broadcast((1, *tensor.shape))
        if name == "accum" and tensor.rank != 3:
            raise EpilogueError(
                f"accum has {tensor.rank} modes.",
                location=location,
                values={"shape": tensor.shape},
                hint="its example has the shape (M, N) or (L, M, N)",
            )
        return self._add(LoadNode(name, tensor, location))

    def immediate(self, value: float) -> str:
        """A number that stands in the epilogue."""
        text = re.sub(r"\W", "_", str(value))
        compute = self.dag.element_compute
        return self._add(LoadNode(self._name(f"imm_{text}_k"), Tensor(compute, (), value=value), user_location()))

    def compute(self, fn: str | tuple[str, str], operands: Sequence[str], **kwargs: Any) -> str:
        """A function of operands; a pair is a reduction.

        Raises:
            EpilogueError: there is no such function, or it takes another number of operands.
        """
        wanted = function_named(fn).arity if isinstance(fn, str) else 1
        if len(operands) != wanted:
            raise EpilogueError(
                f"{fn} takes {wanted} operands, but got {len(operands)}.",
                location=user_location(),
                hint="operands are positional",
            )
        node = ComputeNode(self.fresh_name(), fn, self.dag.element_compute, user_location(), **kwargs)
        return self.node(node, operands)

    def topk_softmax(self, operand: str, k: int) -> str:
        """Softmax over the greatest `k` of each row."""
        return self.node(TopKSoftmaxNode(self.fresh_name(), k, self.dag.element_compute, user_location()), [operand])

    def fresh_name(self) -> str:
        """A name for a compute node."""
        return self._name("compute_")

    def layout(self, fn: str, operand: str, **kwargs: Any) -> str:
        """A permutation or a reshape."""
        return self.node(LayoutNode(self._name("layout_"), fn, kwargs, user_location()), [operand])

    def store(self, name: str, operand: str, location: SourceLocation | None = None) -> str:
        """A variable."""
        return self.node(StoreNode(name, location or user_location()), [operand])

    def node(self, meta: NodeBase, operands: Sequence[str]) -> str:
        """Any node with its operands in order."""
        self._add(meta)
        for position, operand in enumerate(operands):
            self.dag.add_edge(operand, meta.name, position)
        return meta.name

    def output(self, name: str, example: Any) -> None:
        """Make a variable an output that is stored to the tensor of `example`."""
        meta = self.dag.get_node_meta(name)
        if not isinstance(meta, StoreNode):
            raise EpilogueSyntaxError(
                f"The returned variable '{name}' is an operand.",
                location=meta.location,
                hint="assign its value to a variable of another name and return that",
            )
        tensor = Tensor.like(name, example)
        if tensor.is_scalar:
            raise EpilogueError(
                f"The example of output {name} is a number.",
                location=meta.location,
                hint="outputs are tensors; a sum over all modes has one of shape (1, 1)",
            )
        meta.is_output, meta.store_tensor = True, tensor
        self.dag.return_names = tuple(dict.fromkeys((*self.dag.return_names, name)))

    def _add(self, meta: NodeBase) -> str:
        self.dag.add_node(meta)
        return meta.name

    def _name(self, prefix: str) -> str:
        """The next name with that prefix that is neither a node's nor a variable's."""
        while True:
            count = self._counts.get(prefix, 0)
            self._counts[prefix] = count + 1
            name = f"{prefix}{count}"
            if name not in self.reserved and not self.dag.has_node(name):
                return name
