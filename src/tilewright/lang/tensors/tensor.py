"""Tensors: memory with a layout.

A tensor is an iterator and a layout. The iterator is a `Pointer`, or a coordinate for tensors of coordinates
(`make_identity_tensor`). A view of memory is one operation, `cute.view`, which names the function of the algebra; where
it begins is computed by the pass `expand-views`. Views of coordinates are computed while tracing.
"""

from __future__ import annotations

import builtins
import itertools
import math
from abc import ABCMeta
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, layout_text, types
from tilewright.lang import leaves
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.implicit_conversion import as_element, check_elements
from tilewright.lang.numbers.numeric import Boolean, Int32, Int64, Integer, Numeric, is_number, python_int
from tilewright.lang.tensors.coordinates import coord_text, is_negative, may_be_inside
from tilewright.lang.tensors.element_limits import check_unrolled
from tilewright.lang.tensors.pointer import AddressSpace, Held, Pointer, byte_step
from tilewright.lang.tensors.swizzled_pointer import SwizzledPointer, base_of
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    add_coordinates,
    cosize,
    divisibility,
    is_static,
    size,
    views,
)
from tilewright.layout.coordinates import fits_31_bits, idx2crd
from tilewright.layout.dynamic import DynamicInt, Multiple, add, is_multiple

if TYPE_CHECKING:
    from mlir import ir


class Tensor(metaclass=ABCMeta):  # noqa: B024  (an ABCMeta lets tensors of the host register)
    """Elements of `element_type` at `iterator`, arranged by `layout`.

    `t[i]` and `t[i, j]` read or write one element, and `t[i, None]` is a view; indices are Python ints or integers of
    the language. `t.load()` and `t.store(v)` move all elements at once, as a `TensorSSA`.
    """

    def __init__(
        self,
        iterator: Any,
        layout: Layout | ComposedLayout,
        element_type: type[Numeric] | None,
        held: Held | None = None,
    ) -> None:
        self.iterator = iterator
        self.layout = layout
        self._element_type = element_type
        self._held = held

    @property
    def is_coordinates(self) -> bool:
        """True when the elements are coordinates, not memory."""
        return not isinstance(self.iterator, Pointer)

    @property
    def element_type(self) -> type[Numeric]:
        if self._element_type is None:
            raise CompileError("a tensor of coordinates has no element type", location=user_location())
        return self._element_type

    dtype = element_type
    _dtype = element_type  # a public kernel reads it

    @property
    def memspace(self) -> AddressSpace:
        return self._pointer("memspace").memspace

    @property
    def type(self) -> str:
        """What is known of the tensor while compiling, as text."""
        return str(self)

    @property
    def shape(self) -> Any:
        return self.layout.shape

    @property
    def stride(self) -> Any:
        return self.layout.stride

    @property
    def leading_dim(self) -> int | None:
        """The mode of stride 1, None when there is none."""
        strides = self.stride if isinstance(self.stride, tuple) else (self.stride,)
        found = [mode for mode, stride in enumerate(strides) if isinstance(stride, int) and stride == 1]
        return found[0] if found else None

    def __getitem__(self, coord: Any, *, loc: object = None, ip: object = None) -> Any:
        if has_slice(coord):
            return self.slice(coord)
        if self.is_coordinates:
            return add_coordinates(self.iterator, self.layout(coord))
        self._check_coord(coord)
        dtype = self.element_type
        text, leaves32, leaves64 = layout_text.encode(_leaves(coord))
        groups = ((self.value,), _values(leaves32), _values(leaves64))
        op = build.cute("load", (dtype.mlir_type,), groups, coord=build.string(text))
        return dtype.from_ir(op.results[0])

    def __setitem__(self, coord: Any, value: Any, *, loc: object = None, ip: object = None) -> None:
        if self.is_coordinates:
            raise CompileError("a tensor of coordinates cannot be written", location=user_location())
        if has_slice(coord):
            self.slice(coord).store(value)
            return
        self._check_coord(coord)
        number = self._element(value)
        text, leaves32, leaves64 = layout_text.encode(_leaves(coord))
        groups = ((number,), (self.value,), _values(leaves32), _values(leaves64))
        build.cute("store", (), groups, coord=build.string(text))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if is_number(other) or isinstance(other, (Tensor, TensorSSA)):
            raise CompileError(
                "a tensor is memory and compares with nothing",
                location=user_location(),
                values={"tensor": self, "other": leaves.describe(other)},
                hint="`t.load() == x` compares element by element, `t[i] == x` one of them",
            )
        return NotImplemented

    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Any]:
        """The elements in colexicographic order, while tracing; the size must be known then."""
        return iter([self[index] for index in range(self._static_size("iteration"))])

    def slice(self, coord: Any) -> Tensor:
        """The view that keeps the modes marked None and fixes the others."""
        if is_negative(coord):
            raise self._outside(coord)
        divided = _divided(coord, self.shape) if needs_wide_offsets(self) else coord
        return self.view("slice", map_leaves(self.widen, divided))

    def view(self, algebra: str, *arguments: Any) -> Tensor:
        """The view `algebra(self, *arguments)`, see `tilewright.layout.views`."""
        cut = views.cut(self.layout, algebra, arguments)
        if self.is_coordinates:
            return Tensor(add_coordinates(self.iterator, cut.start), cut.kept, self._element_type)
        return _View(self, cut, self.element_type).made(algebra, arguments)

    def arranged(self, algebra: str, arguments: tuple[Any, ...], layout: Any) -> Tensor:
        """The view `algebra(self, *arguments)` that begins where the tensor does; `layout` is what it gives."""
        if self.is_coordinates:
            return Tensor(self.iterator, layout, self._element_type)
        return _View(self, views.Cut(layout), self.element_type).made(algebra, arguments)

    def recast(self, dtype: builtins.type[Numeric]) -> Tensor:
        """The same memory as elements of `dtype`; the layout counts the new elements."""
        bits = dtype.width, self.element_type.width
        if isinstance(self.iterator, SwizzledPointer):
            return Tensor(self.iterator.recast(dtype), views.cut(self.layout, "recast", bits).kept, dtype)
        return _View(self, views.cut(self.layout, "recast", bits), dtype).made("recast", bits)

    def widen(self, index: Any) -> Any:
        """An index in 64 bits where offsets may not fit 31, see `needs_wide_offsets`; a known one as Python's."""
        if isinstance(index, Integer) and index.is_static:
            return int(index.value)
        if isinstance(index, Integer) and index.width < 64 and needs_wide_offsets(self):
            return index.widened()
        return index

    def load(self, *, loc: object = None, ip: object = None) -> TensorSSA:
        """All elements as a register value."""
        count = self._static_size("load")
        if count == 0:
            raise CompileError(
                "a tensor of no elements has none to load",
                location=user_location(),
                values={"tensor": self},
                hint="guard it by a compile-time `if const_expr(cute.size(t) > 0)`",
            )
        type_ = types.vector(count, self.element_type.facts.name)
        value = build.cute("load_tensor", (type_,), ((self.value,),)).results[0]
        return TensorSSA(value, self.shape, self.element_type)

    def store(self, value: Any, *, loc: object = None, ip: object = None) -> None:
        """Write all elements: from a TensorSSA of the same shape, or one number to all."""
        count = self._static_size("store")
        if not isinstance(value, TensorSSA):
            self.fill(value)
            return
        check_elements(value.dtype, self.element_type)
        converted = value.broadcast_to(self.shape) if value.size != count else value
        converted = converted.to(self.element_type)
        build.cute("store_tensor", (), ((converted.value,), (self.value,)))

    def fill(self, value: Any, *, loc: object = None, ip: object = None) -> None:
        """Write one number to all elements."""
        if self._static_size("fill") == 0:
            return
        build.cute("fill", (), ((self._element(value),), (self.value,)))

    @property
    def value(self) -> ir.Value:
        """The tensor as a value: an argument, a view, or a `cute.make_tensor`, which is made where it is used."""
        if self._held is not None:
            return self._held.value
        pointer, placed = base_of(self._pointer("a memory access")), placed_layout(self)
        type_ = _tensor_type(self.element_type, pointer.memspace, placed, pointer.alignment)
        groups = ((pointer.value,), *map(_values, layout_text.encode(placed)[1:]))
        return build.cute("make_tensor", (type_,), groups).results[0]

    def runtime_leaves(self) -> list[Any]:
        """The integers known only at run time in its layout, and in the coordinate that it begins at."""
        own = [] if isinstance(self.iterator, Pointer) else _dynamic_leaves(self.iterator)
        return own + _dynamic_leaves(self.layout)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return _dynamic_values(self.iterator) + _dynamic_values(self.layout) if self.is_coordinates else [self.value]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> Tensor:
        if self.is_coordinates:
            source = iter(values)
            iterator = map_leaves(lambda leaf: _refill(leaf, source), self.iterator)
            return Tensor(iterator, _refill_layout(self.layout, source), self._element_type)
        return _with_leaves(Held(values[0], tensor=True), self)

    def __tw_meet__(self, other: Any) -> Tensor | None:
        """A tensor of what is known of both pointers, where nothing else tells the tensors apart."""
        met = self.iterator.__tw_meet__(other.iterator) if self._arranged_like(other) else None
        return None if met is None else Tensor(met, self.layout, self._element_type)

    def __tw_as__(self, weaker: Any) -> Tensor | None:
        """This tensor with a pointer as little known as that of `weaker`."""
        iterator = self.iterator.__tw_as__(weaker.iterator) if self._arranged_like(weaker) else None
        return None if iterator is None else Tensor(iterator, self.layout, self._element_type)

    def _arranged_like(self, other: Any) -> bool:
        pointers = (self.iterator, other.iterator)
        if type(pointers[0]) is not type(pointers[1]) or not all(isinstance(item, Pointer) for item in pointers):
            return False
        return layout_text.encode(self.layout)[0] == layout_text.encode(other.layout)[0]

    def __tw_structure__(self) -> tuple[str, ...]:
        """What may not change in a region: everything but the runtime leaves."""
        pointer = isinstance(self.iterator, Pointer)
        iterator = self.iterator.__tw_structure__() if pointer else layout_text.encode(self.iterator)[0]
        return iterator, layout_text.encode(self.layout)[0], str(self._element_type)

    def __str__(self) -> str:
        return f"tensor<{_iterator_text(self.iterator)} o {self.layout}>"

    __repr__ = __str__

    def _pointer(self, what: str) -> Pointer:
        if not isinstance(self.iterator, Pointer):
            raise CompileError(f"a tensor of coordinates has no memory for {what}", location=user_location())
        return self.iterator

    def _element(self, value: Any) -> ir.Value:
        if isinstance(value, TensorSSA):
            value = value[0] if value.size == 1 else value
        if not is_number(value) and leaves.is_dynamic(value) and value.type == self.element_type.mlir_type:
            value = self.element_type.from_ir(value)  # an MLIR value of user code
        if not is_number(value):
            raise CompileError(
                f"expected a number to store, got {type(value).__name__}",
                location=user_location(),
                values={"tensor": self, "value": leaves.describe(value)},
            )
        return as_element(value, self.element_type).ir_value()

    def _static_size(self, what: str) -> int:
        count = _static_size(self.layout)
        if count is None:
            raise CompileError(
                f"{what} of a tensor whose size is known only at run time",
                location=user_location(),
                values={"tensor": self},
                hint="tile it first, so that each thread moves a static number of elements",
            )
        check_unrolled(count, what, self)
        return count

    def _check_coord(self, coord: Any) -> None:
        rank = len(self.shape) if isinstance(self.shape, tuple) else 1
        if isinstance(coord, tuple) and len(coord) != rank:
            raise CompileError(
                f"{len(coord)} indices for a tensor of rank {rank}",
                location=user_location(),
                values={"tensor": self, "indices": coord_text(coord)},
                hint="give one index for each mode, or one linear index",
            )
        if not may_be_inside(coord, self.shape):
            raise self._outside(coord)

    def _outside(self, coord: Any) -> CompileError:
        return CompileError(
            "an index is outside the tensor",
            location=user_location(),
            values={"tensor": self, "index": coord_text(coord)},
            hint="indices count from 0; negative ones do not count from the end",
        )


class _View:
    """A view of a tensor in memory, `cut` out of it, whose elements are of type `dtype`."""

    def __init__(self, source: Tensor, cut: views.Cut, dtype: type[Numeric]) -> None:
        self.source = source
        self.dtype = dtype
        self.kept = cut.kept
        self.start = views.start_divisor(cut)
        self.before = placed_layout(source)
        # A swizzle leaves multiples of its period alone: the pointer moves by them, what is less moves inside it.
        before = self.before
        self.inside = isinstance(before, ComposedLayout) and not is_multiple(self.start, before.inner.period)

    def made(self, algebra: str, arguments: tuple[Any, ...]) -> Tensor:
        """The operation, and the tensor that it gives."""
        align = base_of(self.source.iterator).alignment
        if not self.inside:
            align = math.gcd(align, byte_step(self.start, self.dtype.width))
        placed = self._placed()
        given, *taken = layout_text.encode_arguments(arguments)
        _, *left = layout_text.encode(views.outer_of(placed))
        type_ = _tensor_type(self.dtype, self.source.memspace, placed, align)
        op = build.cute(
            "view",
            (type_,),
            ((self.source.value,), *map(_values, (*taken, *left))),
            algebra=build.string(algebra),
            arguments=build.string(given),
            moves=build.string("swizzle" if self.inside else "pointer"),
            width=build.i32(64 if needs_wide_offsets(self.source) else 32),
        )
        held = Held(op.results[0], tensor=True)
        if isinstance(placed, ComposedLayout) and isinstance(placed.offset, Multiple):
            placed = ComposedLayout(placed.inner, _leaf(held, 0, placed.offset), placed.outer)
        return _of_value(held, self.source, placed, self.dtype, align)

    def _placed(self) -> Layout | ComposedLayout:
        """The layout of the view; its offset inside the swizzle is a `Multiple` where it is left to `expand-views`."""
        if isinstance(self.kept, ComposedLayout) or isinstance(self.before, Layout):
            return self.kept
        offset = self.before.offset
        if self.inside:
            offset = add(self.start, views.known(offset))
        return ComposedLayout(self.before.inner, offset, self.kept)


def placed_layout(tensor: Tensor) -> Layout | ComposedLayout:
    """The layout under the swizzle of the pointer, if it has one.

    Raises:
        CompileError: it is composed of something else than a swizzle and a layout.
    """
    pointer, layout = tensor.iterator, tensor.layout
    placed = pointer.layout(layout) if isinstance(pointer, SwizzledPointer) else layout
    if isinstance(placed, ComposedLayout) and not (
        isinstance(placed.inner, Swizzle) and isinstance(placed.outer, Layout)
    ):
        raise CompileError(
            "memory is addressed by a layout, or by a swizzle of one",
            location=user_location(),
            values={"layout": placed},
        )
    return placed


def _of_value(held: Held, like: Tensor, placed: Layout | ComposedLayout, dtype: type[Numeric], align: int) -> Tensor:
    """The tensor that is the value `held`, with its swizzle where `like` has it: at the pointer or in the layout."""
    pointer = Pointer(held, dtype, like.memspace, align)
    if isinstance(like.iterator, SwizzledPointer) and isinstance(placed, ComposedLayout):
        swizzled = SwizzledPointer(pointer, like.iterator.swizzle, placed.offset)
        return Tensor(swizzled, placed.outer, dtype, held)
    return Tensor(pointer, placed, dtype, held)


def _tensor_type(dtype: type[Numeric], space: AddressSpace, placed: Layout | ComposedLayout, align: int) -> ir.Type:
    return types.tensor(dtype.facts.name, str(space), layout_text.encode(placed)[0], align)


def _leaf(held: Held, index: int, like: DynamicInt) -> Integer:
    """Leaf number `index` of a tensor's layout, of which is known what is known of `like`."""
    cls: type[Integer] = Int64 if like.width == 64 else Int32
    op = build.cute("leaf", (cls.mlir_type,), ((held.value,),), index=build.i32(index))
    made = cls.from_ir(op.results[0])
    made.divisibility, made.plain = max(like.divisibility, 1), getattr(like, "plain", False)
    made.bound = None if getattr(like, "greatest", None) is None else cls.max  # as little negative, but of other size
    return made


def _with_leaves(held: Held, like: Tensor) -> Tensor:
    """A tensor like another, whose value is `held`."""
    placed = placed_layout(like)
    numbers = itertools.count()

    def leaf(item: Any) -> Any:
        return _leaf(held, next(numbers), item) if isinstance(item, DynamicInt) else item

    def filled(layout: Layout) -> Layout:
        return Layout(map_leaves(leaf, layout.shape), map_leaves(leaf, layout.stride))

    if isinstance(placed, ComposedLayout):
        fresh: Layout | ComposedLayout = ComposedLayout(placed.inner, leaf(placed.offset), filled(placed.outer))
    else:
        fresh = filled(placed)
    return _of_value(held, like, fresh, like.element_type, base_of(like.iterator).alignment)


def make_tensor(iterator: Any, layout: Any, *, loc: object = None, ip: object = None) -> Tensor:
    """A tensor at `iterator` (a Pointer or a coordinate); `layout` may be a bare shape.

    A pointer that was made of an address is the place of the first element, whatever the layout's offset is: public
    kernels compute where a thread's part of swizzled memory begins, and take the layout of a part.
    """
    if isinstance(iterator, (Layout, ComposedLayout)):
        raise CompileError(
            "make_tensor takes the pointer first, then the layout",
            location=user_location(),
            values={"first": iterator, "second": layout},
            hint="write make_tensor(pointer, layout)",
        )
    if not isinstance(layout, (Layout, ComposedLayout)):
        layout = Layout(layout)
    if isinstance(iterator, Tensor):
        iterator = iterator.iterator
    if isinstance(layout, ComposedLayout) and _is_first_element(iterator, layout):
        step = math.gcd(divisibility(layout.offset), 1 << layout.inner.base)
        iterator = iterator + (-layout.inner(layout.offset)).assuming(divisibility=step)
    return Tensor(iterator, layout, iterator.dtype if isinstance(iterator, Pointer) else None)


def _is_first_element(iterator: Any, layout: ComposedLayout) -> bool:
    """Whether a pointer is where the first element of a swizzled part lies, not where the swizzled memory begins."""
    if not isinstance(layout.inner, Swizzle) or isinstance(layout.offset, int) or not isinstance(iterator, Pointer):
        return False
    return not isinstance(iterator, SwizzledPointer) and iterator.is_of_address


def has_slice(coord: Any) -> bool:
    """True when a coordinate keeps a mode (None)."""
    return coord is None or (isinstance(coord, tuple) and any(has_slice(part) for part in coord))


def map_leaves(function: Callable[[Any], Any], item: Any) -> Any:
    """`item` with `function` applied to each entry of its nested tuples."""
    if isinstance(item, tuple):
        return tuple(map_leaves(function, part) for part in item)
    return function(item)


def needs_wide_offsets(tensor: Tensor) -> bool:
    """True unless every element offset of the tensor, or part of a coordinate, is known to fit 31 bits."""
    if tensor.is_coordinates:
        return not fits_31_bits(tensor.shape, tensor.stride)
    if tensor.memspace in (AddressSpace.smem, AddressSpace.rmem):
        return False
    layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
    return not is_static(layout) or cosize(layout) >= 1 << 31


def _static_size(layout: Layout | ComposedLayout) -> int | None:
    count = size(layout)
    return count if isinstance(count, int) else None


def _leaves(coord: Any) -> Any:
    """A coordinate with integers of the language as Int32 or Int64 and Python ints as they are."""
    return map_leaves(_index, coord)


def _index(index: Any) -> Any:
    if isinstance(index, int) and not isinstance(index, bool):
        return index
    if isinstance(index, Numeric) and index.is_static:
        return int(index.value)
    if isinstance(index, Integer):
        return index if index.width in (32, 64) else Int64(index)
    if isinstance(index, (Boolean, bool)):
        return Int64(index)
    whole = python_int(index)
    if whole is not None:
        return whole
    raise CompileError(
        f"a tensor is indexed by integers, not by {type(index).__name__}",
        location=user_location(),
        values={"index": index},
        hint=_INDEX_HINTS.get(type(index), "indices are integers; `None` keeps a mode whole"),
    )


_INDEX_HINTS: dict[type, str] = {
    slice: "`None` keeps a mode whole: t[i, None]; `cute.local_tile` takes a part of one",
    str: "a tensor has no fields: t[i, j] is one element; fields have structs, `storage.name`, and dictionaries",
}


def _values(leaves: list[Any]) -> list[ir.Value]:
    return [leaf.ir_value() for leaf in leaves]


def _dynamic_values(item: Any) -> list[ir.Value]:
    return [leaf.ir_value() for leaf in _dynamic_leaves(item)]


def _dynamic_leaves(item: Any) -> list[Any]:
    _, leaves32, leaves64 = layout_text.encode(item)
    return leaves32 + leaves64


def _refill_layout(layout: Any, source: Any) -> Any:
    """The layout with its runtime leaves taken from `source`: the i32 ones first, then the i64 ones."""
    text, leaves32, leaves64 = layout_text.encode(layout)
    fresh = {32: [_extent(leaf, source) for leaf in leaves32], 64: [_extent(leaf, source) for leaf in leaves64]}
    queues = {width: iter(items) for width, items in fresh.items()}
    return layout_text.decode_layout(text, lambda width, divisibility: next(queues[width]))


def _refill(leaf: Any, source: Any) -> Any:
    if not isinstance(leaf, Integer):
        return leaf
    fresh = type(leaf).from_ir(next(source))
    fresh.divisibility, fresh.plain = leaf.divisibility, leaf.plain
    return fresh


def _extent(leaf: Any, source: Any) -> Any:
    """Another extent or stride in place of `leaf`: as little negative, but of other size."""
    fresh = _refill(leaf, source)
    if isinstance(leaf, Integer):
        fresh.bound = None if leaf.greatest is None else type(leaf).max
    return fresh


def _iterator_text(iterator: Any) -> str:
    return str(iterator) if isinstance(iterator, Pointer) else coord_text(iterator)


def _divided(coord: Any, shape: Any) -> Any:
    """A coordinate whose runtime indices that count through several modes are divided by the extents of these modes.

    In 32 bits, before `widen`: the quotient of 64 bits takes a branch and twice the instructions.
    """
    if isinstance(coord, Integer) and not coord.is_static and isinstance(shape, tuple) and shape:
        return idx2crd(coord, shape)
    if isinstance(coord, tuple) and isinstance(shape, tuple) and len(coord) == len(shape):
        return tuple(map(_divided, coord, shape))
    return coord
