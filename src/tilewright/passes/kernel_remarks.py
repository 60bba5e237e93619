"""Remarks: what a pass has to say about a line of the user's program, such as why an option has no effect.

They are kept on the kernel or host function, as the attribute `tilewright.remarks`, so the text of stage `cute` has
them; `executor.report()` shows those of kernels.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tilewright.ir import build, mlir
from tilewright.ir.locations import source_location
from tilewright.passes.program import function_of

if TYPE_CHECKING:
    from mlir import ir

ATTRIBUTE = "tilewright.remarks"


def remark(op: ir.Operation, text: str) -> None:
    """Note `text`, once, about the line that `op` comes from."""
    function = function_of(op)
    if function is None:
        return
    line = _place(op) + text
    known = remarks_on(function)
    if line not in known:
        function.attributes[ATTRIBUTE] = mlir.ir.ArrayAttr.get([build.string(item) for item in (*known, line)])


def remarks_on(function: ir.Operation) -> tuple[str, ...]:
    """The remarks on a kernel or host function, in order."""
    if ATTRIBUTE not in function.attributes:
        return ()
    return tuple(str(mlir.ir.StringAttr(item).value) for item in mlir.ir.ArrayAttr(function.attributes[ATTRIBUTE]))


_IN_TEXT = re.compile(rf'{re.escape(ATTRIBUTE)} = (\["(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*\])')


def remarks_in(text: str) -> tuple[str, ...]:
    """The remarks in a text of stage `cute`."""
    return tuple(line for found in _IN_TEXT.finditer(text) for line in json.loads(found[1]))


def _place(op: ir.Operation) -> str:
    """`file.py:12: `; nothing where the operation has no line."""
    place = source_location(op.location)
    return f"{place.file}:{place.line}: " if place is not None else ""
