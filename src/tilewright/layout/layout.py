"""The values of the algebra: `Layout`, `Swizzle`, `ComposedLayout`.

All are immutable and hashable, are functions of coordinates, and print as CuTe prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilewright.base.errors import LayoutError, shown
from tilewright.layout.basis import ScaledBasis, add_coordinates
from tilewright.layout.coordinates import crd2idx, spread
from tilewright.layout.dynamic import DynamicInt, Leaf, divisibility, floor_div, mod
from tilewright.layout.inttuple import (
    IntTuple,
    clean,
    clean_coord,
    compact_col_major,
    equal,
    flat,
    is_congruent,
    is_flat_static,
    product,
    text,
    transform_leaf,
)

_set = object.__setattr__

late: dict[str, Callable[..., Any]] = {}
"""Functions of higher modules that methods here call: `parse`, `html`. Importing the package fills it."""


class Layout:
    """A function from coordinates to indices: `shape:stride`.

    `L(coord)` is the inner product of the coordinate with the strides, for an index, a coordinate, or anything in
    between; indices count colexicographically. Strides may be `ScaledBasis` elements, then values are
    coordinates. Without strides the layout is compact and column-major.

    Raises:
        LayoutError: shape and stride nest differently, or an extent is negative.
    """

    __slots__ = ("_hash", "shape", "stride")
    _hash: int
    shape: IntTuple
    stride: IntTuple

    def __init__(self, shape: IntTuple, stride: IntTuple = None) -> None:
        if is_flat_static(shape) and is_flat_static(stride) and len(shape) == len(stride) and min(shape) >= 0:
            _set(self, "shape", shape)
            _set(self, "stride", stride)
            return
        shape = clean(shape)
        stride = compact_col_major(shape) if stride is None else clean(stride, "stride")
        if not is_congruent(shape, stride):
            raise LayoutError("shape and stride must nest alike", values={"shape": text(shape), "stride": text(stride)})
        for extent in flat(shape):
            if type(extent) is int and extent < 0:
                raise LayoutError("an extent is negative", values={"shape": text(shape)})
        _set(self, "shape", shape)
        _set(self, "stride", stride)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Layout is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Layout is immutable")

    @staticmethod
    def parse(source: str) -> Any:
        """The layout that prints as `source`; see `tilewright.layout.parse`."""
        return late["parse"](source)

    def _repr_html_(self) -> str:
        return str(late["html"](self))

    def __call__(self, *coord: Any) -> Any:
        """The value at a coordinate, given as one argument or one for each mode.

        Raises:
            LayoutError: the coordinate does not fit the shape.
        """
        point = coord[0] if len(coord) == 1 else coord
        if type(point) is not int and not is_flat_static(point):
            point = clean_coord(point)
        point, stride = spread(point, self.shape, self.stride)
        return crd2idx(point, self.shape, stride)

    def __getitem__(self, mode: int) -> Layout:
        """The layout of one mode."""
        if not isinstance(self.shape, tuple):
            if mode in (0, -1):
                return self
            raise IndexError(f"layout {self} has one mode")
        return trusted(self.shape[mode], self.stride[mode])

    def __iter__(self) -> Iterator[Layout]:
        return (self[mode] for mode in range(len(self)))

    def __len__(self) -> int:
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return equal(self.shape, other.shape) and equal(self.stride, other.stride)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            _set(self, "_hash", hash((self.shape, self.stride)))
            return self._hash

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return trusted, (self.shape, self.stride)

    @property
    def is_static(self) -> bool:
        """True if no leaf is known only at run time."""
        return is_static(self)

    @property
    def max_alignment(self) -> int:
        """The largest number known to divide the count of elements: vectors of a divisor of it leave no rest."""
        return divisibility(product(self.shape))

    def get_hier_coord(self, index: Leaf) -> Any:
        """The coordinate, congruent with the shape, at which the layout has the value `index`.

        Raises:
            LayoutError: strides do not tell the modes apart by division.
        """
        _require_radix(self)
        return transform_leaf(lambda extent, step: _digit(index, extent, step), self.shape, self.stride)

    def get_flat_coord(self, index: Leaf) -> Any:
        """As `get_hier_coord`, with each mode's coordinate as an index into that mode."""
        coord = self.get_hier_coord(index)
        if not isinstance(coord, tuple):
            return coord
        return tuple(crd2idx(item, extent) for item, extent in zip(coord, self.shape, strict=True))

    def get_1d_coord(self, index: Leaf) -> Leaf:
        """As `get_hier_coord`, as an index into the whole layout."""
        return crd2idx(self.get_hier_coord(index), self.shape)


def trusted(shape: IntTuple, stride: IntTuple) -> Layout:
    """A layout of tuples that are known to be well formed."""
    layout = Layout.__new__(Layout)
    _set(layout, "shape", shape)
    _set(layout, "stride", stride)
    return layout


def _digit(index: Leaf, extent: Leaf, step: Leaf) -> Leaf:
    if (type(extent) is int and extent == 1) or (type(step) is int and step == 0):
        return 0
    if type(extent) is int and extent == 0:
        raise LayoutError("an empty layout has no coordinates")
    return mod(floor_div(index, step), extent)


def _require_radix(layout: Layout) -> None:
    """Each stride must be a multiple of the extents times strides below it, where both are known."""
    modes = (
        [(d, s) for s, d in zip(flat(layout.shape), flat(layout.stride), strict=True) if not (s == 1 or d == 0)]
        if layout.is_static
        else []
    )
    reach = 1
    for step, extent in sorted(modes, key=lambda mode: mode[0] if type(mode[0]) is int else 0):
        if type(step) is not int or step <= 0 or step % reach:
            raise LayoutError(
                "coordinates cannot be read off an index of this layout by division",
                values={"layout": layout, "stride": step},
                hint="use left_inverse",
            )
        reach = step * extent


_MOST_BITS = 1024
"""The longest numbers that a swizzle takes."""


_BY_NAME = {"none": 0, "s32b": 1, "s64b": 2, "s128b": 3}


class Swizzle:
    """`S<bits,base,shift>`: XORs `bits` bits of an index into lower ones.

    The bits from `base + shift` on are XORed into those from `base` on (with a negative shift the other way
    round). `bits` and `base` are at least 0, and `|shift| >= bits`.

    Raises:
        LayoutError: the numbers are out of range.
    """

    __slots__ = ("base", "bits", "shift")
    bits: int
    base: int
    shift: int

    def __init__(self, bits: int, base: int, shift: int) -> None:
        bits, base, shift = (clean(number, "swizzle") for number in (bits, base, shift))
        numbers = all(type(number) is int for number in (bits, base, shift))
        if not numbers or bits < 0 or base < 0 or abs(shift) < bits or base + bits + abs(shift) > _MOST_BITS:
            raise LayoutError(
                f"a swizzle needs bits >= 0, base >= 0 and |shift| >= bits, of numbers of at most {_MOST_BITS} bits",
                values={"bits": bits, "base": base, "shift": shift},
            )
        _set(self, "bits", bits)
        _set(self, "base", base)
        _set(self, "shift", shift)

    @classmethod
    def from_name(cls, name: str) -> Swizzle:
        """The swizzle of bytes that tensor copies call `none`, `s32b`, `s64b` or `s128b` (PTX ISA, "Swizzle modes").

        Raises:
            LayoutError: another name.
        """
        if name not in _BY_NAME:
            raise LayoutError(f"a swizzle {name!r}", hint=f"one of {', '.join(_BY_NAME)}")
        return cls(_BY_NAME[name], 4, 3)

    @property
    def num_bits(self) -> int:
        return self.bits

    @property
    def num_base(self) -> int:
        return self.base

    @property
    def num_shift(self) -> int:
        return self.shift

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Swizzle is immutable")

    @property
    def source_mask(self) -> int:
        """The bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def period(self) -> int:
        """The least step that passes through unchanged: `s(x + period) == s(x) + period` for every x."""
        return 1 << (self.base + self.bits + abs(self.shift)) if self.bits else 1

    @property
    def block(self) -> int:
        """The size of the least aligned blocks that the swizzle maps onto themselves."""
        return 1 << (self.base + self.bits + max(-self.shift, 0)) if self.bits else 1

    def keeps(self, count: int) -> bool:
        """Whether the numbers below `count` are mapped onto themselves, as far as blocks show it."""
        return count % self.block == 0 or count <= self.source_mask & -self.source_mask

    def __call__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            raise LayoutError("a swizzle takes indices, not coordinates", values={"swizzle": self, "coord": index})
        if type(index) is not int and not isinstance(index, DynamicInt):
            index = clean(index, "swizzled index")
        if not self.bits:
            return index
        read = index & self.source_mask
        return index ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Swizzle):
            return NotImplemented
        return (self.bits, self.base, self.shift) == (other.bits, other.base, other.shift)

    def __hash__(self) -> int:
        return hash((self.bits, self.base, self.shift))

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return Swizzle, (self.bits, self.base, self.shift)


class ComposedLayout:
    """`inner o offset o outer`: the function `c -> inner(offset + outer(c))`.

    `outer` gives the shape. `inner` is a `Swizzle`, a layout, or any function of indices that is hashable.
    """

    __slots__ = ("inner", "offset", "outer")
    inner: Any
    offset: Any
    outer: Any

    def __init__(self, inner: Any, offset: Any, outer: Layout | ComposedLayout) -> None:
        if not isinstance(outer, Layout | ComposedLayout):
            raise LayoutError("the outer part of a composed layout is a layout", values={"outer": shown(outer)})
        if not callable(inner):
            raise LayoutError("the inner part of a composed layout is a function", values={"inner": shown(inner)})
        _set(self, "inner", inner)
        _set(self, "offset", clean(offset, "offset"))
        _set(self, "outer", outer)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("ComposedLayout is immutable")

    @property
    def shape(self) -> IntTuple:
        """The shape of the domain."""
        return self.outer.shape

    @property
    def stride(self) -> IntTuple:
        """The strides of the outer layout; the whole has none of its own."""
        return self.outer.stride

    @property
    def is_static(self) -> bool:
        """True if no leaf is known only at run time."""
        return is_static(self)

    def __call__(self, *coord: Any) -> Any:
        """The value at a coordinate, given as one argument or one for each mode."""
        return self.inner(add_coordinates(self.offset, self.outer(*coord)))

    def with_outer(self, outer: Layout | ComposedLayout, offset: Any = 0) -> ComposedLayout:
        """With another outer layout, and `offset` added to the offset."""
        return ComposedLayout(self.inner, add_coordinates(self.offset, offset), outer)

    def _repr_html_(self) -> str:
        return str(late["html"](self))

    def __getitem__(self, mode: int) -> ComposedLayout:
        return self.with_outer(self.outer[mode])

    def __iter__(self) -> Iterator[ComposedLayout]:
        return (self[mode] for mode in range(len(self)))

    def __len__(self) -> int:
        return len(self.outer)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        return bool(self.inner == other.inner and equal(self.offset, other.offset) and self.outer == other.outer)

    def __hash__(self) -> int:
        return hash((self.inner, self.offset, self.outer))

    def __str__(self) -> str:
        return f"{self.inner} o {text(self.offset)} o {self.outer}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return ComposedLayout, (self.inner, self.offset, self.outer)


AnyLayout = Layout | ComposedLayout


def is_static(x: Any) -> bool:
    """True if no leaf of the tuple, layout or swizzle is known only at run time."""
    if isinstance(x, tuple):
        return all(map(is_static, x))
    if isinstance(x, Layout):
        return is_static(x.shape) and is_static(x.stride)
    if isinstance(x, ComposedLayout):
        return is_static(x.inner) and is_static(x.offset) and is_static(x.outer)
    if isinstance(x, ScaledBasis):
        return is_static(x.value)
    return not isinstance(x, DynamicInt)


def require_plain(value: Any, function: str) -> Layout:
    """`value`, if it is a plain layout.

    Raises:
        LayoutError: it is not.
    """
    if isinstance(value, Layout):
        return value
    what = "a plain layout" if isinstance(value, ComposedLayout | Swizzle) else f"a layout, not {type(value).__name__}"
    raise LayoutError(f"{function} takes {what}", values={"argument": value})


def as_layout(value: Any) -> Any:
    """A layout for a tiler: an int or tuple counts as a compact layout of that shape."""
    return value if isinstance(value, AnyLayout) else Layout(value)
