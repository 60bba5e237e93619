"""Scaled basis elements: strides whose values are coordinates instead of offsets.

`E(0)` is the unit of mode 0 and prints `1@0`; `E((1, 0))` is mode 0 inside mode 1 and prints `1@0@1`.
The tables of notations are in CuTe's documentation, "TMA tensors" (0z_tma_tensors.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.base.errors import ArgumentError, LayoutError, shown
from tilewright.layout.dynamic import Leaf, add_inside, mul, same
from tilewright.layout.ratio import Ratio

Path = tuple[int, ...]


_MOST_MODES = 64
"""Coordinates have as many modes, and nest as deep, as the largest path says: a limit to both."""


class ScaledBasis:
    """`value`, an int or `Ratio`, times the unit coordinate of the mode at `mode`, a path from the outermost mode in.

    Raises:
        ArgumentError: `mode` is no int and no sequence of ints.
    """

    __slots__ = ("mode", "value")
    value: Leaf
    mode: Path

    def __init__(self, value: Leaf, mode: int | Sequence[int]) -> None:
        path = (mode,) if isinstance(mode, int) else mode
        if not isinstance(path, tuple | list) or not all(type(index) is int for index in path):
            raise ArgumentError("the mode of a ScaledBasis is an int or several", values={"mode": shown(mode)})
        if len(path) > _MOST_MODES or not all(0 <= index < _MOST_MODES for index in path):
            raise LayoutError(f"mode numbers of a ScaledBasis are 0 to {_MOST_MODES - 1}", values={"mode": mode})
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "mode", tuple(path))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("ScaledBasis is immutable")

    def scaled(self, factor: Leaf) -> ScaledBasis:
        """This element times `factor`."""
        return ScaledBasis(mul(factor, self.value), self.mode)

    def __mul__(self, factor: Leaf) -> ScaledBasis:
        return self.scaled(factor)

    __rmul__ = __mul__

    def is_static(self) -> bool:
        """Whether the scale is known while compiling."""
        return isinstance(self.value, int | Ratio)

    def to(self, dtype: type) -> ScaledBasis:
        """Itself, the one type it converts to."""
        if dtype is not ScaledBasis:
            raise LayoutError(f"a ScaledBasis becomes a ScaledBasis only, not {dtype!r}")
        return self

    def same_as(self, other: object) -> bool:
        """True if both are known to be equal."""
        return isinstance(other, ScaledBasis) and self.mode == other.mode and same(self.value, other.value)

    def __eq__(self, other: object) -> bool:
        return self.same_as(other)

    def __hash__(self) -> int:
        return hash((self.value, self.mode))

    def __str__(self) -> str:
        return "@".join([str(self.value), *map(str, reversed(self.mode))])

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return ScaledBasis, (self.value, self.mode)

    def evaluate(self, env: Any) -> ScaledBasis:
        """With every symbol of `env` replaced by its value."""
        value = self.value.evaluate(env) if hasattr(self.value, "evaluate") else self.value
        return ScaledBasis(value, self.mode)


def E(mode: int | Sequence[int], *deeper: int) -> ScaledBasis | int:
    """The unit of mode `mode`; several numbers, or a sequence, are a path from the outermost mode in.

    The empty path is the integer 1.
    """
    path = (mode, *deeper) if isinstance(mode, int) else (*mode, *deeper)
    return ScaledBasis(1, path) if path else 1


def basis_value(e: Leaf) -> Leaf:
    """The number in front of the `@`; an integer is its own value."""
    return e.value if isinstance(e, ScaledBasis) else e


def basis_get(basis: Leaf, t: Any) -> Any:
    """The part of the tuple `t` at the path of `basis`; all of it for an integer."""
    if not isinstance(basis, ScaledBasis):
        return t
    for index in basis.mode:
        items = t if isinstance(t, tuple) else (t,)
        if index >= len(items):
            raise LayoutError(f"there is no mode {basis} here", values={"stride": basis, "tuple": t})
        t = items[index]
    return t


def coordinate_sum(terms: Iterable[tuple[Path, Leaf]]) -> Any:
    """The coordinate `Σ value * E(path)` as a nested tuple just deep enough for all paths.

    Raises:
        LayoutError: one path leads into a mode that another takes whole.
    """
    tree: dict[int, list[tuple[Path, Leaf]]] = {}
    whole: Leaf = None
    for path, value in terms:
        if path:
            tree.setdefault(path[0], []).append((path[1:], value))
        else:
            whole = value if whole is None else add_inside(whole, value)
    if not tree:
        return 0 if whole is None else whole
    if whole is not None and not (type(whole) is int and whole == 0):
        raise LayoutError("an offset and a coordinate cannot be added", values={"offset": whole, "modes": list(tree)})
    return tuple(coordinate_sum(tree.get(index, ())) for index in range(max(tree) + 1))


def add_coordinates(left: Any, right: Any) -> Any:
    """Sum of two coordinates mode by mode; a missing mode, or the int 0, counts as 0."""
    if not isinstance(left, tuple) and not isinstance(right, tuple):
        return add_inside(left, right)
    if not isinstance(left, tuple):
        left, right = right, left
    if not isinstance(right, tuple):
        if type(right) is int and right == 0:
            return left
        raise LayoutError("coordinates have different profiles", values={"left": left, "right": right})
    width = max(len(left), len(right))
    padded = ((*side, *(0,) * (width - len(side))) for side in (left, right))
    return tuple(add_coordinates(a, b) for a, b in zip(*padded, strict=True))
