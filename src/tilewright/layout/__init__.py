"""The layout algebra: IntTuples, layouts, and the functions on them. Pure Python, no compiler needed."""

from tilewright.layout.basis import E, ScaledBasis, add_coordinates, basis_get, basis_value
from tilewright.layout.complement import complement
from tilewright.layout.compose import composition
from tilewright.layout.construct import (
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_image_mask,
    make_layout_like,
    make_ordered_layout,
    make_swizzle,
)
from tilewright.layout.coordinates import crd2crd, increment_coord
from tilewright.layout.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from tilewright.layout.dynamic import DynamicInt, divisibility
from tilewright.layout.facts import Fact, runtime_checks
from tilewright.layout.inttuple import (
    IntTuple,
    ceil_div,
    compact_col_major,
    compact_order,
    elem_less,
    equal,
    flatten_to_tuple,
    has_underscore,
    is_compatible,
    is_congruent,
    is_weakly_compatible,
    is_weakly_congruent,
    make_basis_like,
    prefix_product,
    product,
    product_each,
    product_like,
    repeat,
    repeat_as_tuple,
    repeat_like,
    round_up,
    shape_div,
    transform_leaf,
    tuple_cat,
    unflatten,
    unwrap,
    wrap,
)
from tilewright.layout.inttuple import is_compatible as compatible
from tilewright.layout.inttuple import is_congruent as congruent
from tilewright.layout.inttuple import is_weakly_compatible as weakly_compatible
from tilewright.layout.inttuple import is_weakly_congruent as weakly_congruent
from tilewright.layout.inverse import left_inverse, max_common_layout, max_common_vector, right_inverse
from tilewright.layout.layout import ComposedLayout, Layout, Swizzle, is_static
from tilewright.layout.modes import (
    append,
    append_ones,
    dice,
    flatten,
    get,
    group_modes,
    prepend,
    prepend_ones,
    replace,
    select,
    slice_,
    slice_and_offset,
    zip_modes,
)
from tilewright.layout.multiply import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from tilewright.layout.parsing import parse
from tilewright.layout.query import (
    cosize,
    crd2idx,
    depth,
    idx2crd,
    is_major,
    leading_dim,
    rank,
    shape,
    size,
    size_in_bytes,
    stride,
)
from tilewright.layout.recast import downcast, recast_layout, upcast
from tilewright.layout.simplify import coalesce, filter_, filter_zeros, nullspace
from tilewright.layout.simplify import filter_ as filter
from tilewright.layout.symbolic import SymInt, evaluate, sym_int, sym_int32, sym_int64
from tilewright.layout.tile import (
    domain_offset,
    inner_partition,
    local_partition,
    local_partition_and_offset,
    local_tile,
    local_tile_and_offset,
    make_layout_tv,
    outer_partition,
)
