"""What goes wrong on a core."""

from __future__ import annotations

from tilewright.base.location import SourceLocation


class Fault(Exception):
    """A rule of the protocol that a kernel breaks. `role` and `location` are filled in by who runs the kernel."""

    def __init__(self, message: str, hint: str = "", **values: object) -> None:
        super().__init__(message)
        self.message, self.hint, self.values = message, hint, values
        self.role = ""
        self.location: SourceLocation | None = None
