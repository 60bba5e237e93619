"""`cute.arch.inline_ptx`: PTX text with operands written `{$r0}`, `{$r1}`, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.ir import build
from tilewright.lang import trace
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import as_numeric
from tilewright.lang.nvgpu.instructions import constraint_of
from tilewright.lang.tensors.pointer import Pointer

_OPERAND = re.compile(r"\{\$(\w+)\}")


def inline_ptx(
    ptx: str, *, read_only_args: Sequence[Any] = (), loc: object = None, ip: object = None, **others: Any
) -> None:
    """Put `ptx` here. `{$r0}` stands for the first of `read_only_args`: numbers, pointers or MLIR values.

    The text is kept, in order, and may touch memory. Text with results is `llvm.inline_asm` of
    `cutlass._mlir.dialects`, which gives them.

    Raises:
        CompileError: the text names operands that are not there, or an option is unknown.
    """
    trace.device("inline_ptx")
    unknown = sorted(name for name, value in others.items() if value)
    if unknown:
        raise CompileError(
            f"inline_ptx with {unknown[0]} is not built",
            location=user_location(),
            hint="PTX that gives results: llvm.inline_asm of cutlass._mlir.dialects",
        )
    values = [item.toint().ir_value() if isinstance(item, Pointer) else as_numeric(item).ir_value()
              for item in read_only_args]  # fmt: skip
    asked = set(_OPERAND.findall(ptx))
    if missing := sorted(asked - {f"r{number}" for number in range(len(values))}):
        raise CompileError(
            f"the PTX names {{${missing[0]}}}, and there are {len(values)} read_only_args",
            location=user_location(),
            hint="operands are {$r0}, {$r1}, ... in the order of read_only_args",
        )
    attributes = {
        "asm_string": build.string(_OPERAND.sub(lambda found: f"${found[1][1:]}", ptx)),
        "constraints": build.string(",".join([*map(constraint_of, values), "~{memory}"])),
        "asm_dialect": build.i64(0),
        "has_side_effects": build.attribute("unit"),
    }
    build.emit("llvm.inline_asm", (), values, attributes)
