"""Tensor maps by their numbers, without layouts, and copies of boxes at a coordinate: for CuTe DSL's primitives.

Modes are in the order of the copy engine, the contiguous one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any

from tilewright import layout as algebra
from tilewright.base.errors import CompileError, LayoutError
from tilewright.hw.atoms import async_copy
from tilewright.ir import build, types
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int16, Numeric, as_numeric, number_type
from tilewright.lang.nvgpu.tma_maps import map_type
from tilewright.lang.nvgpu.tma_ops import coordinate
from tilewright.lang.tensors.pointer import AddressSpace, Held, Pointer, pointer_at
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import Layout

if TYPE_CHECKING:
    from mlir import ir


class TensorMapSwizzle(Enum):
    """How the copy engine swizzles a box in shared memory, by the bytes of a row."""

    none = 0
    s32b = 32
    s64b = 64
    s128b = 128


class TensorMap:
    """What the copy engine knows of a tensor in global memory. A parameter of kernels, by value."""

    def __init__(self, held: Held, dtype: type[Numeric], box: tuple[int, ...], swizzle: int) -> None:
        self._held = held
        self.dtype = dtype
        self.box = box
        self.swizzle = swizzle

    @property
    def value(self) -> ir.Value:
        """The map as a value."""
        return self._held.value

    def get_ptr(self, *, loc: object = None, ip: object = None) -> TensorMap:
        """What the primitives take: the map, wherever it is."""
        return self

    def global_tx_bytes(self, *, loc: object = None, ip: object = None) -> int:
        """The bytes that one box counts at its mbarrier."""
        return prod(self.box) * self.dtype.width // 8

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> TensorMap:
        return TensorMap(Held(values[0]), self.dtype, self.box, self.swizzle)

    def __tw_structure__(self) -> tuple[Any, ...]:
        """What may not change in a region."""
        return self.dtype, self.box, self.swizzle

    def __str__(self) -> str:
        return f"TensorMap({self.dtype}, box {self.box}, swizzle of {self.swizzle} bytes)"


def create_tensor_map_tiled(
    *,
    global_address: Any,
    dtype: type[Numeric],
    global_dims: Sequence[Any],
    global_strides: Sequence[Any],
    box_dims: Sequence[int],
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    loc: object = None,
    ip: object = None,
) -> TensorMap:
    """A tensor map of elements of `dtype` at an address.

    Args:
        global_address: a multiple of 16 bytes, as an integer or a pointer.
        dtype: the type of the elements.
        global_dims: the extents, the contiguous mode first.
        global_strides: the strides of all modes but the first, in units of 16 bytes.
        box_dims: the extents of a box.
        swizzle: of the box in shared memory.

    Raises:
        CompileError: it is called in a kernel, or the numbers break the limits of the copy engine.
    """
    kind = number_type(dtype)
    if len(global_strides) != len(global_dims) - 1:
        raise CompileError(
            "a tensor map has a stride for each mode but the first",
            location=user_location(),
            values={"global_dims": len(global_dims), "global_strides": len(global_strides)},
        )
    elements = 16 * 8 // kind.width
    strides = (1, *(_scaled(step, elements) for step in global_strides))
    pointer = pointer_at(global_address, kind, AddressSpace.gmem, async_copy.GLOBAL_ADDRESS_ALIGNMENT)
    tensor = make_tensor(pointer, Layout(tuple(map(_number, global_dims)), strides))
    return _made(tensor, tuple(range(len(strides))), tuple(box_dims), swizzle)


def create_tensor_map_tiled_from_view(
    view: Any,
    box_dims: Sequence[int],
    *,
    stride_order: Sequence[int] | None = None,
    swizzle: TensorMapSwizzle = TensorMapSwizzle.none,
    loc: object = None,
    ip: object = None,
) -> TensorMap:
    """A tensor map of a tensor, of boxes with the extents `box_dims` along its modes.

    `stride_order` lists the modes from the contiguous one on; without it they go by their strides, which must be known
    then. Coordinates of copies are in that order.

    Raises:
        CompileError: it is called in a kernel, the order is not known, or no such box can be.
    """
    tensor = getattr(view, "tensor", view)
    if not isinstance(tensor, Tensor):
        raise CompileError(
            f"create_tensor_map_tiled_from_view takes a tensor, not {type(view).__name__}", location=user_location()
        )
    shape, stride = (item if isinstance(item, tuple) else (item,) for item in (tensor.shape, tensor.stride))
    if len(box_dims) != len(shape):
        raise CompileError(
            "a box has an extent for each mode of the tensor",
            location=user_location(),
            values={"tensor": tensor, "box": tuple(box_dims)},
        )
    order = tuple(stride_order) if stride_order is not None else _order(stride, tensor)
    if sorted(order) != list(range(len(shape))):
        raise CompileError(
            "stride_order names each mode of the tensor once",
            location=user_location(),
            values={"tensor": tensor, "stride_order": order},
        )
    return _made(tensor, order, tuple(box_dims[mode] for mode in order), swizzle)


def _order(strides: tuple[Any, ...], tensor: Tensor) -> tuple[int, ...]:
    """Modes by their strides; a stride of run time is greater than a known one, and rows lie as they are written."""
    known = [stride for stride in strides if isinstance(stride, int)]
    if len(known) < len(strides) and known != [1]:
        raise CompileError(
            "the order of the tensor's modes is known only at run time",
            location=user_location(3),
            values={"tensor": tensor},
            hint="give stride_order, the modes from the contiguous one on",
        )
    if len(known) == len(strides):
        return tuple(sorted(range(len(strides)), key=lambda mode: (strides[mode], -mode)))
    first = next(mode for mode, stride in enumerate(strides) if isinstance(stride, int))
    return (first, *(mode for mode in reversed(range(len(strides))) if mode != first))


def _made(tensor: Tensor, modes: tuple[int, ...], box: tuple[int, ...], swizzle: TensorMapSwizzle) -> TensorMap:
    if not trace.tracing() or trace.current().side == "device":
        raise CompileError(
            "a tensor map is made in a kernel",
            location=user_location(3),
            hint="make it in the @cute.jit function and pass it to the kernel",
        )
    dtype = tensor.element_type
    try:
        async_copy.check_box(box, dtype.width, swizzle.value)
    except LayoutError as error:
        raise CompileError(
            f"no tensor map has this box: {error.message}",
            location=user_location(3),
            values={"box": box, "swizzle": swizzle.name, **error.values},
            hint=error.hint,
        ) from error
    first = algebra.flatten_to_tuple(tensor.stride)[modes[0]]
    if not (isinstance(first, int) and first == 1):
        raise CompileError(
            "the first mode of a tensor map is contiguous", location=user_location(3), values={"tensor": tensor}
        )
    type_ = types.tensor_map(dtype.facts.name, box, swizzle.value)
    attributes = {"modes": build.i32_array(modes), "type": build.string(map_type(dtype))}
    made = build.cute("make_tensor_map", (type_,), ((tensor.value,),), **attributes).results[0]
    return TensorMap(Held(made), dtype, box, swizzle.value)


def _number(value: Any) -> Any:
    number = value if isinstance(value, int) else as_numeric(value)
    return int(number.value) if isinstance(number, Numeric) and number.is_static else number


def _scaled(value: Any, factor: int) -> Any:
    number = _number(value)
    return number * factor if isinstance(number, int) else (number * factor).assuming(divisibility=factor)


def load_box(map_: Any, shared: Pointer, at: Sequence[Any], barrier: Pointer, *, mask: Any = None) -> None:
    """Copy the box at a coordinate to shared memory; its bytes count at `barrier`. This thread does it.

    With `mask` it goes to the same place in all those blocks of the cluster.
    """
    target, count = _map_value(map_), _box_at(map_, shared, at)
    blocks = [] if mask is None else [Int16(as_numeric(mask)).ir_value()]
    build.cute("tma_load", (), ((target,), (count.value,), (barrier.value,), coordinate(at), blocks, ()))


def store_box(map_: Any, shared: Pointer, at: Sequence[Any]) -> None:
    """Copy a box from shared memory to a coordinate, in this thread's bulk group."""
    target, box = _map_value(map_), _box_at(map_, shared, at)
    build.cute("tma_store", (), ((target,), (box.value,), coordinate(at), ()), kind=build.string(""))


def prefetch_map(map_: Any) -> None:
    """Bring a tensor map near, before the first copy. This thread does it."""
    build.cute("tma_prefetch", (), ((_map_value(map_),), ()))


def _map_value(map_: Any) -> ir.Value:
    if not isinstance(map_, TensorMap):
        raise CompileError(
            f"a copy of a box takes a tensor map, not {type(map_).__name__}",
            location=user_location(3),
            hint="make it with cutlass.experimental.cuda.create_tensor_map_tiled, and give get_ptr()",
        )
    return map_.value


def _box_at(map_: TensorMap, shared: Pointer, at: Sequence[Any]) -> Tensor:
    """The box in shared memory as a tensor."""
    if len(at) != len(map_.box):
        raise CompileError(
            "a coordinate has a number for each mode of the tensor map",
            location=user_location(3),
            values={"map": map_, "numbers": len(at)},
        )
    aligned = async_copy.SHARED_ALIGNMENT
    place = shared.recast(map_.dtype)
    place = place if place.alignment % aligned == 0 else place.with_alignment(aligned)
    return make_tensor(place, Layout(prod(map_.box)))
