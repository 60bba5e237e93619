"""Addresses: an element type, a memory space, an alignment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

from tilewright.base.errors import CompileError
from tilewright.ir import build, mlir, types
from tilewright.ir.context import holds_value
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.implicit_conversion import as_element
from tilewright.lang.numbers.numeric import Int32, Int64, Integer, Numeric, as_numeric, is_number, number_type
from tilewright.lang.numbers.numpy_scalars import to_python
from tilewright.lang.tensors import vector_access
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import Swizzle

if TYPE_CHECKING:
    from mlir import ir


class AddressSpace(Enum):
    """The kinds of memory: `gmem` of the device, `smem` of a block, `dsmem` of the blocks of its cluster, `rmem` of a
    thread, and `tmem`; `generic` is any of them. The values are LLVM's numbers (NVPTX usage guide, "Address Spaces").
    """

    generic = 0
    gmem = 1
    smem = 3
    rmem = 5
    tmem = 6
    dsmem = 7

    def __str__(self) -> str:
        return self.name


_LLVM_SPACES = (AddressSpace.gmem, AddressSpace.smem, AddressSpace.dsmem)


class Held:
    """An MLIR value that objects of the language share: a pointer or, with `tensor`, a whole tensor."""

    __slots__ = ("__weakref__", "tensor", "value")

    def __init__(self, value: Any, *, tensor: bool = False) -> None:
        self.value = value
        self.tensor = tensor
        holds_value(self)


NumberType = type[Numeric]  # by a name of its own, as a pointer has an attribute `type`


@dataclass(frozen=True)
class PointerType:
    """What is known of a pointer while compiling: public kernels read `pointer.type.swizzle_type`."""

    value_type: type[Numeric]
    memspace: AddressSpace
    alignment: int
    swizzle_type: Swizzle
    """The swizzle of bytes that accesses through the pointer apply; of no bits where they apply none."""


class Pointer:
    """An address of elements of `dtype` in `memspace`, a multiple of `alignment` bytes.

    `value` is the MLIR value of type `!cute.ptr`; that of a tensor is made where it is used.
    `ptr + n` moves by n elements.
    """

    def __init__(self, value: ir.Value | Held, dtype: NumberType, memspace: AddressSpace, alignment: int) -> None:
        self._held = value if isinstance(value, Held) else Held(value)
        self.dtype = dtype
        self.memspace = memspace
        self.alignment = alignment

    @property
    def value(self) -> ir.Value:
        """The address."""
        if not self._held.tensor:
            return self._held.value
        type_ = types.ptr(self.dtype.facts.name, str(self.memspace), self.alignment)
        return build.cute("iterator", (type_,), ((self._held.value,),)).results[0]

    @property
    def is_of_address(self) -> bool:
        """Whether the pointer was made of an integer."""
        owner = None if self._held.tensor else self._held.value.owner
        return getattr(owner, "name", "") == "cute.int_to_ptr"

    @property
    def space_text(self) -> str:
        """The memory space as it prints: the host sees its own memory as generic."""
        if self.memspace is AddressSpace.gmem and trace.sees_host_memory():
            return str(AddressSpace.generic)
        return str(self.memspace)

    @property
    def element_type(self) -> NumberType:
        return self.dtype

    @property
    def value_type(self) -> NumberType:
        return self.dtype

    @property
    def type(self) -> PointerType:
        """What is known of the pointer while compiling."""
        return PointerType(self.dtype, self.memspace, self.alignment, Swizzle(0, 4, 3))

    @property
    def max_alignment(self) -> int:
        return self.alignment

    def __add__(self, offset: object) -> Pointer:
        number = offset if isinstance(offset, int) else as_numeric(offset)
        if isinstance(number, Numeric) and number.is_static:
            number = int(number.value)
        if isinstance(number, int) and number == 0:
            return self
        alignment = math.gcd(self.alignment, byte_step(number, self.dtype.width))
        index = _index_value(_in_groups(number, self.dtype.width))
        type_ = types.ptr(self.dtype.facts.name, str(self.memspace), alignment)
        value = build.cute("ptr_offset", (type_,), ((self.value,), (index,))).results[0]
        return Pointer(value, self.dtype, self.memspace, alignment)

    __radd__ = __add__

    def __sub__(self, offset: Any) -> Pointer:
        return self + -offset

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if is_number(other) or isinstance(other, Pointer):
            raise CompileError(
                "a pointer compares with nothing",
                location=user_location(),
                values={"pointer": self, "other": other},
                hint="compare addresses: `p.toint() == q.toint()`",
            )
        return NotImplemented

    __hash__ = object.__hash__

    def field(self, name: str, offset: int) -> Pointer:
        """The address of the member `name` of a struct here, `offset` bytes on."""
        alignment = math.gcd(self.alignment, offset)
        type_ = types.ptr(self.dtype.facts.name, str(self.memspace), alignment)
        attributes = {"name": build.string(name), "offset": build.i32(offset)}
        value = build.cute("field", (type_,), ((self.value,),), **attributes).results[0]
        return Pointer(value, self.dtype, self.memspace, alignment)

    def align(self, min_align: int, *, loc: object = None, ip: object = None) -> Pointer:
        """The first address at or after this one that is a multiple of `min_align` bytes."""
        if min_align <= self.alignment:
            return self
        if min_align & (min_align - 1):
            raise CompileError(f"alignment {min_align} is no power of two", location=user_location())
        address = self.toint()
        address = (address + (min_align - 1)) & type(address)(-min_align)
        type_ = types.ptr(self.dtype.facts.name, str(self.memspace), min_align)
        value = build.cute("int_to_ptr", (type_,), ((address.ir_value(),),)).results[0]
        return Pointer(value, self.dtype, self.memspace, min_align)

    def toint(self, dtype: NumberType | None = None, *, loc: object = None, ip: object = None) -> Any:
        """The address as Int64; of shared memory, also of other blocks, as Int32, as instructions take it. `dtype` is
        another integer type for it."""
        cls = Int32 if self.memspace in (AddressSpace.smem, AddressSpace.dsmem, AddressSpace.tmem) else Int64
        value = build.cute("ptr_to_int", (cls.mlir_type,), ((self.value,),)).results[0]
        return cls.from_ir(value) if dtype is None else dtype(cls.from_ir(value))

    @property
    def llvm_ptr(self) -> ir.Value:
        """The address as an LLVM pointer, for MLIR's own operations."""
        named = self.memspace in _LLVM_SPACES and trace.current().side == "device"
        number = self.memspace.value if named else 0
        type_ = types.parse(f"!llvm.ptr<{number}>" if number else "!llvm.ptr")
        return build.value("builtin.unrealized_conversion_cast", type_, (self.value,))

    def to_llvm_ptr(self, *, loc: object = None, ip: object = None) -> ir.Value:
        """`llvm_ptr`."""
        return self.llvm_ptr

    def raw_ptr(self) -> Pointer:
        """This pointer: what CuTe DSL's primitives take, which know no layouts."""
        return self

    def load(
        self,
        count: int | None = None,
        *,
        alignment: int | None = None,
        is_volatile: bool = False,
        is_invariant: bool = False,
        loc: object = None,
        ip: object = None,
    ) -> Any:
        """The element here, or the `count` elements from here on as a vector.

        `alignment` is what the caller knows the address to be a multiple of, in bytes. With `is_volatile` each element
        is read anew; `is_invariant` says that nobody writes it while the kernel runs.
        """
        place = self._claimed(alignment)
        if is_volatile:
            elements = [vector_access.load_volatile(place + at) for at in range(count or 1)]
            return elements[0] if count is None else TensorSSA.from_elements(elements, self.dtype)
        if count is not None:
            return vector_access.load_vector(place, count)
        groups = ((place.as_tensor(),), (), ())
        op = build.cute("load", (self.dtype.mlir_type,), groups, coord=build.string("0"))
        return self.dtype.from_ir(op.results[0])

    def store(
        self,
        value: Any,
        *,
        alignment: int | None = None,
        is_volatile: bool = False,
        loc: object = None,
        ip: object = None,
    ) -> None:
        """Write the element here, or the elements of a vector from here on. Options are those of `load`."""
        place = self._claimed(alignment)
        if is_volatile:
            for at, item in enumerate(value if isinstance(value, TensorSSA) else [value]):
                vector_access.store_volatile(place + at, item)
        elif isinstance(value, TensorSSA):
            vector_access.store_vector(place, value)
        else:
            number = as_element(value, self.dtype).ir_value()
            build.cute("store", (), ((number,), (place.as_tensor(),), (), ()), coord=build.string("0"))

    def masked_load(
        self, mask: Any, *, default: Any = 0, alignment: int | None = None, loc: object = None, ip: object = None
    ) -> TensorSSA:
        """The elements from here on where `mask`, a vector of Booleans, is true; `default` where it is not."""
        return vector_access.masked_load(self._claimed(alignment), mask, default)

    def masked_store(
        self, value: Any, mask: Any, *, alignment: int | None = None, loc: object = None, ip: object = None
    ) -> None:
        """Write the elements of `value` where `mask` is true from here on."""
        vector_access.masked_store(self._claimed(alignment), value, mask)

    def __getitem__(self, index: Any) -> Numeric:
        element: Numeric = (self + index).load()
        return element

    def __setitem__(self, index: Any, value: Any) -> None:
        (self + index).store(value)

    __iter__ = None  # a pointer has no end

    def apply_swizzle(self, swizzle: Swizzle, *, loc: object = None, ip: object = None) -> Pointer:
        """The address whose bits are swizzled, as tensor copies and products lay memory out; the swizzle counts bytes.

        The pattern begins at multiples of the swizzle's period: align the memory to it.
        """
        if swizzle.bits == 0:
            return self
        address = self.toint()
        bits = address & type(address)(swizzle.source_mask)
        moved = bits >> swizzle.shift if swizzle.shift > 0 else bits << -swizzle.shift
        return self._at(address ^ moved, math.gcd(self.alignment, 1 << swizzle.base))

    def load_swizzled(
        self,
        swizzle: Swizzle,
        *,
        count: int | None = None,
        alignment: int | None = None,
        loc: object = None,
        ip: object = None,
    ) -> Any:
        """The element here, or the `count` elements from here on, of memory that is swizzled: see `apply_swizzle`."""
        if swizzle.bits == 0 or count is None:
            return self.apply_swizzle(swizzle).load(count, alignment=alignment)
        piece = min(max((8 << swizzle.base) // self.dtype.width, 1), count)
        starts = range(0, count, piece)
        parts = [(self + at).apply_swizzle(swizzle).load(min(piece, count - at), alignment=alignment) for at in starts]
        return TensorSSA.from_elements([item for part in parts for item in part], self.dtype)

    def store_swizzled(
        self, value: Any, swizzle: Swizzle, *, alignment: int | None = None, loc: object = None, ip: object = None
    ) -> None:
        """Write the element, or the elements of a vector, to memory that is swizzled: see `apply_swizzle`."""
        if not isinstance(value, TensorSSA) or swizzle.bits == 0:
            self.apply_swizzle(swizzle).store(value, alignment=alignment)
            return
        items = value.to_elements()
        piece = min(max((8 << swizzle.base) // self.dtype.width, 1), len(items))
        for at in range(0, len(items), piece):
            part = TensorSSA.from_elements(items[at : at + piece], value.dtype)
            (self + at).apply_swizzle(swizzle).store(part, alignment=alignment)

    def tospace(self, memspace: AddressSpace, *, loc: object = None, ip: object = None) -> Pointer:
        """The same address as one of `gmem` or `generic`, which are the same numbers.

        Raises:
            CompileError: either space is another one.
        """
        same = (AddressSpace.gmem, AddressSpace.generic)
        if memspace is not self.memspace and not (memspace in same and self.memspace in same):
            raise CompileError(
                f"a pointer into {self.memspace} is none into {memspace}",
                location=user_location(),
                values={"pointer": self},
            )
        return self._cast(self.dtype, memspace, self.alignment)

    def _claimed(self, alignment: int | None) -> Pointer:
        """This pointer, known to be a multiple of `alignment` bytes."""
        return self if alignment is None or alignment <= self.alignment else self.with_alignment(alignment)

    def _at(self, address: Any, alignment: int) -> Pointer:
        """A pointer to another address of the same memory."""
        type_ = types.ptr(self.dtype.facts.name, str(self.memspace), alignment)
        value = build.cute("int_to_ptr", (type_,), ((address.ir_value(),),)).results[0]
        return Pointer(value, self.dtype, self.memspace, alignment)

    def as_tensor(self) -> ir.Value:
        type_ = types.tensor(self.dtype.facts.name, str(self.memspace), "1:0", self.alignment)
        return build.cute("make_tensor", (type_,), ((self.value,), (), ())).results[0]

    def recast(self, dtype: NumberType) -> Pointer:
        """The same address, of elements of `dtype`."""
        return self._cast(dtype, self.memspace, self.alignment)

    def with_alignment(self, alignment: int) -> Pointer:
        """The same address, which the caller knows to be a multiple of `alignment` bytes."""
        return self._cast(self.dtype, self.memspace, alignment)

    def _cast(self, dtype: NumberType, memspace: AddressSpace, alignment: int) -> Pointer:
        type_ = types.ptr(dtype.facts.name, str(memspace), alignment)
        value = build.cute("ptr_cast", (type_,), ((self.value,),)).results[0]
        return Pointer(value, dtype, memspace, alignment)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> Self:
        return type(self)(values[0], self.dtype, self.memspace, self.alignment)

    def __tw_meet__(self, other: Any) -> Pointer | None:
        """A pointer that is aligned as both are, where nothing else tells them apart."""
        if (self.dtype, self.memspace) != (other.dtype, other.memspace):
            return None
        return Pointer(self._held, self.dtype, self.memspace, math.gcd(self.alignment, other.alignment))

    def __tw_as__(self, weaker: Any) -> Pointer | None:
        """This pointer as one that is known to be aligned as `weaker` is."""
        if (self.dtype, self.memspace) != (weaker.dtype, weaker.memspace) or self.alignment % weaker.alignment:
            return None
        return self.with_alignment(weaker.alignment)

    def __tw_structure__(self) -> tuple[str, ...]:
        """What may not change in a region: all but the address."""
        return str(self), self.dtype.facts.name

    def __str__(self) -> str:
        natural = max(self.dtype.width // 8, 1)
        align = f", align<{self.alignment}>" if self.alignment > natural else ""
        return f"ptr<{self.dtype.facts.mlir}, {self.space_text}{align}>"

    __repr__ = __str__


def pointer_at(
    address: Any, dtype: type[Numeric], memspace: AddressSpace = AddressSpace.generic, alignment: int | None = None
) -> Pointer:
    """A pointer of `dtype` at an address: a Pointer, an integer of the language, or an MLIR integer or `!llvm.ptr`.

    Raises:
        CompileError: the type, the memory space or the alignment is none.
    """
    align = max(number_type(dtype).width // 8, 1) if alignment is None else alignment
    _check_place(memspace, align)
    if isinstance(address, Pointer):
        return address._cast(dtype, memspace, align)
    if isinstance(address, mlir.ir.Value) and str(address.type).startswith("!llvm.ptr"):
        address = Int64.from_ir(build.value("llvm.ptrtoint", types.parse("i64"), (address,)))
    number = as_numeric(address)
    number = number if number.width in (32, 64) else Int64(number)
    type_ = types.ptr(dtype.facts.name, str(memspace), align)
    value = build.cute("int_to_ptr", (type_,), ((number.ir_value(),),)).results[0]
    return Pointer(value, dtype, memspace, align)


def _check_place(memspace: object, alignment: object) -> None:
    if not isinstance(memspace, AddressSpace):
        raise CompileError(
            f"a pointer into {memspace!r}",
            location=user_location(),
            hint=f"mem_space is one of AddressSpace: {', '.join(map(str, AddressSpace))}",
        )
    alignment = to_python(alignment)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise CompileError(
            "assumed_align is a power of two, in bytes", location=user_location(), values={"assumed_align": alignment}
        )


def make_ptr(
    dtype: type[Numeric],
    value: Any,
    mem_space: AddressSpace = AddressSpace.generic,
    *,
    assumed_align: int | None = None,
    loc: object = None,
    ip: object = None,
) -> Pointer:
    """A pointer of `dtype` at `value`: an integer, a Pointer, or an MLIR integer or pointer."""
    return pointer_at(value, dtype, mem_space, assumed_align)


def byte_step(offset: Any, width: int) -> int:
    """A divisor of the bytes that `offset` elements of `width` bits take; 0 of none."""
    bits = divisor_of(offset) * width
    return 1 if bits % 8 else bits // 8


def divisor_of(number: Any) -> int:
    """What is known to divide an integer; 0 of the number 0."""
    if isinstance(number, int):
        return abs(number)
    is_known = isinstance(number, Numeric) and number.is_static
    return abs(int(number.value)) if is_known else int(getattr(number, "divisibility", 1))


def _in_groups(number: Any, width: int) -> Any:
    """An offset known to be a whole number of bytes, written so that passes see it: elements of 4 and 6 bits only."""
    group = 8 // math.gcd(width, 8)
    if isinstance(number, int) or group == 1 or divisor_of(number) % group:
        return number
    return number // group * group


def _index_value(number: int | Numeric) -> ir.Value:
    if isinstance(number, int):
        return build.constant(number, types.parse("i64"))
    if not isinstance(number, Integer):
        raise CompileError(f"a pointer moves by an integer, not by {type(number)}", location=user_location())
    return (number if number.width in (32, 64) and type(number).facts.kind == "i" else Int64(number)).ir_value()
