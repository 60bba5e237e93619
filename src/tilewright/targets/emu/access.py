"""What generated code asks of the machine beside plain loads and stores, without checks.

`Memories` moves data and lets every event pass unwatched; `checks.Watch` overrides the events to find mistakes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.targets.emu.cohort import Cohort
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.landing import Landing
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.tensormap import TensorMap

U8 = np.dtype(np.uint8)


class Memories:
    """Data movement of asynchronous and matrix instructions, and the events that checks watch."""

    g: Any
    sh: Any
    lo: Any
    launch: Any
    landing: Landing

    unwritten: Any = np.bool_(False)
    """Of the last load, which parts of what each thread read were never written: rows of equal parts, or FALSE."""

    def tolerant(self, run: Callable[..., Any], L: Lanes, addr: Any, *rest: Any) -> Any:
        """Run an access for threads, which all must be in order."""
        return run(L, addr, *rest)

    def poisoned(self, site: int, L: Lanes, mark: Any, what: str) -> None:
        """A value that depends on memory never written may be used."""

    def wgmma_used(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        """Registers that wgmma writes are read."""

    def wgmma_changed(self, site: int, L: Lanes, numbers: tuple[int, ...]) -> None:
        """Registers from which wgmma takes its matrix A are written."""

    def wgmma_moved(self, L: Lanes, to: int, source: int) -> None:
        """A register that wgmma writes is copied, or overwritten by a copy."""

    def wgmma_unfence(self, L: Lanes) -> None:
        """A register that wgmma writes is written by another instruction."""

    # Data.

    def async_read(self, site: int, L: Lanes, source: Any, size: int) -> Array:
        """The bytes that `cp.async` reads: one row a thread."""
        rows = self.g.load(site, source, U8, size.bit_length() - 1, size)
        return rows if rows.ndim == 2 else np.broadcast_to(rows, (L.n, size))

    def async_write(self, site: int, L: Lanes, to: Any, rows: Array, size: int) -> None:
        """Write what `cp.async` has read."""
        self.landing.copy(site, L, to, rows, size)

    def async_store(self, site: int, L: Lanes, to: Any, value: Any, dtype: Any, size: int, barrier: Any) -> None:
        """`st.async`."""
        self.sh.store(site, L, to, value, dtype, size.bit_length() - 1)

    def async_reduced(self, site: int, L: Lanes, to: Any, size: int, barrier: Any) -> None:
        """`red.async` of `size` bytes a thread, which the mbarrier counts."""

    def shared_rows(self, site: int, L: Lanes, addr: Array) -> Array:
        """Rows of 16 bytes, for ldmatrix."""
        rows: Array = self.sh.load(site, L, addr, U8, 4, 16)
        return rows

    def store_shared_rows(self, site: int, L: Lanes, addr: Array, rows: Array) -> None:
        """Rows of 16 bytes, for stmatrix."""
        self.sh.store(site, L, addr, rows, U8, 4, 16)

    def matrix_bytes(self, site: int, L: Lanes, addresses: Array, size: int) -> Array:
        """Elements of `size` bytes at shared addresses (groups, rows, columns), for wgmma."""
        heads = L.subset(np.arange(0, L.n, 128))
        base = heads.slot * self.sh.stride
        flat = addresses.reshape(len(addresses), -1)
        if flat.size and int(flat.max()) + size > self.sh.size:
            self.sh.index(site, heads, flat.max(axis=1).astype(np.uint64), size.bit_length() - 1)
        missing = self.matrix_read(site, L, flat + base[:, None], size)
        self.unwritten = np.bool_(False) if missing is None else missing
        view = self.sh.view(np.dtype(f"u{size}"), 1)
        words = view[((flat + base[:, None]) >> (size.bit_length() - 1)).reshape(addresses.shape)]
        return np.ascontiguousarray(words)[..., None].view(np.uint8)

    # Loads and stores that checks watch.

    def g_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """A load from global memory."""
        try:
            return self.g.load(site, addr, dtype, shift, lanes)
        except Fault as fault:
            raise fault.of(L) from None

    def g_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """A store to global memory."""
        try:
            self.g.store(site, addr, value, dtype, shift, lanes)
        except Fault as fault:
            raise fault.of(L) from None

    def s_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """A load from shared memory."""
        return self.sh.load(site, L, addr, dtype, shift, lanes)

    def s_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """A store to shared memory."""
        self.sh.store(site, L, addr, value, dtype, shift, lanes)

    def l_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """A load from local memory."""
        return self.lo.load(site, L, addr, dtype, shift, lanes)

    def l_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """A store to local memory."""
        self.lo.store(site, L, addr, value, dtype, shift, lanes)

    # Events.

    def atomic_done(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> Array | None:
        """An atomic operation on `size` bytes a thread; which of them no one had written, None for none."""
        return None

    def atomic_seen(self, site: int, L: Lanes, space: str, addr: Any, wrote: Any) -> None:
        """What an atomic operation read and, where it `wrote`, left, orders threads."""

    def atomic_left(
        self, site: int, L: Lanes, space: str, addr: Any, size: int, unit: int, missing: Array | None, mark: Any,
        wrote: Any,
    ) -> None:  # fmt: skip
        """An atomic operation on memory never written, or with operands from there."""

    def barrier_passed(self, cohort: Cohort) -> None:
        """All threads of the batch passed a barrier of all threads together."""

    def barrier_arrived(self, L: Lanes, number: int) -> None:
        """Threads arrived at a barrier without waiting."""

    def barrier_done(self, number: int, done: Array, cohorts: list[Cohort]) -> None:
        """The barriers `number` of the slots marked in `done` are complete."""
        self.launch.idle = 0

    def warp_synced(self, L: Lanes, mask: Any) -> None:
        """`bar.warp.sync`: the threads of each mask have met."""

    def fenced(self, L: Lanes, scope: str, kind: str) -> None:
        """A fence of scope cta, cluster or gpu; see `rules.memory.fence_kind`."""

    def mbarrier_made(self, site: int, L: Lanes, addr: Any) -> None:
        """An mbarrier was initialised or invalidated."""

    def mbarrier_arriving(self, site: int, L: Lanes, index: Array, counts: Array, relaxed: bool) -> None:
        """Threads are about to arrive at mbarriers, given by word index."""

    def mbarrier_completed(self, index: Array, parity: Array) -> None:
        """A phase of mbarriers has ended."""

    def mbarrier_waited(self, site: int, L: Lanes, index: Array, done: Array, relaxed: bool) -> None:
        """Threads (where `done`) have seen that a phase ended."""

    def threads_ended(self, L: Lanes) -> None:
        """Threads have exited."""

    def cluster_arriving(self, L: Lanes, relaxed: bool) -> None:
        """Threads arrive at the cluster's barrier."""

    def cluster_completed(self, clusters: Array) -> None:
        """The cluster barrier's phase has ended."""

    def cluster_waited(self, cohort: Cohort) -> None:
        """Threads passed the cluster's barrier."""

    def async_commit(self, L: Lanes, bulk: bool) -> None:
        """A group of copies was committed."""
        self.landing.commit(L, bulk)

    def async_wait(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        """Threads waited until at most `count` groups are in flight."""
        self.landing.wait(L, count, bulk, everything)

    def async_arriving(self, L: Lanes) -> None:
        """An mbarrier arrival follows the thread's copies."""
        self.landing.land_all(L)

    def bulk_moved(
        self, site: int, one: Lanes, from_space: str, start: int, to_space: str, to: int, count: int, signals: Any
    ) -> None:
        """A bulk copy moves `count` bytes; `signals` is the word index of the mbarrier that it tells, or None."""

    def tensor_moved(
        self, site: int, one: Lanes, made: TensorMap, start: list[int], shared: int, count: int, signals: Any
    ) -> None:
        """A tensor copy moves a box: a load if it signals an mbarrier, else a store."""

    def tensor_read(self, site: int, one: Lanes, made: TensorMap, start: list[int], signals: list[Any]) -> None:
        """A tensor load reads a box of global memory, for the mbarriers `signals` (word indices) of its targets."""

    def tensor_written(self, site: int, one: Lanes, made: TensorMap, start: list[int]) -> None:
        """A tensor store, or reduction, writes a box of global memory."""

    def matrix_read(self, site: int, L: Lanes, addresses: Array, size: int) -> Array | None:
        """wgmma reads elements of `size` bytes at byte offsets in the batch's shared memory: a row a warpgroup.

        Returns which of them no one has written, None for none."""
        return None

    def wgmma_issued(self, site: int, L: Lanes, numbers: tuple[int, ...], read: tuple[int, ...]) -> None:
        """wgmma writes registers (by number), some time from now on, and reads others (its matrix A)."""

    def wgmma_fence(self, site: int, L: Lanes) -> None:
        """`wgmma.fence`."""

    def wgmma_commit(self, site: int, L: Lanes) -> None:
        """`wgmma.commit_group`."""

    def wgmma_wait(self, site: int, L: Lanes, count: int) -> None:
        """`wgmma.wait_group`."""
