"""What a pass could not do well, at the user's line, for `executor.report()`: why an access is not wider."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tilewright.base.location import SourceLocation
from tilewright.ir.locations import source_location

if TYPE_CHECKING:
    from mlir import ir

WIDEST_BITS = 128
Kind = Literal["access", "memory"]


@dataclass(frozen=True)
class Remark:
    """What is said of a line of the user's; of kind `memory` where it is about registers that may lie in memory."""

    text: str
    file: str = ""
    line: int = 0
    kind: Kind = "access"

    @classmethod
    def at(cls, op: ir.Operation, text: str, kind: Kind = "access") -> Remark:
        """The remark at the line of an operation."""
        place = source_location(op.location)
        return cls(text, kind=kind) if place is None else cls(text, place.file, place.line, kind)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.file else self.text

    def excerpt(self) -> list[str]:
        """The remark with the line that it is about."""
        where = SourceLocation(self.file, self.line).excerpt()[:1] if self.file else []
        return [self.text, *(f"  {line}" for line in where)]


def written(remarks: Iterable[Remark]) -> str:
    """Remarks as text, for artifacts."""
    return json.dumps([[item.text, item.file, item.line, item.kind] for item in dict.fromkeys(remarks)])


def read(text: str) -> list[Remark]:
    """What `written` gave."""
    return [Remark(*fields) for fields in json.loads(text)]
