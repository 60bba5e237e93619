"""Building operations at the current insertion point.

`emit` is the one way by which the front end and the passes make operations: it adds the location that the session
gives, and finds pure `cute` operations again instead of making them twice in one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir import mlir, types
from tilewright.ir.context import current, refuse_stale
from tilewright.ir.dialect import COLLECTIVES, PURE_OPS, SPECS
from tilewright.ir.user_ops import spec_of

if TYPE_CHECKING:
    from mlir import ir


def emit(
    name: str,
    results: Sequence[ir.Type] = (),
    operands: Sequence[ir.Value] = (),
    attributes: Mapping[str, ir.Attribute] | None = None,
    regions: int = 0,
) -> ir.Operation:
    """Make operation `name` at the insertion point."""
    session = current()
    session.names.add(name)
    if name in COLLECTIVES:
        session.communicates = True
    try:
        return mlir.ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=dict(attributes) if attributes else None,
            regions=regions,
            loc=session.locate(),
        )
    except TypeError:
        refuse_stale(operands)
        raise


def value(
    name: str, result: ir.Type, operands: Sequence[ir.Value] = (), attributes: Mapping[str, ir.Attribute] | None = None
) -> ir.Value:
    """The single result of operation `name`."""
    return emit(name, (result,), operands, attributes).results[0]


def pure(name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """The result of an operation without effects or attributes; one for each block and operands."""
    session = current()
    if not session.appending:
        return value(name, result, operands)
    key = (mlir.ir.InsertionPoint.current.block, name, *operands, result)
    found: ir.Value | None = session.pure.get(key)
    if found is None:
        found = session.pure[key] = value(name, result, operands)
    return found


def intrinsic(name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """The result of LLVM's intrinsic `name`, types left out of its name."""
    attributes = {
        "intrin": string(name),
        "op_bundle_sizes": i32_array([]),
        "operandSegmentSizes": i32_array([len(operands), 0]),
    }
    return value("llvm.call_intrinsic", result, operands, attributes)


def cute(
    name: str, results: Sequence[ir.Type], groups: Sequence[Sequence[ir.Value]] = (), /, **attributes: ir.Attribute
) -> ir.Operation:
    """Make `cute.<name>` with its operand groups in the order of the dialect table."""
    spec = SPECS[name]
    operands = [operand for group in groups for operand in group]
    variadic = sum(text.endswith("*") for text in spec.operands)
    if variadic > 1:
        sizes = [len(group) for group in groups]
        attributes["operandSegmentSizes"] = i32_array(sizes)
    full = f"cute.{name}"
    if full not in PURE_OPS or not current().appending:
        return emit(full, results, operands, attributes)
    key = (
        mlir.ir.InsertionPoint.current.block,
        full,
        tuple(operands),
        tuple(sorted(attributes.items())),
        tuple(results),
    )
    pure = current().pure
    found = pure.get(key)
    if found is None:
        found = pure[key] = emit(full, results, operands, attributes)
    return found


def operation(
    name: str, results: ir.Type | Sequence[ir.Type] | None, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> ir.Operation:
    """Make an operation of any dialect. An operand may be a list, for a group of any number of operands; attributes may
    be numbers (i32, i64 where they need it, f64), Booleans, text and lists of integers (dense arrays of i32)."""
    groups_ = [list(item) if isinstance(item, Sequence) else [item] for item in operands]
    made = {key: _as_attribute(item) for key, item in attributes.items()}
    spec = spec_of(name)
    if spec is not None and sum(text.endswith("*") for text in spec.operands) > 1:
        sizes = [len(group) for group in groups_] + [0] * (len(spec.operands) - len(groups_))
        made["operandSegmentSizes"] = i32_array(sizes)
    types_ = [] if results is None else list(results) if isinstance(results, Sequence) else [results]
    return emit(name, types_, [item for group in groups_ for item in group], made)


def _as_attribute(item: Any) -> ir.Attribute:
    if isinstance(item, bool):
        return mlir.ir.BoolAttr.get(item)
    if isinstance(item, int):
        return i32(item) if -(1 << 31) <= item < 1 << 31 else i64(item)
    if isinstance(item, float):
        return mlir.ir.FloatAttr.get(types.parse("f64"), item)
    if isinstance(item, str):
        return string(item)
    return i32_array(item) if isinstance(item, list | tuple) else item


def forget_pure() -> None:
    """Find no operation made so far again. Call it when operations built since were erased."""
    current().pure.clear()


def group_sizes(op: ir.Operation) -> list[int]:
    """How many operands each group of an operation of the `cute` dialect, or of a user's, has."""
    spec = spec_of(op.name)
    if spec is None:
        raise KeyError(op.name)
    if "operandSegmentSizes" in op.attributes:
        return list(mlir.ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    fixed = sum(not text.endswith("*") for text in spec.operands)
    return [1 if not text.endswith("*") else len(op.operands) - fixed for text in spec.operands]


def groups(op: ir.Operation) -> list[list[ir.Value]]:
    """The operands of a `cute` operation by group."""
    operands = list(op.operands)
    result, start = [], 0
    for size in group_sizes(op):
        result.append(operands[start : start + size])
        start += size
    return result


def constant(number: int | float, type_: ir.Type) -> ir.Value:
    """`arith.constant` of an integer or float type; one for each block and number."""
    session = current()
    if not session.appending:
        return value("arith.constant", type_, (), {"value": _number_attribute(number, type_)})
    key = (mlir.ir.InsertionPoint.current.block, "constant", repr(number), type_)
    found = session.pure.get(key)
    if found is None:
        attribute = session.cached(key[1:], lambda: _number_attribute(number, type_))
        found = session.pure[key] = value("arith.constant", type_, (), {"value": attribute})
    return found


def _number_attribute(number: int | float, type_: ir.Type) -> ir.Attribute:
    ir_ = mlir.ir
    if isinstance(type_, ir_.IntegerType):
        bits = int(number) & ((1 << type_.width) - 1)
        if type_.width == 1:
            return ir_.BoolAttr.get(bool(bits))
        signed = bits - (1 << type_.width) if bits >> (type_.width - 1) else bits
        if type_.width <= 64:
            return ir_.IntegerAttr.get(type_, signed)
        return ir_.Attribute.parse(f"{signed} : {type_}")
    if isinstance(type_, ir_.IndexType):
        return ir_.IntegerAttr.get(type_, int(number))
    return ir_.FloatAttr.get(type_, float(number), loc=current().unknown)


def splat(number: int | float, type_: ir.Type) -> ir.Value:
    """A constant vector, or tile, whose elements are all `number`."""

    def make() -> ir.Attribute:
        element = mlir.ir.ShapedType(type_).element_type
        return mlir.ir.DenseElementsAttr.get_splat(type_, _number_attribute(number, element))

    attribute = current().cached(("splat", repr(number), type_), make)
    return value("arith.constant", type_, (), {"value": attribute})


def string(text: str) -> ir.Attribute:
    """A string attribute."""
    return current().cached(("string", text), lambda: mlir.ir.StringAttr.get(text))


def i32(number: int) -> ir.Attribute:
    """An i32 attribute."""
    return current().cached(("i32", number), lambda: mlir.ir.IntegerAttr.get(types.parse("i32"), number))


def i64(number: int) -> ir.Attribute:
    """An i64 attribute."""
    return current().cached(("i64", number), lambda: mlir.ir.IntegerAttr.get(types.parse("i64"), number))


def i32_array(numbers: Sequence[int]) -> ir.Attribute:
    """A dense array of i32."""
    return current().cached(("i32s", tuple(numbers)), lambda: mlir.ir.DenseI32ArrayAttr.get(list(numbers)))


def i64_array(numbers: Sequence[int]) -> ir.Attribute:
    """A dense array of i64."""
    return current().cached(("i64s", tuple(numbers)), lambda: mlir.ir.DenseI64ArrayAttr.get(list(numbers)))


def symbol(name: str) -> ir.Attribute:
    """A reference to a symbol of the same table."""
    return current().cached(("symbol", name), lambda: mlir.ir.FlatSymbolRefAttr.get(name))


def attribute(text: str) -> Any:
    """The attribute written `text`."""
    return current().cached(("attribute", text), lambda: mlir.ir.Attribute.parse(text))
