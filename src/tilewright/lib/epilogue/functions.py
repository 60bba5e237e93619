"""The functions that compute nodes apply, by EVT's names, each with its reference on NumPy.

Arguments of a reference are arrays of the type in which the epilogue computes; `relu`, `maximum` and `minimum` hand on
NaN. A reduction is a pair of names: the function in registers, and the atomic one on global memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.base.errors import EpilogueError

Array = np.ndarray[Any, Any]
_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Function:
    """A function of `arity` arguments. Commutative ones may be called either way round (for common subexpressions)."""

    name: str
    arity: int
    reference: Callable[..., Any]
    commutative: bool = False
    # The binary function of a reduction has a value that changes nothing: reductions start from it.
    neutral: float | None = None


FUNCTIONS: dict[str, Function] = {}
"""By name."""


def register_function(
    name: str, reference: Callable[..., Any], arity: int = 1, *, commutative: bool = False, neutral: float | None = None
) -> Function:
    """Make `name` a function of epilogues; `reference` says what it is, on NumPy arrays.

    Raises:
        EpilogueError: the name is taken.
    """
    if name in FUNCTIONS:
        raise EpilogueError(f"A function of epilogues named {name} is there already.", hint="choose another name")
    FUNCTIONS[name] = Function(name, arity, reference, commutative, neutral)
    return FUNCTIONS[name]


def function_named(name: str) -> Function:
    """The function of that name.

    Raises:
        EpilogueError: there is none.
    """
    if name not in FUNCTIONS:
        raise EpilogueError(f"Epilogues have no function {name}.", hint=f"they have {', '.join(sorted(FUNCTIONS))}")
    return FUNCTIONS[name]


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Array) -> Array:
    made: Array = 0.5 * x * (1.0 + _erf(x * math.sqrt(0.5)))
    return made


def _hardswish(x: Array) -> Array:
    return x * np.minimum(np.maximum(x + 3.0, 0.0), 6.0) / 6.0


def _identity(x: Array) -> Array:
    return x


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


for _row in (
    Function("plus", 2, np.add, commutative=True, neutral=0.0),
    Function("minus", 2, np.subtract),
    Function("multiplies", 2, np.multiply, commutative=True, neutral=1.0),
    Function("divides", 2, np.divide),
    Function("multiply_add", 3, _multiply_add),
    Function("maximum", 2, np.maximum, commutative=True, neutral=-math.inf),
    Function("minimum", 2, np.minimum, commutative=True, neutral=math.inf),
    Function("identity", 1, _identity),
    Function("negate", 1, np.negative),
    Function("abs", 1, np.abs),
    Function("relu", 1, _relu),
    Function("gelu", 1, _gelu),
    Function("tanh", 1, np.tanh),
    Function("sigmoid", 1, _sigmoid),
    Function("silu", 1, _silu),
    Function("hardswish", 1, _hardswish),
    Function("exp", 1, np.exp),
    Function("round", 1, np.rint),
    Function("greater", 2, np.greater),
    Function("greater_equal", 2, np.greater_equal),
    Function("equal", 2, np.equal, commutative=True),
    Function("not_equal", 2, np.not_equal, commutative=True),
    Function("select", 3, np.where),
):
    FUNCTIONS[_row.name] = _row


def reduced_modes(dim: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The modes that a reduction over `dim` reduces, counted from the front of `rank`; all where `dim` is None.

    Raises:
        ValueError: there is no such mode.
    """
    given = range(rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    if any(not -rank <= mode < rank for mode in given):
        raise ValueError(f"modes {dim} of a tensor of {rank} modes")
    return tuple(sorted({mode % rank for mode in given}))


REDUCTIONS: dict[str, tuple[str, str]] = {
    "sum": ("plus", "atomic_add"),
    "max": ("maximum", "atomic_maximum"),
    "min": ("minimum", "atomic_minimum"),
}
"""The pairs of a reduction: in registers, and on global memory."""

REDUCE: dict[str, Callable[..., Any]] = {
    "plus": np.add.reduce,
    "maximum": np.maximum.reduce,
    "minimum": np.minimum.reduce,
}
"""What a reduction by the register function gives, on NumPy: `(array, axis=, keepdims=)`."""
