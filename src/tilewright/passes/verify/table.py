"""The table of verifiers, by operation: each rule is one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright.passes.verify.operation import OpSummary

if TYPE_CHECKING:
    from mlir import ir

Rule = Callable[[OpSummary], None]
"""Raises Invalid where types and attributes break a rule of the operation. Equal ones are asked once."""

RULES: dict[str, Rule] = {}
VALUE_RULES: dict[str, Callable[[ir.Operation], None]] = {}
"""Rules about values, such as constants: they are asked of each operation."""
DECIDING: dict[str, Callable[[ir.Operation], None]] = {}
"""Rules that are asked where types and attributes leave a rule Undecided."""


def verifies(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the function verifies `cute.<name>`."""

    def add(rule: Rule) -> Rule:
        RULES.update({f"cute.{name}": rule for name in names})
        return rule

    return add


def verifies_values(*names: str) -> Callable[[Callable[[ir.Operation], None]], Callable[[ir.Operation], None]]:
    """Decorator: the function looks at the operands of operations with one of these whole names."""

    def add(rule: Callable[[ir.Operation], None]) -> Callable[[ir.Operation], None]:
        VALUE_RULES.update(dict.fromkeys(names, rule))
        return rule

    return add


def decides(name: str) -> Callable[[Callable[[ir.Operation], None]], Callable[[ir.Operation], None]]:
    """Decorator: the function looks at the operands where the rule of the operation says Undecided."""

    def add(rule: Callable[[ir.Operation], None]) -> Callable[[ir.Operation], None]:
        DECIDING[name] = rule
        return rule

    return add
