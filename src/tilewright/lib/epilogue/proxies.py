"""What an epilogue's parameters are while it is traced, and the functions that it may call.

A `Value` stands for a node; operators and functions on it add nodes. The same functions on arrays of NumPy compute at
once, so that an epilogue run on arrays is its own reference.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.base.errors import EpilogueError
from tilewright.lang.locations import user_location
from tilewright.lib.epilogue.builder import GraphBuilder
from tilewright.lib.epilogue.elements import element_of, limits
from tilewright.lib.epilogue.functions import REDUCE, REDUCTIONS, function_named
from tilewright.lib.epilogue.nodes import NodeBase, TopKSoftmaxNode
from tilewright.lib.epilogue.views import Permute, Reshape

_LARGEST_POWER = 16


class Value:
    """A value of the epilogue that is being traced: the node `name` of the builder's graph."""

    __array_ufunc__ = None  # numbers of NumPy leave operators to this class
    __hash__ = object.__hash__

    def __init__(self, builder: GraphBuilder, name: str) -> None:
        self.builder = builder
        self.name = name

    @property
    def node(self) -> NodeBase:
        """Its node."""
        return self.builder.dag.get_node_meta(self.name)

    def __add__(self, other: Any) -> Any:
        return apply("plus", self, other)

    def __radd__(self, other: Any) -> Any:
        return apply("plus", other, self)

    def __sub__(self, other: Any) -> Any:
        return apply("minus", self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply("minus", other, self)

    def __mul__(self, other: Any) -> Any:
        return apply("multiplies", self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply("multiplies", other, self)

    def __truediv__(self, other: Any) -> Any:
        return apply("divides", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply("divides", other, self)

    def __neg__(self) -> Any:
        return apply("negate", self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Any:
        return apply("abs", self)

    def __gt__(self, other: Any) -> Any:
        return apply("greater", self, other)

    def __lt__(self, other: Any) -> Any:
        return apply("greater", other, self)

    def __ge__(self, other: Any) -> Any:
        return apply("greater_equal", self, other)

    def __le__(self, other: Any) -> Any:
        return apply("greater_equal", other, self)

    def __eq__(self, other: object) -> Any:
        return apply("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return apply("not_equal", self, other)

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int) or not 1 <= exponent <= _LARGEST_POWER:
            raise EpilogueError(
                f"A value of an epilogue cannot be raised to {exponent!r}.",
                location=user_location(),
                hint=f"exponents are whole numbers from 1 to {_LARGEST_POWER}",
            )
        return self if exponent == 1 else apply("multiplies", self ** (exponent - 1), self)

    def __bool__(self) -> bool:
        raise EpilogueError(
            "A value of an epilogue is not known while it is traced, so no Python branch can depend on it.",
            location=user_location(),
            hint="select(condition, a, b) chooses for each element; maximum, minimum and relu may do as well",
        )

    def __iter__(self) -> Any:
        raise self._no_items()

    def __getitem__(self, index: Any) -> Any:
        raise self._no_items()

    def _no_items(self) -> EpilogueError:
        return EpilogueError(
            "A value of an epilogue has no items.",
            location=user_location(),
            hint="it stands for all elements at once; operands are broadcast to its shape by NumPy's rules",
        )

    def __repr__(self) -> str:
        return f"<value {self.name} of an epilogue>"


def apply(fn: str, *operands: Any) -> Any:
    """The function of that name, on values: a node; on arrays and numbers: its reference.

    Raises:
        EpilogueError: there is no such function, or an operand is neither a value nor a number.
    """
    builder = builder_of(operands)
    if builder is None:
        with np.errstate(all="ignore"):
            return function_named(fn).reference(*(np.asarray(each) for each in operands))
    return Value(builder, builder.compute(fn, [operand(builder, each) for each in operands]))


def make_node(kind: type[NodeBase], *operands: Any, **options: Any) -> Any:
    """A node of a class of one's own: `kind(name, **options)` on values; on arrays what its `evaluate` gives."""
    builder = builder_of(operands)
    if builder is None:
        return kind("reference", **options).evaluate(*(np.asarray(each) for each in operands))
    meta = kind(builder.fresh_name(), **options)
    meta.location = user_location()
    return Value(builder, builder.node(meta, [operand(builder, each) for each in operands]))


def builder_of(operands: Sequence[Any]) -> GraphBuilder | None:
    """The builder of the values among the operands; None where there is none."""
    return next((each.builder for each in operands if isinstance(each, Value)), None)


def operand(builder: GraphBuilder, given: Any) -> str:
    """The node of an operand; a number becomes an immediate.

    Raises:
        EpilogueError: it is neither a value of this epilogue nor a number.
    """
    if isinstance(given, Value):
        if given.builder is not builder:
            raise EpilogueError(
                f"{given.name} belongs to another epilogue.",
                location=user_location(),
                hint="values live while their epilogue is traced: return them, do not keep them",
            )
        return given.name
    if isinstance(given, np.generic | np.ndarray) and given.ndim == 0:
        given = given.item()
    if not isinstance(given, bool | int | float):
        raise EpilogueError(
            f"An operand is a {type(given).__name__}, which is no value of the epilogue and no number.",
            location=user_location(),
            hint="make a tensor an argument of the epilogue, with an example",
        )
    return builder.immediate(given)


def _function(fn: str, name: str, doc: str) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        return apply(fn, *operands)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


identity = _function("identity", "identity", "x itself, as a node of its own.")
exp = _function("exp", "exp", "e to the x.")
tanh = _function("tanh", "tanh", "Hyperbolic tangent.")
sigmoid = _function("sigmoid", "sigmoid", "1 / (1 + exp(-x)).")
silu = _function("silu", "silu", "x * sigmoid(x).")
gelu = _function("gelu", "gelu", "x * (1 + erf(x / sqrt(2))) / 2, exactly, not by tanh.")
hardswish = _function("hardswish", "hardswish", "x * min(max(x + 3, 0), 6) / 6.")
multiply_add = _function("multiply_add", "multiply_add", "a * b + c.")
maximum = _function("maximum", "maximum", "The greater of two; NaN where one is NaN.")
minimum = _function("minimum", "minimum", "The smaller of two; NaN where one is NaN.")
select = _function("select", "select", "select(condition, a, b): a where the condition is not 0, else b.")


def relu(x: Any, *, with_mask: bool = False) -> Any:
    """The greater of x and 0. With `with_mask` a pair: that, and 1 where x > 0, else 0.

    The mask is stored as its example says: one element for each value (Boolean, Uint8, ...), or one bit (`Bits`).
    """
    made = apply("relu", x)
    return (made, apply("greater", x, 0)) if with_mask else made


def _reduction(name: str, plain: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def call(*args: Any, dim: int | Sequence[int] | None = None, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Value):
            return Value(args[0].builder, args[0].builder.compute(REDUCTIONS[name], [args[0].name], dim=dim))
        if len(args) > 1 and builder_of(args) is not None:
            return _several(name, args)
        if len(args) == 1 and isinstance(args[0], np.ndarray):
            axes = tuple(range(args[0].ndim)) if dim is None else tuple(np.atleast_1d(dim))
            return REDUCE[REDUCTIONS[name][0]](args[0], axis=axes, keepdims=True)
        return plain(*args, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _several(name: str, args: tuple[Any, ...]) -> Any:
    """`max(a, b)` and `min(a, b)` of values, as Python has them."""
    raise EpilogueError(
        f"{name} of several values is no reduction.",
        location=user_location(),
        hint="write maximum(a, b) or minimum(a, b) for the greater or smaller of two; + adds",
    )


_OF = "over the modes `dim` (all without it), leaving extent 1; assign the result to a variable and return it."
sum = _reduction("sum", builtins.sum, f"Sum {_OF}")
max = _reduction("max", builtins.max, f"Maximum {_OF}")
min = _reduction("min", builtins.min, f"Minimum {_OF}")


def amax(x: Any, *, dim: int | Sequence[int] | None = None) -> Any:
    """The greatest absolute value over the modes `dim`, as quantised outputs report it for the next scale."""
    return max(apply("abs", x), dim=dim)


def quantize(x: Any, scale: Any, element: Any) -> Any:
    """x * scale, limited to the finite numbers of `element`, an fp8 or integer type, and whole for integers.

    Assign it to an output of that type. Conversion to fp8 rounds to nearest even when it is stored.
    """
    kind = element_of(element)
    least, greatest = limits(kind)
    scaled = apply("minimum", apply("maximum", apply("multiplies", x, scale), least), greatest)
    return scaled if kind.is_float else apply("round", scaled)


def topk_softmax(x: Any, k: int) -> Any:
    """Softmax over the greatest `k` values of each row, 0 elsewhere; see `TopKSoftmaxNode`."""
    if not isinstance(k, int) or k < 1:
        raise EpilogueError(
            f"topk_softmax takes k = {k!r}.", location=user_location(), hint="k is a whole number from 1 on"
        )
    if isinstance(x, Value):
        return Value(x.builder, x.builder.topk_softmax(x.name, k))
    return TopKSoftmaxNode("reference", k).evaluate(np.asarray(x))


def permute(x: Any, indices: Sequence[int]) -> Any:
    """Mode `i` of the result is mode `indices[i]` of `x`."""
    if isinstance(x, Value):
        return Value(x.builder, x.builder.layout("permute", x.name, indices=tuple(indices)))
    return Permute(tuple(indices)).on_array(np.asarray(x))


def reshape(x: Any, new_shape: Sequence[int]) -> Any:
    """The elements of `x` in row-major order under another shape."""
    if isinstance(x, Value):
        return Value(x.builder, x.builder.layout("reshape", x.name, new_shape=tuple(new_shape)))
    return Reshape(tuple(new_shape)).on_array(np.asarray(x))


NAMES: dict[str, Callable[..., Any]] = {
    **{made.__name__: made for made in (identity, exp, tanh, sigmoid, silu, gelu, hardswish, multiply_add, maximum)},
    **{made.__name__: made for made in (minimum, select, relu, sum, max, min, amax, quantize, topk_softmax)},
    **{made.__name__: made for made in (permute, reshape)},
}
"""What an epilogue finds under these names where its module has none of its own."""
