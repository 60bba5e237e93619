"""The process that compiles text which may make LLVM abort; see `tilewright.ir.llvm.emit_ptx_in_child`.

Reads a pickled `(ir_text, arguments)` from standard input and writes a pickled `(ptx, refusal)` to standard
output; one of the two is None. A refusal is the message and the fields of an `LlvmError`.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

from tilewright.ir.llvm import emit_ptx
from tilewright.ir.llvm_api import LlvmError


def _refusal(error: LlvmError) -> tuple[str, dict[str, Any]]:
    fields = ("line", "column", "values", "hint", "nvvm_error", "ir_context")
    return error.message, {name: getattr(error, name) for name in fields}


def main() -> None:
    """Serve one request."""
    ir_text, arguments = pickle.load(sys.stdin.buffer)
    answer: tuple[str | None, Any]
    try:
        answer = emit_ptx(ir_text, **arguments), None
    except LlvmError as error:
        answer = None, _refusal(error)
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
