"""What an access touches of one memory, with the epochs that its threads have now."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.base.lazy import cached_property
from tilewright.targets.emu.checks.history.rows import rows_of
from tilewright.targets.emu.checks.history.shadow import Shadow
from tilewright.targets.emu.checks.order import HappensBefore
from tilewright.targets.emu.checks.order.strength import Strength
from tilewright.targets.emu.lanes import Array, Lanes


class Footprint:
    """Granules `cells` of a `shadow`, `each` of them for every lane.

    `base` is the address at which the memory begins; `offsets` are the first bytes that the lanes touch, behind it.
    `data` is what they write, (value, dtype, elements a lane), None if it is not known. `asynchronous`: it is an
    asynchronous operation that the threads have issued.
    """

    def __init__(
        self, order: HappensBefore, shadow: Shadow, site: int, L: Lanes, touched: tuple[Array, int], offsets: Array,
        space: str = "shared", base: int = 0, data: tuple[Any, Any, int] | None = None, asynchronous: bool = False,
    ) -> None:  # fmt: skip
        self.shadow, self.site, self.L = shadow, site, L
        self.cells, self.each = touched
        self.offsets, self.space, self.base, self.data, self.asynchronous = offsets, space, base, data, asynchronous
        self.strength: Strength = order.strength(site)
        self.alone: bool = space == "shared" and L.shape.cluster_blocks == 1
        """Whether only threads of the lanes' own block can reach the memory."""
        self._order = order

    @cached_property
    def mine(self) -> Array:
        """The epochs of the lanes, granule by granule."""
        mine = self._order.epochs(self.L, self.site)
        return np.repeat(mine, self.each) if self.each > 1 else mine

    @cached_property
    def rows(self) -> Array | None:
        """The rows of the shadow that the granules are (`rows`), None if they are not."""
        return rows_of(self.cells)

    @cached_property
    def distinct(self) -> bool:
        """Whether it is plain that no granule comes twice."""
        if self.rows is None:
            return False
        order = np.sort(self.rows)
        return not np.count_nonzero(order[1:] == order[:-1])

    @cached_property
    def floor(self) -> Any:
        """The lowest epochs that the last barrier of each lane's block has not ordered."""
        return self._order.floor(self.L, self.each)
