"""Order through memory: fences, and values that carry what a release has published to those that acquire it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from tilewright.base.lazy import cached_property
from tilewright.targets.emu.checks.observer import Access, Batch, Observer
from tilewright.targets.emu.checks.order.fences import SequentialFences
from tilewright.targets.emu.checks.order.knowledge import Knowledge, Publication, narrowed, together
from tilewright.targets.emu.checks.order.state import OrderState
from tilewright.targets.emu.checks.order.strength import CLUSTER, CTA, GPU, SCOPES, SYS, Strength
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.memory import parts_of


class Published(dict[Any, Publication]):
    """What the words of a launch's memory carry: by address, in shared memory by (batch, offset)."""

    def __init__(self, batch: Batch | None = None) -> None:
        super().__init__()


class MemoryOrder(Observer):
    """Releases and acquires, by accesses themselves and by fences beside them (PTX ISA 8.7, 8.9)."""

    def __init__(self, batch: Batch, state: OrderState) -> None:
        super().__init__(batch)
        self.clocks, self._state = state.clocks, state
        self._sequential = SequentialFences(state.clocks)
        self._pending: dict[int, dict[Any, Publication]] = {}
        """What values carry that each lane has read, until it passes a fence."""
        self._published = batch.of_launch(Published)
        if state.only_barriers:
            self.ignored = frozenset(("shared_access", "global_access", "atomic_ends"))

    @cached_property
    def fenced_at(self) -> Array:
        """The clock that the last fence of each scope ended: a row a scope, a column a lane."""
        return np.zeros((SYS + 1, len(self.batch.alive)), np.int64)

    @cached_property
    def fenced_shared(self) -> Array:
        """The same of fences for shared memory alone, by lane."""
        return np.zeros(len(self.batch.alive), np.int64)

    # Fences.

    def fence(self, L: Lanes, scope: str, kind: str) -> None:
        level, widest = SCOPES[scope], self._state.widest
        if kind in ("async", "tensor map"):
            self.clocks.tick(L.ids)
        if kind == "shared acquire":
            self._acquire_pending(L, level, True)
        if kind == "shared release":
            self.fenced_shared[L.ids] = self.clocks.clock[L.ids]
            self.clocks.tick(L.ids)
        if kind == "sc" and level >= widest:
            self._sequential.passed(L)
        if kind in ("memory", "sc", "acquire"):
            self._acquire_pending(L, level)
            for lane in L.ids.tolist() if level >= widest and self._pending else ():
                self._pending.pop(lane, None)
        if kind in ("memory", "sc", "release"):
            self.fenced_at[: level + 1, L.ids] = self.clocks.clock[L.ids]
            self.clocks.tick(L.ids)

    def saw_relaxed(self, lane: int, key: Any, carried: Publication) -> None:
        """A lane has seen what carries something to it, and acquires that with a later fence."""
        self._pending.setdefault(lane, {})[key] = carried

    def _acquire_pending(self, L: Lanes, level: int, shared: bool = False) -> None:
        """Threads come to know, by a fence, what the values that they have read carry."""
        readers: dict[int, tuple[Publication, list[int]]] = {}
        for lane in L.ids.tolist() if self._pending else ():
            for seen in self._pending.get(lane, {}).values():
                readers.setdefault(id(seen), (seen, []))[1].append(lane)
        for seen, lanes in readers.values():
            self._acquire(lanes, seen, level, shared)

    # Strong accesses.

    def shared_access(self, access: Access) -> None:
        if self._state.strength(access.site).strong:
            self._through(access.site, access.L, access.offsets, True, not access.writes, np.bool_(access.writes))

    def global_access(self, access: Access) -> None:
        if self._state.strength(access.site).strong:
            self._through(access.site, access.L, access.addresses, False, not access.writes, np.bool_(access.writes))

    def atomic_ends(
        self, site: int, L: Lanes, space: str, addr: Any, size: int, unit: int, missing: Array | None, mark: Any,
        replaced: Any, wrote: Any,
    ) -> None:  # fmt: skip
        for part in parts_of(L, space, addr):
            if part.space == "local":
                continue
            shared = part.space == "shared"
            where = self.batch.shared.index(site, part.L, part.addr, 0) if shared else part.addr
            mine = wrote[part.at] if wrote.__class__ is np.ndarray else wrote
            self._through(site, part.L, np.broadcast_to(where, (part.L.n,)), shared, True, mine)

    def _through(self, site: int, L: Lanes, where: Array, shared: bool, reads: bool, writes: Any) -> None:
        """Strong accesses carry what their threads have released to those that acquire; `writes`: whether, or whose."""
        strength = self._state.strength(site)
        places = self._published
        fenced = (self.fenced_at[self._state.levels[0]][L.ids] > 0) | (self.fenced_shared[L.ids] > 0)
        releasing = (fenced | strength.releases | self._sequential.slots[L.slot]) & writes
        if not releasing.any() and not places:
            return
        writing = np.broadcast_to(writes, (L.n,))
        seen: Publication | None = None
        readers: list[int] = []
        batch = id(self.batch)
        for address, thread, gives, wrote in zip(
            where.tolist(), L.ids.tolist(), releasing.tolist(), writing.tolist(), strict=True
        ):
            key: Any = (batch, address) if shared else address
            known = places.get(key)
            if reads and known:
                if known is not seen:
                    self._saw(readers, seen, strength)
                    seen, readers = known, []
                readers.append(thread)
            if gives:
                self._saw(readers, seen, strength)  # before it writes, since a thread passes on what it has acquired
                readers = []
                places[key] = self._carried(thread, strength, known if strength.atomic else None)
            elif wrote and known and not strength.atomic and known.publisher != (batch, thread):
                del places[key]  # another thread's store ends the release pattern
        self._saw(readers, seen, strength)
        if strength.releases and np.count_nonzero(writing):
            self.clocks.tick(L.ids[writing])

    def _saw(self, lanes: list[int], known: Publication | None, strength: Strength) -> None:
        """Threads have read a value: they acquire now, or with a later fence."""
        if known is None or not lanes:
            return
        if strength.acquires:
            self._acquire(lanes, known, strength.scope)
        if strength.scope >= self._state.widest:
            self._sequential.saw(lanes, known)
        if not strength.acquires or strength.scope < self._state.widest:
            root = id(known.root)
            for lane in lanes:
                self._pending.setdefault(lane, {})[root] = known

    def _acquire(self, lanes: list[int], seen: Publication, scope: int, shared: bool = False) -> None:
        """Threads come to know what was released to groups that their own scope includes, or of that what counts for
        shared memory."""
        stride = self.batch.shape.stride
        for _, members in groupby(lanes, lambda lane: lane // stride):
            some = list(members)
            for level in self._state.levels:
                known = seen.groups.get(self.group(some[0], level)) if level <= scope else None
                if known:
                    self.clocks.acquire(some, narrowed(known) if shared else known)

    def group(self, lane: int, level: int) -> tuple[int, int]:
        """The threads that a scope includes for a lane."""
        if level >= GPU:
            return level, self._state.device if level == GPU else 0
        block = self.batch.identities[lane // self.batch.shape.stride]
        return level, int(block if level == CTA else self._state.cluster_of(block))

    def _carried(self, lane: int, strength: Strength, before: Publication | None) -> Publication:
        """What a value just written carries; a read-modify-write adds to what the value before it did."""
        now = int(self.clocks.clock[lane])
        groups: dict[tuple[int, int], Knowledge] = dict(before.groups) if before is not None else {}
        made: dict[int, Knowledge] = {}
        for level in self._state.levels:
            clock = now if strength.releases and strength.scope >= level else int(self.fenced_at[level][lane])
            if not clock:
                continue
            if clock not in made:
                made[clock] = self.clocks.publish(lane, clock)
            group = self.group(lane, level)
            groups[group] = together(groups[group], made[clock]) if group in groups else made[clock]
        if self.fenced_shared[lane]:
            known = narrowed(self.clocks.publish(lane, int(self.fenced_shared[lane])))
            group = self.group(lane, CLUSTER)
            groups[group] = together(groups.get(group, {}), known)
        fenced = self._sequential.before(lane) if strength.scope >= self._state.widest else {}
        if before is not None:
            return Publication(before.root, before.publisher, groups, together(before.fenced, fenced))
        return Publication(object(), (id(self.batch), lane), groups, fenced)
