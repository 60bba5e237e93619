"""Addresses whose bytes are swizzled: `recast_ptr(ptr, swizzle)`.

The swizzle counts bytes, from the address that was swizzled: element `n` of the pointer lies at
`base + swizzle(bytes(offset + n))`. Where the base is aligned to the swizzle's period this is the swizzle of the whole
address, which tensor copies and matrix descriptors use. Moving the pointer adds to `offset`; a tensor of it is a tensor
at the base with a composed layout, whose swizzle counts elements.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.ir.layout_text import encode
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Integer, Numeric, as_numeric
from tilewright.lang.tensors.pointer import NumberType, Pointer, PointerType
from tilewright.layout import ComposedLayout, Layout, Swizzle, divisibility
from tilewright.layout.dynamic import is_multiple

if TYPE_CHECKING:
    from mlir import ir


class SwizzledPointer(Pointer):
    """`base`, moved by `offset` elements under a swizzle of bytes."""

    def __init__(self, base: Pointer, swizzle: Swizzle, offset: Any = 0) -> None:
        bits = divisibility(offset) * base.dtype.width
        step = 1 if bits % 8 else bits // 8
        super().__init__(base._held, base.dtype, base.memspace, math.gcd(base.alignment, step))
        self.base = base
        self.swizzle = swizzle
        self.offset = offset

    def __add__(self, offset: object) -> SwizzledPointer:
        number = offset if isinstance(offset, int) else as_numeric(offset)
        if isinstance(number, Numeric) and number.is_static:
            number = int(number.value)
        if is_multiple(number, self.period):  # the swizzle leaves such a step alone
            return SwizzledPointer(self.base + number, self.swizzle, self.offset)
        return SwizzledPointer(self.base, self.swizzle, self.offset + number)

    @property
    def type(self) -> PointerType:
        """What is known of the pointer while compiling."""
        return PointerType(self.dtype, self.memspace, self.alignment, self.swizzle)

    @property
    def period(self) -> int:
        """Elements after which the swizzle's pattern repeats."""
        return max(self.swizzle.period * 8 // self.dtype.width, 1)

    __radd__ = __add__

    def align(self, min_align: int, *, loc: object = None, ip: object = None) -> SwizzledPointer:
        """This pointer, when it is known to be a multiple of `min_align` bytes; rounding up would break the swizzle."""
        if self.alignment % min_align:
            raise CompileError(
                f"a swizzled pointer is known to be aligned to {self.alignment} bytes, not to {min_align}",
                location=user_location(),
                values={"pointer": self},
                hint="align the pointer before it is swizzled",
            )
        return self

    def toint(self, dtype: NumberType | None = None, *, loc: object = None, ip: object = None) -> Any:
        """The address before the swizzle, as an integer."""
        return self.plain.toint(dtype)

    @property
    def plain(self) -> Pointer:
        """The address before the swizzle."""
        return self.base + self.offset

    @property
    def llvm_ptr(self) -> ir.Value:
        """The address before the swizzle as an LLVM pointer, for MLIR's own operations."""
        return self.plain.llvm_ptr

    def with_alignment(self, alignment: int) -> SwizzledPointer:
        """The same address; `alignment` is a claim on the address that was swizzled."""
        return SwizzledPointer(self.base.with_alignment(alignment), self.swizzle, self.offset)

    def as_tensor(self) -> ir.Value:
        text, leaves32, leaves64 = encode(self.layout(Layout(1, 0)))
        type_ = types.tensor(self.dtype.facts.name, str(self.memspace), text, self.base.alignment)
        groups = [[leaf.ir_value() for leaf in leaves] for leaves in (leaves32, leaves64)]
        return build.cute("make_tensor", (type_,), ((self.base.value,), *groups)).results[0]

    def recast(self, dtype: NumberType) -> SwizzledPointer:
        """The same address, of elements of `dtype`."""
        bits = self.offset * self.dtype.width
        if divisibility(bits) % dtype.width:
            raise CompileError(f"a pointer {self} does not stand at an element of {dtype}", location=user_location())
        return SwizzledPointer(self.base.recast(dtype), self.swizzle, bits // dtype.width)

    def layout(self, layout: Layout | ComposedLayout) -> ComposedLayout:
        """The layout of a tensor at `base` that is `layout` at this pointer.

        Raises:
            CompileError: the swizzle would tear elements apart, or the layout is swizzled already.
        """
        if isinstance(layout, ComposedLayout):
            raise CompileError(
                "a tensor is swizzled by its pointer and by its layout",
                location=user_location(),
                values={"pointer": self, "layout": layout},
                hint="give the swizzle once: as `layout.inner` of the pointer, with `layout.outer` as the layout",
            )
        return ComposedLayout(in_elements(self.swizzle, self.dtype), self.offset, layout)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        moved = [] if isinstance(self.offset, int) else [self.offset.ir_value()]
        return [self.base.value, *moved]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> SwizzledPointer:
        base = self.base.__new_from_mlir_values__(values[:1])
        offset = self.offset
        if isinstance(offset, Integer):
            moved = type(offset).from_ir(values[1])
            offset = moved.assuming(divisibility=offset.divisibility, bound=offset.bound)
        return SwizzledPointer(base, self.swizzle, offset)

    def __tw_meet__(self, other: Any) -> Pointer | None:
        """As of pointers, where swizzle and offset are alike."""
        met = self.base.__tw_meet__(other.base) if self._moved_like(other) else None
        return None if met is None else SwizzledPointer(met, self.swizzle, self.offset)

    def __tw_as__(self, weaker: Any) -> Pointer | None:
        """As of pointers, where swizzle and offset are alike."""
        base = self.base.__tw_as__(weaker.base) if self._moved_like(weaker) else None
        return None if base is None else SwizzledPointer(base, self.swizzle, self.offset)

    def _moved_like(self, other: Any) -> bool:
        return bool(self.swizzle == other.swizzle) and encode(self.offset)[0] == encode(other.offset)[0]

    def __tw_structure__(self) -> tuple[str, ...]:
        """What may not change in a region: all but the address and a moved offset."""
        return (*self.base.__tw_structure__(), str(self.swizzle), encode(self.offset)[0])

    def __str__(self) -> str:
        return f"{super().__str__()[:-1]}, {self.swizzle}>"

    __repr__ = __str__


def base_of(pointer: Pointer) -> Pointer:
    """The pointer under the swizzle; itself where it has none."""
    return pointer.base if isinstance(pointer, SwizzledPointer) else pointer


def in_elements(swizzle: Swizzle, dtype: type[Numeric]) -> Swizzle:
    """A swizzle of bytes as one of elements of `dtype`: the base drops by log2 of the element's bytes, or grows by
    log2 of the elements in a byte.

    Raises:
        CompileError: it moves parts of elements.
    """
    if not swizzle.bits:
        return swizzle
    if dtype.width in (1, 2, 4):
        return Swizzle(swizzle.bits, swizzle.base + (8 // dtype.width).bit_length() - 1, swizzle.shift)
    step = max(dtype.width // 8, 1).bit_length() - 1
    if dtype.width % 8 or swizzle.base < step:
        raise CompileError(
            f"a swizzle of bytes {swizzle} tears elements of {dtype} apart",
            location=user_location(),
            hint=f"its base must be at least {step}",
        )
    return Swizzle(swizzle.bits, swizzle.base - step, swizzle.shift)


def placed(layout: Layout | ComposedLayout, swizzle: Swizzle | None, dtype: type[Numeric]) -> Layout | ComposedLayout:
    """Where the elements of `layout` lie when its bytes are under `swizzle`."""
    if swizzle is None or not swizzle.bits or isinstance(layout, ComposedLayout):
        return layout
    return ComposedLayout(in_elements(swizzle, dtype), 0, layout)


def swizzled(pointer: Pointer, swizzle: Swizzle | None) -> Pointer:
    """The pointer under a swizzle of bytes; None and a swizzle of no bits take it away."""
    plain = pointer.plain if isinstance(pointer, SwizzledPointer) else pointer
    if swizzle is None or not swizzle.bits:
        return plain
    return SwizzledPointer(plain, swizzle)
