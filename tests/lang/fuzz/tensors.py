"""Tensors and TensorSSAs in plain Python. A tensor is a list of places in memory, one for each coordinate.

Views choose among the places, so nothing here computes with strides: only `Layout` does, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from tests.lang.fuzz.model import BOOLEAN, Num, Type, compute, decode, encode, lift, promote

Shape = Any  # an int or a tuple of shapes


def leaves(shape: Shape) -> list[int]:
    """The extents of a shape, nested or not."""
    return [extent for mode in shape for extent in leaves(mode)] if isinstance(shape, tuple) else [int(shape)]


def size(shape: Shape) -> int:
    """How many coordinates there are."""
    return math.prod(leaves(shape))


# --- TensorSSA -------------------------------------------------------------------------------------------------------


def _spread(items: Sequence[Num], shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(len(items), object)
    made[:] = items
    return made.reshape(shape, order="F")


def _operator(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Vec, other: Any) -> Vec:
        return self.pairwise(lambda a, b: compute(name, a, b), other)

    def reflected(self: Vec, other: Any) -> Vec:
        return self.pairwise(lambda a, b: compute(name, b, a), other)

    return forward, reflected


def _comparison(name: str) -> Callable[..., Any]:
    return lambda self, other: self.pairwise(lambda a, b: getattr(a, name)(b), other)


class Vec:
    """A TensorSSA: numbers of one type, the first mode fastest. A literal takes that type where the kind allows."""

    def __init__(self, items: Sequence[Num], shape: Shape = None) -> None:
        self.items = list(items)
        self.shape = shape if isinstance(shape, tuple) else (len(self.items),)

    @property
    def type(self) -> Type:
        return self.items[0].type

    def pairwise(self, fold: Callable[[Num, Num], Num], other: Any) -> Vec:
        left, right, shape = self.items, *self._operand(other)
        if shape != self.shape:
            broadcast = np.broadcast_arrays(_spread(left, self.shape), _spread(right, shape))
            shape = broadcast[0].shape
            left, right = (list(item.ravel(order="F")) for item in broadcast)
        return Vec([fold(a, b) for a, b in zip(left, right, strict=True)], shape)

    def _operand(self, other: Any) -> tuple[list[Num], tuple[int, ...]]:
        if isinstance(other, Vec):
            return other.items, other.shape
        if not isinstance(other, Num) and (self.type.kind == "f" or isinstance(other, int)) and self.type != BOOLEAN:
            other = self.type(other)
        return [lift(other)] * len(self.items), self.shape

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("truediv")
    __floordiv__, __rfloordiv__ = _operator("floordiv")
    __mod__, __rmod__ = _operator("mod")
    __and__, __rand__ = _operator("and")
    __or__, __ror__ = _operator("or")
    __xor__, __rxor__ = _operator("xor")
    __lshift__, __rlshift__ = _operator("shl")
    __rshift__, __rrshift__ = _operator("shr")
    __lt__, __le__ = _comparison("__lt__"), _comparison("__le__")
    __gt__, __ge__ = _comparison("__gt__"), _comparison("__ge__")
    __eq__, __ne__ = _comparison("__eq__"), _comparison("__ne__")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def each(self, function: Callable[[Num], Num]) -> Vec:
        return Vec([function(item) for item in self.items], self.shape)

    def __neg__(self) -> Vec:
        return self.each(lambda item: -item)

    def __invert__(self) -> Vec:
        return self.each(lambda item: ~item)

    def __abs__(self) -> Vec:
        return self.each(abs)

    def to(self, type_: Type) -> Vec:
        return self.each(type_)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and None in index:
            parts = tuple(slice(None) if part is None else int(part) for part in index)
            kept = _spread(self.items, self.shape)[parts]
            return Vec(list(kept.ravel(order="F")), kept.shape)
        if isinstance(index, tuple):
            return _spread(self.items, self.shape)[tuple(int(part) for part in index)]
        return self.items[int(index)]

    def reshape(self, shape: tuple[int, ...]) -> Vec:
        return Vec(self.items, shape)

    def broadcast_to(self, shape: tuple[int, ...]) -> Vec:
        wide = np.broadcast_to(_spread(self.items, self.shape), shape)
        return Vec(list(wide.ravel(order="F")), shape)

    def reduce(self, name: str, start: Any, profile: Any = 0) -> Any:
        if not isinstance(profile, tuple):
            return self._fold(name, start, self.items)
        numbers = _spread(self.items, self.shape)
        kept = [axis for axis, mode in enumerate(profile) if mode is None]
        folded = [axis for axis, mode in enumerate(profile) if mode is not None]
        rows = numbers.transpose([*folded, *kept]).reshape(-1, math.prod(self.shape[axis] for axis in kept), order="F")
        totals = [self._fold(name, start, list(rows[:, column])) for column in range(rows.shape[1])]
        return Vec(totals, tuple(self.shape[axis] for axis in kept))

    def _fold(self, name: str, start: Any, items: Sequence[Num]) -> Num:
        total = self.type(start)
        for item in items:
            if name in ("max", "min"):
                total = (max if name == "max" else min)(total, item, key=lambda number: number.value)
            else:
                total = compute(name, total, item)
        return total


def where(condition: Vec, left: Any, right: Any) -> Vec:
    """`left` where `condition`, else `right`, in their common type."""
    a, b = (item.items if isinstance(item, Vec) else [lift(item)] * len(condition.items) for item in (left, right))
    type_ = a[0].type if a[0].type == b[0].type else promote(a[0].type, b[0].type)
    chosen = [type_(x if c else y) for c, x, y in zip(condition.items, a, b, strict=True)]
    return Vec(chosen, condition.shape)


# --- memory ----------------------------------------------------------------------------------------------------------


class Cells:
    """Memory of numbers of one type; None where nothing was written."""

    def __init__(self, count: int) -> None:
        self.items: list[Num | None] = [None] * count

    def get(self, place: int) -> Num:
        item = self.items[place]
        assert item is not None, "read before written"
        return item

    def set(self, place: int, value: Num) -> None:
        self.items[place] = value


class Recast:
    """The same memory as integers of another width."""

    def __init__(self, cells: Cells, old: Type, new: Type) -> None:
        self.cells, self.old, self.new = cells, old, new

    def get(self, place: int) -> Num:
        return decode(self._bits(place) & ((1 << self.new.width) - 1), self.new)

    def _bits(self, place: int) -> int:
        first, shift = divmod(place * self.new.width, self.old.width)
        count = max(1, self.new.width // self.old.width)
        whole = sum(encode(self.cells.get(first + n)) << (n * self.old.width) for n in range(count))
        return whole >> shift

    def set(self, place: int, value: Num) -> None:
        first, shift = divmod(place * self.new.width, self.old.width)
        mask = (1 << self.new.width) - 1
        for n in range(max(1, self.new.width // self.old.width)):
            before = encode(self.cells.get(first + n)) << (n * self.old.width)
            after = (before & ~(mask << shift)) | (encode(value) << shift)
            self.cells.set(first + n, decode((after >> (n * self.old.width)) & ((1 << self.old.width) - 1), self.old))


class Layout:
    """A shape with its places: compact, the first mode fastest, where no stride is given. Swizzles are left out:
    they move elements about in memory, which no program sees.
    """

    def __init__(self, shape: Shape, stride: Any = None) -> None:
        self.shape = shape
        extents = leaves(shape)
        strides = leaves(stride) if stride is not None else [math.prod(extents[:n]) for n in range(len(extents))]
        grid = np.indices(extents).reshape(len(extents), -1)
        self.places = (np.array(strides) @ grid).reshape(extents)


class Tensor:
    """Places in memory, an axis for each leaf of the shape."""

    def __init__(self, type_: Type, shape: Shape, places: np.ndarray, cells: Cells | Recast) -> None:
        self.type, self.shape, self.places, self.cells = type_, shape, places, cells

    @classmethod
    def new(cls, type_: Type, layout: Layout | Shape) -> Tensor:
        layout = layout if isinstance(layout, Layout) else Layout(layout)
        return cls(type_, layout.shape, layout.places, Cells(int(layout.places.max()) + 1))

    @classmethod
    def of(cls, type_: Type, array: np.ndarray) -> Tensor:
        made = cls.rows(type_, array.shape)
        made.cells.items = [Num(type_, item) for item in array.reshape(-1).tolist()]  # type: ignore[union-attr]
        return made

    @classmethod
    def rows(cls, type_: Type, shape: tuple[int, int]) -> Tensor:
        return cls.new(type_, Layout(shape, (shape[1], 1)))

    @property
    def order(self) -> Iterator[int]:
        """The places in the order of linear indices."""
        return map(int, self.places.ravel(order="F"))

    @property
    def iterator(self) -> tuple[Type, Cells | Recast, int]:
        return self.type, self.cells, int(self.places.ravel(order="F")[0])

    def __getitem__(self, index: Any) -> Any:
        kept: list[Shape] = []
        parts = tuple(_axes(index, self.shape, kept))
        if not kept:
            return self.cells.get(int(self.places[parts]))
        return Tensor(self.type, tuple(kept), self.places[parts], self.cells)

    def __setitem__(self, index: Any, value: Any) -> None:
        parts = tuple(_axes(index, self.shape, []))
        if any(isinstance(part, slice) for part in parts):
            self[index].store(value)
            return
        self.cells.set(int(self.places[parts]), self.type(lift(value)))

    def load(self) -> Vec:
        return Vec([self.cells.get(place) for place in self.order], self.shape)

    def store(self, value: Any) -> None:
        items = value.items if isinstance(value, Vec) else [lift(value)] * self.places.size
        for place, item in zip(self.order, items, strict=True):
            self.cells.set(place, self.type(item))

    fill = store


def _axes(index: Any, shape: Shape, kept: list[Shape]) -> Iterator[int | slice | EllipsisType]:
    """An index or a slice for each leaf of `shape`; what None keeps goes to `kept`."""
    if index is None:
        kept.append(shape)
        yield from [slice(None)] * len(leaves(shape))
    elif isinstance(index, tuple):
        for part, mode in zip(index, shape, strict=True):
            yield from _axes(part, mode, kept)
    else:
        rest = int(index)
        assert 0 <= rest < size(shape), f"index {rest} of shape {shape}"
        for extent in leaves(shape):
            yield rest % extent
            rest //= extent


# --- views -----------------------------------------------------------------------------------------------------------


def _split(tensor: Tensor, tiler: tuple[int, int]) -> np.ndarray:
    """The places of a matrix as (in the tile, tile) for each mode."""
    (m, n), (a, b) = tensor.places.shape, tiler
    return tensor.places.reshape((a, m // a, b, n // b), order="F")


def zipped_divide(tensor: Tensor, tiler: tuple[int, int]) -> Tensor:
    places = _split(tensor, tiler).transpose(0, 2, 1, 3)
    shape = places.shape
    return Tensor(tensor.type, (shape[:2], shape[2:]), places, tensor.cells)


def flat_divide(tensor: Tensor, tiler: tuple[int, int]) -> Tensor:
    zipped = zipped_divide(tensor, tiler)
    return Tensor(tensor.type, zipped.places.shape, zipped.places, tensor.cells)


def logical_divide(tensor: Tensor, tiler: tuple[int, int]) -> Tensor:
    places = _split(tensor, tiler)
    shape = places.shape
    return Tensor(tensor.type, (shape[:2], shape[2:]), places, tensor.cells)


def local_tile(tensor: Tensor, tiler: tuple[int, int], coord: tuple[Any, Any]) -> Tensor:
    return zipped_divide(tensor, tiler)[(None, None), (int(coord[0]), int(coord[1]))]


def composition(tensor: Tensor, layout: Layout) -> Tensor:
    places = tensor.places.ravel(order="F")[layout.places]
    return Tensor(tensor.type, layout.shape, places, tensor.cells)


def make_tensor(iterator: tuple[Type, Any, int], layout: Layout) -> Tensor:
    type_, cells, first = iterator
    return Tensor(type_, layout.shape, layout.places + first, cells)


def recast_tensor(tensor: Tensor, type_: Type) -> Tensor:
    """A compact tensor (the first mode fastest) as one of another type; the first mode shrinks or grows."""
    first, *rest = tensor.shape
    shape = (first * tensor.type.width // type_.width, *rest)
    first_place = int(tensor.places.min()) * tensor.type.width // type_.width
    cells = Recast(tensor.cells, tensor.type, type_)  # type: ignore[arg-type]
    return Tensor(type_, shape, Layout(shape).places + first_place, cells)


def copy(source: Tensor, target: Tensor) -> None:
    target.store(source.load())
