"""What operations and types of stage `cute` say, as Python values: elements, spaces, layouts, atoms, constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import atom_text, build, layout_text, mlir, types
from tilewright.ir.atom_text import AtomText
from tilewright.ir.context import current
from tilewright.ir.user_ops import spec_of
from tilewright.layout import ComposedLayout, Layout, sym_int

if TYPE_CHECKING:
    from mlir import ir


@dataclass(frozen=True)
class PtrInfo:
    """What a `!cute.ptr` or `!cute.tensor` type says: MLIR element type, space, alignment in bytes."""

    element: ir.Type
    space: str
    align: int


@dataclass(frozen=True)
class TensorInfo(PtrInfo):
    """What a `!cute.tensor` type says; `text` is its layout as written, with `?` for what is known at run time."""

    text: str

    @property
    def layout(self) -> Layout | ComposedLayout:
        """The layout; symbols `v0`, `v1`, ... stand for what is known at run time."""
        count = iter(range(1 << 30))
        return layout_text.decode_layout(
            self.text, lambda width, divisibility: sym_int(divisibility, width, f"v{next(count)}")
        )

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return int(self.element.width)


@dataclass(frozen=True)
class ViewInfo:
    """What a `cute.view` does: the function of the algebra, the tensor, and the arguments that follow it. Symbols stand
    for numbers of run time; `operands` has their values by name."""

    algebra: str
    source: ir.Value
    arguments: tuple[Any, ...]
    operands: dict[str, ir.Value]


def ptr_info(type_: ir.Type) -> PtrInfo:
    """The parameters of a `!cute.ptr` or `!cute.tensor` type."""
    found: PtrInfo = current().cached(("ptr info", type_), lambda: _ptr_info(type_))
    return found


def _ptr_info(type_: ir.Type) -> PtrInfo:
    element, space, *rest = parameters(type_)
    return PtrInfo(types.parse(element), space, int(rest[-1].partition(" ")[0]))


@dataclass(frozen=True)
class TensorMapInfo:
    """What a `!cute.tensor_map` type says: MLIR element type, the box from the contiguous mode on, bytes of swizzle."""

    element: ir.Type
    box: tuple[int, ...]
    swizzle: int


def tensor_map_info(type_: ir.Type) -> TensorMapInfo:
    """The parameters of a `!cute.tensor_map` type."""
    element, box, swizzle = parameters(type_)
    extents = tuple(int(extent) for extent in box.split(","))
    return TensorMapInfo(types.parse(element), extents, int(swizzle.partition(" ")[0]))


def is_tensor(value: ir.Value) -> bool:
    """True of tensors, which are in memory; vectors are values."""
    return str(value.type).startswith("!cute.tensor<")


def tensor_info(value: ir.Value) -> TensorInfo:
    """Element type, space, layout and alignment of a tensor.

    Raises:
        CompileError: the value is none.
    """
    if not is_tensor(value):
        raise CompileError("a tensor is expected", values={"type": value.type}, hint="ask is_tensor(value) first")
    element, space, layout, align = parameters(value.type)
    return TensorInfo(types.parse(element), space, int(align.partition(" ")[0]), layout)


def tensor_layout_text(type_: ir.Type) -> str:
    """The layout in a `!cute.tensor` type."""
    return str(current().cached(("layout text", type_), lambda: parameters(type_)[2]))


def parameters(type_: ir.Type) -> tuple[str, ...]:
    """The parameters of a type of the `cute` dialect as text, quotes removed."""
    found: tuple[str, ...] = current().cached(("parameters", type_), lambda: _parameters(type_))
    return found


def _parameters(type_: ir.Type) -> tuple[str, ...]:
    body = str(type_).partition("<")[2][:-1]
    parts, depth, quoted, start = [], 0, False, 0
    for position, char in enumerate(body):
        quoted ^= char == '"'
        if quoted:
            continue
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(body[start:position])
            start = position + 1
    parts.append(body[start:])
    return tuple(part.strip().strip('"') for part in parts)


def text_of(op: ir.Operation, name: str) -> str:
    """A string attribute of `op`."""
    return str(mlir.ir.StringAttr(op.attributes[name]).value)


def number_of(op: ir.Operation, name: str) -> int:
    """An integer attribute of `op`."""
    return int(mlir.ir.IntegerAttr(op.attributes[name]).value)


def operands_of(op: ir.Operation) -> dict[str, Any]:
    """The operands of an operation of the dialect table by name: a value, or a list where any number may stand."""
    spec = spec_of(op.name)
    if spec is None:
        raise CompileError(f"the operands of {op.name} have no names", hint="use op.operands")
    names = [text.split(":") for text in spec.operands]
    return {
        name: group if kind.endswith("*") else group[0]
        for (name, kind), group in zip(names, build.groups(op), strict=True)
    }


def atom_of(op: ir.Operation) -> AtomText:
    """The atom of a copy or gemm: a name and parameters."""
    return atom_text.read(text_of(op, "atom"))


def set_atom(op: ir.Operation, name: str, **parameters: object) -> None:
    """Give a copy or gemm another atom."""
    op.attributes["atom"] = build.string(atom_text.write(name, **parameters))


def view_info(op: ir.Operation) -> ViewInfo:
    """The parts of a `cute.view`."""
    (source,), numbers32, numbers64, *_ = build.groups(op)
    queues = {32: iter(numbers32), 64: iter(numbers64)}
    named: dict[str, ir.Value] = {}

    def leaf(width: int, divisibility: int) -> Any:
        name = f"v{len(named)}"
        named[name] = next(queues[width])
        return sym_int(divisibility, width, name)

    arguments = layout_text.decode_arguments(text_of(op, "arguments"), leaf)
    return ViewInfo(text_of(op, "algebra"), source, arguments, named)


def defining_op(value: ir.Value, *names: str) -> Any:
    """The operation whose result `value` is, if it has one of the `names` or none are given; else None.

    None also of an argument of a function or a block, such as what a loop carries.
    """
    owner = value.owner
    if isinstance(owner, mlir.ir.Block) or (names and owner.name not in names):
        return None
    return owner


def constant_of(value: ir.Value) -> int | float | None:
    """The number that an `arith.constant` holds, in all its elements where it is a vector; None of other values.

    Booleans are 0 and 1, other integers are read as signed.
    """
    owner = defining_op(value, "arith.constant")
    if owner is None:
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, mlir.ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, mlir.ir.BoolAttr):
        return int(attribute.value)
    if isinstance(attribute, mlir.ir.IntegerAttr):
        return int(attribute.value)
    return float(attribute.value) if isinstance(attribute, mlir.ir.FloatAttr) else None


def is_constant(value: ir.Value, number: float) -> bool:
    """True where `value` is the constant `number`, alone or as every element of a vector. 0.0 is not -0.0."""
    found = constant_of(value)
    return found is not None and found == number and str(float(found)) == str(float(number))
