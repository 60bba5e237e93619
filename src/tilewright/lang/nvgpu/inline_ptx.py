"""`cute.arch.inline_ptx`: PTX text with operands written `{$r0}`, `{$r1}`, ... and results `{$w0}`, `{$w1}`, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.lang import trace
from tilewright.lang.leaves import describe
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.numeric import Numeric, as_numeric
from tilewright.lang.nvgpu.instructions import instruction_values
from tilewright.lang.tensors.pointer import Pointer

_OPERAND = re.compile(r"\{\$([a-z]+)(\d+)\}")


def inline_ptx(
    ptx: str,
    *,
    write_only_types: Sequence[type[Numeric]] = (),
    read_only_args: Sequence[Any] = (),
    loc: object = None,
    ip: object = None,
    **others: Any,
) -> Any:
    """Put `ptx` here. `{$r0}` stands for the first of `read_only_args`: numbers, pointers or MLIR values.

    `{$w0}` stands for the first result, a number of the first of `write_only_types`. Both may be written by place too,
    `$0` and on: the results first, then the operands. The text is kept, in order, and may touch memory.

    Returns:
        None, the only result, or a tuple of all.

    Raises:
        CompileError: the text names operands or results that are not there, a result has a type that no register
            holds, or an option is unknown.
    """
    trace.device("inline_ptx")
    unknown = sorted(name for name, value in others.items() if value)
    if unknown:
        raise CompileError(
            f"inline_ptx has no option {unknown[0]!r}",
            location=user_location(),
            hint="results are write_only_types=[...], operands read_only_args=[...]; text that changes a register that "
            "it reads copies it to a result first",
        )
    for kind in write_only_types:
        if not (isinstance(kind, type) and issubclass(kind, Numeric)):
            raise CompileError(f"write_only_types holds number types, not {describe(kind)}", location=user_location())
    values = [item.toint().ir_value() if isinstance(item, Pointer) else as_numeric(item).ir_value()
              for item in read_only_args]  # fmt: skip
    text = _numbered(ptx, len(write_only_types), len(values))
    results = tuple(instruction_values(text, values, write_only_types))
    return results if len(results) > 1 else results[0] if results else None


def _numbered(ptx: str, results: int, operands: int) -> str:
    """The text with operands by place, as inline assembly of LLVM has them."""
    counts = {"w": results, "r": operands}

    def place(found: re.Match[str]) -> str:
        kind, number = found[1], int(found[2])
        if number >= counts.get(kind, 0):
            raise CompileError(
                f"the PTX names {found[0]}, and there are {operands} read_only_args, {results} write_only_types",
                location=user_location(3),
                hint="operands are {$r0}, {$r1}, ..., results {$w0}, {$w1}, ... in the order given",
            )
        return f"${number + (results if kind == 'r' else 0)}"

    return _OPERAND.sub(place, ptx)
