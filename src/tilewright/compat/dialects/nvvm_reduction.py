"""`nvvm.red`: change a number in memory, of which nothing is read back (`red` of PTX)."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Float32, Float64, Int32, Int64, Numeric, Uint32, Uint64, as_numeric
from tilewright.lang.nvgpu.instructions import instruction
from tilewright.lang.tensors.pointer import AddressSpace, Pointer, pointer_at


class ReductionOp(Enum):
    """What `red` does with the number in memory."""

    AND = "and"
    OR = "or"
    XOR = "xor"
    ADD = "add"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"


class ReductionType(Enum):
    """The type of the number in memory; B is bits, S signed, U unsigned, F a float."""

    B32 = "b32"
    B64 = "b64"
    S32 = "s32"
    S64 = "s64"
    U32 = "u32"
    U64 = "u64"
    F32 = "f32"
    F64 = "f64"


_NUMBERS: dict[str, type[Numeric]] = {
    "b32": Uint32, "b64": Uint64, "s32": Int32, "s64": Int64, "u32": Uint32, "u64": Uint64,
    "f32": Float32, "f64": Float64,
}  # fmt: skip
_SPACES = {"shared_cta": AddressSpace.smem, "shared_cluster": AddressSpace.dsmem}


def red(
    *,
    op: ReductionOp,
    type_: ReductionType,
    a: Any,
    b: Any,
    mem_order: Any = None,
    mem_scope: Any = None,
    shared_space: Any = None,
    loc: object = None,
    ip: object = None,
) -> None:
    """Change the number at `a`, a pointer of the language or of LLVM, by `b`.

    `shared_space` says that an LLVM pointer to shared memory is one of the block or of the cluster; without it an LLVM
    pointer is generic. PTX refuses some pairs of kind and type, and so does the assembler.

    Raises:
        CompileError: the kind or the type is none of these, or `mem_order` is neither RELAXED nor RELEASE.
    """
    if not isinstance(op, ReductionOp) or not isinstance(type_, ReductionType):
        raise CompileError(
            "nvvm.red takes op= and type_=",
            location=user_location(),
            values={"op": op, "type_": type_},
            hint="op=nvvm.ReductionOp.ADD, type_=nvvm.ReductionType.S32",
        )
    if _word(mem_order) not in ("", "relaxed", "release"):
        raise CompileError(
            f"nvvm.red with mem_order {_word(mem_order)}", location=user_location(), hint="relaxed, release"
        )
    number = _NUMBERS[type_.value](as_numeric(b))
    space = _SPACES.get(getattr(shared_space, "name", ""), AddressSpace.generic)
    pointer = a if isinstance(a, Pointer) else pointer_at(a, type(number), space)
    words = ("red", _word(mem_order), _word(mem_scope), _PTX_SPACES[pointer.memspace], op.value, type_.value)
    text = f"{'.'.join(word for word in words if word)} [$0], $1;"
    needs = "mapa" if pointer.memspace is AddressSpace.dsmem else ""
    instruction(text, (pointer.toint(), number), feature=needs)


_PTX_SPACES = {
    AddressSpace.generic: "", AddressSpace.gmem: "global", AddressSpace.smem: "shared",
    AddressSpace.dsmem: "shared::cluster",
}  # fmt: skip


def _word(choice: Any) -> str:
    return "" if choice is None else str(getattr(choice, "name", choice)).lower()
