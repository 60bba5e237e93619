"""From coordinates to indices and back, on bare shapes and strides.

Colexicographic order: the leftmost mode runs fastest. An index past the end runs on in the last mode, as
in CuTe, so every layout is a function on all integers from 0.
"""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import LayoutError
from tilewright.layout.basis import Path, ScaledBasis, coordinate_sum
from tilewright.layout.dynamic import DynamicInt, Leaf, add_inside, floor_div, greatest_product, is_int, mod, mul_inside
from tilewright.layout.inttuple import (
    IntTuple,
    compact_col_major,
    flat,
    is_flat_static,
    product,
    text,
    transform_leaf,
    tuples,
)


def crd2idx(coord: Any, shape: IntTuple, stride: IntTuple = None) -> Any:
    """The index, or with basis strides the coordinate, that `shape:stride` gives to `coord`.

    `coord` is an index, or a tuple that nests at most as deep as `shape`; `None` counts as 0. Without strides
    the compact column-major ones are taken.

    Raises:
        LayoutError: `coord` does not fit `shape`.
    """
    coord, shape, stride = tuples(coord), tuples(shape), tuples(stride)
    if stride is None:
        stride = compact_col_major(shape)
    if type(stride) is int or not any(isinstance(leaf, ScaledBasis) for leaf in flat(stride)):
        return _offset(coord, shape, stride)
    terms: list[tuple[Path, Leaf]] = []
    _basis_terms(coord, shape, stride, terms)
    return coordinate_sum(terms)


def spread(coord: Any, shape: IntTuple, stride: IntTuple) -> tuple[Any, IntTuple]:
    """Coordinate and strides with runtime parts wide enough for the offset, or coordinate, that they give."""
    if not (_may_wrap(coord) or _may_wrap(stride)) or fits_31_bits(shape, stride):
        return coord, stride
    return transform_leaf(_widened, coord), transform_leaf(_widened, stride)


def _may_wrap(value: Any) -> bool:
    if type(value) is int or is_flat_static(value):
        return False
    return any(isinstance(leaf, DynamicInt) and leaf.wraps for leaf in flat(value))


def _widened(leaf: Any) -> Any:
    return leaf.widened() if isinstance(leaf, DynamicInt) else leaf


def fits_31_bits(shape: IntTuple, stride: IntTuple) -> bool:
    """True if what is known of a layout shows that no index, and no part of a coordinate, is 2^31 or more."""
    reach: dict[Path, int] = {}
    for extent, step in zip(flat(shape), flat(stride), strict=True):
        path, factor = (step.mode, step.value) if isinstance(step, ScaledBasis) else ((), step)
        greatest = _greatest_extent(extent)
        if type(factor) is int:
            most = None if greatest is None and factor else max((greatest or 0) - 1, 0) * abs(factor)
        else:
            most = greatest_product(extent, factor)
        if most is None:
            return False
        reach[path] = reach.get(path, 0) + most
    return all(most < 1 << 31 for most in reach.values())


def _greatest_extent(extent: Leaf) -> int | None:
    if type(extent) is int:
        return extent
    return (1 << 31) - 1 if extent.greatest is None and extent.width == 32 else extent.greatest


def _misfit(coord: Any, shape: IntTuple) -> LayoutError:
    return LayoutError(
        "the coordinate does not fit the shape",
        values={"coordinate": text(coord), "shape": text(shape)},
        hint="give one integer for each mode, or one that counts through the modes, the first fastest",
    )


def _offset(coord: Any, shape: IntTuple, stride: IntTuple) -> Leaf:
    if coord is None or (type(coord) is int and coord == 0):
        return 0
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            raise _misfit(coord, shape)
        total: Leaf = 0
        for item, extent, step in zip(coord, shape, stride, strict=True):
            total = add_inside(total, _offset(item, extent, step))
        return total
    if not isinstance(shape, tuple):
        return mul_inside(coord, stride)
    if not shape:
        return 0
    total = 0
    for extent, step in zip(shape[:-1], stride[:-1], strict=True):
        count = product(extent)
        total = add_inside(total, _offset(mod(coord, count), extent, step))
        coord = floor_div(coord, count)
    return add_inside(total, _offset(coord, shape[-1], stride[-1]))


def _basis_terms(coord: Any, shape: IntTuple, stride: IntTuple, terms: list[tuple[Path, Leaf]]) -> None:
    """Append one term for each leaf of `stride`, zeros too: they give the result its profile."""
    if not isinstance(shape, tuple):
        if isinstance(coord, tuple):
            raise _misfit(coord, shape)
        count = 0 if coord is None else coord
        if isinstance(stride, ScaledBasis):
            terms.append((stride.mode, mul_inside(count, stride.value)))
        else:
            terms.append(((), mul_inside(count, stride)))
        return
    for item, extent, step in zip(idx2crd(coord, shape, deep=False), shape, stride, strict=True):
        _basis_terms(item, extent, step, terms)


def idx2crd(index: Any, shape: IntTuple, *, deep: bool = True) -> Any:
    """The coordinate of `shape` at `index`; an `index` that is a tuple is refined mode by mode.

    With `deep=False` only the outermost modes are told apart.

    Raises:
        LayoutError: `index` is a tuple that does not fit `shape`.
    """
    index, shape = tuples(index), tuples(shape)
    if not isinstance(shape, tuple):
        if isinstance(index, tuple):
            raise _misfit(index, shape)
        return index
    if isinstance(index, tuple):
        if len(index) != len(shape):
            raise _misfit(index, shape)
        coords = index
    else:
        coords = tuple(_digits(0 if index is None else index, shape))
    if not deep:
        return coords
    return tuple([idx2crd(item, extent) for item, extent in zip(coords, shape, strict=True)])


def _digits(index: Leaf, shape: tuple[IntTuple, ...]) -> list[Leaf]:
    digits = []
    for extent in shape[:-1]:
        count = product(extent)
        digits.append(mod(index, count))
        index = floor_div(index, count)
    return [*digits, index] if shape else []


def crd2crd(coord: Any, source: IntTuple, target: IntTuple) -> Any:
    """The coordinate of `target` with the index that `coord` has in `source`."""
    return idx2crd(coord if is_int(coord) else crd2idx(coord, source), target)


def increment_coord(coord: Any, shape: IntTuple) -> Any:
    """The next coordinate in colexicographic order; after the last comes the first again.

    Raises:
        LayoutError: `coord` is not a coordinate of ints congruent with `shape`.
    """
    leaves, extents = flat(coord), flat(shape)
    if len(leaves) != len(extents) or not all(type(leaf) is int for leaf in leaves + extents):
        raise _misfit(coord, shape)
    nested, carry = _increment(coord, shape)
    return nested if not carry else _zeros(shape)


def _zeros(shape: IntTuple) -> IntTuple:
    return tuple(map(_zeros, shape)) if isinstance(shape, tuple) else 0


def _increment(coord: Any, shape: IntTuple) -> tuple[Any, bool]:
    if isinstance(coord, tuple) != isinstance(shape, tuple):
        raise _misfit(coord, shape)
    if not isinstance(shape, tuple):
        return (coord + 1, False) if coord + 1 < shape else (0, True)
    result, carry = [], True
    for item, extent in zip(coord, shape, strict=True):
        if carry:
            item, carry = _increment(item, extent)
        result.append(item)
    return tuple(result), carry
