"""Dimensions as users of PyTorch name them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.base.errors import ArgumentError, DimensionError


def from_the_end(op: str, dim: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The dimensions as negative numbers in rising order; None and () are all of them.

    Raises:
        DimensionError: (an IndexError) one is out of range.
        ArgumentError: one is named twice, or is no integer.
    """
    if dim is None or dim == ():
        return tuple(range(-rank, 0))
    given = tuple(dim) if isinstance(dim, Sequence) else (dim,)
    most = max(rank, 1)  # as in PyTorch, a tensor without dimensions has dimension 0
    for item in given:
        if not isinstance(item, int):
            raise ArgumentError(f"{op}: dim is an int or a tuple of ints, not {type(item).__name__}")
        if not -most <= item < most:
            raise DimensionError(
                f"{op}: Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {item})"
            )
    places = sorted(item % most - rank for item in given) if rank else []
    if len(set(places)) < len(places):
        raise ArgumentError(f"{op}: a dimension appears more than once", values={"dim": given})
    return tuple(places)


def without(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """The shape after `dims` (negative) are reduced: left out, or 1."""
    rank = len(shape)
    return tuple(
        1 if place - rank in dims else extent
        for place, extent in enumerate(shape)
        if keepdim or place - rank not in dims
    )
