"""`Arch`: the chips as an enumeration that can be compared."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from tilewright.base.errors import CompileError

_VERSIONS = (80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
_NAMES = [f"sm_{v}" for v in _VERSIONS] + [f"sm_{v}a" for v in _VERSIONS if v >= 90]
_NAMES += [f"sm_{v}f" for v in _VERSIONS if v >= 100]


class _Comparable(Enum):
    """Compared by compute capability; `a` and `f` variants of one chip are equal in rank."""

    @property
    def capability(self) -> int:
        """90 for sm_90a."""
        return int(re.sub(r"\D", "", self.value))

    @property
    def major(self) -> int:
        return self.capability // 10

    @property
    def minor(self) -> int:
        return self.capability % 10

    @property
    def suffix(self) -> str:
        return self.value.lstrip("sm_0123456789")

    def __lt__(self, other: _Comparable) -> bool:
        return self.capability < other.capability

    def __le__(self, other: _Comparable) -> bool:
        return self.capability <= other.capability

    def __gt__(self, other: _Comparable) -> bool:
        return self.capability > other.capability

    def __ge__(self, other: _Comparable) -> bool:
        return self.capability >= other.capability

    def is_family_of(self, other: _Comparable) -> bool:
        """True for chips of one major version, this one not the older."""
        return self.major == other.major and self.capability >= other.capability

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def from_string(cls, text: str) -> _Comparable:
        """The chip of that name."""
        try:
            return cls(text)
        except ValueError:
            raise CompileError(f"unknown chip {text!r}", hint=f"known: {', '.join(_NAMES)}") from None

    @classmethod
    def filter(cls, predicate: object) -> list[_Comparable]:
        """The chips that satisfy a predicate."""
        return [item for item in cls if predicate(item)]  # type: ignore[operator]


Arch: Any = _Comparable("Arch", {name: name for name in _NAMES})  # type: ignore[call-arg]
