"""What a verifier sees of an operation: its types and attributes, read once, never its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import TilewrightError
from tilewright.ir import layout_text, mlir, types
from tilewright.ir.accessors import PtrInfo, parameters
from tilewright.ir.context import current
from tilewright.layout import ComposedLayout, Layout, Swizzle, size
from tilewright.layout.dynamic import Multiple, is_int
from tilewright.layout.inttuple import flat
from tilewright.layout.query import least
from tilewright.passes.lowering import TensorView
from tilewright.passes.rules.memory import element_bits

if TYPE_CHECKING:
    from mlir import ir

SPACES = ("generic", "gmem", "smem", "dsmem", "rmem")
_ELEMENTS = frozenset(types.ELEMENT.values())
_UNREADABLE = (ValueError, IndexError, TypeError, AttributeError, KeyError, TilewrightError)


class Invalid(Exception):
    """The rule that an operation breaks."""

    def __init__(self, message: str, hint: str = "", /, **values: object) -> None:
        super().__init__(message)
        self.message, self.hint, self.values = message, hint, values


class Undecided(Exception):
    """Types and attributes do not decide: equal ones are asked again, of the values."""


@dataclass(frozen=True)
class OpSummary:
    """An operation of the `cute` dialect: the types of its operands by group, those of its results, its attributes."""

    name: str
    groups: Sequence[Sequence[ir.Type]]
    results: Sequence[ir.Type]
    attributes: Mapping[str, ir.Attribute]

    def text(self, name: str) -> str:
        """A string attribute."""
        attribute = self._attribute(name)
        if not isinstance(attribute, mlir.ir.StringAttr):
            raise Invalid(f"attribute {name} is a string", **{name: attribute})
        return str(attribute.value)

    def number(self, name: str) -> int:
        """An integer attribute."""
        attribute = self._attribute(name)
        if not isinstance(attribute, mlir.ir.IntegerAttr):
            raise Invalid(f"attribute {name} is an integer", **{name: attribute})
        return int(attribute.value)

    def numbers(self, name: str, of: type[Any] | None = None) -> list[int]:
        """An attribute that is a dense array of i32, or of the kind `of`."""
        attribute = self._attribute(name)
        if not isinstance(attribute, of or mlir.ir.DenseI32ArrayAttr):
            raise Invalid(f"attribute {name} is an array of integers", **{name: attribute})
        return list(attribute)

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """A string attribute that is one of a few words."""
        text = self.text(name)
        if text not in known:
            raise Invalid(f"{name} {text!r} is not known", f"{name} is one of {', '.join(sorted(known))}")
        return text

    def _attribute(self, name: str) -> Any:
        if name not in self.attributes:
            raise Invalid(f"attribute {name} is missing")
        return self.attributes[name]


@dataclass(frozen=True)
class Memory:
    """A `!cute.ptr` or `!cute.tensor`: its runtime leaves are `Multiple`s of the divisors that the text gives.

    A pointer has no layout.
    """

    type: ir.Type
    element: ir.Type
    space: str
    align: int
    text: str = ""
    layout: Any = None

    @property
    def bits(self) -> int:
        return element_bits(self.element)

    @property
    def view(self) -> TensorView:
        """What the rules of the lowering ask about layouts and alignments; it has no address."""
        return TensorView(None, self.layout, PtrInfo(self.element, self.space, self.align))

    @property
    def outer_text(self) -> str:
        """The part of the layout's text whose leaves are operands of a view."""
        return self.text.rpartition(" o ")[2]

    def count(self, what: str) -> int:
        """The number of elements, which an operation on the whole tensor must know."""
        count = size(self.layout)
        if not isinstance(count, int):
            raise Invalid(f"{what} needs a tensor whose size is known", "tile it first", layout=self.text)
        return count


def memory(type_: ir.Type) -> Memory:
    """What a type of the `cute` dialect says; Invalid where it says nothing that can be."""
    found: Memory = current().cached(("verified type", type_), lambda: _read(type_))
    return found


def _read(type_: ir.Type) -> Memory:
    element, space, *layout, align = parameters(type_)
    if element not in _ELEMENTS:
        raise Invalid("elements have a number type", type=type_, element=element)
    if space not in SPACES:
        raise Invalid(f"there is no space {space!r}", f"spaces: {', '.join(SPACES)}", type=type_)
    number = align.partition(" ")[0]
    if not number.isdigit() or not _is_power(int(number)):
        raise Invalid("an alignment is a power of two of bytes", type=type_, alignment=number)
    text = layout[0] if layout else ""
    found = _layout(text, type_) if layout else None
    return Memory(type_, types.parse(element), space, int(number), text, found)


def _is_power(number: int) -> bool:
    return number > 0 and not number & (number - 1)


def _layout(text: str, type_: ir.Type) -> Layout | ComposedLayout:
    try:
        found = layout_text.decode_layout(text, leaf)
        again = layout_text.encode(found)[0]
    except _UNREADABLE as error:
        raise Invalid("the layout cannot be read", type=type_, reason=f"{error}") from error
    if not isinstance(found, Layout | ComposedLayout) or again != text:
        raise Invalid("the layout is not written as layouts are", type=type_, read=again)
    outer = found.outer if isinstance(found, ComposedLayout) else found
    if not isinstance(outer, Layout) or (isinstance(found, ComposedLayout) and not isinstance(found.inner, Swizzle)):
        raise Invalid("memory is addressed by a layout, or by a swizzle of one", type=type_)
    offset = found.offset if isinstance(found, ComposedLayout) else 0
    if not is_int(offset) or not all(map(is_int, flat(outer.stride))):
        raise Invalid("offsets and strides in memory are integers", type=type_)
    if any(isinstance(extent, int) and extent < 0 for extent in flat(outer.shape)):
        raise Invalid("an extent is negative", type=type_)
    return found


def leaf(width: int, divisibility: int) -> Multiple:
    """A leaf known only at run time."""
    if divisibility < 1:
        raise ValueError(f"div={divisibility}")
    return Multiple(divisibility, width)


def tensor(type_: ir.Type) -> Memory:
    """A tensor's type."""
    found = memory(type_) if types.is_cute(type_) else None
    if found is None or found.layout is None:
        raise Invalid("the operand is a tensor", got=type_)
    return found


def fragment(type_: ir.Type) -> Memory:
    """A register fragment as a value: a vector of its elements."""
    element, length = vector_of(type_)
    if not length or str(element) not in _ELEMENTS:
        raise Invalid("a register fragment as a value is a vector of numbers", got=type_)
    return Memory(type_, element, "rmem", 1, f"{length}:1", Layout(length))


def tensor_or_fragment(type_: ir.Type) -> Memory:
    """A tensor, or a register fragment as a value."""
    return tensor(type_) if types.is_cute(type_) else fragment(type_)


def check_leaves(what: str, text: str, leaves32: Sequence[ir.Type], leaves64: Sequence[ir.Type]) -> None:
    """The operands must be as many as `text` has leaves."""
    widths = layout_text.widths(text)
    given, wanted = (len(leaves32), len(leaves64)), (widths.count(32), widths.count(64))
    if given != wanted:
        raise Invalid(
            f"{what} has {wanted[0]} leaves of 32 bits and {wanted[1]} of 64, and the operands are {given[0]} and "
            f"{given[1]}",
            "give one operand for each `?`, in order of appearance, those of 32 bits first",
            **{what: text},
        )


def vector_of(type_: ir.Type) -> tuple[ir.Type, int]:
    """Element type and length of a vector; of another type itself and 0."""
    if not isinstance(type_, mlir.ir.VectorType):
        return type_, 0
    if len(type_.shape) != 1:
        raise Invalid("vectors have one mode", got=type_)
    return type_.element_type, int(type_.shape[0])


def same_element(what: str, type_: ir.Type, memory: Memory) -> None:
    """A number of type `type_` must be an element of the tensor."""
    if type_ != memory.element:
        raise Invalid(f"{what} is of another type than the tensor's elements", value=type_, tensor=memory.type)


def whole_vector(what: str, type_: ir.Type, memory: Memory) -> None:
    """A vector must hold all elements of the tensor."""
    element, length = vector_of(type_)
    same_element(what, element, memory)
    count = memory.count(what)
    if length != count:
        raise Invalid(
            f"{what} has {length} elements and the tensor {count}",
            "the vector holds all elements, in colexicographic order",
            value=type_,
            tensor=memory.type,
        )


def room_bits(memory: Memory) -> int | None:
    """Bits from the address to behind the last element; None where that is not known, -1 where it begins before."""
    layout = memory.layout
    if isinstance(layout, ComposedLayout) or layout_text.widths(memory.text):
        return None
    if size(layout) == 0:
        return 0
    if least(layout) < 0:
        return -1
    last = sum(
        max((extent - 1) * step, 0) for extent, step in zip(flat(layout.shape), flat(layout.stride), strict=True)
    )
    return int(last + 1) * memory.bits
