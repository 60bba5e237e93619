"""Which memory a tensor operand is a part of, and which of its elements: `origin(operand)`.

The answer is read off the operations that made the tensor, nothing is built. Numbers of run time are symbols named
`v0`, `v1`, ...: `Origin.operands` gives their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import LayoutError
from tilewright.ir import build, layout_text, mlir
from tilewright.ir.accessors import ptr_info, tensor_layout_text, text_of
from tilewright.layout import (
    ComposedLayout,
    Layout,
    ScaledBasis,
    add_coordinates,
    composition,
    make_identity_layout,
    runtime_checks,
    size,
    sym_int,
    views,
)
from tilewright.layout.inttuple import flat, unflatten
from tilewright.passes.program import NAME, argument_name

if TYPE_CHECKING:
    from mlir import ir


@dataclass(frozen=True)
class Root:
    """Memory that a kernel or host function was given or has allocated.

    `kind` is `argument` or `allocation`, `name` that of the parameter or allocation ("" where it has none), `layout`
    that of the whole tensor, before any swizzle, and `value` the tensor; the address where nothing more is known.
    """

    kind: str
    name: str
    layout: Layout
    element: ir.Type
    space: str
    value: ir.Value


@dataclass(frozen=True)
class Coordinates:
    """The map from the elements of a tensor to coordinates of its root: `start` plus `layout`, whose strides are bases.

    After a recast to smaller elements the last mode of both counts bits inside an element of the root (`recast`).
    """

    start: tuple[Any, ...]
    layout: Layout
    recast: bool = False

    def __call__(self, *coord: Any) -> tuple[Any, ...]:
        """The coordinate of the root at which the element at `coord` lies, or begins where it is of another size."""
        whole = self._at(coord)
        return whole[:-1] if self.recast else whole

    def bit_offset(self, *coord: Any) -> Any:
        """The bits by which the element at `coord` begins after its element of the root."""
        return self._at(coord)[-1] if self.recast else 0

    def _at(self, coord: tuple[Any, ...]) -> tuple[Any, ...]:
        found = add_coordinates(self.start, self.layout(*coord))
        return found if isinstance(found, tuple) else (found,)


@dataclass(frozen=True)
class Origin:
    """Where a tensor comes from.

    `roots` has one entry, several where branches or loops choose, or none, and then `reason` says why. `coordinates`
    is None where the elements are not known, with a `reason` too. `derived_from` are the roots of the pointer that the
    user's arithmetic began with.
    """

    roots: tuple[Root, ...]
    coordinates: Coordinates | None = None
    reason: str = ""
    operands: Mapping[str, ir.Value] = field(default_factory=dict)
    derived_from: tuple[Root, ...] = ()

    @property
    def root(self) -> Root | None:
        """The root where there is just one."""
        return self.roots[0] if len(self.roots) == 1 else None

    @property
    def name(self) -> str:
        """The name of the root; "" where there is no single one."""
        return self.root.name if self.root is not None else ""

    @property
    def layout(self) -> Layout | None:
        """The layout of the root where there is just one."""
        return self.root.layout if self.root is not None else None


def origin(operand: ir.Value) -> Origin:
    """The origin of a tensor, an operand or result of an operation of stage `cute`."""
    found = _Search()
    steps = found.tensor(operand)
    return Origin(steps.roots, steps.coordinates, steps.reason, found.operands, steps.derived_from)


@dataclass(frozen=True)
class _Found:
    """What is known of one tensor: also its own layout, before any swizzle, over symbols."""

    roots: tuple[Root, ...]
    layout: Layout
    coordinates: Coordinates | None = None
    reason: str = ""
    derived_from: tuple[Root, ...] = ()

    def unplaced(self, reason: str, layout: Layout | None = None) -> _Found:
        """The same roots, the elements not known."""
        kept = self.layout if layout is None else layout
        return _Found(self.roots, kept, None, self.reason or reason, self.derived_from)


class _Search:
    """One walk from a tensor back to its roots."""

    def __init__(self) -> None:
        self.operands: dict[str, ir.Value] = {}
        self.names: dict[ir.Value, str] = {}
        self.under_way: set[ir.Value] = set()

    def tensor(self, value: ir.Value) -> _Found:
        owner = _defining(value)
        if owner is not None and owner.name == "cute.make_tensor":
            return self._made(owner)
        if owner is not None and owner.name == "cute.view":
            return self._view(owner)
        argument = argument_name(value)
        if argument is not None:
            layout = self._layout(value)
            return _whole(self._root("argument", argument, layout, value), layout)
        return self._chosen(value)

    def _made(self, op: ir.Operation) -> _Found:
        (pointer,), leaves32, leaves64 = build.groups(op)
        layout = _outer(self._read(tensor_layout_text(op.results[0].type), leaves32, leaves64))
        return self._at(pointer, layout, op.results[0].type, op.results[0])

    def _at(self, pointer: ir.Value, layout: Layout, type_: ir.Type, whole: ir.Value) -> _Found:
        """A tensor of `layout` at an address; `whole` stands for the root where it begins there."""
        owner, name = _defining(pointer), argument_name(pointer)
        if name is not None:
            return _whole(self._root("argument", name, layout, whole, type_), layout)
        if owner is None:
            return self._chosen_pointer(pointer, layout, type_, whole)
        if owner.name in _ALLOCATIONS:
            name = text_of(owner, NAME) if NAME in owner.attributes else _field_name(owner)
            return _whole(self._root("allocation", name, layout, whole, type_), layout)
        if owner.name == "cute.iterator":
            found = self.tensor(owner.operands[0])
            if ptr_info(owner.operands[0].type).element != ptr_info(type_).element:
                return found.unplaced("the tensor is made of a recast pointer", layout)
            return found if found.layout == layout else found.unplaced("the tensor is laid out anew", layout)
        if owner.name == "cute.ptr_cast":
            found = self._at(owner.operands[0], layout, type_, whole)
            same = _is_raw(owner.operands[0]) or ptr_info(owner.operands[0].type).element == ptr_info(type_).element
            return (
                found if same or not found.roots else found.unplaced("the tensor is made of a recast pointer", layout)
            )
        if owner.name == "cute.ptr_offset":
            base = self._at(owner.operands[0], layout, type_, owner.operands[0])
            return _Found(
                (), layout, None, "the tensor is made of a pointer that was moved", base.roots or base.derived_from
            )
        if owner.name == "cute.int_to_ptr":
            return _Found((), layout, None, "the tensor is made of an address that is an integer")
        return self._chosen_pointer(pointer, layout, type_, whole)

    def _view(self, op: ir.Operation) -> _Found:
        groups = build.groups(op)
        source = self.tensor(groups[0][0])
        algebra = text_of(op, "algebra")
        symbols = self._symbols(groups[1], groups[2])
        arguments = layout_text.decode_arguments(text_of(op, "arguments"), symbols)
        with runtime_checks(lambda fact: None):
            try:
                layout = views.cut(source.layout, algebra, arguments).kept
            except LayoutError:
                layout = _outer(self._read(*_result_leaves(op)))
            if source.coordinates is None:
                return source.unplaced(source.reason, layout)
            try:
                placed = _recast(source, arguments) if algebra == "recast" else _viewed(source, algebra, arguments)
            except LayoutError as error:
                return source.unplaced(f"{algebra} of coordinates: {error.message}", layout)
        return _Found(source.roots, layout, placed)

    def _chosen(self, value: ir.Value) -> _Found:
        """A tensor that a region carries or hands on."""
        layout = self._layout(value)
        return _met([self.tensor(source) for source in self._sources(value)], layout)

    def _chosen_pointer(self, pointer: ir.Value, layout: Layout, type_: ir.Type, whole: ir.Value) -> _Found:
        return _met([self._at(source, layout, type_, whole) for source in self._sources(pointer)], layout)

    def _sources(self, value: ir.Value) -> Iterator[ir.Value]:
        """The values that a region may hand on as `value`; none where the walk has come back to it."""
        if value in self.under_way:
            return
        self.under_way.add(value)
        yield from (source for source in sources_of(value) if source != value)
        self.under_way.discard(value)

    def _root(self, kind: str, name: str, layout: Layout, value: ir.Value, type_: ir.Type | None = None) -> Root:
        info = ptr_info(value.type if type_ is None else type_)
        return Root(kind, name, layout, info.element, info.space, value)

    def _layout(self, value: ir.Value) -> Layout:
        """The layout of a tensor whose leaves have no operands: its symbols stand for `cute.leaf` of it."""
        count = iter(range(1 << 30))

        def leaf(width: int, divisibility: int) -> Any:
            return sym_int(divisibility, width, self._name_of_leaf(value, next(count)))

        return _outer(layout_text.decode_layout(tensor_layout_text(value.type), leaf))

    def _name_of_leaf(self, tensor: ir.Value, index: int) -> str:
        for use in tensor.uses:
            op = use.owner.operation
            if op.name == "cute.leaf" and int(mlir.ir.IntegerAttr(op.attributes["index"]).value) == index:
                return self._name(op.results[0])
        return f"{argument_name(tensor) or 'tensor'}.{index}"

    def _read(self, text: str, leaves32: list[ir.Value], leaves64: list[ir.Value]) -> Layout | ComposedLayout:
        return layout_text.decode_layout(text, self._symbols(leaves32, leaves64))

    def _symbols(self, leaves32: list[ir.Value], leaves64: list[ir.Value]) -> Any:
        queues = {32: iter(leaves32), 64: iter(leaves64)}
        return lambda width, divisibility: self._symbol(next(queues[width]), divisibility, width)

    def _symbol(self, value: ir.Value, divisibility: int, width: int) -> Any:
        """The symbol of a number; a constant is itself, and widening is looked through."""
        owner = _defining(value)
        while owner is not None and owner.name in ("arith.extsi", "arith.extui"):
            value = owner.operands[0]
            owner = _defining(value)
        if owner is not None and owner.name == "arith.constant":
            return int(mlir.ir.IntegerAttr(owner.attributes["value"]).value)
        return sym_int(divisibility, width, self._name(value))

    def _name(self, value: ir.Value) -> str:
        name = self.names.get(value)
        if name is None:
            name = self.names[value] = f"v{len(self.names)}"
            self.operands[name] = value
        return name


def sources_of(value: ir.Value) -> list[ir.Value]:
    """The values that a region operation may hand on as `value`: a result, or an argument of a region's block."""
    if isinstance(value.owner, mlir.ir.Block):
        block = value.owner
        op = block.owner.operation
        number = mlir.ir.BlockArgument(value).arg_number
        if op.name == "scf.for" and number > 0:
            return [op.operands[2 + number], _terminator(block).operands[number - 1]]
        if op.name == "scf.while":
            before, after = (region.blocks[0] for region in op.regions)
            if block == before:
                return [op.operands[number], _terminator(after).operands[number]]
            return [_terminator(before).operands[1 + number]]
        return []
    op = value.owner.operation
    number = mlir.ir.OpResult(value).result_number
    if op.name == "scf.for":
        return [op.operands[3 + number], _terminator(op.regions[0].blocks[0]).operands[number]]
    if op.name == "scf.while":
        return [_terminator(op.regions[0].blocks[0]).operands[1 + number]]
    if op.name == "scf.if":
        return [_terminator(region.blocks[0]).operands[number] for region in op.regions]
    return [op.operands[1], op.operands[2]] if op.name == "arith.select" else []


def _terminator(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def _defining(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, mlir.ir.Block) else value.owner.operation


def _is_raw(pointer: ir.Value) -> bool:
    """True of bytes that were allocated, or a member of a struct: their type is that of the first tensor there."""
    owner = _defining(pointer)
    return owner is not None and owner.name in _ALLOCATIONS


_ALLOCATIONS = ("cute.alloc", "cute.smem_base", "cute.field")


def _field_name(owner: ir.Operation) -> str:
    return text_of(owner, "name") if owner.name == "cute.field" else ""


def _outer(layout: Layout | ComposedLayout) -> Layout:
    outer: Layout = views.outer_of(layout)
    return outer


def _result_leaves(op: ir.Operation) -> tuple[str, list[ir.Value], list[ir.Value]]:
    *_, leaves32, leaves64 = build.groups(op)
    return tensor_layout_text(op.results[0].type).rpartition(" o ")[2], leaves32, leaves64


def _whole(root: Root, layout: Layout) -> _Found:
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    identity: Layout = make_identity_layout(shape)
    if not isinstance(layout.shape, tuple):
        identity = identity[0]
    return _Found((root,), layout, Coordinates((0,) * len(shape), identity))


def _viewed(source: _Found, algebra: str, arguments: tuple[Any, ...]) -> Coordinates:
    """The same view of the coordinates."""
    assert source.coordinates is not None
    cut = views.cut(source.coordinates.layout, algebra, arguments)
    start = add_coordinates(source.coordinates.start, cut.start)
    return Coordinates(start, cut.kept, source.coordinates.recast)


def _recast(source: _Found, arguments: tuple[Any, ...]) -> Coordinates:
    """Coordinates of elements of another size: the mode of stride 1 holds more of them or fewer."""
    assert source.coordinates is not None
    new, old = arguments
    if new == old:
        return source.coordinates
    start, layout, recast = source.coordinates.start, source.coordinates.layout, source.coordinates.recast
    if not recast:
        start = (*start, 0)
    strides = flat(source.layout.stride)
    places = [place for place, step in enumerate(strides) if type(step) is int and step == 1]
    if len(places) != 1:
        raise LayoutError("no mode, or more than one, has stride 1", values={"layout": source.layout})
    modes = _leaf_modes(layout, source.layout)
    at = places[0]
    if new < old:
        parts, base = old // new, ScaledBasis(new, len(start) - 1)
        mode = modes[at]
        modes[at] = Layout((parts, mode.shape), (base, mode.stride))
    else:
        count = new // old
        modes[at] = composition(modes[at], Layout(max(size(modes[at]) // count, 1), count))
    shape = unflatten([_Kept(mode.shape) for mode in modes], source.layout.shape)
    stride = unflatten([_Kept(mode.stride) for mode in modes], source.layout.shape)
    return Coordinates(start, Layout(_released(shape), _released(stride)), True)


class _Kept:
    """A nested item that `unflatten` shall take for a leaf."""

    def __init__(self, item: Any) -> None:
        self.item = item


def _released(item: Any) -> Any:
    return tuple(map(_released, item)) if isinstance(item, tuple) else item.item


def _leaf_modes(layout: Any, like: Any) -> list[Layout]:
    """The modes of `layout` that stand for the leaves of `like`, whose profile it refines."""
    if not isinstance(like.shape, tuple):
        return [layout]
    return [mode for part, other in zip(layout, like, strict=True) for mode in _leaf_modes(part, other)]


def _met(found: list[_Found], layout: Layout) -> _Found:
    """What holds of one of several tensors; of none where a loop's walk has come back to where it began."""
    known = [item for item in found if item.reason != _AGAIN]
    if not known:
        return _Found((), layout, None, _AGAIN if not found else found[0].reason)
    roots = {(root.kind, root.name, root.value): root for item in known for root in item.roots}
    derived = {(root.kind, root.name, root.value): root for item in known for root in item.derived_from}
    unknown = next((item.reason for item in known if not item.roots), "")
    if unknown:
        return _Found((), layout, None, unknown, tuple({**roots, **derived}.values()))
    first = known[0]
    if len(known) == len(found) and first.coordinates and all(item.coordinates == first.coordinates for item in known):
        return _Found(tuple(roots.values()), layout, first.coordinates if len(roots) == 1 else None)
    reason = "a branch or loop chooses between tensors" if len(roots) > 1 else "a branch or loop moves the tensor"
    return _Found(tuple(roots.values()), layout, None, reason)


_AGAIN = "the tensor comes from no tensor that is known"
