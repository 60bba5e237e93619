"""Asynchronous copies, and the mbarriers that count them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.targets.emu.boxes import box_addresses, box_inside
from tilewright.targets.emu.checks.base import FALSE, Event, unwritten
from tilewright.targets.emu.checks.clocks import Knowledge, Publication, joined_rows, narrowed, together
from tilewright.targets.emu.checks.order import Order
from tilewright.targets.emu.checks.sites import CLUSTER, CTA
from tilewright.targets.emu.checks.stamps import agent_stamp
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.rules.tensors import chunk_order, room, runs
from tilewright.targets.emu.tensormap import TensorMap


class Copies(Order):
    """Stamps what copies write as their agents', and hands it to those that wait."""

    # mbarriers.

    def word_slot(self, index: int) -> int:
        """The slot of the block whose shared memory holds a word."""
        return int(index * 8 // self.sh.stride)

    def mbarrier_made(self, site: int, L: Lanes, addr: Any) -> None:
        index = np.broadcast_to(self.sh.index(site, L, addr, 3), (L.n,))
        self.note_shared(site, L, index << 3, 8, True, None)
        for lane, word in zip(L.ids, index, strict=True):
            self.made.setdefault(int(lane), []).append(int(word) << 3)

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        self.note_shared(site, L, index << 3, 8, False, None)
        releasing = counts > 0
        if relaxed:
            self.arrive_relaxed(L.ids[releasing], index[releasing])
        if relaxed or not releasing.any():
            return
        for word in np.unique(index[releasing]):
            here = releasing & (index == word)
            for slot in np.unique(L.slot[here]):
                self.arrive_from(int(word), int(slot), L.thread[here & (L.slot == slot)])
        self.clocks.tick(L.ids[releasing])

    def arrive_from(self, word: int, slot: int, threads: Array) -> None:
        """What arriving threads know goes to those that will wait."""
        if slot == self.word_slot(word):
            row = self.clocks.rows(slot, threads).max(axis=0)
            self.bring(word, row)
            known = self.clocks.foreign_of(slot * self.shape.stride + threads)
            if known:
                self.arrived_remote[word] = together(self.arrived_remote.get(word, {}), known)
            return
        for thread in threads:
            lane = slot * self.shape.stride + int(thread)
            known = self.clocks.publish(lane, int(self.clocks.clock[lane]))
            self.arrived_remote[word] = together(self.arrived_remote.get(word, {}), known)

    def arrive_relaxed(self, lanes: Array, words: Array) -> None:
        """A relaxed arrival carries what a fence before it has released, to a cluster at least."""
        fenced = (self.fenced_at[CLUSTER][lanes] > 0) | (self.fenced_shared[lanes] > 0)
        for lane, word in zip(lanes[fenced].tolist(), words[fenced].tolist(), strict=True):
            known: Knowledge = {}
            if self.fenced_at[CLUSTER][lane]:
                known = self.clocks.publish(lane, int(self.fenced_at[CLUSTER][lane]))
            if self.fenced_shared[lane]:
                known = together(known, narrowed(self.clocks.publish(lane, int(self.fenced_shared[lane]))))
            self.arrived_remote[word] = together(self.arrived_remote.get(word, {}), known)

    def bring(self, word: int, row: Array) -> None:
        old = self.phases.get(word)
        self.phases[word] = row.copy() if old is None else joined_rows(old, row)

    def mbarrier_completed(self, index: Array, parity: Array) -> None:
        for word in index:
            row = self.phases.get(int(word))
            if row is not None:
                self.ended[int(word)] = row.copy()
            if int(word) in self.arrived_remote:
                self.launch.remote[id(self), int(word)] = self.arrived_remote[int(word)]

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        self.note_shared(site, L, index << 3, 8, False, None)
        if relaxed:
            self.wait_relaxed(L.ids[done], index[done])
            return
        for word in np.unique(index[done]):
            row = self.ended.get(int(word))
            here = done & (index == word)
            remote = self.launch.remote.get((id(self), int(word)))
            for slot in np.unique(L.slot[here]):
                threads = L.thread[here & (L.slot == slot)]
                if row is not None and slot == self.word_slot(int(word)):
                    self.clocks.learn(int(slot), threads, row)
                if remote:
                    for thread in threads:
                        self.clocks.acquire([int(slot) * self.shape.stride + int(thread)], remote)

    def wait_relaxed(self, lanes: Array, words: Array) -> None:
        """Who has seen a phase end by a relaxed wait acquires what it carries with a later fence."""
        for lane, word in zip(lanes.tolist(), words.tolist(), strict=True):
            known = dict(self.launch.remote.get((id(self), word), {}))
            slot = lane // self.shape.stride
            if word in self.ended and slot == self.word_slot(word):
                known = together(known, {int(self.blocks[slot]): self.ended[word]})
            groups = {self.group(lane, level): known for level in self.levels if level != CTA}
            self.pending.setdefault(lane, {})["mbarrier", word] = Publication(object(), (id(self), lane), groups)

    # Asynchronous copies.

    def async_read(self, site: int, L: Lanes, source: Any, size: int) -> Array:
        rows = super().async_read(site, L, source, size)
        self.note_global(site, L, source, size, False, None)
        return rows

    def async_write(self, site: int, L: Lanes, to: Any, rows: Array, size: int) -> None:
        shift = size.bit_length() - 1
        index = self.sh.index(site, L, to, shift)
        self.note_shared(site, L, index << shift, size, True, (rows, np.dtype(np.uint8), size))
        super().async_write(site, L, to, rows, size)
        # The writer is the thread's agent: only a wait makes the thread itself know.
        cells, each = self.shared_shadow.granules(np.broadcast_to(index << shift, (L.n,)), size)
        words = agent_stamp(self.landing.groups[L.ids] + 1, L.block, L.thread, site)
        self.shared_shadow.writes[cells] = np.repeat(words, each) if each > 1 else words
        self.shared_shadow.hurried = True
        for slot in np.unique(L.slot):
            self.clocks.detail(int(slot))

    def async_commit(self, L: Lanes, bulk: bool) -> None:
        super().async_commit(L, bulk)

    def async_wait(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        super().async_wait(L, count, bulk, everything, read)
        if bulk:
            reached = self.landing.bulk_groups[L.ids] - count
            self.know_stores("bulk", L, reached)
            if not read:
                self.know_stores("stored", L, reached)
            return
        groups = self.landing.groups[L.ids]
        self.know_groups(L, groups + 1 if everything else np.maximum(groups - count, 0))

    def know_stores(self, what: str, L: Lanes, reached: Array) -> None:
        """Stores in bulk groups have read their source ("bulk"), or are in global memory ("stored")."""
        for lane, clock in zip(L.ids, reached, strict=True):
            slot, thread = divmod(int(lane), self.shape.stride)
            key = (what, int(lane))
            if key in self.clocks.agents.get(slot, {}):
                column = self.clocks.agent(slot, key)
                matrix = self.clocks.detail(slot)
                matrix[thread, column] = max(int(matrix[thread, column]), int(clock))

    def bulk_read(self, site: int, one: Lanes, offset: int, count: int, needed: Array | None = None) -> None:
        """A store in a bulk group reads shared memory, some time before its thread has waited.

        `needed` marks the bytes that go to global memory; None for all.
        """
        step = 4 if count % 4 == 0 and offset % 4 == 0 else 1
        offsets = np.arange(offset, offset + count, step)
        many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
        shadow = self.shared_shadow
        cells, each = shadow.granules(offsets, step)
        event = Event(self, shadow, site, many, cells, each, "shared", 0)
        words = self.check_read(event)
        self.across_proxies(site, many, cells, each, words)
        missing = shadow.missing(cells, words)
        if np.count_nonzero(missing if needed is None else missing & granules_of(needed, len(missing))):
            self.report(unwritten("value stored to global memory", site, None, one))
        self.note_read(event, np.full(len(cells), self.group_stamp("bulk", site, one)))
        shadow.hurried = shadow.readers.hurried = True

    def group_stamp(self, what: str, site: int, one: Lanes) -> Array:
        """The stamp of a thread's stores in its current bulk group, as `know_stores` names them."""
        lane = int(one.ids[0])
        slot = lane // self.shape.stride
        column = self.clocks.agent(slot, (what, lane))
        clock = int(self.landing.bulk_groups[lane]) + 1
        return agent_stamp(clock, self.blocks[slot], column - self.shape.stride, site)

    def know_groups(self, L: Lanes, reached: Array) -> None:
        for slot in np.unique(L.slot):
            here = L.slot == slot
            threads = L.thread[here]
            matrix = self.clocks.detail(int(slot))
            column = self.shape.stride + threads
            matrix[threads, column] = np.maximum(matrix[threads, column], reached[here])

    def async_arriving(self, L: Lanes) -> None:
        super().async_arriving(L)
        self.know_groups(L, self.landing.groups[L.ids] + 1)
        self.landing.groups[L.ids] += 1

    def async_store(self, site: int, L: Lanes, to: Any, value: Any, dtype: Any, size: int, barrier: Any) -> None:
        shift = size.bit_length() - 1
        index = np.broadcast_to(self.sh.index(site, L, to, shift), (L.n,))
        words = np.broadcast_to(self.sh.index(site, L, barrier, 3), (L.n,))
        super().async_store(site, L, to, value, dtype, size, barrier)
        for lane in range(L.n):
            self.agent_write(site, L.subset(np.array([lane])), int(index[lane]) << shift, size, int(words[lane]), False)

    def async_reduced(self, site: int, L: Lanes, to: Any, size: int, barrier: Any) -> None:
        shift = size.bit_length() - 1
        index = np.broadcast_to(self.sh.index(site, L, to, shift), (L.n,))
        words = np.broadcast_to(self.sh.index(site, L, barrier, 3), (L.n,))
        for lane in range(L.n):
            self.agent_write(site, L.subset(np.array([lane])), int(index[lane]) << shift, size, int(words[lane]))

    def agent_write(self, site: int, one: Lanes, offset: int, count: int, word: int, checked: bool = True) -> None:
        """A copy counted by an mbarrier writes shared memory: its agent is stamped, and told to the barrier."""
        slot = self.word_slot(word)
        step = 4 if count % 4 == 0 and offset % 4 == 0 else 1
        strong = self.access(site).strong
        if checked and not strong:
            self.span_access(site, one, offset, count, True)
        column = self.clocks.agent(slot, word)
        row = np.zeros(self.clocks.detail(slot).shape[1], np.int64)
        clock = self.launch.agent_clock(id(self), word)
        row[column] = clock
        self.bring(word, row)
        offsets = np.arange(offset, offset + count, step)
        cells, each = self.shared_shadow.granules(offsets, step)
        word_ = agent_stamp(clock, self.blocks[slot], column - self.shape.stride, site)
        shadow = self.shared_shadow
        shadow.hurried = True
        self.tells(site, one, word, word_)
        if strong:
            blank = shadow.missing(cells, shadow.writes.take(cells))  # it combines: what was unwritten stays so
            many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
            event = Event(self, shadow, site, many, cells, each, "shared", 0)
            self.join(event, shadow.strong_writers, np.full(len(cells), word_))
            self.check_write(event, None, offsets)
            if np.count_nonzero(blank):
                shadow.spoil(cells[blank])
            return
        shadow.writes[cells] = word_
        shadow.written = True
        shadow.mend(cells)

    def tells(self, site: int, one: Lanes, word: int, stamp: Array) -> None:
        """A thread's copy counts at an mbarrier, some time before the phase ends: as a read by the copy's agent."""
        shadow = self.shared_shadow
        cells, each = shadow.granules(np.array([word << 3]), 8)
        event = Event(self, shadow, site, one, cells, each, "shared", 0)
        self.check_read(event)
        self.note_read(event, np.full(len(cells), stamp))
        shadow.readers.hurried = True

    def span_access(self, site: int, one: Lanes, offset: int, count: int, write: bool) -> Any:
        """A thread touches a run of shared memory: check and note it as that thread's access.

        Of a read, returns which parts no one has written (rows of equal parts), or FALSE."""
        step = 4 if count % 4 == 0 and offset % 4 == 0 else 1
        offsets = np.arange(offset, offset + count, step)
        many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
        if not write:
            cells, each = self.shared_shadow.granules(offsets, step)
            self.across_proxies(site, many, cells, each, self.shared_shadow.writes.take(cells))
        return self.note_shared(site, many, offsets, step, write, None)

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signals: Any
    ) -> None:
        if not count:
            return
        missing: Any = FALSE
        if from_space == "shared" and signals is None:
            self.bulk_read(site, one, self.offset_of(site, one, start), count)
        elif from_space == "shared":
            missing = self.span_access(site, one, self.offset_of(site, one, start), count, False)
        else:
            self.copy_read(site, one, *run_of(start, count), [] if signals is None else [int(signals[0])])
        if to_space == "global":
            self.copy_written(site, one, *run_of(to, count))
        elif signals is not None:
            self.agent_write(site, one, self.offset_of(site, one, to), count, int(signals[0]))
            self.pass_on(missing, self.offset_of(site, one, to), count)
        else:
            self.span_access(site, one, self.offset_of(site, one, to), count, True)

    def pass_on(self, missing: Any, to: int, count: int) -> None:
        """A copy within shared memory: what was not written at its source is not at its target."""
        if missing.__class__ is not np.ndarray:
            return
        shadow = self.shared_shadow
        gone = np.repeat(missing.reshape(-1), count // missing.size)
        cells, _ = shadow.granules(np.arange(to, to + count, 1 << shadow.granule), 1 << shadow.granule)
        shadow.spoil(cells[granules_of(gone, len(cells))])

    def offset_of(self, site: int, one: Lanes, address: int) -> int:
        return int(np.atleast_1d(self.sh.index(site, one, np.array([address], np.uint64), 0))[0])

    # Global memory.

    def copy_read(self, site: int, one: Lanes, addresses: Array, size: int, signals: list[int]) -> None:
        """A thread's copy reads global memory, some time before the mbarrier that it tells completes its phase.

        A copy to several blocks reads once, and whichever mbarrier completes says so: that is more than marks can hold,
        so that later writes are not checked against it.
        """
        for event, _ in self.global_events(site, one, addresses, size):
            self.check_read(event)
            if len(signals) == 1:
                slot = self.word_slot(signals[0])
                column = self.clocks.agent(slot, signals[0])
                clock = self.launch.agent_clock(id(self), signals[0], 0)
                word = agent_stamp(clock, self.blocks[slot], column - self.shape.stride, site)
                self.note_read(event, np.full(len(event.cells), word))
                event.shadow.hurried = event.shadow.readers.hurried = True

    def copy_written(self, site: int, one: Lanes, addresses: Array, size: int) -> None:
        """A thread's store in a bulk group writes global memory, some time before it has waited for the group."""
        for event, offsets in self.global_events(site, one, addresses, size):
            words = np.full(len(event.cells), self.group_stamp("stored", site, one))
            event.shadow.hurried = True
            if event.access.strong:
                self.join(event, event.shadow.strong_writers, words)
            self.check_write(event, None, offsets)
            if not event.access.strong:
                event.shadow.writes[event.cells] = words
                event.shadow.written = True
                event.shadow.replaced(event.cells, self.ordered)

    def global_events(self, site: int, one: Lanes, addresses: Array, size: int) -> Iterator[tuple[Event, Array]]:
        """A thread's access to many addresses, buffer by buffer, with the offsets in each."""
        for shadow, base, at in self.launch.shadows_of(addresses) if len(addresses) else ():
            offsets = ((addresses if at is None else addresses[at]) - np.uint64(base)).view(np.int64)
            many = Lanes(one.shape, np.repeat(one.ids, len(offsets)), one.blocks)
            cells, each = shadow.granules(offsets, size)
            yield Event(self, shadow, site, many, cells, each, "global", base), offsets

    def tensor_read(self, site: int, one: Lanes, made: TensorMap, start: list[int], signals: list[int]) -> None:
        self.copy_read(site, one, *elements_of(made, start), signals)

    def tensor_written(self, site: int, one: Lanes, made: TensorMap, start: list[int]) -> None:
        access = self.access(site)
        if access.strong and access.size != made.width:
            self.attributes[site] = replace(access, size=made.width)  # the instruction does not name the type
        self.copy_written(site, one, *elements_of(made, start))

    def tensor_moved(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], shared: int, count: int, signals: Any
    ) -> None:
        offset = self.offset_of(site, one, shared)
        order = chunk_order(made, shared & 1023)
        if signals is not None:
            for first, size in runs(order):
                self.agent_write(site, one, offset + first, size, int(signals[0]))
            return
        inside = np.repeat(box_inside(made, start), made.unit)
        needed = np.zeros(room(order), bool)
        needed.reshape(-1, 16)[order] = inside.reshape(-1, 16)
        for first, size in runs(order):
            self.bulk_read(site, one, offset + first, size, needed[first : first + size])


def run_of(start: int, count: int) -> tuple[Array, int]:
    """Addresses that make up a run of bytes, and the bytes of each."""
    step = 4 if count % 4 == 0 and start % 4 == 0 else 1
    return np.arange(start, start + count, step, dtype=np.uint64), step


def elements_of(made: TensorMap, start: list[int]) -> tuple[Array, int]:
    """Addresses of a box's elements in the tensor, and the bytes of each: as words, where they make up whole words."""
    addresses = box_addresses(made, start)
    if made.interleave:
        return (addresses[:, None] + np.arange(0, made.unit, 4, dtype=np.uint64)).reshape(-1), 4
    if made.width >= 4:
        return addresses, made.width
    words = np.unique(addresses & ~np.uint64(3))
    return (words, 4) if len(words) * 4 == len(addresses) * made.width else (addresses, made.width)


def granules_of(needed: Array, count: int) -> Array:
    """Marks of bytes as marks of `count` granules: those that have a marked byte."""
    return np.asarray(needed.reshape(count, -1).any(axis=1))
