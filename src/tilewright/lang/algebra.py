"""The layout algebra on tensors: the same functions, which keep the iterator and change the layout.

Functions of `tilewright.layout` that take a layout take a tensor here too. Offsets are computed in 64 bits where the
tensor needs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.lang import leaves, trace
from tilewright.lang.foreign import plain
from tilewright.lang.kinds import ANY, INTEGER, NUMBER_TYPE, POSITIVE, STRUCTURED, instance, takes
from tilewright.lang.locations import user_location
from tilewright.lang.numeric import Numeric, as_numeric, number_type
from tilewright.lang.pointer import Pointer
from tilewright.lang.printing import assert_
from tilewright.lang.swizzled import swizzled
from tilewright.lang.tensor import Tensor, map_leaves
from tilewright.layout import ComposedLayout, Fact, Layout

TENSOR, POINTER = instance("a tensor", Tensor), instance("a pointer", Pointer)
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class _Plain(Protocol[P, R_co]):
    """The parameters of a function of the algebra for editors; `loc` and `ip`, and what it converts, are taken too."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R_co: ...


class _OnTensors(Protocol[P, R_co]):
    """The same for one that gives a tensor where it is given one."""

    @overload
    def __call__(self, target: Tensor, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...
    @overload
    def __call__(self, target: Tensor, *args: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self, target: Any, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> R_co: ...


def _check(fact: Fact) -> None:
    """Check at run time what the algebra takes for granted; host code always does, device code with assertions."""
    holds = fact.left % fact.right == 0 if fact.kind == "multiple" else fact.left <= fact.right
    assert_(holds, f"a layout function relied on what does not hold: {fact}")


def _checked(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which may leave facts about runtime extents to the program where that checks them."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not trace.tracing() or not trace.current().checks:
            return function(*args, **kwargs)
        with algebra.runtime_checks(_check):
            return function(*args, **kwargs)

    return call


def _on_tensors(function: Callable[Concatenate[Any, P], R]) -> _OnTensors[P, R]:
    """`function` of a layout that gives a layout, on tensors too."""

    @functools.wraps(function)
    def call(target: Any, *args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        args, kwargs = plain(args), _plain_names(kwargs)
        if not isinstance(target, Tensor):
            return function(plain(target), *args, **kwargs)
        layout: Any = function(target.layout, *args, **kwargs)
        return Tensor(target.iterator, layout, target._element_type)

    return cast(Any, call)


def _of_layout(function: Callable[P, R]) -> _Plain[P, R]:
    """`function` of a layout or shape that gives numbers, on tensors too."""

    @functools.wraps(function)
    def call(target: Any, *args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        target, args, kwargs = plain(target), plain(args), _plain_names(kwargs)
        if isinstance(target, Tensor):
            target = target.layout
        elif hasattr(target, "shape") and not isinstance(target, (Layout, ComposedLayout)):
            target = target.shape
        return function(target, *args, **kwargs)

    return cast(Any, call)


def _plain_names(given: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in given.items()}


def _plain(function: Callable[P, R]) -> _Plain[P, R]:
    """`function` as it is, with the `loc` and `ip` that generated code passes."""

    @functools.wraps(function)
    def call(*args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        return function(*plain(args), **_plain_names(kwargs))

    return cast(Any, call)


def _inside(function: F) -> F:
    """Composition, refused where a layout reaches past the end of a tensor: there is no such element."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and isinstance(args[0], Tensor) and isinstance(args[1], Layout):
            _check_inside(args[0], args[1])
        return function(*args, **kwargs)

    return cast(F, call)


def _check_inside(tensor: Tensor, layout: Layout) -> None:
    if not (algebra.is_static(tensor.layout.shape) and algebra.is_static(layout)):
        return
    reached, held = algebra.cosize(layout), algebra.size(tensor.layout)
    if isinstance(reached, int) and reached > held:
        raise CompileError(
            "a layout reaches past the end of the tensor that it is composed with",
            location=user_location(3),
            values={"tensor": f"{tensor.layout}   {held} elements", "layout": f"{layout}   index {reached - 1}"},
            hint="give the tile as many elements as the thread-value layout has",
        )


def _of_threads(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of a layout, of a tiled operation that of its threads."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        threads = getattr(args[0], "__tw_threads__", None) if args else None
        return function(*args, **kwargs) if threads is None else function(threads, *args[1:], **kwargs)

    return cast(Any, call)


composition = _inside(_on_tensors(_checked(algebra.composition)))
logical_divide = _on_tensors(_checked(algebra.logical_divide))
zipped_divide = _on_tensors(_checked(algebra.zipped_divide))
tiled_divide = _on_tensors(_checked(algebra.tiled_divide))
flat_divide = _on_tensors(_checked(algebra.flat_divide))
_coalesce = _on_tensors(algebra.coalesce)
_filter = _on_tensors(algebra.filter_)
_filter_zeros = _on_tensors(algebra.filter_zeros)
logical_product = _on_tensors(_checked(algebra.logical_product))
zipped_product = _on_tensors(_checked(algebra.zipped_product))
tiled_product = _on_tensors(_checked(algebra.tiled_product))
flat_product = _on_tensors(_checked(algebra.flat_product))
blocked_product = _on_tensors(_checked(algebra.blocked_product))
raked_product = _on_tensors(_checked(algebra.raked_product))
flatten = takes(STRUCTURED)(_on_tensors(algebra.flatten))
group_modes = _on_tensors(algebra.group_modes)
select = _on_tensors(algebra.select)
append = _on_tensors(algebra.append)
prepend = _on_tensors(algebra.prepend)
append_ones = _on_tensors(algebra.append_ones)
prepend_ones = _on_tensors(algebra.prepend_ones)

size = _of_layout(_of_threads(algebra.size))
cosize = _of_layout(algebra.cosize)
rank = takes(STRUCTURED)(_of_layout(algebra.rank))
depth = takes(STRUCTURED)(_of_layout(algebra.depth))
shape = _of_layout(algebra.shape)
stride = _of_layout(algebra.stride)
crd2idx = _plain(algebra.crd2idx)
idx2crd = _plain(algebra.idx2crd)
complement = _plain(algebra.complement)
right_inverse = _plain(algebra.right_inverse)
left_inverse = _plain(algebra.left_inverse)
max_common_layout = _plain(algebra.max_common_layout)
make_ordered_layout = _plain(algebra.make_ordered_layout)
make_identity_layout = _plain(algebra.make_identity_layout)
make_composed_layout = _plain(algebra.make_composed_layout)
make_layout_tv = _plain(algebra.make_layout_tv)
make_swizzle = _plain(algebra.make_swizzle)
tile_to_shape = _plain(algebra.tile_to_shape)
ceil_div = _plain(algebra.ceil_div)
round_up = _plain(algebra.round_up)
shape_div = _plain(algebra.shape_div)
product = _plain(algebra.product)
product_each = _plain(algebra.product_each)
product_like = _plain(algebra.product_like)
repeat_like = _plain(algebra.repeat_like)
repeat = _plain(algebra.repeat)
repeat_as_tuple = _plain(algebra.repeat_as_tuple)


@takes(NUMBER_TYPE, ANY)
def size_in_bytes(dtype: type[Numeric], layout: Any, *, loc: object = None, ip: object = None) -> Any:
    """The bytes of a buffer of elements of `dtype` under `layout`, rounded up."""
    return algebra.size_in_bytes(number_type(dtype).width, layout)


elem_less = _plain(algebra.elem_less)
is_congruent = _plain(algebra.is_congruent)
is_weakly_congruent = _plain(algebra.is_weakly_congruent)
increment_coord = _plain(algebra.increment_coord)
upcast = _plain(algebra.upcast)
downcast = _plain(algebra.downcast)
recast_layout = _plain(algebra.recast_layout)


def coalesce(target: Any, *, target_profile: Any = None, loc: object = None, ip: object = None) -> Any:
    """The layout with fewest modes that has the same value at each index; see `tilewright.layout.coalesce`."""
    return _coalesce(target, target_profile)


def filter(target: Any, *, target_profile: Any = None, loc: object = None, ip: object = None) -> Any:
    """Without the modes of stride 0 or extent 1; see `tilewright.layout.filter_`."""
    return _filter(target, target_profile)


def filter_zeros(target: Any, *, target_profile: Any = None, loc: object = None, ip: object = None) -> Any:
    """Modes of stride 0 get extent 1; see `tilewright.layout.filter_zeros`."""
    return _filter_zeros(target, target_profile)


def make_layout(shape: Any, *rest: Any, stride: Any = None, loc: object = None, ip: object = None) -> Layout:
    """A layout of a shape and stride; without stride column-major. Leaves may be MLIR integers."""
    parts = [_numbers(part) for part in (shape, *rest)]
    return algebra.make_layout(*parts, stride=_numbers(stride))


def _numbers(item: Any) -> Any:
    """MLIR integers as numbers of the language."""
    return map_leaves(lambda leaf: as_numeric(leaf) if leaves.is_dynamic(leaf) else leaf, item)


def make_layout_like(source: Any, *, loc: object = None, ip: object = None) -> Any:
    """A compact layout of the shape of `source`, in the order of its strides."""
    return algebra.make_layout_like(source.layout if isinstance(source, Tensor) else source)


def get(target: Any, mode: Any, *, loc: object = None, ip: object = None) -> Any:
    """One mode of a tuple, layout or tensor."""
    if isinstance(target, Tensor):
        return Tensor(target.iterator, algebra.get(target.layout, mode), target._element_type)
    return algebra.get(target, mode)


def is_static(value: Any, *, loc: object = None, ip: object = None) -> bool:
    """True when no part of the value is known only at run time."""
    if isinstance(value, Numeric):
        return value.is_static
    return bool(algebra.is_static(value.layout if isinstance(value, Tensor) else value))


@takes(STRUCTURED)
def slice_(target: Any, coord: Any, *, loc: object = None, ip: object = None) -> Any:
    """The modes marked None; a tensor also moves to where the others are fixed."""
    return target.slice(coord) if isinstance(target, Tensor) else algebra.slice_(target, coord)


def dice(target: Any, dicer: Any, *, loc: object = None, ip: object = None) -> Any:
    """The modes that are not None in `dicer`."""
    return algebra.dice(target, dicer)


def local_tile(target: Any, tiler: Any, coord: Any, proj: Any = None, *, loc: object = None, ip: object = None) -> Any:
    """The tile at `coord` of `target` cut by `tiler`; see `tilewright.layout.local_tile`."""
    if not isinstance(target, Tensor):
        return algebra.local_tile(target, tiler, coord, proj)
    layout, offset = algebra.local_tile_and_offset(target.layout, tiler, map_leaves(target.widen, coord), proj)
    return Tensor(target.advance(offset), layout, target._element_type)


def local_partition(
    target: Any, tiler: Any, index: Any, proj: Any = 1, *, loc: object = None, ip: object = None
) -> Any:
    """What thread `index` of the layout `tiler` gets of `target`."""
    if not isinstance(target, Tensor):
        return algebra.local_partition(target, tiler, index, proj)
    layout, offset = algebra.local_partition_and_offset(target.layout, tiler, target.widen(index), proj)
    return Tensor(target.advance(offset), layout, target._element_type)


def domain_offset(coord: Any, target: Any, *, loc: object = None, ip: object = None) -> Any:
    """`target` seen from `coord`."""
    if not isinstance(target, Tensor):
        return algebra.domain_offset(coord, target)
    layout, offset = algebra.domain_offset(map_leaves(target.widen, coord), target.layout)
    return Tensor(target.advance(offset), layout, target._element_type)


def make_identity_tensor(shape_: Any, *, loc: object = None, ip: object = None) -> Tensor:
    """A tensor whose element at a coordinate is that coordinate."""
    origin = map_leaves(lambda _: 0, shape_)
    return Tensor(origin, algebra.make_identity_layout(shape_), None)


@takes(POINTER, ANY, NUMBER_TYPE)
def recast_ptr(
    ptr: Pointer,
    swizzle_: Any = None,
    dtype: type[Numeric] | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> Pointer:
    """The same address as elements of `dtype`, its bytes under `swizzle_` where one is given (see `lang.swizzled`)."""
    moved = ptr if swizzle_ is None else swizzled(ptr, swizzle_)
    return moved if dtype is None else moved.recast(dtype)


@takes(TENSOR, NUMBER_TYPE)
def recast_tensor(source: Tensor, dtype: type[Numeric], *, loc: object = None, ip: object = None) -> Tensor:
    """The same memory as elements of `dtype`; the layout counts the new elements."""
    if dtype.width == source.element_type.width:
        return Tensor(source.iterator.recast(dtype), source.layout, dtype)
    layout = algebra.recast_layout(dtype.width, source.element_type.width, source.layout)
    return Tensor(source.iterator.recast(dtype), layout, dtype)


@takes(INTEGER, POSITIVE)
def assume(value: Any, divby: int | None = None, *, loc: object = None, ip: object = None) -> Any:
    """`value`, which the caller knows to be a multiple of `divby`."""
    if divby is None or isinstance(value, int):
        if isinstance(value, int) and divby and value % divby:
            raise CompileError(f"{value} is not a multiple of {divby}", location=user_location())
        return value
    return value.known(divisibility=divby)
