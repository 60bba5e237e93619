"""How generated code reaches memory where something looks on: each access is carried out and told to the observers.

Code without checks reaches plain loads and stores directly (`rules.memory.access`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.targets.emu.checks.events import Events
from tilewright.targets.emu.checks.observer import Access, GroupRead
from tilewright.targets.emu.faults import Fault
from tilewright.targets.emu.in_flight import InFlight
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import GlobalMemory, LocalMemory, SharedMemory, write
from tilewright.targets.emu.rules.memory import parts_of

U8 = np.dtype(np.uint8)
FALSE = np.bool_(False)


class LeftOut(Exception):
    """A guard has named threads that an access leaves out, by their positions."""

    def __init__(self, positions: Array) -> None:
        super().__init__()
        self.positions = positions


class Memories:
    """The memories of a batch, and the events that observers hear of them (`on`)."""

    g: GlobalMemory
    sh: SharedMemory
    lo: LocalMemory
    in_flight: InFlight
    on: Events

    unwritten: Any = FALSE
    """Of the last load, which parts of what each thread read were never written: rows of equal parts, or FALSE."""

    def attempt(self, run: Callable[..., Any], L: Lanes, addr: Any, *rest: Any) -> Any:
        """Run an access for threads; those at fault are left out where a guard says so. None if no thread is left."""
        try:
            return run(L, addr, *rest)
        except (LeftOut, Fault) as reason:
            return self._without(reason, run, L, addr, *rest)

    def _without(self, reason: LeftOut | Fault, run: Callable[..., Any], L: Lanes, addr: Any, *rest: Any) -> Any:
        """Run an access without the threads that a guard has named, or that were refused it."""
        bad = reason.positions if isinstance(reason, LeftOut) else self.on.refused(reason.of(L), L)
        if bad is None:
            raise reason
        good = np.setdiff1d(np.arange(L.n), bad)
        if not len(good):
            return None
        part = addr[good] if addr.__class__ is np.ndarray else addr
        others = [x[good] if x.__class__ is np.ndarray and len(x) == L.n else x for x in rest]
        got = self.attempt(run, L.subset(good), part, *others)
        if got is None:
            return None
        out = np.zeros((L.n, *np.shape(got)[1:]), got.dtype)
        out[good] = got
        if self.unwritten.__class__ is np.ndarray and len(self.unwritten) == len(good):
            missing = np.zeros((L.n, self.unwritten.shape[1]), bool)
            missing[good] = self.unwritten
            self.unwritten = missing
        return out

    @staticmethod
    def _leave_out(positions: Array | None) -> None:
        """What a guard has answered."""
        if positions is not None and len(positions):
            raise LeftOut(positions)

    # Loads and stores. Where threads are left out the access is tried again, and guards are not `asked` twice.

    def g_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """A load from global memory: elements, or rows of `lanes` elements."""
        self.unwritten = FALSE
        try:
            return self._load_global(L, addr, site, dtype, shift, lanes)
        except (LeftOut, Fault) as reason:
            value = self._without(reason, self._load_global, L, addr, site, dtype, shift, lanes, True)
            return np.zeros((L.n, lanes) if lanes > 1 else L.n, dtype) if value is None else value

    def g_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """A store to global memory."""
        try:
            self._store_global(L, addr, value, site, dtype, shift, lanes)
        except (LeftOut, Fault) as reason:
            self._without(reason, self._store_global, L, addr, value, site, dtype, shift, lanes, True)

    def s_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """A load from shared memory."""
        self.unwritten = FALSE
        try:
            return self._load_shared(L, addr, site, dtype, shift, lanes)
        except (LeftOut, Fault) as reason:
            value = self._without(reason, self._load_shared, L, addr, site, dtype, shift, lanes, True)
            return np.zeros((L.n, lanes) if lanes > 1 else L.n, dtype) if value is None else value

    def s_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """A store to shared memory."""
        try:
            self._store_shared(L, addr, value, site, dtype, shift, lanes)
        except (LeftOut, Fault) as reason:
            self._without(reason, self._store_shared, L, addr, value, site, dtype, shift, lanes, True)

    def l_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        """A load from local memory."""
        self.unwritten = FALSE
        try:
            return self._load_local(L, addr, site, dtype, shift, lanes)
        except (LeftOut, Fault) as reason:
            value = self._without(reason, self._load_local, L, addr, site, dtype, shift, lanes, True)
            return np.zeros((L.n, lanes) if lanes > 1 else L.n, dtype) if value is None else value

    def l_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        """A store to local memory."""
        try:
            self._store_local(L, addr, value, site, dtype, shift, lanes)
        except (LeftOut, Fault) as reason:
            self._without(reason, self._store_local, L, addr, value, site, dtype, shift, lanes, True)

    def _load_global(
        self, L: Lanes, addr: Any, site: int, dtype: Any, shift: int, lanes: int, asked: bool = False
    ) -> Any:
        on = self.on
        if on.guards_global and not asked:
            self._leave_out(on.before_global(Access("global", site, L, addr, None, shift, False)))
        value = self.g.load(site, addr, dtype, shift, lanes)
        on.global_access(Access("global", site, L, addr, None, shift, False, value, dtype, lanes))
        return value

    def _store_global(
        self, L: Lanes, addr: Any, value: Any, site: int, dtype: Any, shift: int, lanes: int, asked: bool = False
    ) -> None:  # fmt: skip
        access, on = Access("global", site, L, addr, None, shift, True, value, dtype, lanes), self.on
        if on.guards_global and not asked:
            self._leave_out(on.before_global(access))
        # Resolve first, so that an access out of bounds is found before anything is told.
        places = self.g.resolve(site, np.atleast_1d(addr), dtype, shift, lanes, True)
        on.global_access(access)
        if addr.__class__ is np.ndarray:
            self.g.put(places, value, lanes)
        else:
            self.g.store(site, addr, value, dtype, shift, lanes)

    def _load_shared(
        self, L: Lanes, addr: Any, site: int, dtype: Any, shift: int, lanes: int, asked: bool = False
    ) -> Any:
        on = self.on
        if on.guards_shared and not asked:
            self._leave_out(on.before_shared(Access("shared", site, L, addr, None, shift, False)))
        index, view = self.sh.index(site, L, addr, shift), self.sh.view(dtype, lanes)
        value = view.take(index, 0) if index.__class__ is np.ndarray else view[index]
        missing = on.shared_access(Access("shared", site, L, addr, index, shift, False, value, dtype, lanes))
        if missing is not None:
            self.unwritten = missing
        return value

    def _store_shared(
        self, L: Lanes, addr: Any, value: Any, site: int, dtype: Any, shift: int, lanes: int, asked: bool = False
    ) -> None:  # fmt: skip
        on = self.on
        if on.guards_shared and not asked:
            self._leave_out(on.before_shared(Access("shared", site, L, addr, None, shift, True, value, dtype, lanes)))
        index = self.sh.index(site, L, addr, shift)
        on.shared_access(Access("shared", site, L, addr, index, shift, True, value, dtype, lanes))
        write(self.sh.view(dtype, lanes), index, value, lanes)

    def _load_local(
        self, L: Lanes, addr: Any, site: int, dtype: Any, shift: int, lanes: int, asked: bool = False
    ) -> Any:
        on = self.on
        if on.guards_local and not asked:
            self._leave_out(on.before_local(Access("local", site, L, addr, None, shift, False)))
        value = self.lo.load(site, L, addr, dtype, shift, lanes)
        missing = on.local_access(Access("local", site, L, addr, None, shift, False, value, dtype, lanes))
        if missing is not None:
            self.unwritten = missing
        return value

    def _store_local(
        self, L: Lanes, addr: Any, value: Any, site: int, dtype: Any, shift: int, lanes: int, asked: bool = False
    ) -> None:  # fmt: skip
        access, on = Access("local", site, L, addr, None, shift, True, value, dtype, lanes), self.on
        if on.guards_local and not asked:
            self._leave_out(on.before_local(access))
        on.local_access(access)
        self.lo.store(site, L, addr, value, dtype, shift, lanes)

    def shared_rows(self, site: int, L: Lanes, addr: Array) -> Array:
        """Rows of 16 bytes, for ldmatrix."""
        rows: Array = self.s_load(site, L, addr, U8, 4, 16)
        return rows

    def store_shared_rows(self, site: int, L: Lanes, addr: Array, rows: Array) -> None:
        """Rows of 16 bytes, for stmatrix."""
        self.s_store(site, L, addr, rows, U8, 4, 16)

    # Atomics.

    def atomic_begins(self, site: int, L: Lanes, space: str, addr: Any, size: int) -> Array | None:
        """An atomic is about to be done: which of its words no one has written. A fault where memory refuses it."""
        self.unwritten = FALSE
        if self.on.wants("atomic_begins"):
            for part in parts_of(L, space, addr):
                if part.space == "global":
                    where = np.broadcast_to(part.addr, (part.L.n,))
                    self.g.resolve(site, where, U8, size.bit_length() - 1, size, True)
                    self.g.cache.pop(site, None)
        missing: Array | None = self.on.atomic_begins(site, L, space, addr, size)
        return missing

    def atomic_ends(
        self, site: int, L: Lanes, space: str, addr: Any, size: int, unit: int, missing: Array | None, mark: Any,
        replaced: Any, wrote: Any,
    ) -> None:  # fmt: skip
        """The atomic has been done; see `Observer.atomic_ends`."""
        rows = self.on.atomic_ends(site, L, space, addr, size, unit, missing, mark, replaced, wrote)
        if rows is not None:
            self.unwritten = rows

    # mbarriers and asynchronous copies.

    def mbarrier_made(self, site: int, L: Lanes, addr: Any) -> None:
        """mbarriers are about to be initialised or invalidated."""
        if self.on.wants("mbarrier_made"):
            self.on.mbarrier_made(site, L, np.broadcast_to(self.sh.index(site, L, addr, 3), (L.n,)))

    def copy_read(self, site: int, L: Lanes, source: Any, size: int) -> Array:
        """The bytes that `cp.async` reads: one row a thread."""
        shift = size.bit_length() - 1
        rows = self.g.load(site, source, U8, shift, size)
        rows = rows if rows.ndim == 2 else np.broadcast_to(rows, (L.n, size))
        self.on.global_access(Access("global", site, L, source, None, shift, False, rows, U8, size))
        return rows

    def copy_written(self, site: int, L: Lanes, to: Any, rows: Array, size: int, source: Any) -> None:
        """Write what `cp.async` has read at `source`."""
        if self.on.wants("copy_written"):
            shift = size.bit_length() - 1
            index = self.sh.index(site, L, to, shift)
            written = Access("shared", site, L, to, index, shift, True, rows, U8, size)
            written.source = source
            self.on.copy_written(written)
        self.in_flight.copy(site, L, to, rows, size)

    def copies_committed(self, L: Lanes, bulk: bool) -> None:
        """A group of copies was committed."""
        self.in_flight.commit(L, bulk)
        self.on.copies_committed(L, bulk)

    def copies_awaited(self, L: Lanes, count: int, bulk: bool, everything: bool, read: bool) -> None:
        """Threads waited until at most `count` groups are in flight."""
        self.in_flight.wait(L, count, bulk, everything)
        self.on.copies_awaited(L, count, bulk, everything, read)

    def copies_arriving(self, L: Lanes) -> None:
        """An mbarrier arrival follows the thread's copies."""
        self.in_flight.land_all(L)
        self.on.copies_arriving(L)

    def remote_stored(self, site: int, L: Lanes, to: Any, value: Any, dtype: Any, size: int, barrier: Any) -> None:
        """`st.async`."""
        self._remote("remote_stored", site, L, to, size, barrier)
        self.sh.store(site, L, to, value, dtype, size.bit_length() - 1)

    def remote_reduced(self, site: int, L: Lanes, to: Any, size: int, barrier: Any) -> None:
        """`red.async` of `size` bytes a thread, which the mbarrier counts."""
        self._remote("remote_reduced", site, L, to, size, barrier)

    def _remote(self, event: str, site: int, L: Lanes, to: Any, size: int, barrier: Any) -> None:
        if self.on.wants(event):
            shift = size.bit_length() - 1
            index = np.broadcast_to(self.sh.index(site, L, to, shift), (L.n,))
            words = np.broadcast_to(self.sh.index(site, L, barrier, 3), (L.n,))
            getattr(self.on, event)(Access("shared", site, L, to, index, shift, True), words)

    # Matrix products.

    def matrix_bytes(self, site: int, L: Lanes, addresses: Array, size: int) -> Array:
        """Elements of `size` bytes at shared addresses (groups, rows, columns), for wgmma."""
        heads = L.subset(np.arange(0, L.n, 128))
        base = heads.slot * self.sh.stride
        flat = addresses.reshape(len(addresses), -1)
        if flat.size and int(flat.max()) + size > self.sh.size:
            self.sh.index(site, heads, flat.max(axis=1).astype(np.uint64), size.bit_length() - 1)
        places = flat + base[:, None]
        self.unwritten = FALSE
        if self.on.wants("wgmma_read"):
            missing = self.on.wgmma_read(group_reads(site, L, places, size))
            self.unwritten = FALSE if missing is None else missing
        words = self.sh.view(np.dtype(f"u{size}"), 1)[(places >> (size.bit_length() - 1)).reshape(addresses.shape)]
        return np.ascontiguousarray(words)[..., None].view(np.uint8)


def group_reads(site: int, L: Lanes, places: Array, size: int) -> list[GroupRead]:
    """What each warpgroup reads, from the byte offsets of its elements (a row a group)."""
    groups = np.unique(L.ids // 128).tolist()
    firsts = [L.subset(np.array([int(np.searchsorted(L.ids, 128 * group))])) for group in groups]
    return [GroupRead(site, one, group, row, size) for one, group, row in zip(firsts, groups, places, strict=True)]
