"""Verifiers of addresses: making tensors, moving and casting pointers, allocations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilewright.ir import layout_text, mlir
from tilewright.ir.accessors import number_of
from tilewright.passes.verify.operation import Invalid, Memory, OpSummary, check_leaves, memory, room_bits, tensor
from tilewright.passes.verify.table import verifies, verifies_values

if TYPE_CHECKING:
    from mlir import ir

_ADDRESS_WIDTHS = (32, 64)
_STATES_ALIGNMENT = "an alignment that is not known is stated by cute.int_to_ptr"


@verifies("make_tensor")
def _make_tensor(op: OpSummary) -> None:
    (pointer,), leaves32, leaves64 = op.groups
    made, base = tensor(op.results[0]), memory(pointer)
    _same_place(made, base)
    check_leaves("layout", made.text, leaves32, leaves64)


@verifies("iterator")
def _iterator(op: OpSummary) -> None:
    _same_place(memory(op.results[0]), tensor(op.groups[0][0]))


@verifies("leaf")
def _leaf(op: OpSummary) -> None:
    widths, index = layout_text.widths(tensor(op.groups[0][0]).text), op.number("index")
    if not 0 <= index < len(widths):
        raise Invalid(f"there is no leaf {index}", layout=tensor(op.groups[0][0]).text, leaves=len(widths))
    if str(op.results[0]) != f"i{widths[index]}":
        raise Invalid(f"leaf {index} has {widths[index]} bits", result=op.results[0])


@verifies("ptr_offset")
def _ptr_offset(op: OpSummary) -> None:
    _same_place(memory(op.results[0]), memory(op.groups[0][0]))
    _integer("the offset", op.groups[1][0])


@verifies("field")
def _field(op: OpSummary) -> None:
    made, base, offset = memory(op.results[0]), memory(op.groups[0][0]), op.number("offset")
    op.text("name")
    if made.space != base.space:
        raise Invalid("a member lies in the space of its struct", struct=base.type, member=made.type)
    if offset < 0:
        raise Invalid("the offset of a member is negative", offset=offset)
    _aligned(made, math.gcd(base.align, offset))


@verifies("ptr_cast")
def _ptr_cast(op: OpSummary) -> None:
    made, base = memory(op.results[0]), memory(op.groups[0][0])
    if made.space != base.space and "generic" not in (made.space, base.space):
        raise Invalid("an address converts only to and from generic", source=base.type, result=made.type)


@verifies("ptr_to_int")
def _ptr_to_int(op: OpSummary) -> None:
    memory(op.groups[0][0])
    _integer("an address", op.results[0])


@verifies("int_to_ptr")
def _int_to_ptr(op: OpSummary) -> None:
    memory(op.results[0])
    _integer("an address", op.groups[0][0])


@verifies("alloc")
def _alloc(op: OpSummary) -> None:
    made, held = memory(op.results[0]), op.number("bytes")
    if made.space not in ("rmem", "smem"):
        raise Invalid("memory of a kernel is allocated in rmem or smem", result=made.type)
    if held < (1 if made.space == "smem" else 0):
        raise Invalid("an allocation has bytes", "memory of no elements takes 1 in smem", bytes=held)


@verifies("smem_base")
def _smem_base(op: OpSummary) -> None:
    made, offset = memory(op.results[0]), op.number("offset")
    if made.space != "smem":
        raise Invalid("shared memory is in smem", result=made.type)
    if offset < 0:
        raise Invalid("the offset into shared memory is negative", offset=offset)
    _aligned(made, math.gcd(made.align, offset))


@verifies_values("cute.make_tensor")
def _inside_registers(op: ir.Operation) -> None:
    """The registers of an allocation are all that a tensor there may reach."""
    owner = op.operands[0].owner
    name = getattr(owner, "name", "")
    if name != "cute.alloc":
        return
    made, allocation = tensor(op.results[0].type), owner.operation
    if made.space != "rmem":
        return
    held, needed = number_of(allocation, "bytes") * 8, room_bits(made)
    if needed is not None and not 0 <= needed <= held:
        raise Invalid(
            "the tensor reaches outside its allocation",
            tensor=made.text,
            reaches="before its beginning" if needed < 0 else f"{-(-needed // 8)} bytes",
            allocated=f"{held // 8} bytes",
        )


@verifies_values("cute.ptr_offset")
def _known_step(op: ir.Operation) -> None:
    """A constant offset says what alignment is left."""
    owner = op.operands[1].owner
    if getattr(owner, "name", "") != "arith.constant":
        return
    made, base = memory(op.results[0].type), memory(op.operands[0].type)
    step = int(mlir.ir.IntegerAttr(owner.operation.attributes["value"]).value) * made.bits
    if step % 8:
        raise Invalid("the address would lie inside a byte", offset=step // made.bits, element=made.element)
    _aligned(made, math.gcd(base.align, step // 8))


def _same_place(made: Memory, base: Memory) -> None:
    """The same element type and space, and no alignment that is not known of the base."""
    if made.element != base.element:
        raise Invalid("the elements are of another type", "use cute.ptr_cast", result=made.type, source=base.type)
    if made.space != base.space:
        raise Invalid("the space is another one", "use cute.ptr_cast", result=made.type, source=base.type)
    _aligned(made, base.align)


def _aligned(made: Memory, known: int) -> None:
    if made.align > known:
        raise Invalid(
            f"an alignment to {made.align} bytes is not known", _STATES_ALIGNMENT, result=made.type, known=known
        )


def _integer(what: str, type_: ir.Type) -> None:
    if not isinstance(type_, mlir.ir.IntegerType) or type_.width not in _ADDRESS_WIDTHS:
        raise Invalid(f"{what} is an i32 or i64", got=type_)
