"""Matrix products with an epilogue, called with operands by name: traced for their shapes, compiled for their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.cute import Float32, Float64, Numeric
from tilewright.kernels import views
from tilewright.kernels.epilogue_plans import is_array, memory_of
from tilewright.kernels.gemm import prepare_fused
from tilewright.kernels.gemm_moves import readable
from tilewright.kernels.gemm_sm90_plans import accumulator_of
from tilewright.lib.epilogue.bits import Bits
from tilewright.lib.epilogue.dag import DAGIR
from tilewright.lib.epilogue.elements import numpy_dtype
from tilewright.lib.epilogue.lowering.reductions import PARTIALS
from tilewright.lib.epilogue.outputs import output_examples
from tilewright.lib.epilogue.tensor import Tensor
from tilewright.lib.epilogue.trace import trace


class GemmEpilogue:
    """An epilogue of products: what it computes for operands of given shapes, and the kernels for them.

    `fn` is traced with `accum` (M, N) or (L, M, N), the product in its accumulator's type, and the operands by name.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.names: tuple[str, ...] = ()
        self._outputs: dict[Any, dict[str, Tensor]] = {}
        self._graphs: dict[Any, DAGIR] = {}
        self._kernels: dict[Any, Callable[..., None]] = {}

    def outputs(self, a: Any, b: Any, operands: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name: their element types and shapes where the caller gives none.

        They have the type of `a`, float32 where they are reduced or `a` has 8 bits.
        """
        key = (a.dtype, *_shapes({"a": a, "b": b, **operands}))
        found = self._outputs.get(key)
        if found is None:
            examples = self._examples(a, b, operands)
            dtype = views.dtype_of(a)
            element = Float32 if dtype.width == 8 else dtype
            made = output_examples(self.fn, examples, element, element_compute=_computed(a))
            found, self.names = views.keep(self._outputs, key, made), tuple(made)
        return found

    def graph(self, a: Any, b: Any, arrays: Mapping[str, Any]) -> DAGIR:
        """The graph after its passes for operands and outputs of these types, shapes and strides."""
        key = (a.dtype, *_shapes({"a": a, "b": b}), *_kinds(arrays))
        found = self._graphs.get(key)
        if found is None:
            made = trace(self.fn, self._examples(a, b, arrays), element_compute=_computed(a))
            found = views.keep(self._graphs, key, made)
        return found

    def run(self, a: Any, b: Any, arrays: Mapping[str, Any], way: str = PARTIALS) -> None:
        """Fill the outputs, which are among `arrays`, by the kernel."""
        a, b = readable(a, b)
        key = (way, views.facts(a), views.facts(b), *_kinds(arrays, views.facts))
        kernel = self._kernels.get(key)
        if kernel is None:
            made = prepare_fused(self.graph(a, b, arrays), a, b, arrays, way=way)
            kernel = views.keep(self._kernels, key, made)
        kernel(a, b, arrays)

    def refer(self, product: np.ndarray[Any, Any], a: Any, b: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, on NumPy, from the product in its accumulator's type."""
        dag = self.graph(a, b, arrays)
        given = {name: array for name, array in arrays.items() if name not in dag.return_names}
        return dag.evaluate(accum=product, **given)

    def _examples(self, a: Any, b: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
        batch = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
        shape = (*batch, a.shape[-2], b.shape[-1])
        return {"accum": Tensor.of(accumulator_of(views.dtype_of(a)), shape), **arrays}


def _computed(a: Any) -> type[Numeric]:
    return Float64 if views.dtype_of(a).width == 64 else Float32


def _shapes(arrays: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, tuple(item.shape) if is_array(item) else None) for name, item in arrays.items())


def _kinds(arrays: Mapping[str, Any], facts: Callable[[Any], Any] | None = None) -> tuple[Any, ...]:
    """What graphs, or kernels, depend on of arrays and numbers."""
    return tuple(
        (name, tuple(item.shape), (facts or _layout)(memory_of(item))) if is_array(item) else (name, type(item))
        for name, item in arrays.items()
    )  # fmt: skip


def _layout(array: Any) -> tuple[Any, ...]:
    return array.dtype, tuple(array.shape), views.strides_of(array)


def numpy_of(tensor: Any) -> Any:
    """A tensor of the host as an array of NumPy; numbers as they are."""
    if not is_array(tensor) or isinstance(tensor, np.ndarray):
        return tensor
    if isinstance(tensor, Bits):
        return Bits(numpy_of(tensor.array), tensor.shape[-1])
    dtype = numpy_dtype(Tensor.like("", tensor).element)
    wide = tensor.detach().float() if dtype.itemsize < 4 and tensor.is_floating_point() else tensor.detach()
    return wide.numpy().astype(dtype)
