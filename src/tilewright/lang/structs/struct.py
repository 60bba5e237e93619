"""`cute.struct`: the layout of a block's shared memory as a class.

    @cute.struct
    class Storage:
        barriers: cute.struct.MemRange[cutlass.Int64, 2]
        tile: cute.struct.Align[cute.struct.MemRange[cutlass.Float16, 4096], 1024]

Fields lie in order, each at the next multiple of its alignment: that of its element type, of a nested struct, or the
one that `Align` asks for. The size is a multiple of the greatest alignment, as in C. `cute.union` lays all fields at
the start.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar

from tilewright.base.errors import CompileError
from tilewright.ir import mlir
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.swizzled_pointer import placed, swizzled
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import ComposedLayout, Layout, is_static
from tilewright.layout.query import least, room


@dataclass(frozen=True)
class MemRangeType:
    """`MemRange[dtype, count]`: room for `count` elements."""

    dtype: type[Numeric]
    count: int

    @property
    def size(self) -> int:
        return self.count

    @property
    def elem_width(self) -> int:
        """Bits of an element."""
        return self.dtype.width

    def size_in_bytes(self) -> int:
        return -(-self.count * self.dtype.width // 8)

    def alignment(self) -> int:
        return max(self.dtype.width // 8, 1)

    def at(self, pointer: Pointer) -> MemRange:
        return MemRange(pointer.recast(self.dtype), self.count)


@dataclass(frozen=True)
class ScalarType:
    """A field that holds one number."""

    dtype: type[Numeric]

    def size_in_bytes(self) -> int:
        return max(self.dtype.width // 8, 1)

    def alignment(self) -> int:
        return self.size_in_bytes()

    def at(self, pointer: Pointer) -> Scalar:
        return Scalar(pointer.recast(self.dtype))


@dataclass(frozen=True)
class AlignedType:
    """`Align[field, bytes]`: a field at a multiple of `bytes`."""

    field: Any
    bytes: int

    @property
    def dtype(self) -> Any:
        """The type that is aligned: a number type, a struct, or what `MemRange[...]` gives."""
        if isinstance(self.field, NestedType):
            return self.field.cls
        return self.field.dtype if isinstance(self.field, ScalarType | AlignedType) else self.field

    @property
    def align(self) -> int:
        return self.bytes

    def size_in_bytes(self) -> int:
        return int(self.field.size_in_bytes())

    def alignment(self) -> int:
        return max(self.bytes, self.field.alignment())

    def at(self, pointer: Pointer) -> Any:
        return self.field.at(pointer)


@dataclass(frozen=True)
class NestedType:
    """A field that is a struct itself."""

    cls: Any

    def size_in_bytes(self) -> int:
        return int(self.cls.size_in_bytes())

    def alignment(self) -> int:
        return int(self.cls.alignment())

    def at(self, pointer: Pointer) -> Any:
        return self.cls(pointer)


class MemRange:
    """A range of elements in memory. `r[i]` reads and writes one element."""

    def __init__(self, pointer: Pointer, count: int) -> None:
        self._pointer = pointer
        self.size = count

    @property
    def ptr(self) -> Pointer:
        return self._pointer

    @property
    def dtype(self) -> type[Numeric]:
        return self._pointer.dtype

    @property
    def elem_width(self) -> int:
        """Bits of an element."""
        return self.dtype.width

    @property
    def size_in_bytes(self) -> int:
        return MemRangeType(self.dtype, self.size).size_in_bytes()

    def data_ptr(self, *, loc: object = None, ip: object = None) -> Pointer:
        """The address of the first element."""
        return self._pointer

    def get_tensor(
        self,
        layout: Any,
        swizzle: Any = None,
        dtype: type[Numeric] | None = None,
        *,
        loc: object = None,
        ip: object = None,
    ) -> Tensor:
        """The range as a tensor of `layout`, whose elements are of `dtype` if given; `swizzle` counts bytes.

        Raises:
            CompileError: the layout reaches past the end of the range.
        """
        if not isinstance(layout, (Layout, ComposedLayout)):
            layout = Layout(layout)
        pointer = self._pointer if dtype is None else self._pointer.recast(dtype)
        where = placed(layout, swizzle, pointer.dtype)
        if least(where) < 0:
            raise CompileError(
                "a tensor of negative strides begins before its memory range",
                location=user_location(),
                values={"layout": layout, "first element": least(where)},
            )
        if is_static(where) and room(where) * pointer.dtype.width > self.size * self.dtype.width:
            raise CompileError(
                "a tensor reaches past the end of its memory range",
                location=user_location(),
                values={
                    "layout": f"{layout}   {room(where)} elements of {pointer.dtype}",
                    "range": f"{self.size} elements of {self.dtype}",
                },
                hint="give the range as many elements as the layout reaches; a swizzle may move some past its cosize",
            )
        return make_tensor(swizzled(pointer, swizzle), layout)

    def __getitem__(self, index: Any) -> Numeric:
        self._check(index)
        return (self._pointer + index).load()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        (self._pointer + index).store(value)

    def __iter__(self) -> Iterator[Numeric]:
        return iter([self[index] for index in range(self.size)])

    def _check(self, index: Any) -> None:
        if isinstance(index, int) and not 0 <= index < self.size:
            raise CompileError(f"index {index} in a range of {self.size} elements", location=user_location())


class Scalar:
    """One number in memory: `.ptr`, and assignment to the field of the struct writes it."""

    def __init__(self, pointer: Pointer) -> None:
        self.ptr = pointer

    def data_ptr(self, *, loc: object = None, ip: object = None) -> Pointer:
        return self.ptr

    @property
    def dtype(self) -> type[Numeric]:
        return self.ptr.dtype

    def load(self) -> Numeric:
        """The number as it is in memory now."""
        return self.ptr.load()

    def store(self, value: Any) -> None:
        """Write the number."""
        self.ptr.store(value)


class _MemRangeOf:
    def __class_getitem__(cls, parameters: Any) -> MemRangeType:
        dtype, count = parameters
        if not (isinstance(dtype, type) and issubclass(dtype, Numeric)) or not isinstance(count, int) or count < 0:
            raise CompileError(
                "MemRange takes an element type and a number of elements known while compiling",
                location=user_location(),
                values={"got": parameters},
            )
        return MemRangeType(dtype, count)


class _AlignOf:
    def __class_getitem__(cls, parameters: Any) -> AlignedType:
        field, bytes_ = parameters
        if not isinstance(bytes_, int) or bytes_ <= 0 or bytes_ & (bytes_ - 1):
            raise CompileError(f"Align takes a power of two of bytes, not {bytes_}", location=user_location())
        return AlignedType(_field_type("", field), bytes_)


def _field_type(name: str, annotation: Any) -> Any:
    if isinstance(annotation, (MemRangeType, AlignedType)):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, Numeric):
        return ScalarType(annotation)
    if hasattr(annotation, "__tw_struct__"):
        return NestedType(annotation)
    raise CompileError(
        f"field {name!r} of a struct has type {annotation!r}",
        location=user_location(),
        hint="a field is a number type, MemRange[...], Align[...] or another @cute.struct",
    )


@dataclass(frozen=True)
class Field:
    """A field: its type and its byte offset."""

    type: Any
    offset: int


class StructBase:
    """Base of the classes that `@cute.struct` makes. An instance is a struct at an address."""

    __tw_struct__: ClassVar[dict[str, Field]] = {}
    _base: Pointer

    def __init__(self, base: Pointer) -> None:
        object.__setattr__(self, "_base", base)
        for name, field in self.__tw_struct__.items():
            object.__setattr__(self, name, field.type.at(base.field(name, field.offset)))

    def __setattr__(self, name: str, value: Any) -> None:
        target = self.__dict__.get(name)
        if not isinstance(target, Scalar):
            raise CompileError(
                f"cannot assign to {name!r} of struct {type(self).__name__}",
                location=user_location(),
                hint="only fields that are numbers are assigned as a whole; index a MemRange, or use get_tensor",
            )
        target.store(value)

    @classmethod
    def size_in_bytes(cls) -> int:
        """Bytes of the struct, with padding."""
        return _layout(cls.__tw_struct__)[0]

    @classmethod
    def alignment(cls) -> int:
        """The multiple of bytes at which the struct must lie."""
        return _layout(cls.__tw_struct__)[1]

    @classmethod
    def __sizeof__(cls) -> int:
        return cls.size_in_bytes()

    @classmethod
    def __alignof__(cls) -> int:
        return cls.alignment()

    @property
    def ptr(self) -> Pointer:
        return self._base

    def data_ptr(self, *, loc: object = None, ip: object = None) -> Pointer:
        return self._base

    def __extract_mlir_values__(self) -> list[mlir.ir.Value]:
        return [self._base.value]

    def __new_from_mlir_values__(self, values: list[mlir.ir.Value]) -> Any:
        return type(self)(self._base.__new_from_mlir_values__(values))

    def __tw_structure__(self) -> tuple[Any, ...]:
        """What may not change in a region."""
        return type(self), str(self._base)


def _layout(fields: dict[str, Field]) -> tuple[int, int]:
    """Size and alignment."""
    end = max((field.offset + field.type.size_in_bytes() for field in fields.values()), default=0)
    align = max((field.type.alignment() for field in fields.values()), default=1)
    return -(-end // align) * align, align


def annotations_of(definition: type, frame: FrameType) -> dict[str, Any]:
    """The annotations of a class as objects; texts are evaluated where the class is defined."""
    return inspect.get_annotations(definition, locals={**frame.f_locals, **vars(definition)}, eval_str=True)


class struct:
    """Decorator: a class of annotated fields becomes the layout of a part of shared memory.

    Fields are `cute.struct.MemRange[dtype, count]`, number types and other structs; `cute.struct.Align[field, bytes]`
    aligns one. They lie in order, each at the next multiple of its alignment, and the size is a multiple of the
    greatest alignment, as in C. `SmemAllocator().allocate(Storage)` gives an object whose attributes are the fields;
    that of a `MemRange` has `data_ptr()` and `get_tensor(layout)`.
    """

    MemRange = _MemRangeOf
    Align = _AlignOf

    def __new__(cls, definition: type) -> Any:
        fields: dict[str, Field] = {}
        end = 0
        for name, annotation in annotations_of(definition, sys._getframe(1)).items():
            type_ = _field_type(name, annotation)
            offset = cls._offset(end, type_.alignment())
            fields[name] = Field(type_, offset)
            end = offset + type_.size_in_bytes()
        body = {name: item for name, item in vars(definition).items() if name not in ("__dict__", "__weakref__")}
        return type(definition.__name__, (StructBase,), {**body, "__tw_struct__": fields})

    @staticmethod
    def _offset(end: int, alignment: int) -> int:
        """Where the field after byte `end` lies."""
        return -(-end // alignment) * alignment


class union(struct):
    """Decorator: like `struct`, but all fields lie at the start and share their memory, as in a union of C."""

    @staticmethod
    def _offset(end: int, alignment: int) -> int:
        return 0
