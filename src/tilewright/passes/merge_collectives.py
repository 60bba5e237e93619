"""Several collectives of one scope as one, whose values share its barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.dtypes import TABLE
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.ir.context import located
from tilewright.ir.dialect import COLLECTIVES, PURE_OPS
from tilewright.passes.collectives import PARTICIPANTS, values_of, workspace_of

if TYPE_CHECKING:
    from mlir import ir

_LISTS = ("op", "types")  # attributes with a word for each value
_SIZES = "operandSegmentSizes"


def merge_block(block: ir.Block) -> int:
    """Merge the neighbours of a block; how many are gone."""
    merged = 0
    while _merge_two(block):
        merged += 1
    return merged


def _merge_two(block: ir.Block) -> bool:
    """Merge the first two neighbours of a block that can be; False where there are none."""
    first: ir.Operation | None = None
    between: list[ir.Operation] = []
    for op in [op.operation for op in block.operations]:
        if op.name in COLLECTIVES:
            if first is not None and _alike(first, op) and _independent(first, between, op):
                _merge(first, between, op)
                return True
            first, between = op if PARTICIPANTS in op.attributes else None, []
        elif not _is_pure(op):
            first, between = None, []
        elif first is not None:
            between.append(op)
    return False


def _is_pure(op: ir.Operation) -> bool:
    return op.name.startswith(("arith.", "math.", "vector.")) or op.name in PURE_OPS


def _alike(first: ir.Operation, op: ir.Operation) -> bool:
    if first.name != op.name or workspace_of(first) != workspace_of(op) or PARTICIPANTS not in op.attributes:
        return False
    names = [name for name in first.attributes if name not in (*_LISTS, _SIZES)]
    return all(name in op.attributes and first.attributes[name] == op.attributes[name] for name in names)


def _independent(first: ir.Operation, between: list[ir.Operation], op: ir.Operation) -> bool:
    """True where nothing that `op` takes comes from `first`."""
    late = _behind(first, between)
    made = [result for item in (first, *late) for result in item.results]
    return not any(operand == value for operand in op.operands for value in made)


def _behind(first: ir.Operation, between: list[ir.Operation]) -> list[ir.Operation]:
    """The operations that use what `first` gives, directly or not."""
    made, found = list(first.results), []
    for item in between:
        if any(operand == value for operand in item.operands for value in made):
            found.append(item)
            made += list(item.results)
    return found


def _merge(first: ir.Operation, between: list[ir.Operation], op: ir.Operation) -> None:
    """One operation in the place of the second; what uses the first's results moves behind it."""
    location = first.location
    with mlir.ir.InsertionPoint(op), located(lambda: location):
        values, kind = _of_one_type([*values_of(first), *values_of(op)])
        attributes = {name: first.attributes[name] for name in first.attributes if name not in (*_LISTS, _SIZES)}
        for name in _LISTS:
            if name in first.attributes:
                attributes[name] = build.string(f"{text_of(first, name)},{text_of(op, name)}")
        place = workspace_of(first)
        groups = [values] if first.name == "cute.scan" else [values, [] if place is None else [place]]
        made = build.cute(first.name.removeprefix("cute."), [kind] * len(values), groups, **attributes)
        old = [*first.results, *op.results]
        results = [_back(new, item.type, name) for new, item, name in zip(made.results, old, _names(made), strict=True)]
    last = op
    for item in _behind(first, between):
        item.move_after(last)
        last = item
    for result, value in zip(old, results, strict=True):
        result.replace_all_uses_with(value)
    first.erase()
    op.erase()


def _names(op: ir.Operation) -> list[str]:
    return text_of(op, "types").split(",")


def _of_one_type(values: list[ir.Value]) -> tuple[list[ir.Value], ir.Type]:
    """Values of one type: as they are, else their bits in integers of 32 or 64 bits."""
    kinds = {str(value.type) for value in values}
    if len(kinds) == 1:
        return values, values[0].type
    wide = types.parse("i64" if any(value.type.width > 32 for value in values) else "i32")
    return [_as_bits(value, wide) for value in values], wide


def _as_bits(value: ir.Value, wide: ir.Type) -> ir.Value:
    bits = types.parse(f"i{value.type.width}")
    integer = value if value.type == bits else build.value("arith.bitcast", bits, (value,))
    return integer if bits == wide else build.value("arith.extui", wide, (integer,))


def _back(value: ir.Value, type_: ir.Type, name: str) -> ir.Value:
    if value.type == type_:
        return value
    bits = types.parse(f"i{type_.width}")
    narrow = value if bits == value.type else build.value("arith.trunci", bits, (value,))
    return narrow if TABLE[name].kind != "f" else build.value("arith.bitcast", type_, (narrow,))
