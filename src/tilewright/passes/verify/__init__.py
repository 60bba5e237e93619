"""The verifier of stage `cute`: each operation against the rules of the dialect.

MLIR checks the structure: operand groups, kinds of types, dominance. The rules here check what the types and attributes
say: leaves, element types, sizes, spaces, alignments, coordinates, atoms, masks, views. Rules are functions of types
and attributes, and equal ones are asked once in a session; a few look at values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.errors import PassError
from tilewright.ir import mlir
from tilewright.ir.context import current
from tilewright.ir.dialect import SPECS
from tilewright.ir.source import source_location
from tilewright.ir.walk import operations
from tilewright.passes.verify import accesses, addresses, cooperation, regions, tiles, values, views  # noqa: F401
from tilewright.passes.verify.facts import Facts, Invalid
from tilewright.passes.verify.table import RULES, VALUE_RULES

if TYPE_CHECKING:
    from mlir import ir

_SEGMENTS = "operandSegmentSizes"


def verify(module: ir.Operation, maker: str) -> None:
    """Refuse a module with an operation that breaks a rule; `maker` is who left it so, such as `pass my-pass`.

    Raises:
        PassError: with the operation, the rule, and the user's line.
    """
    known: set[Any] = current().cached("verified operations", set)
    for op in operations(module):
        name = op.name
        try:
            if name in RULES:
                key = _key(op, name)
                if key not in known:
                    RULES[name](_facts(op, key))
                    known.add(key)
            if name in VALUE_RULES:
                VALUE_RULES[name](op)
        except Invalid as broken:
            raise _error(op, broken, maker) from broken


def _key(op: ir.Operation, name: str) -> tuple[Any, ...]:
    """All that the rules of an operation look at."""
    attributes = op.attributes
    return (
        name,
        *[operand.type for operand in op.operands],
        *[result.type for result in op.results],
        *[attributes[key] for key in attributes],
    )


def _facts(op: ir.Operation, key: tuple[Any, ...]) -> Facts:
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = key[1 : 1 + len(op.operands)]
    results = key[1 + len(op.operands) : 1 + len(op.operands) + len(op.results)]
    groups, start = [], 0
    for size in _sizes(op.name, attributes, len(operands)):
        groups.append(operands[start : start + size])
        start += size
    return Facts(op.name, groups, results, attributes)


def _sizes(name: str, attributes: dict[str, Any], count: int) -> list[int]:
    """How many operands each group has; MLIR has checked the sum."""
    spec = SPECS[name.removeprefix("cute.")]
    if _SEGMENTS in attributes:
        return list(mlir.ir.DenseI32ArrayAttr(attributes[_SEGMENTS]))
    fixed = sum(not text.endswith("*") for text in spec.operands)
    return [1 if not text.endswith("*") else count - fixed for text in spec.operands]


def _error(op: ir.Operation, broken: Invalid, maker: str) -> PassError:
    values = {name: str(value) for name, value in broken.values.items()}
    text = str(op).splitlines()[0]
    return PassError(
        f"{maker} left {op.name} against the rules of the dialect: {broken.message}",
        location=source_location(op.location),
        values={**values, "operation": text if len(text) <= 240 else f"{text[:240]}..."},
        hint=broken.hint or None,
    )
