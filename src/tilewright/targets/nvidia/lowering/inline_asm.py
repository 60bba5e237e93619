"""Inline assembly, checked before LLVM sees it.

LLVM ends the process when constraints and operands disagree in number, and cuts a value in silence when its register
is too narrow.

Constraints: NVPTX in LLVM's language reference, "Inline Assembler Expressions".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tilewright.base.errors import CompileError
from tilewright.ir import mlir
from tilewright.ir.accessors import text_of
from tilewright.ir.locations import source_location

if TYPE_CHECKING:
    from mlir import ir

REGISTER_BITS: Final = {"b": 1, "c": 8, "h": 16, "r": 32, "f": 32, "l": 64, "N": 64, "d": 64, "q": 128}
"""Constraint letter to the bits of its register."""
_CONSTANTS: Final = frozenset("nis")
_HINT: Final = (
    "constraints: b predicate, h 16 bits, r 32 bits, l 64 bits and pointers, q 128 bits, f float32, d float64, "
    "n constant; outputs start with `=`; a digit ties an input to that output; clobbers are written ~{memory}"
)
_REFERENCE: Final = re.compile(r"\$(?:(\$)|(\d+)|\{(\d+)(?::\w+)?\}|([(|)])|(.?))", re.DOTALL)


def check_inline_asm(op: ir.Operation) -> None:
    """Refuse an `llvm.inline_asm` whose text, constraints and operands disagree.

    Raises:
        CompileError: naming the user's line, and what disagrees.
    """
    text, constraints = text_of(op, "asm_string"), text_of(op, "constraints")
    fault = find_fault(text, constraints, _result_bits(op), [_bits(operand.type) for operand in op.operands])
    if fault:
        raise CompileError(
            f"inline assembly: {fault}",
            location=source_location(op.location),
            values={"assembly": text.strip(), "constraints": constraints or "(none)"},
            hint=_HINT,
        )


def find_fault(text: str, constraints: str, results: Sequence[int], operands: Sequence[int]) -> str:
    """What is wrong with inline assembly, empty when nothing is.

    Args:
        text: the assembly, with `$0` for operands.
        constraints: LLVM's notation, `=r,r,~{memory}`.
        results: the bits of each result; 0 where unknown.
        operands: the bits of each operand; 0 where unknown.
    """
    items = [item for item in constraints.split(",") if item and not item.startswith("~")]
    outputs = [item for item in items if item.startswith("=")]
    inputs = [item for item in items if not item.startswith("=")]
    if any(item.startswith("+") for item in items):
        return "an operand that is read and written (`+`) is not possible; give it twice, as output and tied input"
    if items != outputs + inputs:
        return "outputs must stand before inputs"
    if len(outputs) != len(results):
        return f"{len(outputs)} output constraints for {len(results)} results"
    if len(inputs) != len(operands):
        return f"{len(inputs)} input constraints for {len(operands)} operands"
    return (
        _registers_fault([item.lstrip("=&") for item in outputs], results)
        or _registers_fault(_untied(inputs, outputs), operands)
        or _reference_fault(text, len(items))
    )


def _untied(inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """The constraints of inputs, a digit replaced by that of the output it is tied to."""
    ties = {str(number): item.lstrip("=&") for number, item in enumerate(outputs)}
    return [ties.get(item, item) for item in inputs]


def _registers_fault(constraints: Sequence[str], bits: Sequence[int]) -> str:
    for constraint, width in zip(constraints, bits, strict=True):
        if constraint in _CONSTANTS:
            continue
        register = REGISTER_BITS.get(constraint)
        if register is None:
            return f"there is no constraint {constraint!r}"
        if width > max(register, 16 if constraint == "c" else 0):
            return f"constraint {constraint!r} is a register of {register} bits, its operand has {width}"
    return ""


def _reference_fault(text: str, count: int) -> str:
    for match in _REFERENCE.finditer(text):
        number = match[2] or match[3]
        if number is not None and int(number) >= count:
            return (
                f"`{match[0]}` is used, but the last operand is ${count - 1}"
                if count
                else f"`{match[0]}` names no operand"
            )
        if match[5] is not None:
            return f"`${match[5]}` names no operand; a dollar sign is written `$$`"
    return ""


def _result_bits(op: ir.Operation) -> list[int]:
    if not len(op.results):
        return []
    text = str(op.results[0].type)
    if not text.startswith("!llvm.struct"):
        return [_bits(op.results[0].type)]
    inside = re.sub(r"<[^<>]*>", "", text[text.index("(") + 1 : text.rindex(")")])
    parts = [part for part in inside.split(",") if part.strip()]
    return [_text_bits(part.strip()) for part in parts]


def _bits(type_: ir.Type) -> int:
    """The bits of a value; 0 where they are not known, as for pointers."""
    if isinstance(type_, mlir.ir.VectorType):
        return int(type_.element_type.width) * int(type_.shape[0])
    return int(getattr(type_, "width", 0))


def _text_bits(text: str) -> int:
    found = re.fullmatch(r"b?[if](\d+)", text)
    return int(found[1]) if found else 0
