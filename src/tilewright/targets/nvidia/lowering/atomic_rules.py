"""Rule from `cute.atomic` to `atom`, and to `red` where the old value is not used.

It writes PTX: of LLVM's atomic operations, NVPTX of LLVM 22 drops the order and the scope without a word.

Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: atom", "red".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import build, mlir, types
from tilewright.ir.accessors import text_of
from tilewright.passes.lowering import LoweringContext, Rules, read_coord
from tilewright.passes.rules.memory import element_address
from tilewright.targets.nvidia.lowering.rules import use

if TYPE_CHECKING:
    from mlir import ir

rules = Rules()
_SPACE = {"gmem": ".global", "smem": ".shared", "dsmem": ".shared::cluster", "generic": ""}
_CONSTRAINT = {"i32": "r", "i64": "l", "f32": "f", "f64": "d", "i16": "h"}
_UNTYPED = ("and", "or", "xor", "exch", "cas")
_RED_ORDERS = ("relaxed", "release")


@rules.lowers("atomic")
def _atomic(op: ir.Operation, context: LoweringContext) -> list[ir.Value]:
    (value,), compared, (tensor,), coord32, coord64 = build.groups(op)
    view = context.tensor(tensor)
    address = element_address(view, read_coord(text_of(op, "coord"), coord32, coord64))
    kind, order, scope = (text_of(op, name) for name in ("kind", "order", "scope"))
    if scope == "cluster":
        use("cluster", "an atomic operation of scope cluster", context)
    if str(value.type) == "bf16":
        use("atom.add.bf16x2", "an atomic addition of BFloat16", context)
    name = kind[:-1]
    reduces = not list(op.results[0].uses) and name not in ("exch", "cas") and order in _RED_ORDERS
    text = f"{'red' if reduces else 'atom'}.{order}.{scope}{_SPACE[view.info.space]}.{name}.{_type(kind, value)}"
    operands = [_address(address, view.info.space), *map(_register, (*compared, value))]
    return [_assembly(text, operands, value.type, reduces)]


def _type(kind: str, value: ir.Value) -> str:
    """PTX's name of the type that an operation works on."""
    name, sign, text = kind[:-1], kind[-1], str(value.type)
    if name in _UNTYPED:
        return f"b{text[1:]}"
    if sign == "f":
        return f"noftz.{text}" if text in ("f16", "bf16") else text
    return f"{'s' if sign == 'i' and name != 'add' else 'u'}{text[1:]}"


def _address(address: ir.Value, space: str) -> ir.Value:
    return build.value("llvm.ptrtoint", types.parse("i32" if space in ("smem", "dsmem") else "i64"), (address,))


def _register(value: ir.Value) -> ir.Value:
    """Floats of 16 bits travel as integers."""
    if str(value.type) in ("f16", "bf16"):
        return build.value("arith.bitcast", types.parse("i16"), (value,))
    return value


def _assembly(text: str, operands: list[ir.Value], type_: ir.Type, reduces: bool) -> ir.Value:
    """The instruction; what stands for the result of one that has none is never used."""
    first = 0 if reduces else 1
    names = [f"[${first}]", *(f"${first + number}" for number in range(1, len(operands)))]
    constraints = [_CONSTRAINT[str(operand.type)] for operand in operands] + ["~{memory}"]
    carrier = operands[-1].type
    attributes = {
        "asm_string": build.string(f"{text} {', '.join(names if reduces else ['$0', *names])};"),
        "constraints": build.string(
            ",".join(constraints if reduces else [f"={_CONSTRAINT[str(carrier)]}", *constraints])
        ),
        "has_side_effects": mlir.ir.UnitAttr.get(),
        "asm_dialect": build.i64(0),
    }
    found = build.emit("llvm.inline_asm", () if reduces else (carrier,), operands, attributes).results
    result = operands[-1] if reduces else found[0]
    return result if carrier == type_ else build.value("arith.bitcast", type_, (result,))
