"""Tile: a matrix, or a box of any rank, that a block holds as one value.

A tile has a static shape and an element type and cannot be changed. Operators work element by element, with NumPy's
broadcasting and the promotion of `lang.numbers`; a Python number takes the element type when it is a float type or both
are integers. Who holds which element is the back end's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.ir.context import holds_value
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers import arithmetic
from tilewright.lang.numbers.conversion import convert
from tilewright.lang.numbers.numeric import (
    BY_NAME,
    Boolean,
    Float32,
    Int32,
    Numeric,
    as_numeric,
    common_type,
    is_number,
    number_type,
)
from tilewright.lang.numbers.promotion import promote

if TYPE_CHECKING:
    from mlir import ir

Shape = tuple[int, ...]


def _binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Tile, other: Any) -> Any:
        return _operate(name, self, other)

    def reflected(self: Tile, other: Any) -> Any:
        return _operate(name, self, other, reflected=True)

    return forward, reflected


def _comparison(name: str) -> Callable[..., Any]:
    def compare(self: Tile, other: Any) -> Any:
        return _compare(name, self, other)

    return compare


class Tile:
    """`value` is an MLIR value of type `tensor<64x32xf32>`, `shape` a tuple of ints, `dtype` the element type."""

    __array_ufunc__ = None  # numbers of NumPy leave operators to this class

    def __init__(self, value: ir.Value, shape: Shape, dtype: type[Numeric]) -> None:
        self.value = value
        holds_value(self)
        self.shape = shape
        self.dtype = dtype

    @property
    def element_type(self) -> type[Numeric]:
        return self.dtype

    def to(self, dtype: type[Numeric]) -> Tile:
        """Elements converted to `dtype`, as numbers are."""
        return Tile(convert(self.value, self.dtype.facts, number_type(dtype).facts), self.shape, dtype)

    def broadcast_to(self, shape: Shape) -> Tile:
        """Repeated along modes of extent 1 to `shape`.

        Raises:
            CompileError: another extent differs, or the rank does.
        """
        if self.shape == shape:
            return self
        if len(shape) != len(self.shape) or any(a not in (1, b) for a, b in zip(self.shape, shape, strict=True)):
            raise CompileError(
                "the shapes of tiles do not broadcast",
                location=user_location(),
                values={"from": self.shape, "to": shape},
                hint="each extent must be equal or 1, and tiles have one rank",
            )
        type_ = types.tile(shape, self.dtype.facts.name)
        return Tile(build.cute("tile_broadcast", (type_,), ((self.value,),)).results[0], shape, self.dtype)

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")

    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")
    __eq__ = _comparison("eq")
    __ne__ = _comparison("ne")
    __hash__ = object.__hash__

    def __neg__(self) -> Tile:
        if self.dtype is Boolean:
            return -self.to(Int32)
        return self.mapped(lambda value: arithmetic.negate(self.dtype.facts.arithmetic_kind, value))

    def __abs__(self) -> Tile:
        return self.mapped(lambda value: arithmetic.absolute(self.dtype.facts.arithmetic_kind, value))

    def __bool__(self) -> bool:
        raise CompileError(
            "a tile has no single truth value",
            location=user_location(),
            hint="choose between elements by tile.where(condition, a, b)",
        )

    def mapped(self, function: Callable[[ir.Value], ir.Value]) -> Tile:
        """The same shape and type with `function` applied to the value."""
        return Tile(function(self.value), self.shape, self.dtype)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> Self:
        return type(self)(values[0], self.shape, self.dtype)

    def __tw_structure__(self) -> tuple[str, str]:
        """What may not change in a region."""
        return str(self.shape), str(self.dtype)

    def __str__(self) -> str:
        return f"tile<{'x'.join(map(str, self.shape))}x{self.dtype}>"

    __repr__ = __str__


def full(shape: Sequence[int], value: Any, dtype: type[Numeric]) -> Tile:
    """A tile of one number, which may be known only at run time."""
    trace.device("tile.full")
    extents = tile_shape(shape, "tile.full")
    number = number_type(dtype)(as_numeric(value))
    type_ = types.tile(extents, dtype.facts.name)
    if number.is_static:
        return Tile(build.splat(number.value, type_), extents, dtype)
    return Tile(build.cute("tile_full", (type_,), ((number.ir_value(),),)).results[0], extents, dtype)


def tile_shape(shape: Any, what: str) -> Shape:
    """The shape of a tile: positive ints known while tracing.

    Raises:
        CompileError: it is something else.
    """
    given = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not given or any(not isinstance(extent, int) or isinstance(extent, bool) or extent < 1 for extent in given):
        raise CompileError(
            f"{what} needs a shape of positive ints that are known while compiling",
            location=user_location(),
            values={"shape": given},
            hint="write the extents as ints, or pass them as cutlass.Constexpr",
        )
    return given


def as_tile(item: Any, what: str) -> Tile:
    """`item`, which must be a tile.

    Raises:
        CompileError: it is none.
    """
    if not isinstance(item, Tile):
        raise CompileError(
            f"{what} takes a tile, not {type(item).__name__}",
            location=user_location(),
            hint="tile.load reads one from a tensor, tile.full makes one of a number",
        )
    return item


def common_shape(left: Shape, right: Shape) -> Shape:
    """The shape in which two tiles meet.

    Raises:
        CompileError: there is none.
    """
    fits = len(left) == len(right) and all(a == b or 1 in (a, b) for a, b in zip(left, right, strict=True))
    if not fits:
        raise CompileError(
            "the shapes of tiles do not broadcast",
            location=user_location(),
            values={"left": left, "right": right},
            hint="each extent must be equal or 1, and tiles have one rank",
        )
    return tuple(max(a, b) for a, b in zip(left, right, strict=True))


def number_type_beside(dtype: type[Numeric], number: Any) -> type[Numeric]:
    """The type of a number in arithmetic with elements of `dtype`."""
    if isinstance(number, Numeric):
        return type(number)
    if isinstance(number, float):
        return dtype if dtype.is_float else Float32
    return dtype if dtype is not Boolean else Int32


def pair(left: Tile, other: Any) -> tuple[Tile, Tile] | None:
    """Both operands in one shape, a number as a tile; None when `other` is neither."""
    if is_number(other):
        return left, full(left.shape, other, number_type_beside(left.dtype, other))
    if not isinstance(other, Tile):
        return None
    shape = common_shape(left.shape, other.shape)
    return left.broadcast_to(shape), other.broadcast_to(shape)


def _operate(name: str, left: Tile, other: Any, reflected: bool = False) -> Any:
    found = pair(left, other)
    if found is None:
        return NotImplemented
    a, b = found[::-1] if reflected else found
    logical = name in ("and", "or") and a.dtype is Boolean and b.dtype is Boolean
    dtype = Boolean if logical else BY_NAME[promote(a.dtype.facts, b.dtype.facts).name]
    if name == "truediv" and not dtype.is_float:
        dtype = Float32
    if name in ("and", "or") and dtype.is_float:
        raise CompileError(
            f"`{name}` on tiles of {a.dtype} and {b.dtype}",
            location=user_location(),
            hint="it takes integers and Booleans",
        )
    value = arithmetic.binary(name, dtype.facts.arithmetic_kind, a.to(dtype).value, b.to(dtype).value)
    return Tile(value, a.shape, dtype)


def _compare(name: str, left: Tile, other: Any) -> Any:
    found = pair(left, other)
    if found is None:
        return NotImplemented
    a, b = found
    dtype = Boolean if a.dtype is Boolean and b.dtype is Boolean else common_type(a.dtype, b.dtype)
    value = arithmetic.compare(name, dtype.facts.arithmetic_kind, a.to(dtype).value, b.to(dtype).value)
    return Tile(value, a.shape, Boolean)
