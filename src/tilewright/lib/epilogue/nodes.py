"""The nodes of an epilogue's graph, under EVT's names.

| class | `op` | what it is |
|---|---|---|
| `LoadNode` | load | an operand: `accum`, a tensor, a number |
| `ComputeNode` | compute | a function, element by element; a pair of names is a reduction not yet folded |
| `TopKSoftmaxNode` | compute | softmax over the greatest `k` of each row |
| `LayoutNode` | layout | a permutation or a reshape of its input |
| `StoreNode` | store | a variable of the epilogue, which hands its input on; written to memory where `is_output` |
| `CommNode` | comm | a collective over the participants of `scope` |
| `TopoVisitorNode` | dag | a graph of its own, fused into a node |

`element` is the type of storage (loads, stores) or of computing, `element_output` the type that is handed on. `tensor`
is None before `PassShapeTypePropagation`; after `PassLayoutManipulateElimination` its shape is (L, M, N), and that of a
load or an output is a view of the user's array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.base.location import SourceLocation
from tilewright.lang.numbers.numeric import Float32, Numeric
from tilewright.lib.epilogue.elements import converted, numpy_dtype
from tilewright.lib.epilogue.functions import REDUCE, Array, function_named, reduced_modes
from tilewright.lib.epilogue.tensor import Shape, Tensor
from tilewright.lib.epilogue.views import Permute, Reshape, ViewOp

Element = type[Numeric]


class NodeBase:
    """What all nodes have. `underlying_impl` is the name of the implementation that `PassGetImpl` chose.

    `location` is the user's line. `disabled` nodes are skipped by every kernel.
    """

    op: ClassVar[str] = ""

    def __init__(self, name: str, location: SourceLocation | None = None) -> None:
        self.name = name
        self.location = location
        self.tensor: Tensor | None = None
        self.element: Element | None = None
        self.element_output: Element | None = None
        self.underlying_impl: str | None = None
        self.disabled = False
        self.is_output = False

    @property
    def output_tensor(self) -> Tensor | None:
        """The tensor that the node hands on: `tensor`."""
        return self.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `tensor`.

        Raises:
            EpilogueError: it is not known yet.
        """
        if self.tensor is None:
            raise EpilogueError(
                f"The shape of node {self.name} is unknown.",
                location=self.location,
                hint="run PassShapeTypePropagation first",
            )
        return self.tensor.shape

    elementwise: ClassVar[bool] = True
    """Whether an element of the value depends on the elements of the inputs at its place alone."""

    def output_shape(self, *shapes: Shape) -> Shape:
        """The shape of the value from those of the inputs: broadcast by NumPy's rules.

        Raises:
            ValueError: the shapes do not fit.
        """
        return np.broadcast_shapes(*shapes)

    def evaluate(self, *inputs: Array) -> Array:
        """The node's value from those of its inputs, on NumPy."""
        raise EpilogueError(
            f"Node {self.name} cannot be evaluated.",
            location=self.location,
            hint=f"give {type(self).__name__} a method evaluate(self, *inputs)",
        )

    def operation(self, inputs: tuple[str, ...]) -> Any:
        """The operation of a kernel (`lowering.op.EpilogueOp`) that does what the node does, for classes of users; None
        for those that lowering knows. `inputs` are the names of the operands."""
        return None

    def key(self) -> tuple[Any, ...]:
        """What two nodes with equal inputs have in common when they compute the same."""
        return (type(self).__name__, self.name)

    def label(self) -> str:
        """The name with what the node does, for drawings."""
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label()})"


class LoadNode(NodeBase):
    """An operand. `example` is the user's array or number; `tensor` the view of it that the graph needs.

    `argument` is the name under which the user passes it; several loads have the same where views differ.
    """

    op = "load"

    def __init__(self, name: str, example: Tensor, location: SourceLocation | None = None) -> None:
        super().__init__(name, location)
        self.argument = name
        self.example = example
        self.element = self.element_output = example.element

    @property
    def is_immediate(self) -> bool:
        """True for a number that stands in the epilogue itself."""
        return self.name.startswith("imm_") and self.example.is_scalar

    def key(self) -> tuple[Any, ...]:
        if self.is_immediate:
            return ("imm", self.element, repr(self.example.value), self.tensor and self.tensor.modes)
        return (type(self).__name__, self.argument, self.tensor and self.tensor.modes)

    def label(self) -> str:
        return f"{self.name}: {self.example.value}" if self.is_immediate else self.name


class ComputeNode(NodeBase):
    """`fn` applied element by element in `element_compute`; a pair `fn` is a reduction over the modes `dim`.

    `fn` is a name of `functions.FUNCTIONS`. `kwargs` are what the call said besides its operands.
    """

    op = "compute"

    def __init__(
        self,
        name: str,
        fn: str | tuple[str, str],
        element_compute: Element = Float32,
        location: SourceLocation | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, location)
        self.fn = fn
        self.element_compute = element_compute
        self.element = self.element_output = element_compute
        self.kwargs: dict[str, Any] = kwargs

    @property
    def is_reduction(self) -> bool:
        """True before `PassPreprocessRed` has folded it into its store."""
        return isinstance(self.fn, tuple)

    def output_shape(self, *shapes: Shape) -> Shape:
        """Broadcast; a reduction leaves extent 1 where it reduces."""
        shape = np.broadcast_shapes(*shapes)
        if not self.is_reduction:
            return shape
        modes = reduced_modes(self.kwargs.get("dim"), len(shape))
        return tuple(1 if mode in modes else extent for mode, extent in enumerate(shape))

    def evaluate(self, *inputs: Array) -> Array:
        dtype = numpy_dtype(self.element_compute)
        operands = [np.asarray(each).astype(dtype) for each in inputs]
        with np.errstate(all="ignore"):
            if isinstance(self.fn, tuple):
                made = REDUCE[self.fn[0]](
                    operands[0], axis=reduced_modes(self.kwargs.get("dim"), operands[0].ndim), keepdims=True
                )
            else:
                made = function_named(self.fn).reference(*operands)
            return converted(np.asarray(made).astype(dtype), numpy_dtype(self.element_output or self.element_compute))

    def key(self) -> tuple[Any, ...]:
        options = tuple(sorted((name, repr(value)) for name, value in self.kwargs.items()))
        return (type(self).__name__, self.fn, self.element_compute, self.element_output, options)

    def label(self) -> str:
        return f"{self.name}: {self.fn if isinstance(self.fn, str) else self.fn[0] + ' reduction'}"


class TopKSoftmaxNode(ComputeNode):
    """Softmax over the greatest `k` values of each row (the last mode); the others become 0.

    Of equal values, the one of the smaller column counts as greater. A kernel needs a whole row in one tile: lowering
    takes N up to the width of its tile, and refuses more.
    """

    elementwise = False

    def __init__(
        self, name: str, k: int, element_compute: Element = Float32, location: SourceLocation | None = None
    ) -> None:
        super().__init__(name, "topk_softmax", element_compute, location, k=k)

    def evaluate(self, *inputs: Array) -> Array:
        x = np.asarray(inputs[0]).astype(np.float64)
        ranks = np.argsort(np.argsort(-x, axis=-1, kind="stable"), axis=-1, kind="stable")
        kept = ranks < self.kwargs["k"]
        powers = np.where(kept, np.exp(x - x.max(axis=-1, keepdims=True)), 0.0)
        made: Array = powers / powers.sum(axis=-1, keepdims=True)
        computed = made.astype(numpy_dtype(self.element_compute))
        return converted(computed, numpy_dtype(self.element_output or self.element_compute))


class LayoutNode(NodeBase):
    """`fn` is "permute" (with `indices`) or "reshape" (with `new_shape`)."""

    op = "layout"

    def __init__(self, name: str, fn: str, kwargs: Mapping[str, Any], location: SourceLocation | None = None) -> None:
        super().__init__(name, location)
        self.fn = fn
        self.kwargs = dict(kwargs)

    @property
    def view(self) -> ViewOp:
        """What it does, as a view operation."""
        return (
            Permute(tuple(self.kwargs["indices"])) if self.fn == "permute" else Reshape(tuple(self.kwargs["new_shape"]))
        )

    def output_shape(self, *shapes: Shape) -> Shape:
        return self.view.on_shape(shapes[0])

    def evaluate(self, *inputs: Array) -> Array:
        return self.view.on_array(np.asarray(inputs[0]))

    def key(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.view)

    def label(self) -> str:
        return f"{self.name}: {self.view}"


class StoreNode(NodeBase):
    """A variable: its value is that of its input. An output writes it to `store_tensor`, the user's array.

    After `PassPreprocessRed` a reduction is here: `reg_reduce_fn` in registers, `gmem_reduce_fn` on memory, over the
    modes in which `tensor` is broadcast; `reduce_dims` are what the call said, None for all modes.
    """

    op = "store"

    def __init__(self, name: str, location: SourceLocation | None = None) -> None:
        super().__init__(name, location)
        self.store_tensor: Tensor | None = None
        self.reg_reduce_fn: str | None = None
        self.gmem_reduce_fn: str | None = None
        self.reduce_dims: int | Sequence[int] | None = None

    @property
    def is_reduction(self) -> bool:
        """True where the value is reduced on the way to memory."""
        return self.reg_reduce_fn is not None

    def evaluate(self, *inputs: Array) -> Array:
        return inputs[0]

    def key(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.name)

    def label(self) -> str:
        how = f" ({self.reg_reduce_fn} reduction)" if self.is_reduction else ""
        return f"{self.name}{how}" if self.is_output else f"{self.name} (not stored)"


class CommNode(NodeBase):
    """A collective of `kind` (`allreduce`, `allgather`, ...) with `reduce_op` over the participants of `scope`.

    `scope` is one of auto, warp, block, cluster, grid, node; `group` the participants where the scope has groups.
    After a store, it works on the stored tensor when the kernel is done; elsewhere on values inside the kernel
    (`placement`, set by `PassCommunicationPlacement`).
    """

    op = "comm"

    def __init__(
        self,
        name: str,
        kind: str,
        tensor: Tensor | None = None,
        *,
        scope: str = "auto",
        group: Any = None,
        reduce_op: str = "sum",
        location: SourceLocation | None = None,
    ) -> None:
        super().__init__(name, location)
        self.kind = kind
        self.tensor = tensor
        self.scope = scope
        self.group = group
        self.reduce_op = reduce_op
        self.placement: str | None = None
        if tensor is not None:
            self.element = self.element_output = tensor.element

    def evaluate(self, *inputs: Array) -> Array:
        """What one participant alone gets: its own value."""
        return inputs[0]

    def key(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.kind, self.scope, repr(self.group), self.reduce_op)

    def label(self) -> str:
        return f"{self.name}: {self.kind} {self.reduce_op} over {self.scope}"


class TopoVisitorNode(NodeBase):
    """`subgraph`, a `DAGIR`, fused into a node, whose value is that of the subgraph's node `output_node`."""

    op = "dag"

    def __init__(self, name: str, subgraph: Any, output_node: NodeBase) -> None:
        super().__init__(name, output_node.location)
        self.subgraph = subgraph
        self.entries: list[tuple[int, str, int]] = []  # edges inwards: operand of this node, inner node, its operand
        self.output_node = output_node
        self.tensor = output_node.tensor
        self.element, self.element_output = output_node.element, output_node.element_output


def create_communication_node(
    name: str,
    kind: str,
    tensor: Tensor | None = None,
    *,
    scope: str = "auto",
    group: Any = None,
    reduce_op: str = "sum",
) -> CommNode:
    """A communication node for `DAGIR.add_node`; `tensor` is that of the node before it, `node.output_tensor`."""
    return CommNode(name, kind, tensor, scope=scope, group=group, reduce_op=reduce_op)
