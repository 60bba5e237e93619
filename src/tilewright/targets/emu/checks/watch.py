"""A machine that watches: loads and stores with all checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.targets.emu.checks.base import FALSE
from tilewright.targets.emu.checks.blanks import Blanks
from tilewright.targets.emu.lanes import Array, Lanes
from tilewright.targets.emu.memory import write


class WatchingMachine(Blanks):
    """Runs a batch and finds its mistakes."""

    # Watched loads and stores.

    def g_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        def run(L: Lanes, addr: Any) -> Any:
            value = self.g.load(site, addr, dtype, shift, lanes)
            self.note_global(site, L, addr, 1 << shift, False, None)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "global", addr, True, False)
            return value

        self.unwritten = FALSE
        return self.or_zero(self.tolerant(run, L, addr), L, dtype, lanes)

    def or_zero(self, value: Any, L: Lanes, dtype: Any, lanes: int) -> Any:
        return np.zeros((L.n, lanes) if lanes > 1 else L.n, dtype) if value is None else value

    def g_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        def run(L: Lanes, addr: Any, value: Any) -> None:
            # Resolve first, so that an access out of bounds is found before anything is noted.
            places = self.g.resolve(site, np.atleast_1d(addr), dtype, shift, lanes, True)
            self.note_global(site, L, addr, 1 << shift, True, (value, dtype, lanes))
            if addr.__class__ is np.ndarray:
                self.g.put(places, value, lanes)
            else:
                self.g.store(site, addr, value, dtype, shift, lanes)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "global", addr, False, True)

        self.tolerant(run, L, addr, value)

    def s_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        again = self.repeats.get(site)
        if again is not None and again.addr is addr and again.lanes is L and self.read_again(again):
            self.unwritten = FALSE
            return self.sh.view(dtype, lanes).take(again.index, 0)

        def run(L: Lanes, addr: Any) -> Any:
            index = self.sh.index(site, L, addr, shift)
            if self.plain:
                self.remember(site, L, addr, index, shift)
            self.unwritten = self.note_shared(site, L, index << shift, 1 << shift, False, None)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "shared", addr, True, False)
            view = self.sh.view(dtype, lanes)
            return view.take(index, 0) if index.__class__ is np.ndarray else view[index]

        self.unwritten = FALSE
        return self.or_zero(self.tolerant(run, L, addr), L, dtype, lanes)

    def s_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        again = self.repeats.get(site)
        if again is not None and again.addr is addr and again.lanes is L and self.write_again(again):
            write(self.sh.view(dtype, lanes), again.index, value, lanes)
            return

        def run(L: Lanes, addr: Any, value: Any) -> None:
            index = self.sh.index(site, L, addr, shift)
            if self.plain:
                self.remember(site, L, addr, index, shift)
            self.note_shared(site, L, index << shift, 1 << shift, True, (value, dtype, lanes))
            write(self.sh.view(dtype, lanes), index, value, lanes)
            if self.ordered and self.access(site).strong:
                self.through_memory(site, L, "shared", addr, False, True)

        self.tolerant(run, L, addr, value)

    def l_load(self, site: int, L: Lanes, addr: Any, dtype: Any, shift: int, lanes: int = 1) -> Any:
        def run(L: Lanes, addr: Any) -> Any:
            self.in_frames(site, L, addr, shift)
            value = self.lo.load(site, L, addr, dtype, shift, lanes)
            missing = self.lo.unwritten(L, addr, shift)
            self.unwritten = missing if missing.any() else FALSE
            return value

        self.unwritten = FALSE
        return self.or_zero(self.tolerant(run, L, addr), L, dtype, lanes)

    def l_store(self, site: int, L: Lanes, addr: Any, value: Any, dtype: Any, shift: int, lanes: int = 1) -> None:
        def run(L: Lanes, addr: Any, value: Any) -> None:
            self.in_frames(site, L, addr, shift)
            self.lo.store(site, L, addr, value, dtype, shift, lanes)

        self.tolerant(run, L, addr, value)

    def in_frames(self, site: int, L: Lanes, addr: Any, shift: int) -> None:
        """A fault where an address lies behind the frames of the functions that run."""
        assert self.current is not None
        end = self.current.sp + self.current.code.frame
        if int(addr.max()) + (1 << shift) > end:
            raise self.lo.beyond(site, L, addr, shift, end)

    # Rows of matrices.

    def shared_rows(self, site: int, L: Lanes, addr: Array) -> Array:
        rows: Array = self.s_load(site, L, addr, np.dtype(np.uint8), 4, 16)
        return rows

    def store_shared_rows(self, site: int, L: Lanes, addr: Array, rows: Array) -> None:
        self.s_store(site, L, addr, rows, np.dtype(np.uint8), 4, 16)
