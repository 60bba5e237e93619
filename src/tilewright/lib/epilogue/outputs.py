"""The shapes of values, and with them the outputs of an epilogue for which there are no examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tilewright.lang.numbers.numeric import Float32, Numeric
from tilewright.lib.epilogue.authoring import unbound
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.nodes import ComputeNode, LoadNode, StoreNode
from tilewright.lib.epilogue.passes import PassPreprocessRed, PassShapeTypePropagation
from tilewright.lib.epilogue.passes.pass_manager import EVTPassManager
from tilewright.lib.epilogue.tensor import Shape, Tensor
from tilewright.lib.epilogue.trace import parse

_ANY = Tensor.of(Float32, (1, 1, 1))


class _Lenient(Mapping[str, Any]):
    """The given examples, and one for every name that is no parameter: outputs are not known before they are traced."""

    def __init__(self, given: Mapping[str, Any], parameters: frozenset[str]) -> None:
        self.given, self.parameters = given, parameters

    def __contains__(self, name: object) -> bool:
        return name in self.given or name not in self.parameters

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.given.get(name, _ANY)

    def __iter__(self) -> Iterator[str]:
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)


def output_examples(
    fn: Callable[..., Any], operands: Mapping[str, Any], element: type[Numeric], **options: Any
) -> dict[str, Tensor]:
    """Examples of all outputs, in the order in which the epilogue returns them, from examples of its operands.

    An output has the elements `element`, a reduction those in which it folds, and the shape of its value: extent 1
    where it is reduced, without the batch of one that `accum` (M, N) gets. `options` are those of `parse`.
    """
    parameters = frozenset(inspect.signature(unbound(fn)[0]).parameters)
    dag = parse(fn, _Lenient(operands, parameters), **options)
    shapes = _checked_shapes(dag)
    folded = _reductions(dag)
    flat = Tensor.like("accum", operands["accum"]).rank == 2
    made = {}
    for name in dag.return_names:
        shape = shapes[name]
        shape = shape[1:] if flat and len(shape) == 3 and shape[0] == 1 else shape
        made[name] = Tensor.of(Float32 if name in folded else element, shape)
    return made


def value_shapes(dag: DAGIR, sizes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shapes of all values of a graph that no pass has changed, from those of its loads.

    Raises:
        ValueError: they do not go together.
    """
    found: dict[str, Shape] = {}
    for meta in dag.nodes_meta:
        if isinstance(meta, LoadNode):
            found[meta.name] = sizes[meta.name]
        else:
            found[meta.name] = meta.output_shape(*(found[name] for name in dag.get_all_inputs(meta.name)))
    return found


def _checked_shapes(dag: DAGIR) -> dict[str, Shape]:
    """The shapes of all values for the examples.

    Raises:
        EpilogueError: they do not fit; it is that of `PassShapeTypePropagation`.
    """
    try:
        return value_shapes(dag, {meta.name: meta.example.shape for meta in dag.loads()})
    except ValueError:
        EVTPassManager(dag, [PassPreprocessRed, PassShapeTypePropagation])()
        raise


def _reductions(dag: DAGIR) -> set[str]:
    """The reductions, and the variables that hold their results."""
    found: set[str] = set()
    for meta in dag.nodes_meta:
        folds = isinstance(meta, ComputeNode) and meta.is_reduction
        if folds or (isinstance(meta, StoreNode) and dag.get_all_inputs(meta.name)[0] in found):
            found.add(meta.name)
    return found
