"""Exceptions inside passes, told to their authors: what was raised, where, and at which operation."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.errors import PassError, TilewrightError
from tilewright.base.interrupts import raised_by_signal
from tilewright.ir import erasing, mlir, walk
from tilewright.ir.locations import source_location

if TYPE_CHECKING:
    from mlir import ir

_PIPELINE = str(Path(__file__).with_name("pipeline.py"))


def reason_of(error: Exception) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}"


def locate_error(error: Exception, op: ir.Operation, location: ir.Location) -> None:
    """Give an error that lowering `op` raised the line of `op`, unless it names one.

    Raises:
        PassError: in place of an exception of Python's.
    """
    if isinstance(error, TilewrightError):
        error.location = error.location or source_location(location)
    elif not isinstance(error, mlir.ir.MLIRError) and not raised_by_signal(error):
        raise PassError(
            f"{op.name} cannot be lowered",
            location=source_location(location),
            values={"reason": reason_of(error)} | raised_at(error),
            hint="its operands, types and attributes must fit each other: compare it with one of a traced program",
        ) from error


def raised_at(error: Exception) -> dict[str, str]:
    """The line of the pass that raised, for its author."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = {__file__, _PIPELINE, walk.__file__, erasing.__file__}
    places = [f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename not in ours]
    return {"raised at": places[-1]} if places else {}
