"""Masks of the blocks of a cluster that a copy goes to."""

from __future__ import annotations

from typing import Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.lang.leaves import is_dynamic
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int16, Int32, as_numeric
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.layout import Layout

_BITS = 16
"""Blocks of the largest cluster."""


def make_layout_image_mask(lay: Layout, coord: Any, mode: int, *, loc: object = None, ip: object = None) -> Any:
    """Bits of the indices that `lay` takes when the coordinate of `mode` varies and the others are `coord`'s.

    An int where all of `coord` is known while compiling, else an Int16.

    Raises:
        LayoutError: there is no such mode, or an index known while compiling is beyond 63.
        CompileError: an index known only at run time may be beyond 15.
    """
    place = tuple(to_python(item) for item in coord)
    if not any(is_dynamic(item) for item in place):
        return algebra.make_layout_image_mask(lay, tuple(map(_plain, place)), int(mode))
    static = algebra.make_layout_image_mask(lay, (0,) * len(place), int(mode))
    if int(algebra.cosize(lay)) > _BITS:
        raise CompileError(
            f"a mask of a cluster of {algebra.cosize(lay)} blocks", location=user_location(), values={"layout": lay}
        )
    first = lay((*place[:mode], 0, *place[mode + 1 :]))
    return Int16(Int32(static) << Int32(as_numeric(first)))


def _plain(item: Any) -> Any:
    return getattr(item, "value", item)


def create_tma_multicast_mask(
    cta_layout_vmnk: Layout, cta_coord_vmnk: Any, mcast_mode: int, *, loc: object = None, ip: object = None
) -> Any:
    """The blocks with which a block shares a tile: those along mode `mcast_mode` of the cluster's layout (V,M,N,K)."""
    return make_layout_image_mask(cta_layout_vmnk, cta_coord_vmnk, mcast_mode)
