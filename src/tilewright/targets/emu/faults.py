"""Errors with their place: the PTX line, the source line behind it, and the threads concerned."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError, FaultKind
from tilewright.base.location import SourceLocation
from tilewright.targets.emu.lanes import Lanes, unflatten
from tilewright.targets.emu.ptx import Instruction, Place


class Fault(Exception):
    """Raised by memory and lane functions; the machine adds place and threads and makes it an `EmulationError`.

    `lanes` are positions (an array of indices, None for all) in `among`, or in the running cohort where that is None;
    `kind` is the class of the finding, such as `bounds`; `instruction` is where it is, if that has no site.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        site: int = -1,
        lanes: np.ndarray | None = None,
        values: dict[str, Any] | None = None,
        hint: str | None = None,
        among: Lanes | None = None,
        instruction: Instruction | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.message = message
        self.site = site
        self.lanes = lanes
        self.values = values or {}
        self.hint = hint
        self.among = among
        self.instruction = instruction

    def of(self, lanes: Lanes) -> Fault:
        """The same fault, of these threads unless it is known already which ones its positions count."""
        if self.among is None:
            self.among = lanes
        return self


def threads_of(L: Lanes, at: np.ndarray | None) -> dict[str, Any]:
    """Which threads, at positions of `L` (None: all), for an error: the first, and how many more."""
    at = np.arange(L.n) if at is None else at
    first = int(at[0])
    values: dict[str, Any] = {
        "block": unflatten(int(L.block[first]), L.shape.grid),
        "thread": unflatten(int(L.thread[first]), L.shape.block),
    }
    count = len(np.unique(L.ids[at]))
    if count > 1:
        values["also"] = f"{count - 1} other threads at the same instruction"
    return values


def source_location(place: Place | None) -> SourceLocation | None:
    """The `.loc` place as a source location."""
    if place is None:
        return None
    return SourceLocation(place.file, place.line, max(place.column - 1, 0), 0, place.function,
                          source_location(place.caller))  # fmt: skip


def located(
    message: str,
    instruction: Instruction | None,
    kernel: str = "",
    values: dict[str, Any] | None = None,
    hint: str | None = None,
    kind: FaultKind = "program",
) -> EmulationError:
    """An error at an instruction."""
    shown: dict[str, Any] = {}
    if kernel:
        shown["kernel"] = kernel
    if instruction is not None:
        shown["PTX line"] = f"{instruction.line}: {instruction.text}"
    shown.update(values or {})
    place = source_location(instruction.place) if instruction is not None else None
    return EmulationError(message, location=place, values=shown, hint=hint, kind=kind)
