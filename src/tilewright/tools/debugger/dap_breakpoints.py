"""The breakpoints that a client of the Debug Adapter Protocol asks for, before a program runs and while it does."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.base.errors import TilewrightError
from tilewright.tools.debugger.dap_messages import Message
from tilewright.tools.debugger.session import Session

FUNCTIONS = "functions"
"""The source of breakpoints on functions."""
EARLY = "the program has not been launched yet"


@dataclass
class Wanted:
    """One breakpoint: its number, where it shall be (`FILE:LINE`, `ptx:LINE`, a function), and the client's words."""

    number: int
    place: str
    item: Message


class Breakpoints:
    """All of them, by source. Numbers stay the same when the program is launched again."""

    def __init__(self) -> None:
        self._wanted: dict[str, list[Wanted]] = {}
        self._count = 0

    def replace(self, source: str, places: list[str], items: list[Message], session: Session | None) -> list[Message]:
        """Those of a source from now on; what the client hears of each."""
        for old in self._wanted.get(source, ()):
            if session is not None:
                session.breakpoints.pop(old.number, None)
        self._wanted[source] = [self._new(place, item) for place, item in zip(places, items, strict=True)]
        return [bound(wanted, session) for wanted in self._wanted[source]]

    def bind(self, session: Session) -> list[Message]:
        """Set all of them in a session that has begun; what has become of each."""
        return [bound(wanted, session) for group in self._wanted.values() for wanted in group]

    def next_number(self) -> int:
        """A number that no breakpoint has."""
        self._count += 1
        return self._count

    def _new(self, place: str, item: Message) -> Wanted:
        return Wanted(self.next_number(), place, item)


def bound(wanted: Wanted, session: Session | None) -> Message:
    """Set a breakpoint, where there is a session; what the client hears of it."""
    told: Message = {"id": wanted.number, "verified": False}
    if session is None:
        return {**told, "message": EARLY}
    item = wanted.item
    try:
        made = session.add_breakpoint(
            wanted.place, str(item.get("condition") or ""), hits=str(item.get("hitCondition") or ""),
            log=str(item.get("logMessage") or ""), number=wanted.number,
        )  # fmt: skip
    except TilewrightError as error:
        return {**told, "message": error.message}
    return {**told, "verified": True, "line": made.line}
