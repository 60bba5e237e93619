"""What the reductions of `reduce` compute: neutral elements, accumulators, how two of them combine.

A state is a tuple of numbers: the value so far and, for argmax, its index. Values are folded in `partial`, wide enough
for one step of a thread, and carried on in `accumulator`: float32 for 16-bit floats, 64 bits for sums of integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tilewright.cute as cute
from tilewright.cute import BFloat16, Boolean, Float32, Float64, Int32, Int64, Numeric, Uint16, Uint32

NAMES = ("sum", "mean", "prod", "max", "min", "argmax")

State = tuple[Any, ...]


@dataclass(frozen=True)
class Reduction:
    """The reduction `name` of elements of type `dtype`, in kernels whose symbols begin with `op`."""

    name: str
    dtype: type[Numeric]
    op: str = "reduce"

    @property
    def adds(self) -> bool:
        return self.name in ("sum", "mean")

    @property
    def indexed(self) -> bool:
        """Whether the result is an index."""
        return self.name == "argmax"

    @property
    def partial(self) -> type[Numeric]:
        """The type in which the elements of one step are folded."""
        if self.dtype.is_float:
            return Float64 if self.dtype is Float64 else Float32
        if self.adds or not (self.name == "prod" or self.dtype.width > 32):
            return self._widened
        return Int64 if self.name == "prod" else self.dtype

    @property
    def _widened(self) -> type[Numeric]:
        return Int32 if self.dtype.width < 32 else Int64 if self.adds else self.dtype

    @property
    def accumulator(self) -> type[Numeric]:
        """The type in which partial results are carried and stored."""
        if not self.dtype.is_float and (self.adds or self.name == "prod"):
            return Int64
        return self.partial

    @property
    def neutral(self) -> Any:
        """The element that changes no result."""
        if self.adds or self.name == "prod":
            return self.dtype(1 if self.name == "prod" else 0)
        lowest = self.name != "min"
        if self.dtype.is_float:
            return self.dtype(-math.inf if lowest else math.inf)
        if self.dtype is Boolean:
            return Boolean(not lowest)
        bits = self.dtype.width - (1 if self.dtype.signed else 0)
        return self.dtype((-(1 << bits) if self.dtype.signed else 0) if lowest else (1 << bits) - 1)

    def start(self, index: type[Numeric]) -> State:
        """The state before the first element, with the greatest number of the type `index` for its index."""
        return self._state(self.accumulator(self.neutral), index((1 << (index.width - 1)) - 1))

    def lift(self, element: Any, index: Any) -> State:
        """The state of one element."""
        if self.indexed and self.dtype is BFloat16:  # else LLVM compares 16-bit numbers, which takes more instructions
            return self._state((Uint32(element.bitcast(Uint16)) << 16).bitcast(Float32), index)
        return self._state(self.partial(element), index)

    def _state(self, value: Any, index: Any) -> State:
        return (value, index) if self.indexed else (value,)

    def moved(self, state: State, by: Any) -> State:
        """The state with an index that is greater by `by`."""
        return (state[0], state[1] + by) if self.indexed else state

    def widen(self, state: State) -> State:
        """A folded step as a state of the accumulator's type."""
        return (self.accumulator(state[0]), *state[1:])

    def fold(self, states: list[State]) -> State:
        """The states in order as one, in a tree."""
        while len(states) > 1:
            pairs = [self.follow(*states[k : k + 2]) for k in range(0, len(states) - 1, 2)]
            states = pairs + states[len(states) - len(states) % 2 :]
        return states[0]

    def follow(self, state: State, later: State) -> State:
        """Both states as one, where the indices of `later` are all greater."""
        if not self.indexed:
            return (self._combined(state[0], later[0]),)
        wins = _exceeds(later[0], state[0])
        return _chosen(wins, later, state)

    def combine(self, state: State, other: State) -> State:
        """Both states as one."""
        if not self.indexed:
            return self.follow(state, other)
        wins = _exceeds(other[0], state[0]) | (_ties(other[0], state[0]) & (other[1] < state[1]))
        return _chosen(wins, other, state)

    def _combined(self, a: Any, b: Any) -> Any:
        if self.adds:
            return a + b
        if self.name == "prod":
            return a * b
        if type(a) is Float32:
            return (cute.arch.fmax if self.name == "max" else cute.arch.fmin)(a, b, nan=True)
        if type(a) is Float64:
            wins = (a > b if self.name == "max" else a < b) | (a != a)
            return _select(wins, a, b)
        return _select(a > b if self.name == "max" else a < b, a, b)

    def across(self, state: State, lanes: int) -> State:
        """The state of each group of `lanes` lanes, in every lane."""
        step = lanes // 2
        while step:
            state = self.combine(state, tuple(cute.arch.shuffle_sync_bfly(number, step) for number in state))
            step //= 2
        return state

    def finish(self, state: State, divisor: Any, dtype: type[Numeric]) -> Any:
        """The result as `dtype`; a mean is the sum over `divisor`."""
        value = state[-1]
        if self.name == "mean":
            value = value / type(value)(divisor)
        return value if type(value) is dtype else value.to(dtype)


@cute.jit
def _select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _chosen(condition: Any, a: State, b: State) -> State:
    return tuple(_select(condition, x, y) for x, y in zip(a, b, strict=True))


def _exceeds(a: Any, b: Any) -> Any:
    """Whether `a` is greater; a NaN is greater than any number."""
    if not type(a).is_float:
        return a > b
    return ~(a <= b) & (b == b)


def _ties(a: Any, b: Any) -> Any:
    if not type(a).is_float:
        return a == b
    return (a == b) | ((a != a) & (b != b))
