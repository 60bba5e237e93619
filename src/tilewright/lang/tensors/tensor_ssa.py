"""TensorSSA: a tensor held in registers, as a value.

Elements stand in colexicographic order of the shape. Operators work element by element, with NumPy's broadcasting and
the promotion of `lang.numbers`; a Python number takes the element type when it is a float type or both are integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, cast

from tilewright.base.errors import CompileError
from tilewright.hw import narrow_floats
from tilewright.ir import build, types, vectors
from tilewright.ir.context import holds_value
from tilewright.lang.contraction import contraction
from tilewright.lang.diagnostics.argument_checks import Kind, takes
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
    division_by_zero,
    is_number,
    number_type,
    shift_amount,
)
from tilewright.lang.numbers.promotion import promote
from tilewright.lang.numbers.signatures import Result
from tilewright.lang.tensors.coordinates import coord_text, may_be_inside
from tilewright.lang.tensors.element_limits import value_shape
from tilewright.layout import Layout, crd2idx, flatten_to_tuple, slice_, slice_and_offset
from tilewright.layout import size as layout_size

if TYPE_CHECKING:
    from mlir import ir


class ReductionOp(Enum):
    """The operation with which `reduce` folds: ADD, MUL, MAX, MIN and others."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


_BY_WORD = {item.value: item for item in ReductionOp}
_COUNTING = {ReductionOp.ADD: 0, ReductionOp.MUL: 1, ReductionOp.XOR: 0}
"""What folds start from that count an element each time; the others may start from an element."""


def _marked_extents(shape: Any, profile: Any) -> list[tuple[int, bool]]:
    """The extents that face one mark each, and whether the mark folds them."""
    if not isinstance(profile, tuple):
        return [(int(layout_size(shape)), profile is not None)]
    if not isinstance(shape, tuple) or len(profile) != len(shape):
        raise CompileError(
            "a reduction profile has one entry for each mode",
            location=user_location(),
            values={"profile": coord_text(profile), "shape": shape},
        )
    return [mark for extent, item in zip(shape, profile, strict=True) for mark in _marked_extents(extent, item)]


def _binary(name: str) -> tuple[Result[TensorSSA], Result[TensorSSA]]:
    def forward(self: TensorSSA, other: Any) -> Any:
        return _operate(name, self, other, reflected=False)

    def reflected(self: TensorSSA, other: Any) -> Any:
        return _operate(name, self, other, reflected=True)

    return cast(Any, (forward, reflected))


def _comparison(name: str) -> Result[TensorSSA]:
    def compare(self: TensorSSA, other: Any) -> Any:
        return _compare(name, self, other)

    return cast("Result[TensorSSA]", compare)


NumberType = type[Numeric]  # by a name of its own, as a TensorSSA has an attribute `type`


class TensorSSA:
    """The elements of a tensor as a value in registers, which `tensor.load()` gives and `tensor.store(v)` writes.

    Operators work element by element, with NumPy's broadcasting. `shape` and `dtype` say what it holds, `v.to(dtype)`
    converts it, `v.reduce(op, init_val, profile)` folds it, and `v[i]` and `v[None, j]` select from it. `value` is the
    MLIR vector, with one element for each index of `shape`.
    """

    __array_ufunc__ = None  # numbers of NumPy leave operators to this class

    def __init__(self, value: ir.Value, shape: Any, dtype: NumberType) -> None:
        self.value = value
        holds_value(self)
        self.shape = shape if isinstance(shape, tuple) else (shape,)
        self.dtype = dtype

    @classmethod
    def from_elements(
        cls, elements: Sequence[Any], dtype: NumberType | None = None, *, loc: object = None, ip: object = None
    ) -> Self:
        """A value of rank 1 of these numbers, converted to `dtype`; without it they are all of one type.

        Raises:
            CompileError: there are none, or `dtype` is left out and their types differ.
        """
        numbers = [as_numeric(item) for item in elements]
        kinds = {type(number) for number in numbers}
        if not numbers or (dtype is None and len(kinds) > 1):
            raise CompileError(
                "from_elements takes numbers of one type, at least one",
                location=user_location(),
                values={"types": ", ".join(str(type(number)) for number in numbers) or "none"},
                hint="give the element type: from_elements(elements, dtype)",
            )
        kind = number_type(dtype) if dtype is not None else kinds.pop()
        values = [kind(number).ir_value() for number in numbers]
        return cls(
            build.value("vector.from_elements", types.vector(len(values), kind.facts.name), values), len(values), kind
        )

    @property
    def element_type(self) -> NumberType:
        return self.dtype

    @property
    def size(self) -> int:
        return int(layout_size(self.shape))

    @property
    def layout(self) -> Layout:
        """The compact column-major layout of the shape."""
        return Layout(self.shape)

    def ir_value(self, *, loc: object = None, ip: object = None) -> ir.Value:
        return self.value

    @property
    def type(self) -> ir.Type:
        """The MLIR type of the vector."""
        return self.value.type

    def to_elements(self, *, loc: object = None, ip: object = None) -> list[Numeric]:
        """The elements as numbers, in colexicographic order."""
        return list(self)

    def to(self, dtype: NumberType, *, loc: object = None, ip: object = None) -> TensorSSA:
        """Elements converted to `dtype`, as numbers are."""
        value = convert(self.value, self.dtype.facts, number_type(dtype).facts)
        return TensorSSA(value, self.shape, dtype)

    def bitcast(self, dtype: NumberType, *, loc: object = None, ip: object = None) -> TensorSSA:
        """The same bits as elements of `dtype`; only the first mode changes when widths differ."""
        count, rest = divmod(self.size * self.dtype.width, number_type(dtype).width)
        if rest:
            raise CompileError(
                f"{self.size} elements of {self.dtype} are no whole number of {dtype}",
                location=user_location(),
                values={"shape": self.shape, "bits": f"{self.size * self.dtype.width}, {dtype} has {dtype.width}"},
                hint="`.to(T)` converts the numbers; `.bitcast(T)` shows their bits as elements of T",
            )
        value = build.value("vector.bitcast", types.vector(count, dtype.facts.name), (self.value,))
        shape = self.shape if count == self.size else (count,)
        return TensorSSA(value, shape, dtype)

    def broadcast_to(self, target_shape: Any, *, loc: object = None, ip: object = None) -> TensorSSA:
        """Repeated along modes of extent 1 (and new leading modes) to `target_shape`, as NumPy does."""
        target = value_shape(target_shape)
        if self.shape == target:
            return self
        source = (1,) * (len(target) - len(self.shape)) + self.shape
        if len(source) != len(target) or any(a not in (1, b) for a, b in zip(source, target, strict=True)):
            raise CompileError(
                "shapes do not broadcast",
                location=user_location(),
                values={"from": self.shape, "to": target},
                hint="each mode must be equal or 1",
            )
        strides = _broadcast_strides(source)
        layout = Layout(target, strides)
        return self._shuffled([int(layout(index)) for index in range(int(layout_size(layout)))], target)

    def reshape(self, shape: Any, *, loc: object = None, ip: object = None) -> TensorSSA:
        """The same elements in colexicographic order under another shape of equal size."""
        result = TensorSSA(self.value, value_shape(shape), self.dtype)
        if result.size != self.size:
            raise CompileError(
                "reshape changes the number of elements",
                location=user_location(),
                values={"from": self.shape, "to": shape},
                hint=f"the new extents multiply to {self.size}",
            )
        return result

    def __getitem__(self, coord: Any, *, loc: object = None, ip: object = None) -> Any:
        if _has_slice(coord):
            return self._sliced(coord if isinstance(coord, tuple) else (coord,))
        if isinstance(coord, tuple) and _has_none(coord):
            layout, offset = slice_and_offset(coord, self.layout)
            indices = [int(offset) + int(layout(index)) for index in range(int(layout_size(layout)))]
            return self._shuffled(indices, layout.shape)
        if isinstance(coord, tuple):
            self._check_coord(coord)
            coord = crd2idx(coord, self.layout)
        return self._element(coord)

    def _sliced(self, coord: tuple[Any, ...]) -> TensorSSA:
        """The part that Python's slices of each mode leave; a number fixes its mode."""
        extents = self.shape
        if len(coord) != len(extents) or not all(isinstance(extent, int) for extent in extents):
            raise CompileError(
                "a TensorSSA takes one slice or number for each mode",
                location=user_location(2),
                values={"shape": self.shape, "index": coord},
            )
        kept = [range(extent)[part] for part, extent in zip(coord, extents, strict=True) if isinstance(part, slice)]
        if not all(kept):
            raise CompileError(
                "a slice of a TensorSSA that keeps no element",
                location=user_location(2),
                values={"shape": self.shape, "index": coord},
            )
        places = [
            range(extent)[part] if isinstance(part, slice) else (part,)
            for part, extent in zip(coord, extents, strict=True)
        ]
        orders = [item[::-1] for item in itertools.product(*reversed(places))]  # the first mode moves fastest
        indices = [int(crd2idx(item, self.layout)) for item in orders]
        return self._shuffled(indices, tuple(len(item) for item in kept))

    def __iter__(self) -> Iterator[Numeric]:
        """The elements in colexicographic order."""
        return iter([self._element(index) for index in range(self.size)])

    def reduce(
        self,
        op: ReductionOp | str,
        init_val: Any = None,
        reduction_profile: Any = 0,
        *,
        loc: object = None,
        ip: object = None,
    ) -> Any:
        """Fold with `op`, starting from `init_val`, in the element type; Booleans are added and compared as Int32.

        `op` is a ReductionOp or its name in small letters. Without `init_val` only the elements are folded.

        `reduction_profile` 0 folds all to one number; a tuple keeps the modes marked None and folds the others, at
        any depth of the shape. What is kept has the shape of `v[profile]`.

        Raises:
            CompileError: `init_val` is no number of the element type (an infinity stands for the extreme integer), or
                the profile does not fit the shape.
        """
        op = _BY_WORD.get(op, op) if isinstance(op, str) else op
        if not isinstance(op, ReductionOp):
            names = ", ".join(item.name for item in ReductionOp)
            raise CompileError(
                f"reduce takes a ReductionOp, not {op!r}",
                location=user_location(),
                hint=f"cute.ReductionOp has {names}",
            )
        bitwise = op in (ReductionOp.AND, ReductionOp.OR, ReductionOp.XOR)
        if bitwise and self.dtype.is_float:
            raise CompileError(f"reduce {op.name} of {self.dtype}", location=user_location(), hint="it takes integers")
        if narrow_floats.is_narrow(self.dtype.facts.name):
            return self.to(Float32).reduce(op, init_val, reduction_profile)
        if self.dtype is Boolean and not bitwise:  # as the operators have it
            return self.to(Int32).reduce(op, init_val, reduction_profile)
        init = (self[0] if init_val is None else _initial(init_val, self.dtype)).ir_value()
        if init_val is None and op in _COUNTING:
            init = _initial(_COUNTING[op], self.dtype).ir_value()
        whole = not isinstance(reduction_profile, tuple)
        profile = tuple(1 for _ in self.shape) if whole else reduction_profile
        marks = _marked_extents(self.shape, profile)
        kept = slice_(self.shape, profile)
        name = f"{op.value}{self.dtype.facts.arithmetic_kind}"
        result = types.vector(int(layout_size(kept)), self.dtype.facts.name) if kept else self.dtype.mlir_type
        value = build.cute(
            "reduce",
            (result,),
            ((self.value,), (init,)),
            kind=build.string(name),
            shape=build.i32_array([extent for extent, _ in marks]),
            profile=build.i32_array([int(folds) for _, folds in marks]),
            **(contraction() or {} if name in ("addf", "mulf") else {}),
        ).results[0]
        return TensorSSA(value, kept, self.dtype) if kept else self.dtype.from_ir(value)

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lshift__, __rlshift__ = _binary("shl")
    __rshift__, __rrshift__ = _binary("shr")

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    __lt__ = _comparison("lt")
    __le__ = _comparison("le")
    __gt__ = _comparison("gt")
    __ge__ = _comparison("ge")
    __eq__ = _comparison("eq")  # type: ignore[assignment]
    __ne__ = _comparison("ne")  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __neg__(self) -> TensorSSA:
        if narrow_floats.is_narrow(self.dtype.facts.name):
            return (-self.to(Float32)).to(self.dtype)
        if self.dtype is Boolean:
            return -self.to(Int32)
        return self.mapped(lambda value: arithmetic.negate(self.dtype.facts.arithmetic_kind, value))

    def __pos__(self) -> TensorSSA:
        return self

    def __invert__(self) -> TensorSSA:
        if self.dtype.is_float:
            raise CompileError(f"~ on {self.dtype}", location=user_location(), hint="~ takes integers and Booleans")
        return self.mapped(arithmetic.invert)

    def __abs__(self) -> TensorSSA:
        if narrow_floats.is_narrow(self.dtype.facts.name):
            return abs(self.to(Float32)).to(self.dtype)
        return self.mapped(lambda value: arithmetic.absolute(self.dtype.facts.arithmetic_kind, value))

    def __bool__(self) -> bool:
        raise CompileError(
            "a TensorSSA has no single truth value",
            location=user_location(),
            hint="reduce it first, or use cute.where",
        )

    def mapped(self, function: Callable[[ir.Value], ir.Value]) -> TensorSSA:
        """The same shape and type with `function` applied to the vector."""
        return TensorSSA(function(self.value), self.shape, self.dtype)

    def __extract_mlir_values__(self) -> list[ir.Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[ir.Value]) -> Self:
        return type(self)(values[0], self.shape, self.dtype)

    def __tw_structure__(self) -> tuple[str, str]:
        """What may not change in a region."""
        return str(self.shape), str(self.dtype)

    def __str__(self) -> str:
        extents = ", ".join(str(extent) for extent in self.shape)
        return f"vector<{self.size}x{self.dtype.facts.mlir}> o ({extents})"

    __repr__ = __str__

    def _element(self, index: Any) -> Numeric:
        if isinstance(index, Numeric) and index.is_static and type(index).is_integer:
            index = int(index.value)
        if isinstance(index, int) and not 0 <= index < self.size:
            raise self._outside(index)
        if not isinstance(index, int) and not type(as_numeric(index)).is_integer:
            raise CompileError(f"a TensorSSA is indexed by integers, not by {index!r}", location=user_location())
        position = index if isinstance(index, int) else as_numeric(index).ir_value()
        return self.dtype.from_ir(vectors.extract(self.value, position))

    def _check_coord(self, coord: tuple[Any, ...]) -> None:
        if len(coord) != len(self.shape):
            raise CompileError(
                f"{len(coord)} indices for a TensorSSA of rank {len(self.shape)}",
                location=user_location(),
                values={"value": self, "indices": coord_text(coord)},
                hint="give one index for each mode, or one linear index",
            )
        if not may_be_inside(coord, self.shape):
            raise self._outside(coord)

    def _outside(self, index: Any) -> CompileError:
        return CompileError(
            f"index {coord_text(index)} is outside a TensorSSA of {self.size} elements",
            location=user_location(),
            values={"shape": self.shape},
            hint="indices count from 0; negative ones do not count from the end",
        )

    def _shuffled(self, indices: list[int], shape: Any) -> TensorSSA:
        value = vectors.shuffle(self.value, indices)
        return TensorSSA(value, shape, self.dtype)


def _initial(value: Any, dtype: type[Numeric]) -> Numeric:
    """What a fold of `dtype` starts from."""
    number = as_numeric(value)
    known = number.value if number.is_static else None
    if dtype.is_integer and type(number).is_float and not (known is not None and math.isinf(known)):
        fits = known is not None and not math.isnan(known) and known == int(known) and dtype(number).value == known
    else:
        fits = not (dtype.is_integer and isinstance(known, int)) or dtype(number).value == known
    if not fits:
        shown = f"{type(number)} {known}" if number.is_static else f"a {type(number)}"
        raise CompileError(
            f"reduce of {dtype} starts from {shown}, which is no {dtype}",
            location=user_location(2),
            hint=f"convert the elements first, or the start: {dtype}(...)",
        )
    return dtype(number)


def full(shape: Any, fill_value: Any, dtype: type[Numeric], *, loc: object = None, ip: object = None) -> TensorSSA:
    """A TensorSSA of `shape` whose elements are all `fill_value`.

    Raises:
        LayoutError, CompileError: the shape is not one that a value can have, because it is not static or is too large.
    """
    shape = value_shape(shape)
    number = number_type(dtype)(as_numeric(fill_value))
    type_ = types.vector(int(layout_size(shape)), dtype.facts.name)
    if number.is_static:
        return TensorSSA(build.splat(number.value, type_), shape, dtype)
    return TensorSSA(build.value("vector.broadcast", type_, (number.ir_value(),)), shape, dtype)


_SHAPED = Kind("a tensor or a TensorSSA", lambda value: hasattr(value, "shape") and hasattr(value, "element_type"))


@takes(_SHAPED)
def full_like(
    a: Any, fill_value: Any, dtype: type[Numeric] | None = None, *, loc: object = None, ip: object = None
) -> TensorSSA:
    """A TensorSSA of one number in the shape of `a`, a tensor or TensorSSA."""
    return full(a.shape, fill_value, dtype or a.element_type)


@takes(_SHAPED)
def zeros_like(a: Any, dtype: type[Numeric] | None = None, *, loc: object = None, ip: object = None) -> TensorSSA:
    """A TensorSSA of zeros in the shape of `a`."""
    return full_like(a, 0, dtype)


@takes(_SHAPED)
def ones_like(a: Any, dtype: type[Numeric] | None = None, *, loc: object = None, ip: object = None) -> TensorSSA:
    """A TensorSSA of ones in the shape of `a`."""
    return full_like(a, 1, dtype)


def empty_like(a: Any, dtype: type[Numeric] | None = None, *, loc: object = None, ip: object = None) -> TensorSSA:
    """A TensorSSA in the shape of `a` whose elements nothing may rely on: zeros."""
    return full_like(a, 0, dtype)


def any_(x: TensorSSA, *, loc: object = None, ip: object = None) -> Boolean:
    """Whether some element is true, or is not 0."""
    return Boolean(_truths(x).reduce(ReductionOp.MAX, 0) != 0)


def all_(x: TensorSSA, *, loc: object = None, ip: object = None) -> Boolean:
    """Whether every element is true, or is not 0."""
    return Boolean(_truths(x).reduce(ReductionOp.MIN, 1) != 0)


def _truths(x: TensorSSA) -> TensorSSA:
    if not isinstance(x, TensorSSA):
        raise CompileError(f"any_ and all_ take a TensorSSA, not {type(x).__name__}", location=user_location(3))
    return (x if x.dtype is Boolean else x != 0).to(Int32)


def where(cond: TensorSSA, x: Any, y: Any, *, loc: object = None, ip: object = None) -> TensorSSA:
    """The elements of `x` where `cond` is true, and those of `y` elsewhere; shapes broadcast."""
    if not isinstance(cond, TensorSSA):
        raise CompileError(
            f"where takes a TensorSSA as its condition, not {type(cond).__name__}",
            location=user_location(),
            hint="for numbers write `a if condition else b`",
        )
    cond = cond if cond.dtype is Boolean else cond != 0
    operands = [item for item in (x, y) if isinstance(item, TensorSSA)]
    dtype = _meet(x, y, operands)
    x, y = (_as_ssa(item, cond.shape, dtype) for item in (x, y))
    shape = _common_shape(_common_shape(cond.shape, x.shape), y.shape)
    cond, x, y = (item.broadcast_to(shape) for item in (cond, x, y))
    return TensorSSA(arithmetic.select(cond.value, x.value, y.value), shape, dtype)


def _meet(left: Any, right: Any, operands: list[TensorSSA]) -> type[Numeric]:
    """The type of a selection: as operators have it, but of two Booleans it is Boolean."""

    def type_of(item: Any) -> type[Numeric]:
        if isinstance(item, TensorSSA):
            return item.dtype
        return _number_type(operands[0].dtype, item) if operands else type(as_numeric(item))

    a, b = type_of(left), type_of(right)
    return a if a is b else common_type(a, b)


def _as_ssa(item: Any, shape: Any, dtype: type[Numeric]) -> TensorSSA:
    return item.to(dtype) if isinstance(item, TensorSSA) else full(shape, item, dtype)


def _has_slice(coord: Any) -> bool:
    return isinstance(coord, slice) or (isinstance(coord, tuple) and any(isinstance(part, slice) for part in coord))


def _has_none(coord: Any) -> bool:
    return coord is None or (isinstance(coord, tuple) and any(_has_none(part) for part in coord))


def _broadcast_strides(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Column-major strides of a shape, 0 on modes of extent 1."""
    strides, step = [], 1
    for extent in shape:
        flat = Layout(extent)
        count = int(layout_size(flat))
        strides.append(0 if count == 1 and not isinstance(extent, tuple) else _scaled(flat, step))
        step *= count
    return tuple(strides)


def _scaled(layout: Layout, step: int) -> Any:
    def scale(item: Any) -> Any:
        return tuple(scale(part) for part in item) if isinstance(item, tuple) else item * step

    return scale(layout.stride)


def _common_shape(left: Any, right: Any) -> tuple[Any, ...]:
    rank = max(len(left), len(right))
    a, b = ((1,) * (rank - len(shape)) + tuple(shape) for shape in (left, right))
    for first, second in zip(a, b, strict=True):
        if first != second and 1 not in (first, second):
            raise CompileError(
                "shapes do not broadcast",
                location=user_location(),
                values={"left": left, "right": right},
                hint="each mode must be equal or 1",
            )
    return tuple(second if first == 1 else first for first, second in zip(a, b, strict=True))


def _pair(left: TensorSSA, other: Any) -> tuple[TensorSSA, TensorSSA] | None:
    """Both operands in one shape; a number is repeated. None when `other` is neither."""
    if is_number(other):
        return left, full(left.shape, other, _number_type(left.dtype, other))
    if not isinstance(other, TensorSSA):
        return None
    shape = (
        left.shape
        if flatten_to_tuple(left.shape) == flatten_to_tuple(other.shape)
        else _common_shape(left.shape, other.shape)
    )
    if shape == left.shape and flatten_to_tuple(left.shape) == flatten_to_tuple(other.shape):
        return left, TensorSSA(other.value, shape, other.dtype)
    return left.broadcast_to(shape), other.broadcast_to(shape)


def _number_type(dtype: type[Numeric], number: Any) -> type[Numeric]:
    if isinstance(number, Numeric):
        return type(number)
    if isinstance(number, float):
        return dtype if dtype.is_float else Float32
    fits = dtype.is_float or (dtype is not Boolean and dtype.min <= number <= dtype.max)
    return dtype if fits else type(as_numeric(number))


def _operate(name: str, left: TensorSSA, other: Any, *, reflected: bool) -> Any:
    if name in ("shl", "shr"):
        return _shift(name, left, other, reflected=reflected)
    pair = _pair(left, other)
    if pair is None:
        return NotImplemented
    a, b = pair[::-1] if reflected else pair
    if name in ("floordiv", "mod") and not reflected and is_number(other) and b.dtype.is_integer and a.dtype.is_integer:
        number = as_numeric(other)
        if number.is_static and number.value == 0:
            raise division_by_zero()
    logical = name in ("and", "or", "xor") and a.dtype is Boolean and b.dtype is Boolean
    dtype = Boolean if logical else BY_NAME[promote(a.dtype.facts, b.dtype.facts).name]
    if name == "truediv" and not dtype.is_float:
        dtype = Float32
    if name in ("and", "or", "xor") and dtype.is_float:
        raise _takes_integers(name, a, b)
    kind = dtype.facts.arithmetic_kind
    value = arithmetic.binary(name, kind, a.to(dtype).value, b.to(dtype).value)
    return TensorSSA(value, a.shape, dtype)


def _shift(name: str, left: TensorSSA, other: Any, *, reflected: bool) -> Any:
    """A shift has the type of what is shifted, as for numbers; a known amount may exceed that type."""
    if is_number(other) and type(as_numeric(other)).is_float:
        raise CompileError(f"`{name}` on {left.dtype} and {other}", location=user_location(), hint="it takes integers")
    if is_number(other) and not reflected and as_numeric(other).is_static and left.dtype.is_integer:
        other = shift_amount(as_numeric(other), left.dtype)
    pair = _pair(left, other)
    if pair is None:
        return NotImplemented
    a, b = pair[::-1] if reflected else pair
    if a.dtype.is_float or b.dtype.is_float:
        raise _takes_integers(name, a, b)
    a = a.to(Int32) if a.dtype is Boolean else a
    amount = _shift_amounts(b, a.dtype).to(a.dtype)
    return a.mapped(lambda value: arithmetic.binary(name, a.dtype.facts.arithmetic_kind, value, amount.value))


def _shift_amounts(amounts: TensorSSA, dtype: type[Numeric]) -> TensorSSA:
    """Amounts too great for `dtype` become its width."""
    if amounts.dtype is Boolean or amounts.dtype.width <= dtype.width:
        return amounts
    return amounts.mapped(lambda value: arithmetic.binary("min", "u", value, build.splat(dtype.width, value.type)))


def _takes_integers(name: str, a: TensorSSA, b: TensorSSA) -> CompileError:
    return CompileError(f"`{name}` on {a.dtype} and {b.dtype}", location=user_location(), hint="it takes integers")


def _compare(name: str, left: TensorSSA, other: Any) -> Any:
    pair = _pair(left, other)
    if pair is None:
        return NotImplemented
    a, b = pair
    dtype = Boolean if a.dtype is Boolean and b.dtype is Boolean else common_type(a.dtype, b.dtype)
    value = arithmetic.compare(name, dtype.facts.arithmetic_kind, a.to(dtype).value, b.to(dtype).value)
    return TensorSSA(value, a.shape, Boolean)
