"""Runtime branches opened by the language's own code, which is not rewritten: `with run_if(condition): ...`."""

from __future__ import annotations

from typing import Any

from tilewright.ir import build, mlir
from tilewright.lang.numeric import Boolean, as_numeric


class run_if:
    """What the block builds runs where `condition` holds. It gives no values to the code after it."""

    def __init__(self, condition: Any) -> None:
        self._condition = Boolean(as_numeric(condition)).ir_value()
        self._inside: Any = None

    def __enter__(self) -> None:
        guard = build.emit("scf.if", (), (self._condition,), regions=2)
        self._inside = mlir.ir.InsertionPoint(guard.regions[0].blocks.append())
        self._inside.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            build.emit("scf.yield")
        self._inside.__exit__(kind, error, traceback)
