"""Happens-before: what each thread knows of the others' progress.

Every thread has a clock that moves at each synchronisation. "t knows u up to c" means that everything u did until
clock c happens before what t does next. Three levels, from cheap to exact:

* `known[block]`: all threads of a block know all others up to this clock (a barrier of the whole block).
* `met[warp]`: the same for a warp (`bar.warp.sync` of all its threads).
* a matrix for a block (rows: threads; columns: threads, then asynchronous agents), made when something else
  synchronises: partial barriers, mbarriers, fences with atomics, asynchronous copies.

Knowledge of other blocks comes through memory (release and acquire) or cluster barriers (`others`).

Agents: a thread's `cp.async` copies form one agent, whose clock counts groups; the copies that one mbarrier counts
form another, whose clock counts phases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.members import Members
from tilewright.targets.emu.checks.order.epochs import CLOCK_SHIFT, MAX_CLOCK, ONE_TICK, check_limit, identity
from tilewright.targets.emu.checks.order.knowledge import Knowledge, together
from tilewright.targets.emu.checks.order.others import OtherBlocks
from tilewright.targets.emu.lanes import Array

AGENTS = 64
CLOCKS = "synchronisations (barriers, fences, releases, arrivals) of a thread"


class Clocks:
    """The clocks of a batch. `lanes` numbers are those of the batch; a block has `stride` of them."""

    def __init__(self, slots: int, stride: int, blocks: Array, members: Members | None = None) -> None:
        self.slots = slots
        self.stride = stride
        self.blocks = blocks
        lanes = np.arange(slots * stride)
        self._clock = np.ones(slots * stride, np.int64)
        self._epoch = identity(blocks[lanes // stride], lanes % stride) + ONE_TICK
        self._known = np.zeros(slots, np.int64)
        self._late = 0
        self.level: int | None = 1
        """The clock of all threads, while nothing but barriers of all blocks of the batch has moved them."""
        self.met = np.zeros(slots * stride // 32, np.int64)
        self.matrix: dict[int, Array] = {}
        self.others = OtherBlocks(stride, members)
        self.agents: dict[int, dict[Any, int]] = {}

    # Levels that one number stands for until someone asks.

    @property
    def clock(self) -> Array:
        """The clock of each lane."""
        if self._late:
            self._catch_up()
        return self._clock

    @property
    def epoch(self) -> Array:
        """The epoch of each lane, without a site."""
        if self._late:
            self._catch_up()
        return self._epoch

    @property
    def known(self) -> Array:
        """Up to which clock the threads of each block know all others of it."""
        if self._late:
            self._catch_up()
        return self._known

    def _catch_up(self) -> None:
        late, self._late = self._late, 0
        self._known[:] = self._clock[0] + (late - 1)
        self._clock += late
        self._epoch += ONE_TICK * np.uint64(late)

    def everyone_met(self) -> bool:
        """All threads of the batch met, with nothing to tell beyond that; False where `block_barrier` must look."""
        if self.level is None or self.matrix or self.others.of_lane:
            return False
        # Each clock is the same number, so it is counted once, and the arrays follow when someone asks (`_catch_up`).
        self.level += 1
        self._late += 1
        check_limit(CLOCKS, self.level, MAX_CLOCK)
        return True

    # Rows.

    def detail(self, slot: int) -> Array:
        """The matrix of a block, made from the cheaper levels."""
        found = self.matrix.get(slot)
        if found is None:
            n = self.stride
            found = np.zeros((n, 2 * n + AGENTS), np.int64)
            found[:, :n] = self.known[slot]
            warps = self.met[slot * n // 32 : (slot + 1) * n // 32]
            for warp, clock in enumerate(warps):
                at = slice(32 * warp, 32 * warp + 32)
                found[at, at] = np.maximum(found[at, at], clock)
            self.matrix[slot] = found
        return found

    def agent(self, slot: int, key: Any) -> int:
        """The column of an asynchronous agent of a block."""
        found = self.agents.setdefault(slot, {})
        number = found.get(key)
        if number is None:
            number = found[key] = len(found)
            matrix = self.detail(slot)
            # The first columns behind the threads are their cp.async agents, then others as they come.
            if 2 * self.stride + number >= matrix.shape[1]:
                self.matrix[slot] = np.concatenate((matrix, np.zeros((self.stride, AGENTS), np.int64)), axis=1)
        return 2 * self.stride + number

    def rows(self, slot: int, threads: Array) -> Array:
        """What threads know, their own clocks included: for a release."""
        matrix = self.detail(slot)
        taken = matrix[threads].copy()
        taken[np.arange(len(threads)), threads] = self.clock[slot * self.stride + threads]
        return taken

    def tick(self, lanes: Array) -> None:
        """Threads move on to their next clock."""
        self.level = None
        self.clock[lanes] += 1
        check_limit(CLOCKS, int(self.clock[lanes].max()), MAX_CLOCK)
        self.epoch[lanes] += ONE_TICK

    def set_clock(self, at: Any, clock: Any, table: Array) -> None:
        """Set the clocks of rows of a table of lanes, and their epochs."""
        self.level = None
        check_limit(CLOCKS, int(np.max(clock)), MAX_CLOCK)
        table[at] = clock
        epochs = self.epoch.reshape(table.shape)
        epochs[at] = (epochs[at] & (ONE_TICK - np.uint64(1))) | (
            np.asarray(clock).astype(np.uint64) << np.uint64(CLOCK_SHIFT)
        )

    def learn(self, slot: int, threads: Array, row: Array) -> None:
        """Threads come to know what a row says."""
        matrix = self.detail(slot)
        if len(row) < matrix.shape[1]:
            row = np.concatenate((row, np.zeros(matrix.shape[1] - len(row), np.int64)))
        elif len(row) > matrix.shape[1]:
            matrix = self.matrix[slot] = np.concatenate(
                (matrix, np.zeros((self.stride, len(row) - matrix.shape[1]), np.int64)), axis=1
            )
        matrix[threads] = np.maximum(matrix[threads], row)

    # Meetings.

    def block_barrier(self, slots: Array) -> None:
        """All threads of these blocks met."""
        if len(slots) == self.slots and self.everyone_met():
            return
        if self.level is not None and len(slots) == self.slots:
            self.known[:] = self.level
            self.level += 1
            check_limit(CLOCKS, self.level, MAX_CLOCK)
            self._clock += 1
            self._epoch += ONE_TICK
            self._spread(slots)
            return
        # Clocks differ: all go on from the greatest, so that one number says what all know of all.
        table = self.clock.reshape(self.slots, self.stride)
        top = table[slots].max(axis=1)
        self.known[slots] = top
        self.set_clock(slots, top[:, None] + 1, table)
        self._spread(slots)

    def _spread(self, slots: Array) -> None:
        """What one thread of a block knows beyond it, all know after a barrier."""
        if not self.matrix and not self.others.of_lane:
            return
        for slot in slots:
            matrix = self.matrix.get(int(slot))
            if matrix is not None:
                row = matrix.max(axis=0)
                row[: self.stride] = self.known[slot]
                matrix[:] = row
            self.others.share(int(slot))

    def group_barrier(self, slot: int, threads: Array, extra: Array | None) -> None:
        """Some threads of a block met; `extra` is what threads brought that did not wait."""
        if not len(threads):
            return
        row = self.rows(slot, threads).max(axis=0)
        if extra is not None:
            row = np.maximum(row[: len(extra)], extra[: len(row)]) if len(extra) != len(row) else np.maximum(row, extra)
        lanes = slot * self.stride + threads
        self.learn(slot, threads, row)
        self.others.pool(lanes)
        self.tick(lanes)

    def warp_barrier(self, warps: Array) -> None:
        """All threads of these warps met."""
        table = self.clock.reshape(-1, 32)
        top = table[warps].max(axis=1)
        self.met[warps] = top
        self.set_clock(warps, top[:, None] + 1, table)
        for warp in warps if self.others.of_lane else ():
            self.others.pool(np.arange(32 * warp, 32 * warp + 32))
        if self.matrix:
            per_block = self.stride // 32
            for warp, clock in zip(warps, top, strict=True):
                matrix = self.matrix.get(int(warp) // per_block)
                if matrix is not None:
                    at = slice(int(warp) % per_block * 32, int(warp) % per_block * 32 + 32)
                    row = matrix[at].max(axis=0)
                    row[at] = clock
                    matrix[at] = row

    # Questions.

    def knows_own(
        self, lanes: Array, block: Array, thread: Array, clock: Array, asynchronous: Array, several: Array
    ) -> Array:
        """Whether accesses of the lanes' own blocks happen before what the lanes do now.

        `several` marks accesses of more than one thread, for which only a barrier of the whole block answers.
        """
        slot = lanes // self.stride
        mine = lanes % self.stride
        own = block == self.blocks[slot]
        plain = own & ~asynchronous
        known = plain & (clock <= self.known[slot])
        single = plain & ~several & (thread < self.stride)
        known |= single & (thread == mine)
        known |= single & (thread // 32 == mine // 32) & (clock <= self.met[lanes // 32])
        if not self.matrix:
            return np.asarray(known)
        left = own & ~known & ~several
        column = np.where(asynchronous, thread + self.stride, thread)
        for number in np.unique(slot[left]):
            matrix = self.matrix.get(int(number))
            if matrix is None:
                continue
            at = np.flatnonzero(left & (slot == number) & (column < matrix.shape[1]))
            known[at] = matrix[mine[at], column[at]] >= clock[at]
        return np.asarray(known)

    # Other blocks.

    def of_block(self, lane: int) -> Array:
        """What a thread knows of its own block: a row of its own."""
        slot, thread = divmod(lane, self.stride)
        matrix = self.matrix.get(slot)
        row: Array = np.zeros(2 * self.stride + AGENTS, np.int64) if matrix is None else matrix[thread].copy()
        row[: self.stride] = np.maximum(row[: self.stride], self.known[slot])
        warp = slice(thread // 32 * 32, thread // 32 * 32 + 32)
        row[warp] = np.maximum(row[warp], self.met[lane // 32])
        return row

    def between(self, slot: int, threads: Array, others: Array) -> Array:
        """What threads of a block know of other threads of it: a row a thread."""
        rows = np.full((len(threads), len(others)), self.known[slot])
        met = self.met[(slot * self.stride + threads) // 32][:, None]
        rows = np.where(threads[:, None] // 32 == others // 32, np.maximum(rows, met), rows)
        matrix = self.matrix.get(slot)
        return rows if matrix is None else np.maximum(rows, matrix[threads[:, None], others])

    def common(self, slot: int, threads: Array) -> Array:
        """What each of some threads of a block knows of the others, at least: a clock for each thread."""
        row = np.full(self.stride, self.known[slot])
        warps = np.unique(threads // 32)
        if len(warps) == 1:
            at = slice(32 * int(warps[0]), 32 * int(warps[0]) + 32)
            row[at] = np.maximum(row[at], self.met[slot * self.stride // 32 + int(warps[0])])
        if slot in self.matrix:
            row = np.maximum(row, self.matrix[slot][threads, : self.stride].min(axis=0))
        return row

    def publish(self, lane: int, clock: int) -> Knowledge:
        """All that a thread knows, its own deeds until `clock` included."""
        slot, thread = divmod(lane, self.stride)
        row = self.of_block(lane)
        row[thread] = clock
        known: Knowledge = {int(self.blocks[slot]): row}
        return together(known, self.others.of_thread(lane))

    def acquire(self, lanes: list[int], known: Knowledge) -> None:
        """Threads of one block come to know what another has published."""
        slot = lanes[0] // self.stride
        own = int(self.blocks[slot])
        others = known
        if own in known:
            self.learn(slot, np.array(lanes) - slot * self.stride, known[own])
            others = {block: row for block, row in known.items() if block != own}
        self.others.tell(lanes, others)

    def cluster_meeting(self, slots: Array, arrived: Array) -> Knowledge:
        """All threads of these blocks have arrived at their cluster's barrier, at clocks `arrived` by lane.

        Returns what each of them knows once it has waited. What they do from now on is past that.
        """
        known: Knowledge = {}
        table = self.clock.reshape(self.slots, self.stride)
        for slot in slots:
            mine = arrived.reshape(self.slots, self.stride)[slot]
            top = int(mine.max())
            matrix = self.matrix.get(int(slot))
            row = matrix.max(axis=0) if matrix is not None else np.zeros(self.stride, np.int64)
            row[: self.stride] = np.maximum(row[: self.stride], mine)
            known = together(known, {int(self.blocks[slot]): row})
            known = together(known, self.others.of_block.get(int(slot), {}))
            self.set_clock(slot, np.maximum(table[slot], top + 1), table)
        return known

    def cluster_wait(self, slot: int, threads: Array, everyone: bool, known: Knowledge) -> None:
        """Threads have waited at their cluster's barrier."""
        own = int(self.blocks[slot])
        if not everyone:
            for thread in threads:
                self.acquire([int(slot) * self.stride + int(thread)], known)
            return
        # Up to the least clock all know all, which is one number; what is known beyond takes the matrix.
        row = known[own][: self.stride]
        self.known[slot] = max(int(self.known[slot]), int(row.min()))
        if slot in self.matrix or int(row.max()) > self.known[slot]:
            self.learn(slot, threads, known[own])
        others = {b: row for b, row in known.items() if b != own}
        self.others.tell_block(slot, others)
