"""Communication after outputs: what is shared when a kernel is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.base.errors import EpilogueError
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import CommNode

OnTensors = Callable[[CommNode, Any], Any]
"""What a communication node does to a stored tensor: in place, or as the tensor that it returns."""
Shared = tuple[CommNode, str]
"""A communication node, and the output that it shares."""


def take_out(dag: DAGIR, collective: OnTensors | None) -> tuple[Shared, ...]:
    """Remove the communication after outputs from a graph that has been through its passes; what is left is local.

    Raises:
        EpilogueError: there is some, and no collective to do it.
    """
    nodes = [meta for meta in dag.nodes_meta if isinstance(meta, CommNode) and meta.placement == "output"]
    if nodes and collective is None:
        raise EpilogueError(
            f"The epilogue communicates in {nodes[0].name}, but no collective is given.",
            location=nodes[0].location,
            hint="pass collective=, a function (node, tensor) that shares it, as torch.distributed.all_reduce does",
        )
    shared = [(meta, dag.get_all_inputs(meta.name)[0]) for meta in nodes]
    for meta in nodes:
        dag.remove_node(meta.name)
    return tuple(shared)


def share(shared: Sequence[Shared], tensors: Mapping[str, Any], collective: OnTensors | None) -> None:
    """Do the communication of `take_out` on the stored tensors by name."""
    for meta, name in shared:
        assert collective is not None
        made = collective(meta, tensors[name])
        if made is not None and made is not tensors[name]:
            tensors[name][...] = made
