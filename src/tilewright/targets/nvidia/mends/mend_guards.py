"""Guards of instructions that a mend has made several of: each of them gets the guard.

A mend writes `{ .reg .b32 %x; one; another; }` in the place of an instruction; PTX has no guarded blocks. Only the last
of the instructions writes what the first one did, so a guard that is written itself still holds for all before.
"""

from __future__ import annotations

import re

_GUARDED = re.compile(r"(@!?%\w+[ \t]+)(?=\{ \.reg )")
_BRACE = re.compile(r"[{}]")


def spread_guards(ptx: str) -> str:
    """The same program with the guard of a block before each of its instructions."""
    if "@" not in ptx or "{ .reg" not in ptx:
        return ptx
    parts, end = [], 0
    for found in _GUARDED.finditer(ptx):
        if found.start() >= end:
            parts.append(ptx[end : found.start()])
            end = _end_of_block(ptx, found.end())
            parts.append("; ".join(_guarded(part, found[1]) for part in ptx[found.end() : end].split("; ")))
    return "".join([*parts, ptx[end:]])


def _end_of_block(ptx: str, start: int) -> int:
    """Behind the brace that closes the one at `start`."""
    depth = 0
    for brace in _BRACE.finditer(ptx, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(ptx)


def _guarded(statement: str, guard: str) -> str:
    """A statement, behind braces that close and before those that open; declarations have no guard."""
    head = re.match(r"(?:\} ?)*", statement)
    before = head[0] if head else ""
    rest = statement[len(before) :]
    return statement if not rest or rest.startswith(("{ .reg", ".reg")) else f"{before}{guard}{rest}"
