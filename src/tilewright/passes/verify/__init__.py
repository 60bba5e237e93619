"""The verifier of stage `cute`: each operation against the rules of the dialect.

Operand groups and kinds of types come first (`structure`), then what types and attributes say: leaves, element types,
sizes, spaces, alignments, coordinates, atoms, masks, views. Rules are functions of types and attributes, and equal ones
are asked once in a session; a few look at values. Dominance and the other dialects are MLIR's to check, afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.base.errors import PassError
from tilewright.ir.context import current
from tilewright.ir.dialect import SPECS
from tilewright.ir.locations import source_location
from tilewright.ir.walk import operations
from tilewright.passes.verify import (  # noqa: F401
    accesses,
    addresses,
    block_tiles,
    bulk,
    communication,
    cooperation,
    regions,
    tiles,
    values,
    views,
    warpgroups,
)
from tilewright.passes.verify.operation import Invalid, OpSummary, Undecided
from tilewright.passes.verify.structure import grouped
from tilewright.passes.verify.table import DECIDING, RULES, VALUE_RULES

if TYPE_CHECKING:
    from mlir import ir


def verify(module: ir.Operation, maker: str) -> None:
    """Refuse a module with an operation that breaks a rule; `maker` is who left it so, such as `pass my-pass`.

    Raises:
        PassError: with the operation, the rule, and the user's line.
    """
    known: set[Any] = current().cached("verified operations", set)
    found, launches = operations(module), []
    for op in found:
        name = op.name
        if name == "gpu.launch_func":
            launches.append(op)
        try:
            if name in RULES:
                key = _key(op, name)
                if key not in known:
                    _ask(op, key, known)
            if name in VALUE_RULES:
                VALUE_RULES[name](op)
        except Invalid as broken:
            raise _error(op, broken, maker) from broken
    kernels = regions.kernels_of(found) if launches else {}
    for op in launches:
        try:
            regions.check_launch(op, kernels)
        except Invalid as broken:
            raise _error(op, broken, maker) from broken


def _ask(op: ir.Operation, key: tuple[Any, ...], known: set[Any]) -> None:
    """Ask the rule of an operation, and its values where the rule cannot decide."""
    try:
        RULES[op.name](_facts(op, key))
    except Undecided:
        DECIDING[op.name](op)
    else:
        known.add(key)


def _key(op: ir.Operation, name: str) -> tuple[Any, ...]:
    """All that the rules of an operation look at."""
    types = [operand.type for operand in op.operands]
    types += [result.type for result in op.results]
    return (name, len(types), *types, *op.attributes.values())


def _facts(op: ir.Operation, key: tuple[Any, ...]) -> OpSummary:
    attributes = {name: op.attributes[name] for name in op.attributes}
    end = 2 + key[1]
    start = end - len(op.results)
    operands, results = key[2:start], key[start:end]
    groups = grouped(SPECS[op.name.removeprefix("cute.")], operands, results, attributes)
    return OpSummary(op.name, groups, results, attributes)


def _error(op: ir.Operation, broken: Invalid, maker: str) -> PassError:
    told = {name: str(value) for name, value in broken.values.items()}
    # Printed as it is: printing a pretty form verifies, and MLIR ends the process on some launches that are wrong.
    text = op.get_asm(print_generic_op_form=True, assume_verified=True, use_local_scope=True).splitlines()[0]
    return PassError(
        f"{maker} left {op.name} against the rules of the dialect: {broken.message}",
        location=source_location(op.location),
        values={**told, "operation": text if len(text) <= 240 else f"{text[:240]}..."},
        hint=broken.hint or None,
    )
