"""Collectives that need no communication: of values that all who take part have anyway, or that nobody uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.base.dtypes import TABLE
from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import constant_of, number_of, text_of
from tilewright.ir.context import located
from tilewright.ir.walk import operations
from tilewright.passes.collectives import (
    BLOCKS,
    PARTICIPANTS,
    WARP,
    KernelFacts,
    collectives,
    kind_of,
    values_of,
    workspace_of,
)
from tilewright.passes.uniformity import Known, Uniformity

if TYPE_CHECKING:
    from mlir import ir

_IDEMPOTENT = ("min", "max", "and", "or")
_SIZES = "operandSegmentSizes"


def simplify(found: KernelFacts) -> int:
    """Drop the values that need no communication; how many."""
    _read_elements_directly(found.kernel)
    dropped = 0
    known = Uniformity(found.kernel, found.facts.block)
    for op in list(collectives(found.kernel)):
        if PARTICIPANTS not in op.attributes:
            continue
        known = known if not dropped else Uniformity(found.kernel, found.facts.block)
        dropped += _simplified(op, found, known)
    return dropped


def _read_elements_directly(kernel: ir.Operation) -> None:
    """Let what reads one element of a vector of numbers use the number, so that it shows which are used."""
    for op in operations(kernel):
        place = constant_of(op.operands[1]) if op.name == "llvm.extractelement" else None
        if place is not None and getattr(op.operands[0].owner, "name", "") == "vector.from_elements":
            op.results[0].replace_all_uses_with(op.operands[0].owner.operands[place])
            op.erase()
    for op in operations(kernel, inner_first=True):
        if op.name == "vector.from_elements" and not any(True for _ in op.results[0].uses):
            op.erase()


def _simplified(op: ir.Operation, found: KernelFacts, known: Uniformity) -> int:
    """Replace the results that are known without the collective, and leave the others."""
    kept, names = [], text_of(op, "types").split(",")
    location = op.location
    for number, (value, result) in enumerate(zip(values_of(op), op.results, strict=True)):
        with mlir.ir.InsertionPoint(op), located(lambda: location):
            made = _known_result(op, found, known.of(value), value, number, names[number])
        if made is not None:
            result.replace_all_uses_with(made)
        elif any(True for _ in result.uses):
            kept.append(number)
    if len(kept) < len(names):
        _keep(op, kept)
    return len(names) - len(kept)


def _known_result(
    op: ir.Operation, found: KernelFacts, seen: Known, value: ir.Value, number: int, name: str
) -> ir.Value | None:
    kind, scope = kind_of(op), text_of(op, "scope")
    if scope == "thread":
        return value if kind != "scan" or not number_of(op, "exclusive") else None
    if kind == "scan" or not _is_same(op, found, seen):
        return None
    if kind == "broadcast":
        return value
    operation, count = text_of(op, "op").split(",")[number], _count(op, found)
    if operation in _IDEMPOTENT:
        return value
    if operation == "add" and count:
        return _times(value, count, name)
    if operation == "xor" and count:
        return value if count % 2 else build.constant(0, value.type)
    return None


def _is_same(op: ir.Operation, found: KernelFacts, seen: Known) -> bool:
    """True where all who take part are proved to have the value."""
    scope, group = text_of(op, "scope"), number_of(op, "group")
    within = {"warp": group or WARP, "block": group or found.threads}.get(scope, found.threads)
    if not seen.is_sure or not seen.uniform(within):
        return False
    return not (scope in ("cluster", "grid") and seen.by_block) and not (scope == "grid" and seen.by_cluster)


def _count(op: ir.Operation, found: KernelFacts) -> int:
    """How many take part; 0 where it is not known, or not the same for all groups."""
    if found.facts.block is None:
        return 0
    scope, group, threads = text_of(op, "scope"), number_of(op, "group"), found.threads
    if scope == "warp":
        width = group or WARP
        return min(width, threads) if threads % width == 0 or threads < width else 0
    if scope == "block":
        return group or threads
    if BLOCKS in op.attributes:
        return threads * number_of(op, BLOCKS)
    return threads * (found.cluster if scope == "cluster" else found.blocks or 0)


def _times(value: ir.Value, count: int, name: str) -> ir.Value:
    """`count * value`, rounded once."""
    dtype = TABLE[name]
    if dtype.kind != "f":
        return build.value("arith.muli", value.type, (value, build.constant(count, value.type)))
    wide = types.parse("f32") if dtype.width == 16 else value.type
    given = value if wide == value.type else build.value("arith.extf", wide, (value,))
    product = build.value("arith.mulf", wide, (given, build.constant(float(count), wide)))
    return product if wide == value.type else build.value("arith.truncf", value.type, (product,))


def _keep(op: ir.Operation, kept: list[int]) -> None:
    """Leave only some values; none erases the operation."""
    if kept:
        values, location = values_of(op), op.location
        attributes = {name: op.attributes[name] for name in op.attributes if name != _SIZES}
        for name in ("op", "types"):
            if name in attributes:
                words = text_of(op, name).split(",")
                attributes[name] = build.string(",".join(words[number] for number in kept))
        chosen, place = [values[number] for number in kept], workspace_of(op)
        groups = [chosen] if kind_of(op) == "scan" else [chosen, [] if place is None else [place]]
        with mlir.ir.InsertionPoint(op), located(lambda: location):
            made = build.cute(kind_of(op), [value.type for value in chosen], groups, **attributes)
        for number, result in zip(kept, made.results, strict=True):
            op.results[number].replace_all_uses_with(result)
    op.erase()
