"""Instructions of the chip by their PTX text, for what the neutral operations do not cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.ir import build, types
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Int32, Numeric, Uint32, as_numeric
from tilewright.lang.tensors.pointer import AddressSpace, Pointer

if TYPE_CHECKING:
    from mlir import ir

_CONSTRAINT = {"i1": "b", "i16": "h", "f16": "h", "bf16": "h", "i32": "r", "i64": "l", "f32": "f", "f64": "d"}


def instruction(
    text: str,
    operands: Sequence[Any] = (),
    *,
    result: type[Numeric] | None = None,
    feature: str = "",
    pure: bool = False,
) -> Any:
    """Emit PTX. `$0` is the result where there is one, the operands follow; gives a `result`, or None.

    Operands are numbers of 16 to 64 bits. `feature` is the row of `hw.features` that the text needs. Text without
    `pure` is kept, in order, and may touch memory.
    """
    trace.device(text.split()[0].rstrip(";"))
    values = [as_numeric(operand).ir_value() for operand in operands]
    constraints = [constraint_of(value) for value in values]
    if result is not None:
        constraints.insert(0, "=" + _CONSTRAINT[str(result.mlir_type)])
    if not pure:
        constraints.append("~{memory}")
    if len({str(value.type) for value in values}) > 1:  # a group of operands of a cute operation has one type
        return _assembly(text, ",".join(constraints), values, result, pure)
    attributes = {
        "text": build.string(text),
        "constraints": build.string(",".join(constraints)),
        "feature": build.string(feature),
    }
    if result is None:
        build.cute("ptx", (), (values,), **attributes)
        return None
    name = "ptx_pure" if pure else "ptx_value"
    return result.from_ir(build.cute(name, (result.mlir_type,), (values,), **attributes).results[0])


def _assembly(text: str, constraints: str, values: list[ir.Value], result: type[Numeric] | None, pure: bool) -> Any:
    """The same as LLVM's inline assembly, whose needs are read off its text."""
    attributes = {
        "asm_string": build.string(text),
        "constraints": build.string(constraints),
        "asm_dialect": build.i64(0),
        **({} if pure else {"has_side_effects": build.attribute("unit")}),
    }
    types_ = () if result is None else (result.mlir_type,)
    found = build.emit("llvm.inline_asm", types_, values, attributes).results
    return None if result is None else result.from_ir(found[0])


def instruction_words(text: str, operands: Sequence[Any], count: int) -> list[Uint32]:
    """Emit PTX that gives two or more words of 32 bits, `$0` and on; the operands follow. It may touch memory."""
    trace.device(text.split()[0])
    return instruction_values(text, [as_numeric(operand).ir_value() for operand in operands], [Uint32] * count)


def instruction_values(
    text: str, operands: Sequence[ir.Value], results: Sequence[type[Numeric]], *, pure: bool = False
) -> list[Any]:
    """Emit PTX that gives a number of each type of `results`, `$0` and on; the operands follow.

    Without `pure` it may touch memory.
    """
    given = [result.mlir_type for result in results]
    constraints = [*("=" + constraint_of_type(item) for item in given), *map(constraint_of, operands)]
    attributes = {
        "asm_string": build.string(text),
        "constraints": build.string(",".join(constraints if pure else [*constraints, "~{memory}"])),
        "asm_dialect": build.i64(0),
        **({} if pure else {"has_side_effects": build.attribute("unit")}),
    }
    if len(given) < 2:
        values = list(build.emit("llvm.inline_asm", given, operands, attributes).results)
    else:
        struct = types.parse(f"!llvm.struct<({', '.join(map(str, given))})>")
        found = build.value("llvm.inline_asm", struct, operands, attributes)
        values = [
            build.value("llvm.extractvalue", item, (found,), {"position": build.i64_array([place])})
            for place, item in enumerate(given)
        ]
    return [result.from_ir(value) for result, value in zip(results, values, strict=True)]


def constraint_of(value: ir.Value) -> str:
    """The letter of inline assembly for an operand."""
    return constraint_of_type(value.type)


def constraint_of_type(kind: ir.Type) -> str:
    """The letter of inline assembly for an operand or a result of an MLIR type."""
    found = _CONSTRAINT.get(str(kind))
    if found is None:
        raise CompileError(f"an instruction takes no operand of type {kind}", location=user_location())
    return found


def shared_address(pointer: Any, what: str) -> Int32:
    """The 32-bit address of shared memory that `pointer` (a Pointer, or a tensor) points to."""
    pointer = getattr(pointer, "iterator", pointer)
    if not isinstance(pointer, Pointer) or pointer.memspace is not AddressSpace.smem:
        raise CompileError(
            f"{what} takes a pointer to shared memory",
            location=user_location(3),
            values={"got": pointer},
            hint="allocate it with SmemAllocator",
        )
    value = build.cute("ptr_to_int", (types.parse("i32"),), ((pointer.value,),)).results[0]
    return Int32.from_ir(value)
