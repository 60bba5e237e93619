"""The texts of a compilation by stage; one that nobody asks for is never printed."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any, Final


class Texts(UserDict[str, Any]):
    """A mapping from the name of a stage to its text or bytes.

    A text put in by `later` is made when it is first read, and kept from then on.
    """

    def later(self, stage: str, make: Callable[[], Any]) -> None:
        """Take what `make` gives for the text of `stage`, once somebody asks for it."""
        self.data[stage] = _Later(make)

    def made(self) -> dict[str, Any]:
        """The texts that are there already."""
        return {stage: text for stage, text in self.data.items() if type(text) is not _Later}

    def __getitem__(self, stage: str) -> Any:
        found = self.data[stage]
        if type(found) is _Later:
            found = self[stage] = found.make()
        return found


class _Later:
    """A text that is not made yet."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make: Final = make
