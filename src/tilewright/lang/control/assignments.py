"""The lines of a region's body that assign a variable or attribute, for messages."""

from __future__ import annotations

import dis
import linecache
from collections.abc import Iterable, Iterator
from types import CodeType

from tilewright.lang.locations import REGION_PREFIX

_MOST = 4


def lines(bodies: Iterable[CodeType], name: str) -> dict[str, object]:
    """`{"line 12": "x = y * 2.0"}`: where the bodies assign `name`, a variable or a dotted attribute; the last ones."""
    found: dict[int, str] = {}
    for body in bodies:
        for line in _stores(body, name.rpartition(".")[2], attribute="." in name):
            text = linecache.getline(body.co_filename, line).strip()
            if text:
                found[line] = text
    return {f"line {line}": found[line] for line in sorted(found)[-_MOST:]}


def _stores(code: CodeType, name: str, attribute: bool) -> Iterator[int]:
    for instruction in dis.get_instructions(code):
        stores = instruction.opname.startswith("STORE") and (instruction.opname == "STORE_ATTR") is attribute
        line = instruction.positions.lineno if instruction.positions else None
        if stores and instruction.argval == name and line is not None:
            yield line
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name.startswith(REGION_PREFIX):
            yield from _stores(inner, name, attribute)
