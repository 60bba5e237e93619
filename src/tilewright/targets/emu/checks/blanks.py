"""Memory that no one has written: what stores and atomics leave there, and where its values may not go.

Shared memory is watched by granules (`Shadow.spoilt`), local memory by bytes. A store leaves its value's mark; an
atomic that combines leaves unwritten what was, `exch` and a `cas` that succeeds write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tilewright.targets.emu.checks.base import FALSE, unwritten
from tilewright.targets.emu.checks.repeats import Repeats
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.memory import by_space, local_address

STORED = "value stored to global memory"
COMBINED = "operand of an atomic on global memory"


class Part(NamedTuple):
    """The threads whose addresses lie in one state space, and their positions (all of them: a slice)."""

    space: str
    at: Any
    L: Lanes
    addr: Any


class Blanks(Repeats):
    """Follows values never written through memory."""

    def poisoned(self, site: int, L: Lanes, mark: Any, what: str) -> None:
        """A value that depends on memory never written reaches an address, a branch or global memory."""
        bad = np.flatnonzero(mark) if mark.__class__ is np.ndarray else np.arange(L.n if mark else 0)
        if len(bad):
            self.report(unwritten(what, site, bad, L))

    def spoilt(self, site: int, L: Lanes, space: str, addr: Any, place: int, shift: int, mark: Any) -> None:
        """What `mark`'s threads just stored `place` bytes behind `addr` depends on memory never written."""
        if mark.__class__ is not np.ndarray and not mark:
            return
        bad = np.flatnonzero(np.broadcast_to(mark, (L.n,)))
        if not len(bad):
            return
        where = np.broadcast_to(addr, (L.n,))[bad] + addr.dtype.type(place)
        for part in parts_of(L.subset(bad), space, where):
            if part.space == "global":
                self.report(unwritten(STORED, site, None, part.L))
            else:
                self.tolerant(lambda L, addr, inner=part.space: self._spoil(site, L, inner, addr, shift), *part[2:])

    def _spoil(self, site: int, L: Lanes, space: str, addr: Any, shift: int) -> None:
        cells, _ = self.cells_of(site, L, space, addr, 1 << shift)
        (self.lo if space == "local" else self.shared_shadow).spoil(cells)

    def cells_of(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> tuple[Array, int]:
        """The granules of shared memory, or bytes of local memory, that threads name, and how many each does."""
        shift = size.bit_length() - 1
        if space == "local":
            first = self.lo.index(site, L, addr, shift) << shift
            return (first[:, None] + np.arange(size)).reshape(-1), size
        index = np.broadcast_to(self.sh.index(site, L, addr, shift), (L.n,))
        return self.shared_shadow.granules(index << shift, size)

    # Atomics.

    def atomic_done(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> Array | None:
        """Note an atomic; which parts of its words (a row a thread) no one had written before, None for none."""
        found: Array | None = None
        self.unwritten = FALSE
        for part in parts_of(L, space, addr):
            missing = self._noted(site, *part, size)
            if missing is None:
                continue
            if part.L is L:
                found = missing
            else:
                found = np.zeros((L.n, size), bool) if found is None else found
                found[part.at] = np.repeat(missing, size // missing.shape[1], axis=1)
        return found

    def _noted(self, site: int, space: str, at: Any, L: Lanes, addr: Any, size: int) -> Array | None:
        """One state space's part of `atomic_done`."""
        shift, missing = size.bit_length() - 1, None
        if space == "global":
            self.g.resolve(site, np.broadcast_to(addr, (L.n,)), np.dtype(np.uint8), shift, size, True)
            self.g.cache.pop(site, None)
            self.note_global(site, L, addr, size, True, None)
        else:
            cells, each = self.cells_of(site, L, space, addr, size)
            blank = self.blank(space, cells)
            missing = blank.reshape(-1, each) if blank is not None and np.count_nonzero(blank) else None
        if space == "shared":
            index = self.sh.index(site, L, addr, shift)
            self.note_shared(site, L, index << shift, size, True, None)
        return missing

    def atomic_seen(self, site: int, L: Lanes, space: str, addr: Any, wrote: Any) -> None:
        """A `cas` that fails only reads."""
        for part in parts_of(L, space, addr) if self.ordered else ():
            if part.space != "local":
                mine = wrote[part.at] if wrote.__class__ is np.ndarray else wrote
                self.through_memory(site, part.L, part.space, part.addr, True, mine)

    def blank(self, space: str, cells: Array) -> Array | None:
        """Which granules of shared memory, or bytes of local memory, no one has written; None for none."""
        if space == "local":
            return self.lo.blank(cells)
        shadow = self.shared_shadow
        words = shadow.writes.take(cells) if shadow.written else None
        if words is not None and shadow.spoilt is None and np.count_nonzero(words) == len(words):
            return None
        return shadow.missing(cells, words)

    def atomic_left(
        self, site: int, L: Lanes, space: str, addr: Any, size: int, unit: int, missing: Array | None, mark: Any,
        wrote: Any,
    ) -> None:  # fmt: skip
        """What an atomic left of memory never written, and which of its results depend on that (`unwritten`).

        Args:
            unit: the bytes that are combined as one with the old value; 0 if it is replaced, or nothing changes.
            missing: what `atomic_done` returned.
            mark: whose operands depend on memory never written.
            wrote: whose operands took the place of the old value; nobody's where values are combined.
        """
        rows = np.zeros((L.n, size), bool)
        mark, wrote = np.broadcast_to(mark, (L.n,)), np.broadcast_to(wrote, (L.n,))
        for part in parts_of(L, space, addr):
            at = part.at
            if part.space == "global":
                self.poisoned(site, part.L, mark[at], COMBINED)
                continue
            cells, each = self.cells_of(site, part.L, part.space, part.addr, size)
            blank = widened((rows if missing is None else missing)[at], each, unit * each // size)
            marks, writes = np.repeat(mark[at], each), np.repeat(wrote[at], each)
            before, last, after = in_turn(cells, blank.reshape(-1), marks, writes, unit > 0)
            rows[at] = np.repeat(before.reshape(-1, each), size // each, axis=1)
            (self.lo if part.space == "local" else self.shared_shadow).spoil(last, after)
        self.unwritten = rows if np.count_nonzero(rows) else FALSE


def parts_of(L: Lanes, space: str, addr: Any) -> Iterator[Part]:
    """Threads by the state space that their addresses lie in."""
    if space != "generic":
        yield Part("global" if space == "const" else space, slice(None), L, addr)
        return
    for inner, at in by_space(addr):
        some = addr if at is None else addr[at]
        yield Part(
            inner, slice(None) if at is None else at, L if at is None else L.subset(at), local_address(inner, some)
        )


def widened(missing: Array, each: int, together: int) -> Array:
    """Rows of marks as rows of `each`; of those that are combined `together`, one that is missing speaks for all."""
    n, have = missing.shape
    rows = np.logical_or.reduce(missing.reshape(n, each, have // each), 2)
    if together > 1:
        rows = np.repeat(np.logical_or.reduce(rows.reshape(n, each // together, together), 2), together, axis=1)
    return np.asarray(rows)


def in_turn(cells: Array, blank: Array, mark: Array, wrote: Array, combines: bool) -> tuple[Array, Array, Array]:
    """Accesses to granules one after another: which found a granule unwritten, the granules, and which are left so.

    `blank`: whether a granule was unwritten before the first; `mark`: whether an operand is; `wrote`: whether it took
    the place of what was there; otherwise the two are combined (`combines`), or nothing changes.
    """
    order = np.argsort(cells, kind="stable")
    numbers, blank, mark, wrote = cells[order], blank[order], mark[order], wrote[order]
    place = np.arange(len(order))
    first = np.append(True, numbers[1:] != numbers[:-1])
    start = np.maximum.accumulate(np.where(first, place, 0))
    last = np.maximum.accumulate(np.where(wrote, place, -1))
    after = np.where(last >= start, mark[last], blank)
    if combines:
        marks = np.cumsum(mark)
        after |= marks - marks[start] + mark[start] > 0
    before = np.empty(len(order), bool)
    before[order] = np.where(first, blank, np.append(False, after[:-1]))
    ends = np.flatnonzero(np.append(first[1:], True))
    return before, numbers[ends], after[ends]
