"""`CompileOptions`: options as an object of their own, for whichever back end compiles."""

from __future__ import annotations

from typing import Any

from tilewright.base.errors import CompileError
from tilewright.targets.options import GivenOptions
from tilewright.targets.target import back_end, back_end_names


class CompileOptions(GivenOptions):
    """Options for `cute.compile(options=)`: a flag string such as `"--opt-level 2"`, an option object, or several."""

    def __init__(self, given: Any = "") -> None:
        self._flags = _flags_of(given)  # refuses what is an option of no back end
        self.given = given

    def to_str(self) -> str:
        """The options as flags: those that were given, or those of the objects that differ from the defaults."""
        return self.given if isinstance(self.given, str) else self._flags

    def __repr__(self) -> str:
        return f"CompileOptions({self.to_str()!r})"


def _flags_of(given: Any) -> str:
    """The options as flags of the first back end that has them all.

    Raises:
        CompileError: no back end has.
    """
    refusals: list[CompileError] = []
    for name in back_end_names():
        try:
            return back_end(name).options().merged(given).to_str()
        except CompileError as error:
            refusals.append(error)
    raise refusals[0]
