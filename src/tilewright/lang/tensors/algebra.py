"""The layout algebra on tensors: the same functions, which keep the iterator and change the layout.

Functions of `tilewright.layout` that take a layout take a tensor here too. Offsets are computed in 64 bits where the
tensor needs them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from tilewright import layout as algebra
from tilewright.base.errors import CompileError
from tilewright.lang import leaves, trace
from tilewright.lang.diagnostics.argument_checks import ANY, INTEGER, NUMBER_TYPE, POSITIVE, STRUCTURED, instance, takes
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, as_numeric, number_type
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.lang.printing.runtime_print import assert_
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.swizzled_pointer import swizzled
from tilewright.lang.tensors.tensor import Tensor, map_leaves
from tilewright.layout import ComposedLayout, Fact, Layout
from tilewright.layout.inttuple import tuples
from tilewright.layout.tile import partition_tiler, picked

TENSOR, POINTER = instance("a tensor", Tensor), instance("a pointer", Pointer)
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
V = TypeVar("V", bound=Tensor | Layout | ComposedLayout)


class _Plain(Protocol[P, R_co]):
    """The parameters of a function of the algebra for editors; `loc` and `ip`, and what it converts, are taken too."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> R_co: ...


class _OnTensors(Protocol[P, R]):
    """The same for one that gives a tensor where it is given one, and a layout where it is given a layout."""

    @overload
    def __call__(self, target: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...
    @overload
    def __call__(self, target: Tensor, /, *args: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def __call__(self, target: Layout, /, *args: P.args, **kwargs: P.kwargs) -> Layout: ...
    @overload
    def __call__(self, target: Any, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


def _check(fact: Fact) -> None:
    """Check at run time what the algebra takes for granted; host code always does, device code with assertions."""
    holds = fact.left % fact.right == 0 if fact.kind == "multiple" else fact.left <= fact.right
    assert_(holds, f"a layout function relied on what does not hold: {fact}")


def _checked(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which may leave facts about runtime extents to the program where that checks them."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _facts_checked():
            return function(*args, **kwargs)

    return call


def _facts_checked() -> AbstractContextManager[None]:
    return algebra.runtime_checks(_check) if trace.tracing() and trace.current().checks else nullcontext()


def _with_first(function: Callable[..., R], change: Callable[[Any], Any]) -> Callable[..., R]:
    """`function`, whose first argument goes through `change`, by place or by its name; takes `loc` and `ip` too."""
    name = inspect.unwrap(function).__code__.co_varnames[0]

    @functools.wraps(function)
    def call(*args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> R:
        args, kwargs = to_python(args), _plain_names(kwargs)
        if args:
            return function(change(args[0]), *args[1:], **kwargs)
        if name in kwargs:
            return function(change(kwargs.pop(name)), **kwargs)
        return function(**kwargs)

    return call


def _on_tensors(function: Callable[Concatenate[Any, P], R], view: str = "") -> _OnTensors[P, R]:
    """`function` of a layout that gives a layout, on tensors too: `view` is its name among `layout.views`."""
    name = view or inspect.unwrap(function).__name__
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        args, kwargs = to_python(args), _plain_names(kwargs)
        target = args[0] if args else kwargs.get(next(iter(signature.parameters)))
        if not isinstance(target, Tensor):
            return function(*args, **kwargs)
        _, *rest = signature.bind(*args, **kwargs).args
        found: Any = cast(Any, function)(target.layout, *rest)
        return target.arranged(name, tuple(map(tuples, rest)), found)

    return cast(Any, call)


def _layout_of(target: Any) -> Any:
    if isinstance(target, Tensor):
        return target.layout
    return target.shape if hasattr(target, "shape") and not isinstance(target, (Layout, ComposedLayout)) else target


def _of_layout(function: Callable[P, R]) -> _Plain[P, R]:
    """`function` of a layout or shape that gives numbers, on tensors too."""
    return cast(Any, _with_first(function, _layout_of))


def _plain_names(given: dict[str, Any]) -> dict[str, Any]:
    return {name: to_python(value) for name, value in given.items()}


def _plain(function: Callable[P, R]) -> _Plain[P, R]:
    """`function` as it is, with the `loc` and `ip` that generated code passes."""

    @functools.wraps(function)
    def call(*args: Any, loc: object = None, ip: object = None, **kwargs: Any) -> Any:
        return function(*to_python(args), **_plain_names(kwargs))

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
coalesce = _on_tensors(algebra.coalesce)
filter = _on_tensors(algebra.filter_, "filter")
filter_zeros = _on_tensors(algebra.filter_zeros)
logical_product = _on_tensors(_checked(algebra.logical_product))
zipped_product = _on_tensors(_checked(algebra.zipped_product))
tiled_product = _on_tensors(_checked(algebra.tiled_product))
flat_product = _on_tensors(_checked(algebra.flat_product))
blocked_product = _on_tensors(_checked(algebra.blocked_product))
raked_product = _on_tensors(_checked(algebra.raked_product))
flatten = takes(STRUCTURED)(_on_tensors(algebra.flatten))
group_modes = _on_tensors(algebra.group_modes)
select = _on_tensors(algebra.select)
get = _on_tensors(algebra.get)
dice = _on_tensors(algebra.dice)
append = _on_tensors(algebra.append)
prepend = _on_tensors(algebra.prepend)
append_ones = _on_tensors(algebra.append_ones)
prepend_ones = _on_tensors(algebra.prepend_ones)
replace = _on_tensors(algebra.replace)
zip_modes = _on_tensors(algebra.zip_modes)

size = _of_layout(_of_threads(algebra.size))
cosize = _of_layout(algebra.cosize)
rank = takes(STRUCTURED)(_of_layout(algebra.rank))
depth = takes(STRUCTURED)(_of_layout(algebra.depth))
shape = _of_layout(algebra.shape)
stride = _of_layout(algebra.stride)
nullspace = _of_layout(algebra.nullspace)
is_bijective = _of_layout(algebra.is_bijective)
make_layout_like = _of_layout(algebra.make_layout_like)

crd2idx = _plain(algebra.crd2idx)
crd2crd = _plain(algebra.crd2crd)
idx2crd = _plain(algebra.idx2crd)
complement = _plain(algebra.complement)
right_inverse = _plain(algebra.right_inverse)
left_inverse = _plain(algebra.left_inverse)
make_ordered_layout = _plain(algebra.make_ordered_layout)
make_identity_layout = _plain(algebra.make_identity_layout)
make_composed_layout = _plain(algebra.make_composed_layout)
make_layout_tv = _plain(algebra.make_layout_tv)
make_swizzle = _plain(algebra.make_swizzle)
tile_to_shape = _plain(algebra.tile_to_shape)
tile_to_mma_shape = _plain(algebra.tile_to_mma_shape)
ceil_div = _plain(algebra.ceil_div)
round_up = _plain(algebra.round_up)
shape_div = _plain(algebra.shape_div)
product = _plain(algebra.product)
product_each = _plain(algebra.product_each)
product_like = _plain(algebra.product_like)
prefix_product = _plain(algebra.prefix_product)
repeat_like = _plain(algebra.repeat_like)
repeat = _plain(algebra.repeat)
repeat_as_tuple = _plain(algebra.repeat_as_tuple)
elem_less = _plain(algebra.elem_less)
equal = _plain(algebra.equal)
is_major = _plain(algebra.is_major)
leading_dim = _plain(algebra.leading_dim)
increment_coord = _plain(algebra.increment_coord)
upcast = _plain(algebra.upcast)
downcast = _plain(algebra.downcast)
recast_layout = _plain(algebra.recast_layout)
flatten_to_tuple = _plain(algebra.flatten_to_tuple)
unflatten = _plain(algebra.unflatten)
transform_leaf = _plain(algebra.transform_leaf)
basis_get = _plain(algebra.basis_get)
basis_value = _plain(algebra.basis_value)


def _shapes(function: Callable[P, R]) -> _Plain[P, R]:
    """`function` of two tuples, which takes their layouts and tensors too."""

    @functools.wraps(function)
    def call(a: Any, b: Any, *, loc: object = None, ip: object = None) -> Any:
        return cast(Any, function)(to_python(getattr(a, "shape", a)), to_python(getattr(b, "shape", b)))

    return cast(Any, call)


is_congruent = congruent = _shapes(algebra.is_congruent)
is_weakly_congruent = weakly_congruent = _shapes(algebra.is_weakly_congruent)
is_compatible = compatible = _shapes(algebra.is_compatible)
is_weakly_compatible = weakly_compatible = _shapes(algebra.is_weakly_compatible)


def _layouts(function: Callable[P, R]) -> _Plain[P, R]:
    """`function` of two layouts, which takes those of tensors too."""

    @functools.wraps(function)
    def call(a: Any, b: Any, *, loc: object = None, ip: object = None) -> Any:
        return cast(Any, function)(_layout_of(to_python(a)), _layout_of(to_python(b)))

    return cast(Any, call)


max_common_layout = _layouts(algebra.max_common_layout)
max_common_vector = _layouts(algebra.max_common_vector)


@takes(NUMBER_TYPE, ANY)
def size_in_bytes(dtype: type[Numeric], layout: Any, *, loc: object = None, ip: object = None) -> Any:
    """The bytes of a buffer of elements of `dtype` under `layout`, rounded up."""
    return algebra.size_in_bytes(number_type(dtype).width, layout)


def make_layout(shape: Any, *rest: Any, stride: Any = None, loc: object = None, ip: object = None) -> Layout:
    """A layout of a shape and stride; without stride column-major. Leaves may be MLIR integers."""
    parts = [_numbers(part) for part in (shape, *rest)]
    return algebra.make_layout(*parts, stride=_numbers(stride))


def _numbers(item: Any) -> Any:
    """MLIR integers as numbers of the language."""
    return map_leaves(lambda leaf: as_numeric(leaf) if leaves.is_dynamic(leaf) else leaf, item)


def is_static(x: Any, *, loc: object = None, ip: object = None) -> bool:
    """True when no part of the value is known only at run time."""
    if isinstance(x, Numeric):
        return x.is_static
    return bool(algebra.is_static(x.layout if isinstance(x, Tensor) else x))


@takes(STRUCTURED)
def slice_(src: Any, coord: Any, *, loc: object = None, ip: object = None) -> Any:
    """The modes marked None; a tensor also moves to where the others are fixed."""
    return src.slice(coord) if isinstance(src, Tensor) else algebra.slice_(src, coord)


def slice_and_offset(coord: Any, src: Any, *, loc: object = None, ip: object = None) -> tuple[Any, Any]:
    """The layout of the modes marked None, and the index of the others."""
    return algebra.slice_and_offset(coord, src.layout if isinstance(src, Tensor) else src)


def local_tile(input: V, tiler: Any, coord: Any, proj: Any = None, *, loc: object = None, ip: object = None) -> V:
    """The tile at `coord` of `input`, a tensor or layout, which `tiler` cuts into tiles.

    `None` in `coord` keeps that mode of the tiles: `local_tile(x, (8, 32), (row, None))` has the shape (8, 32, tiles).
    `proj` picks the modes of tiler and coordinate that `input` has: those where it is not `None`.
    """
    if not isinstance(input, Tensor):
        return algebra.local_tile(input, tiler, coord, proj)
    tiler, coord, proj = (tuples(item) for item in (tiler, coord, proj))
    if proj is not None:
        tiler, coord = algebra.dice(tiler, proj), picked(coord, proj)
    return cast(V, input.view("local_tile", tiler, map_leaves(input.widen, coord)))


def inner_partition(target: V, tiler: Any, coord: Any, *, loc: object = None, ip: object = None) -> V:
    """The tile at `coord` of `target` cut by `tiler`: `local_tile`."""
    return local_tile(target, tiler, coord)


def outer_partition(target: V, tiler: Any, coord: Any, *, loc: object = None, ip: object = None) -> V:
    """The element at `coord` of every tile of `target` cut by `tiler`."""
    if not isinstance(target, Tensor):
        return algebra.outer_partition(target, tiler, coord)
    return cast(V, target.view("local_partition", tuples(tiler), map_leaves(target.widen, tuples(coord))))


def local_partition(target: V, tiler: Any, index: Any, proj: Any = 1, *, loc: object = None, ip: object = None) -> V:
    """The elements of `target` that thread `index` gets when the threads of the layout `tiler` share it out.

    Neighbouring threads get neighbouring elements; `proj` picks the modes of `tiler` that `target` has.
    """
    if not isinstance(target, Tensor):
        return algebra.local_partition(target, tiler, index, proj)
    return cast(V, target.view("local_partition", *partition_tiler(tiler, target.widen(index), proj)))


def domain_offset(coord: Any, tensor: Any, *, loc: object = None, ip: object = None) -> Any:
    """`tensor` (or layout) with its origin moved to `coord`."""
    if not isinstance(tensor, Tensor):
        return algebra.domain_offset(coord, tensor)
    return tensor.view("domain_offset", map_leaves(tensor.widen, tuples(coord)))


def make_identity_tensor(shape: Any, *, loc: object = None, ip: object = None) -> Tensor:
    """A tensor whose element at a coordinate is that coordinate."""
    origin = map_leaves(lambda _: 0, shape)
    return Tensor(origin, algebra.make_identity_layout(shape), None)


@takes(POINTER, ANY, NUMBER_TYPE)
def recast_ptr(
    ptr: Pointer,
    swizzle_: Any = None,
    dtype: type[Numeric] | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> Pointer:
    """The same address as elements of `dtype`, its bytes under `swizzle_` (`swizzled_pointer`), or under none."""
    moved = swizzled(ptr, swizzle_)
    return moved if dtype is None else moved.recast(dtype)


@takes(TENSOR, NUMBER_TYPE)
def recast_tensor(
    src: Tensor, dtype: type[Numeric], swizzle_: Any = None, *, loc: object = None, ip: object = None
) -> Tensor:
    """The same memory as elements of `dtype`; the layout counts the new elements. CuTe DSL keeps `swizzle_` unused."""
    return src.recast(dtype)


@takes(INTEGER, POSITIVE)
def assume(src: Any, divby: int | None = None, *, loc: object = None, ip: object = None) -> Any:
    """`src`, with the caller's promise that it is a multiple of `divby`, on which wide accesses may rely."""
    if divby is None or isinstance(src, int):
        if isinstance(src, int) and divby and src % divby:
            raise CompileError(f"{src} is not a multiple of {divby}", location=user_location())
        return src
    return src.assuming(divisibility=divby)
