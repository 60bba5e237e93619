"""What each pass changes, as text: the program before and after it, every operation with its line of Python.

changes = PassChanges()
cute.compile(f, a, b, after_pass=changes)
print(changes)
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilewright.passes.located_text import located_text
from tilewright.passes.pipeline import Pass, UpstreamPass

if TYPE_CHECKING:
    from mlir import ir

_VALUE: Final = re.compile(r"%[\w$.#-]+|\^bb\d+")


@dataclass(frozen=True)
class PassChange:
    """A pass, and the program before and after it."""

    name: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        return bool(self.diff())

    def diff(self, context: int = 1) -> str:
        """The lines that the pass changed, with `context` lines around them; "" where it changed none.

        A line counts as changed where more than the names of values differ.
        """
        old, new = self.before.splitlines(), self.after.splitlines()
        matcher = difflib.SequenceMatcher(None, bare(old), bare(new), autojunk=False)
        lines: list[str] = []
        for group in matcher.get_grouped_opcodes(context):
            lines += ["  ..."] if lines else []
            for tag, start, end, new_start, new_end in group:
                if tag == "equal":
                    lines += [f"  {line}" for line in new[new_start:new_end]]
                else:
                    lines += [f"- {line}" for line in old[start:end]]
                    lines += [f"+ {line}" for line in new[new_start:new_end]]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"// ---- {self.name} ----\n{self.diff() or '  nothing is changed'}\n"


class PassChanges:
    """Collects a `PassChange` for each pass of a compilation: give it as `after_pass=` of `cute.compile`."""

    def __init__(self) -> None:
        self.changes: list[PassChange] = []
        self._last: dict[str, str] = {}

    def begin(self, module: ir.Operation) -> None:
        """The program as it was traced."""
        self._last["module"] = program_text(module)

    def __call__(self, item: Pass, module: ir.Operation | str) -> None:
        """The program after a pass; a pass over text has the text."""
        kind, text = (item.stage, module) if isinstance(module, str) else ("module", program_text(module))
        name = str(item) if isinstance(item, UpstreamPass) else item.name
        self.changes.append(PassChange(name, self._last.get(kind, text), text))
        self._last[kind] = text

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes))


def program_text(module: ir.Operation) -> str:
    """The text of a module, each line with the file and line of Python that its operation comes from."""
    text, places = located_text(module, verified=False)
    lines = zip(text.splitlines(), places, strict=True)
    return "\n".join(f"{line}  // {Path(place[0]).name}:{place[1]}" if place else line for line, place in lines if line)


def bare(lines: list[str]) -> list[str]:
    """Lines without the names of values."""
    return [_VALUE.sub("%", line) for line in lines]
