"""What the debugger notes while a batch of blocks runs: accesses to watched memory, copies under way, mbarriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilewright.targets.emu.checks import Access, Batch, Observer
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.tensormap import TensorMap
from tilewright.tools.debugger.plan import Watch


@dataclass
class CopyUnderWay:
    """An asynchronous copy that no one has waited for.

    `lanes` issued it; `group` is the number of each one's group, `word` the mbarrier that counts it (or -1). `to` has
    the first byte in the batch's shared memory for each lane, None where it goes elsewhere.
    """

    kind: str
    site: int
    lanes: Array
    nbytes: int
    group: Array
    word: int = -1
    to: Array | None = None


class Listener(Protocol):
    """Who wants to know of accesses to watched memory, and of threads that end."""

    watches: tuple[Watch, ...]

    def touched(self, watch: Watch, L: Lanes, at: Array, site: int) -> None: ...

    def threads_ended(self, L: Lanes) -> None: ...


class Onlooker(Observer):
    """Notes for the debugger; a subclass that names its `listener` is given to a launch."""

    listener: Listener

    def __init__(self, batch: Batch) -> None:
        super().__init__(batch)
        lanes = len(batch.alive)
        self.copies: list[CopyUnderWay] = []
        self.groups = {bulk: np.zeros(lanes, np.int64) for bulk in (False, True)}
        self.mbarriers: set[int] = set()

    # Watched memory.

    def shared_access(self, access: Access) -> None:
        for watch in self.listener.watches:
            if watch.space == "shared" and (access.writes or watch.reads):
                self._look(watch, access.L, self._inside(access.offsets), access.size, access.site)

    def copy_written(self, access: Access) -> None:
        self.shared_access(access)
        lanes = access.L.ids
        self.copies.append(
            CopyUnderWay("cp.async", access.site, lanes, access.size, self.groups[False][lanes], to=access.offsets)
        )

    def global_access(self, access: Access) -> None:
        for watch in self.listener.watches:
            if watch.space == "global" and (access.writes or watch.reads):
                self._look(watch, access.L, access.addresses.astype(np.int64), access.size, access.site)

    def atomic_begins(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> None:
        for watch in self.listener.watches:
            if watch.space == space:
                addresses = np.broadcast_to(np.asarray(addr).astype(np.int64), (L.n,))
                self._look(watch, L, addresses, size, site)

    def _inside(self, offsets: Array) -> Array:
        """Offsets in the batch's shared memory as those in their block's."""
        inside: Array = offsets % self.batch.shared.stride
        return inside

    def _look(self, watch: Watch, L: Lanes, first: Array, size: int, site: int) -> None:
        near = np.zeros(L.n, bool)
        for start, nbytes in watch.places:
            near |= (first < start + nbytes) & (first + size > start)
        if watch.space == "shared":
            near &= L.block == watch.block
        if near.any():
            self.listener.touched(watch, L, np.flatnonzero(near), site)

    def threads_ended(self, L: Lanes, cohort: Any) -> None:
        self.listener.threads_ended(L)

    # Copies under way.

    def copies_committed(self, L: Lanes, bulk: bool) -> None:
        self.groups[bulk][L.ids] += 1

    def copies_awaited(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        reached = np.zeros(len(self.batch.alive), np.int64)
        reached[L.ids] = self.groups[bulk][L.ids] + (1 if everything else -count)
        kept = []
        for copy in self.copies:
            left = np.flatnonzero(copy.group >= reached[copy.lanes])
            if copy.word >= 0 or (copy.kind != "cp.async") != bulk or len(left) == len(copy.lanes):
                kept.append(copy)
            elif len(left):
                to = None if copy.to is None else copy.to[left]
                kept.append(CopyUnderWay(copy.kind, copy.site, copy.lanes[left], copy.nbytes, copy.group[left], to=to))
        self.copies = kept

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signal: int | None
    ) -> None:  # fmt: skip
        place = np.array([to]) if to_space == "shared" else None
        self._issue(f"bulk copy, {from_space} to {to_space}", site, one, count, signal, place)

    def tensor_loaded(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], to: int, order: Array, signal: int
    ) -> None:  # fmt: skip
        coordinates = ", ".join(map(str, start))
        self._issue(f"tensor load at ({coordinates})", site, one, 16 * len(order), signal, np.array([to]))

    def tensor_stored(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], source: int, order: Array
    ) -> None:  # fmt: skip
        self._issue(f"tensor store at ({', '.join(map(str, start))})", site, one, 16 * len(order), None, None)

    def _issue(self, kind: str, site: int, one: Lanes, nbytes: int, signal: int | None, to: Array | None) -> None:
        group = self.groups[True][one.ids]
        word = -1 if signal is None else int(signal)
        self.copies.append(CopyUnderWay(kind, site, one.ids, nbytes, group, word, to))

    # mbarriers, by the 8-byte word in the batch's shared memory.

    def mbarrier_made(self, site: int, L: Lanes, index: Array) -> None:
        self.mbarriers.update(index.tolist())

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        ended = set(index[done].tolist())
        self.copies = [copy for copy in self.copies if copy.word not in ended]
