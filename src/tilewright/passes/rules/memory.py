"""Addresses, tensors and memory: `cute` operations to LLVM loads and stores.

Element offsets into global memory are computed in 64 bits, except where the whole layout is known to span fewer than
2^31 elements. Transfers of whole tensors use the widest vectors that layout and alignment allow.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types, vectors
from tilewright.ir.accessors import number_of, ptr_info, tensor_info, tensor_layout_text, text_of
from tilewright.ir.context import current
from tilewright.ir.int_value import IntValue, materialize, widen
from tilewright.ir.vectors import extract, insert
from tilewright.layout import ComposedLayout, Layout, Swizzle, coalesce, cosize, is_static, size
from tilewright.passes.lowering import LoweringContext, Rules, TensorView, gep, gep_constant, read_coord, read_layout
from tilewright.passes.rules import packed
from tilewright.passes.rules.narrow_accesses import why_narrow

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
MAX_VECTOR_BYTES = 16
IN_MEMORY = (
    "this register tensor may lie in local memory: an index of it is known only at run time, or its address is taken"
)


@rules.lowers("make_tensor")
def _make_tensor(op: ir.Operation, context: LoweringContext) -> None:
    (ptr,), leaves32, leaves64 = build.groups(op)
    result = op.results[0]
    layout = read_layout(tensor_layout_text(result.type), leaves32, leaves64)
    info = ptr_info(result.type)
    if info.space not in ("smem", "rmem") and isinstance(layout, Layout):
        layout = Layout(layout.shape, _map_leaves(widen_stride, layout.stride))
    context.tensors[result] = TensorView(ptr, layout, info)


@rules.lowers("ptr_offset")
def _ptr_offset(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    element = ptr_info(op.results[0].type).element
    if packed.is_packed(element):
        return [packed.advance(op.operands[0], _known_offset(op.operands[1]), element)]
    return [gep(op.operands[0], op.operands[1], memory_type(element))]


@rules.lowers("field")
def _field(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return [gep_constant(op.operands[0], number_of(op, "offset"), types.parse("i8"))]


def _known_offset(value: ir.Value) -> IntValue | int:
    """An offset with what its constants say of it."""
    owner = value.owner
    name = getattr(owner, "name", "")
    if name == "arith.constant":
        return int(mlir.ir.IntegerAttr(owner.attributes["value"]).value)
    factors = [_known_offset(operand) for operand in owner.operands] if name in ("arith.muli", "arith.extsi") else []
    divisor = 1
    for factor in factors:
        divisor *= abs(factor) if isinstance(factor, int) else factor.divisibility
    return IntValue(value, max(divisor, 1))


@rules.lowers("ptr_cast")
def _ptr_cast(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    wanted = context.llvm_ptr(ptr_info(op.results[0].type).space)
    source = op.operands[0]
    if source.type == wanted:
        return [source]
    generic = context.llvm_ptr("generic")
    if generic not in (source.type, wanted):  # a space converts only to and from generic
        source = build.value("llvm.addrspacecast", generic, (source,))
    return [build.value("llvm.addrspacecast", wanted, (source,))]


@rules.lowers("ptr_to_int")
def _ptr_to_int(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    return [build.value("llvm.ptrtoint", op.results[0].type, (op.operands[0],))]


@rules.lowers("int_to_ptr")
def _int_to_ptr(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    ptr = context.llvm_ptr(ptr_info(op.results[0].type).space)
    return [build.value("llvm.inttoptr", ptr, (op.operands[0],))]


@rules.lowers("alloc")
def _alloc_rmem(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    """Memory of the thread: a stack slot in the entry block, which LLVM turns into registers."""
    info = ptr_info(op.results[0].type)
    if info.space != "rmem":
        raise CompileError("shared memory was not placed", hint="run place-shared-memory before this pass")
    context.remark(op, IN_MEMORY, "memory")
    entry = entry_block(op)
    with mlir.ir.InsertionPoint.at_block_begin(entry):
        size = number_of(op, "bytes")
        room = types.parse(f"!llvm.array<{size} x i8>")
        slot = build.value(
            "llvm.alloca",
            types.parse("!llvm.ptr"),
            (build.constant(1, types.parse("i32")),),
            {"elem_type": mlir.ir.TypeAttr.get(room), "alignment": build.i64(max(info.align, 16))},
        )
    if packed.is_packed(info.element):
        _clear(slot, build.constant(size, types.parse("i32")))
    return [slot]


def _clear(slot: ir.Value, count: ir.Value) -> None:
    """Elements of part of a byte are written beside the rest of it: that must not be memory that no one has written."""
    attributes = {"isVolatile": mlir.ir.BoolAttr.get(False)}
    build.emit("llvm.intr.memset", (), (slot, build.constant(0, types.parse("i8")), count), attributes)


def entry_block(op: ir.Operation) -> ir.Block:
    """The entry block of the function around `op`."""
    parent = op.parent
    while parent.name not in ("gpu.func", "func.func", "llvm.func"):
        parent = parent.parent
    return parent.regions[0].blocks[0]


@rules.lowers("load")
def _load(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (tensor,), coord32, coord64 = build.groups(op)
    view = context.tensor(tensor)
    if packed.is_packed(view.info.element):
        offset = element_offset(view, read_coord(text_of(op, "coord"), coord32, coord64))
        return [packed.load_one(view.ptr, offset, view.info.element)]
    address = element_address(view, read_coord(text_of(op, "coord"), coord32, coord64))
    return [load(address, op.results[0].type, element_alignment(view))]


@rules.lowers("store")
def _store(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (value,), (tensor,), coord32, coord64 = build.groups(op)
    view = context.tensor(tensor)
    if packed.is_packed(view.info.element):
        packed.store_one(value, view.ptr, element_offset(view, read_coord(text_of(op, "coord"), coord32, coord64)))
        return []
    address = element_address(view, read_coord(text_of(op, "coord"), coord32, coord64))
    store(value, address, element_alignment(view))
    return []


@rules.lowers("load_tensor")
def _load_tensor(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    view = context.tensor(op.operands[0])
    width, starts = chunks(view)
    _remark(op, "load from", view, width, context)
    result = op.results[0].type
    element = result.element_type
    loaded = []
    for start in starts:
        if width == 1 and packed.is_packed(element):
            loaded.append(packed.load_one(view.ptr, view.layout(start), element))
            continue
        address = place_address(view, start)
        type_ = _vector(element, width) if width > 1 else element
        loaded.append(load(address, type_, chunk_alignment(view, width)))
    return [join(loaded, width, result)]


@rules.lowers("store_tensor")
def _store_tensor(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    view = context.tensor(op.operands[1])
    width, starts = chunks(view)
    _remark(op, "store to", view, width, context)
    parts = split(op.operands[0], width, len(starts))
    for part, start in zip(parts, starts, strict=True):
        _store_part(part, view, start, width)
    return []


@rules.lowers("fill")
def _fill(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    value, tensor = op.operands
    view = context.tensor(tensor)
    width, starts = chunks(view)
    part = value
    if width > 1:
        part = build.value("vector.broadcast", _vector(value.type, width), (value,))
    for start in starts:
        _store_part(part, view, start, width)
    return []


def _remark(op: ir.Operation, way: str, view: TensorView, width: int, context: LoweringContext) -> None:
    if view.info.space != "rmem":
        context.remark(op, why_narrow(way, view, width, element_bits(view.info.element)))


def _store_part(part: ir.Value, view: TensorView, start: int, width: int) -> None:
    if width == 1 and packed.is_packed(view.info.element):
        packed.store_one(part, view.ptr, view.layout(start))
        return
    store(part, place_address(view, start), chunk_alignment(view, width))


def element_bytes(element: ir.Type) -> int:
    """Bytes of one element in memory."""
    found: int = current().cached(("element bytes", element), lambda: max(int(memory_type(element).width) // 8, 1))
    return found


def element_bits(element: ir.Type) -> int:
    """Bits of one element in memory."""
    found: int = current().cached(
        ("element bits", element), lambda: packed.bits_of(element) or element_bytes(element) * 8
    )
    return found


_BYTE_FLOATS = ("f8E",)


def memory_type(element: ir.Type) -> ir.Type:
    """The type that holds an element in memory: Booleans and floats of 8 bits take a byte, others see `packed`."""
    found: ir.Type = current().cached(("memory type", element), lambda: _memory_type(element))
    return found


def _memory_type(element: ir.Type) -> ir.Type:
    bits = packed.bits_of(element)
    if bits:
        return types.parse(f"i{bits}")
    text = str(element)
    if text == "i1" or text.startswith(_BYTE_FLOATS):
        return types.parse("i8")
    return element


def widen_stride(step: IntValue | int) -> IntValue | int:
    """A stride by which offsets of static coordinates are right, too."""
    return widen(step) if isinstance(step, IntValue) else step


def needs_wide_offsets(view: TensorView) -> bool:
    """True unless every element offset is known to fit 31 bits."""
    if view.info.space in ("smem", "rmem"):
        return False
    layout = view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout
    return not is_static(layout) or cosize(layout) >= 1 << 31


def element_address(view: TensorView, coord: Any) -> ir.Value:
    """The address of the element at `coord`."""
    if needs_wide_offsets(view):
        coord = _map_leaves(widen, coord)
    return place_address(view, coord)


def element_offset(view: TensorView, coord: Any) -> IntValue | int:
    """The element offset at `coord`."""
    if needs_wide_offsets(view):
        coord = _map_leaves(widen, coord)
    return view.layout(coord)  # type: ignore[no-any-return]


def place_address(view: TensorView, coord: Any) -> ir.Value:
    """The address of the element at `coord`, in the width that its parts have.

    A swizzle leaves multiples of its period alone: those of the static part are added behind it, as a displacement of
    the address, so that elements a period apart share the swizzled part.
    """
    layout = view.layout
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle) and isinstance(layout.offset, IntValue):
        place = layout.outer(coord)
        if isinstance(place, int):
            near = place % layout.inner.period
            address = offset_address(view, layout.inner(layout.offset + near))
            if packed.is_packed(view.info.element):
                return packed.advance(address, place - near, view.info.element)
            return gep_constant(address, place - near, memory_type(view.info.element))
    return offset_address(view, layout(coord))


def offset_address(view: TensorView, offset: IntValue | int) -> ir.Value:
    """The address `offset` elements into the view."""
    if isinstance(offset, int) and offset == 0:
        return view.ptr
    if packed.is_packed(view.info.element):
        return packed.advance(view.ptr, offset, view.info.element)
    wide = isinstance(offset, int) or offset.width == 64
    return gep(view.ptr, materialize(offset, 64 if wide else 32), memory_type(view.info.element))


def _map_leaves(function: Any, item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(_map_leaves(function, part) for part in item)
    return function(item)


def element_alignment(view: TensorView) -> int:
    return min(element_bytes(view.info.element), view.info.align)


def chunk_alignment(view: TensorView, width: int) -> int:
    if packed.is_packed(view.info.element):
        return max(width * element_bits(view.info.element) // 8, 1)
    return element_alignment(view) * width


def chunks(view: TensorView) -> tuple[int, range]:
    """Vector width in elements, and the index of the first element of each vector."""
    width = vector_width(view, max(MAX_VECTOR_BYTES * 8 // element_bits(view.info.element), 1))
    count = size(view.layout)
    if not isinstance(count, int):
        raise CompileError(
            "a tensor whose size is known only at run time cannot be moved as a whole",
            values={"layout": view.layout},
            hint="tile it first, so that each thread moves a static number of elements",
        )
    return width, range(0, count, width)


def vector_width(view: TensorView, limit: int) -> int:
    """The widest power of two of elements, at most `limit`, such that all vectors are contiguous and aligned."""
    width = 1
    while width * 2 <= limit and fits_vectors(view, width * 2):
        width *= 2
    return width


def contiguous_bits(tensor: ir.Value) -> int:
    """The widest access, in bits up to 128, in which all elements of a tensor can be moved: its layout proves that they
    are contiguous, its alignment that each access is aligned. A pass of stage `cute` may ask.
    """
    info = tensor_info(tensor)
    view = TensorView(tensor, info.layout, info)
    return vector_width(view, max(MAX_VECTOR_BYTES * 8 // element_bits(info.element), 1)) * element_bits(info.element)


def fits_vectors(view: TensorView, width: int) -> bool:
    """True when each run of `width` elements is contiguous, and aligned to its size."""
    bits = element_bits(view.info.element)
    if bits % 8 and 8 % bits:  # elements lie across bytes
        return False
    aligned = width * bits % 8 == 0 and view.info.align % (width * bits // 8) == 0
    return aligned and _contiguous(view.layout, width)


def _contiguous(layout: Layout | ComposedLayout, width: int) -> bool:
    if isinstance(layout, Layout):
        return _contiguous_plain(layout, width)
    return _contiguous_swizzled(layout, width) or (is_static(layout) and _contiguous_static(layout, width))


def _contiguous_swizzled(layout: ComposedLayout, width: int) -> bool:
    """A swizzle moves whole blocks of 2^base elements."""
    swizzle = layout.inner
    keeps = isinstance(swizzle, Swizzle) and (swizzle.bits == 0 or (1 << swizzle.base) % width == 0)
    return keeps and _divides(width, layout.offset) and _contiguous(layout.outer, width)


@functools.lru_cache(maxsize=1024)
def _contiguous_static(layout: ComposedLayout, width: int) -> bool:
    count = size(layout)
    if count % width:
        return False
    for start in range(0, count, width):
        first = layout(start)
        if first % width or any(layout(start + step) != first + step for step in range(1, width)):
            return False
    return True


def _contiguous_plain(layout: Layout, width: int) -> bool:
    flat = coalesce(layout)
    shape = flat.shape if isinstance(flat.shape, tuple) else (flat.shape,)
    stride = flat.stride if isinstance(flat.stride, tuple) else (flat.stride,)
    if not isinstance(shape[0], int) or shape[0] % width or not isinstance(stride[0], int) or stride[0] != 1:
        return False
    return all(_divides(width, item) for item in stride[1:])


def _divides(width: int, item: IntValue | int) -> bool:
    return (item if isinstance(item, int) else item.divisibility) % width == 0


def _vector(element: ir.Type, width: int) -> ir.Type:
    return types.parse(f"vector<{width}x{element}>")


def load(address: ir.Value, type_: ir.Type, alignment: int, *, raw: bool = False) -> ir.Value:
    """Load a value of `type_`; Booleans are read from their byte, unless `raw`."""
    stored = type_ if raw else _memory_shape(type_)
    whole = _whole_bytes(stored)
    value = build.value("llvm.load", whole, (address,), {"alignment": build.i64(alignment)})
    if whole != stored:
        value = build.value("llvm.bitcast", stored, (value,))
    return value if stored == type_ else _from_memory(value, type_)


def store(value: ir.Value, address: ir.Value, alignment: int, *, raw: bool = False) -> None:
    """Store a value; Booleans are written as a byte, unless `raw`."""
    stored = value.type if raw else _memory_shape(value.type)
    if stored != value.type:
        op = "arith.extui" if "i1" in str(value.type) else "arith.bitcast"
        value = build.value(op, stored, (value,))
    whole = _whole_bytes(stored)
    if whole != stored:
        value = build.value("llvm.bitcast", whole, (value,))
    build.emit("llvm.store", (), (value, address), {"alignment": build.i64(alignment)})


def _whole_bytes(type_: ir.Type) -> ir.Type:
    """A vector of 4-bit integers as one of bytes, which LLVM moves at once; any other type as it is."""
    if not isinstance(type_, mlir.ir.VectorType) or type_.element_type.width != 4:
        return type_
    return types.parse(f"vector<{type_.shape[0] // 2}xi8>")


def _memory_shape(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, mlir.ir.VectorType):
        return memory_type(type_)
    return _vector(memory_type(type_.element_type), type_.shape[0])


def as_stored(value: ir.Value) -> ir.Value:
    """Booleans as bytes; other values as they are."""
    if element_of(value.type) != types.parse("i1"):
        return value
    return build.value("arith.extui", _memory_shape(value.type), (value,))


def as_value(value: ir.Value) -> ir.Value:
    """Bytes as Booleans."""
    type_ = types.parse("i1")
    if isinstance(value.type, mlir.ir.VectorType):
        type_ = _vector(type_, value.type.shape[0])
    return _from_memory(value, type_)


def element_of(type_: ir.Type) -> ir.Type:
    """The element type of a vector type, else the type."""
    return mlir.ir.VectorType(type_).element_type if isinstance(type_, mlir.ir.VectorType) else type_


def _from_memory(value: ir.Value, type_: ir.Type) -> ir.Value:
    if "i1" not in str(type_):
        return build.value("arith.bitcast", type_, (value,))
    zero = build.splat(0, value.type) if isinstance(type_, mlir.ir.VectorType) else build.constant(0, value.type)
    return build.value("arith.cmpi", type_, (value, zero), {"predicate": build.i64(1)})


def join(parts: Sequence[ir.Value], width: int, result: ir.Type) -> ir.Value:
    """Vectors (or scalars) of `width` elements side by side as one vector."""
    if len(parts) == 1 and width > 1:
        return parts[0]
    whole = vectors.poison(result)
    for number, part in enumerate(parts):
        if width == 1:
            whole = insert(whole, part, number)
            continue
        for step in range(width):
            whole = insert(whole, extract(part, step), number * width + step)
    return whole


def split(value: ir.Value, width: int, count: int) -> list[ir.Value]:
    """One vector as `count` vectors (or scalars) of `width` elements."""
    if width == 1:
        return [extract(value, number) for number in range(count)]
    if count == 1:
        return [value]
    return [vectors.shuffle(value, range(number * width, (number + 1) * width)) for number in range(count)]
