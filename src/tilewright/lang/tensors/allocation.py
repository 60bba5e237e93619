"""Memory that a kernel takes: registers of a thread, shared memory of a block."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.hw.chips import chip, normalize_arch
from tilewright.ir import build, types
from tilewright.lang import trace
from tilewright.lang.diagnostics.argument_checks import NUMBER_TYPE, instance, takes
from tilewright.lang.locations import assigned_name, user_location
from tilewright.lang.numbers.numeric import Boolean, Int8, Numeric, number_type
from tilewright.lang.tensors.element_limits import MOST_BYTES
from tilewright.lang.tensors.pointer import AddressSpace, Pointer
from tilewright.lang.tensors.swizzled_pointer import placed, swizzled
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import ComposedLayout, Layout, is_static, make_layout_like, size
from tilewright.layout.query import least, room

if TYPE_CHECKING:
    from mlir import ir

_MOST_SHARED = (1 << 31) - 1  # what an allocation can say; how much a chip has is checked when all of it is known
DEFAULT_ALIGN = 16  # of shared memory: the widest access of a thread
DYNAMIC_ALIGN = 16  # what a launch gives dynamic shared memory at least
RMEM_ALIGN = 32  # what the language prints for register tensors


def make_rmem_tensor(layout_or_shape: Any, dtype: type[Numeric], *, loc: object = None, ip: object = None) -> Tensor:
    """A tensor in registers, not initialised. Its size must be static.

    Raises:
        CompileError: it is known only at run time, or is more than a thread has.
    """
    layout = layout_or_shape if isinstance(layout_or_shape, (Layout, ComposedLayout)) else Layout(layout_or_shape)
    count, dtype = _elements(layout), number_type(dtype)
    type_ = types.ptr(dtype.facts.name, "rmem", RMEM_ALIGN)
    bytes_ = max(-(-count * dtype.width // 8), 1)
    if bytes_ > MOST_BYTES:
        raise CompileError(
            f"a register tensor of {bytes_} bytes",
            location=user_location(),
            values={"layout": layout, "a thread has at most": f"{MOST_BYTES} bytes"},
            hint="give each thread its part of the data, or keep it in shared or global memory",
        )
    value = _alloc(type_, bytes_)
    return make_tensor(Pointer(value, dtype, AddressSpace.rmem, RMEM_ALIGN), layout)


@takes(instance("a tensor or a layout", Tensor, Layout, ComposedLayout), NUMBER_TYPE)
def make_rmem_tensor_like(
    src: Any, dtype: type[Numeric] | None = None, *, loc: object = None, ip: object = None
) -> Tensor:
    """A register tensor of the shape of `src` (tensor or layout), compact in the order of its strides."""
    layout = src.layout if isinstance(src, Tensor) else src
    if dtype is None and not isinstance(src, Tensor):
        raise CompileError(
            "make_rmem_tensor_like of a layout needs the type of the elements",
            location=user_location(),
            hint="make_rmem_tensor_like(layout, cutlass.Float32)",
        )
    if isinstance(layout, ComposedLayout):
        layout = Layout(layout.shape)
    if dtype is None:
        dtype = src.element_type if not src.is_coordinates else Boolean
    return make_rmem_tensor(make_layout_like(layout), dtype)


def _elements(layout: Any) -> int:
    if not is_static(layout):
        raise CompileError(
            "memory is allocated while compiling, so the size must be known then",
            location=user_location(),
            values={"layout": layout},
            hint="pass the size as `cutlass.Constexpr`, or allocate the largest and use a part of it",
        )
    if least(layout) < 0:
        raise CompileError(
            "a layout of negative strides begins before its memory",
            location=user_location(),
            values={"layout": layout, "first element": least(layout)},
        )
    return room(layout) if size(layout) else 0


def _default_alignment(bytes_: int) -> int:
    return min(DEFAULT_ALIGN, 1 << max(bytes_.bit_length() - 1, 0))


def alloc_smem(
    element_type: type[Numeric],
    size_in_elems: int,
    alignment: int | None = None,
    *,
    loc: object = None,
    ip: object = None,
) -> Pointer:
    """A pointer to `size_in_elems` elements in shared memory, as `SmemAllocator` gives them."""
    return SmemAllocator().allocate_array(element_type, size_in_elems, byte_alignment=alignment or 1)


def get_dyn_smem(
    element_type: type[Numeric], alignment: int | None = None, *, loc: object = None, ip: object = None
) -> Pointer:
    """A pointer to the dynamic shared memory that the launch asks for with `smem=`, aligned to `alignment` bytes.

    Shared memory that the kernel allocates otherwise lies there too: use the one or the other.
    """
    trace.device("get_dyn_smem")
    type_ = types.ptr(number_type(element_type).facts.name, "smem", DYNAMIC_ALIGN)
    base = build.cute("smem_base", (type_,), (), offset=build.i32(0)).results[0]
    pointer = Pointer(base, element_type, AddressSpace.smem, DYNAMIC_ALIGN)
    return pointer.align(alignment or 1)


def _alloc(type_: ir.Type, bytes_: int) -> ir.Value:
    """An allocation, named after the variable to which the user's line assigns it."""
    op = build.cute("alloc", (type_,), (), bytes=build.i32(bytes_))
    name = assigned_name()
    if name:
        op.attributes["tilewright.name"] = build.string(name)
    return op.results[0]


class SmemPartition(Enum):
    """Parts of the shared memory that CuTe DSL keeps apart. Here all memory comes from one place."""

    USER = "user"
    RESERVED = "reserved"


class SmemAllocator:
    """Hands out the shared memory of a block.

    A kernel launched without `smem=` gets as much as its allocators have handed out. Where `byte_alignment` is left at
    1, memory lies at a multiple of `DEFAULT_ALIGN` bytes, so that copies of 128 bits reach it; less than that many
    bytes lie at a multiple of the greatest power of two that they hold. A greater number is taken as it is.
    """

    def __init__(self, *, loc: object = None, ip: object = None) -> None:
        trace.device("SmemAllocator")

    @staticmethod
    def capacity_in_bytes(compute_capability: str | None = None) -> int:
        """The most shared memory a block may have on a chip (the one compiled for), in bytes.

        Raises:
            CompileError: the chip is unknown.
        """
        compiled_for = trace.current().arch if trace.tracing() else ""
        return chip(normalize_arch(compute_capability or compiled_for or "sm_80")).shared_optin

    def allocate(
        self,
        size_or_type: Any,
        byte_alignment: int = 1,
        *,
        partition: SmemPartition = SmemPartition.USER,
        loc: object = None,
        ip: object = None,
    ) -> Any:
        """`allocate(bytes)` gives a pointer to bytes, `allocate(StructType)` an instance in shared memory."""
        if isinstance(size_or_type, int):
            return self._bytes(size_or_type, Int8, byte_alignment)
        if isinstance(size_or_type, type) and issubclass(size_or_type, Numeric):
            return self._bytes(max(size_or_type.width // 8, 1), size_or_type, byte_alignment)
        if hasattr(size_or_type, "__tw_struct__"):
            count = size_or_type.size_in_bytes()
            align = byte_alignment if byte_alignment != 1 else _default_alignment(count)
            base = self._bytes(count, Int8, max(align, size_or_type.alignment()))
            return size_or_type(base)
        raise CompileError(f"allocate takes bytes or a type, not {size_or_type!r}", location=user_location())

    def allocate_array(
        self,
        element_type: type[Numeric],
        num_elems: int = 1,
        byte_alignment: int = 1,
        *,
        partition: SmemPartition = SmemPartition.USER,
        loc: object = None,
        ip: object = None,
    ) -> Pointer:
        """A pointer to `num_elems` elements."""
        return self._bytes(-(-num_elems * number_type(element_type).width // 8), element_type, byte_alignment)

    def allocate_tensor(
        self,
        element_type: type[Numeric],
        layout: Any,
        byte_alignment: int = 1,
        swizzle: Any = None,
        *,
        partition: SmemPartition = SmemPartition.USER,
        loc: object = None,
        ip: object = None,
    ) -> Tensor:
        """A tensor in shared memory. `swizzle` counts bytes, see `swizzled_pointer`."""
        if not isinstance(layout, (Layout, ComposedLayout)):
            layout = Layout(layout)
        count = _elements(placed(layout, swizzle, number_type(element_type)))
        bytes_ = -(-count * number_type(element_type).width // 8)
        pointer = self._bytes(bytes_, element_type, byte_alignment)
        return make_tensor(swizzled(pointer, swizzle), layout)

    def _bytes(self, count: int, dtype: type[Numeric], alignment: int) -> Pointer:
        natural = max(dtype.width // 8, 1)
        align = max(alignment if alignment > 1 else _default_alignment(count), natural)
        if alignment < 1 or alignment & (alignment - 1):
            raise CompileError(f"alignment {alignment} is no power of two", location=user_location())
        if count < 0:
            raise CompileError(f"{count} bytes of shared memory", location=user_location())
        type_ = types.ptr(dtype.facts.name, "smem", align)
        if count > _MOST_SHARED:
            raise CompileError(
                f"{count} bytes of shared memory", location=user_location(), hint="a block has some 100 to 227 KiB"
            )
        value = _alloc(type_, max(count, 1))  # an address of its own
        return Pointer(value, dtype, AddressSpace.smem, align)
