"""What the parts of a walk ask of it."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol

from tilewright.compiler.cache.watch import Watch


class Walk(Protocol):
    """A walk over what a function can reach, see `reach.py`."""

    watch: Watch

    def note(self, *notes: str | bytes) -> None:
        """Put facts into the digest."""

    def value(self, value: Any) -> None:
        """A value that tracing may read."""

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """An attribute that counts once any code names it."""

    def described(self, owner: Any) -> None:
        """A function or class: its names, text and annotations count once any code names such an attribute."""

    def registered(self, classes: Set[type]) -> None:
        """Classes that were registered with the abstract class that is met; those count that are met too."""

    def code_names(self, names: tuple[str, ...]) -> None:
        """Names that occur in code that was reached."""
