"""Sets of threads that run together, and what follows from who they are.

The threads of a batch are numbered by *lane*: warp-aligned, `slot * warps * 32 + thread`, where `slot` is the
block's place in the batch. A `Lanes` object is an ascending array of such numbers with everything derived from
it computed once: special registers, offsets into shared memory, the grouping into warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.base.errors import EmulationError
from tilewright.base.lazy import cached_property

Array = np.ndarray[Any, np.dtype[Any]]
LANES = np.arange(32, dtype=np.uint32)
_BIT = np.left_shift(np.uint32(1), LANES)
LANE_MASKS = {
    "lanemask_eq": _BIT,
    "lanemask_lt": _BIT - np.uint32(1),
    "lanemask_le": _BIT | (_BIT - np.uint32(1)),
    "lanemask_gt": ~(_BIT | (_BIT - np.uint32(1))),
    "lanemask_ge": ~(_BIT - np.uint32(1)),
}


@dataclass(frozen=True)
class Shape:
    """A launch: grid, block and cluster in (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)

    @cached_property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @cached_property
    def warps(self) -> int:
        return -(-self.threads // 32)

    @cached_property
    def stride(self) -> int:
        """Lanes from one block to the next: whole warps, and whole warpgroups where there are any."""
        return -(-self.threads // 128) * 128 if self.threads > 128 else self.warps * 32

    @cached_property
    def cluster_blocks(self) -> int:
        return self.cluster[0] * self.cluster[1] * self.cluster[2]


def unflatten(index: Any, shape: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """(x, y, z) of a linear index, x fastest; for arrays and ints."""
    return index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])


def quotient(x: Any, by: int) -> Any:
    """x // by of numbers that are not negative: a shift for powers of two, as arrays divide slowly."""
    return x if by == 1 else x >> (by.bit_length() - 1) if by & (by - 1) == 0 else x // by


def remainder(x: Any, by: int) -> Any:
    """x % by of numbers that are not negative."""
    return x & (by - 1) if by & (by - 1) == 0 else x % by


class Lanes:
    """Some threads of a batch. `ids` is ascending; `blocks` gives the grid's block number of each slot."""

    def __init__(self, shape: Shape, ids: Array, blocks: Array) -> None:
        self.shape = shape
        self.ids = ids
        self.blocks = blocks
        self.n = len(ids)
        self._special: dict[str, Any] = {}
        self._offsets: dict[tuple[int, int], Any] = {}

    def subset(self, picked: Array) -> Lanes:
        return Lanes(self.shape, self.ids[picked], self.blocks)

    @cached_property
    def slot(self) -> Array:
        """The slot of each lane's block."""
        return np.asarray(quotient(self.ids, self.shape.stride))

    @cached_property
    def thread(self) -> Array:
        """The linear index of each lane in its block."""
        return np.asarray(remainder(self.ids, self.shape.stride))

    @cached_property
    def block(self) -> Array:
        """The linear index of each lane's block in the grid."""
        taken: Array = self.blocks[self.slot]
        return taken

    @cached_property
    def lane(self) -> Array:
        """The position of each lane in its warp."""
        return (self.ids & 31).astype(np.uint32)

    @cached_property
    def warp(self) -> Array:
        """The warp of each lane, counted over the batch."""
        return self.ids >> 5

    @cached_property
    def whole_warps(self) -> bool:
        """Whether this is a set of warps of 32 threads, each complete."""
        n = self.n
        if n % 32:
            return False
        rows = self.ids.reshape(-1, 32)
        return bool(((rows[:, 31] - rows[:, 0] == 31) & (rows[:, 0] & 31 == 0)).all())

    @cached_property
    def warp_rows(self) -> tuple[Array, int]:
        """For each lane its place in a (warps, 32) table that holds only the warps present; and their number."""
        warp = self.warp
        new = np.empty(self.n, bool)
        new[0] = True
        np.not_equal(warp[1:], warp[:-1], out=new[1:])
        row = np.cumsum(new) - 1
        return row * 32 + (self.ids & 31), int(row[-1]) + 1

    @cached_property
    def present(self) -> Array:
        """The mask of the warp's lanes that are in this set, one for each lane."""
        place, rows = self.warp_rows
        table = np.zeros(rows * 32, bool)
        table[place] = True
        masks: Array = np.packbits(table, bitorder="little").view(np.uint32)[place >> 5]
        return masks

    def table(self, values: Any, fill: Any = 0) -> Array:
        """Values by lane as a (warps, 32) table; absent lanes hold `fill`."""
        if self.whole_warps:
            if isinstance(values, np.ndarray) and values.ndim:
                return values.reshape(-1, 32)
            return np.full((self.n // 32, 32), values)
        place, rows = self.warp_rows
        kind = values.dtype if hasattr(values, "dtype") else np.asarray(values).dtype
        out = np.full(rows * 32, fill, kind)
        out[place] = values
        return out.reshape(rows, 32)

    def spread(self, rows: Array) -> Array:
        """One value a warp, repeated for each lane."""
        if self.whole_warps:
            return np.repeat(rows, 32)
        spread: Array = rows[self.warp_rows[0] >> 5]
        return spread

    def gather(self, table: Array) -> Array:
        """A (warps, 32) table back to values by lane."""
        if self.whole_warps:
            return table.reshape(-1)
        return table.reshape(-1)[self.warp_rows[0]]

    def offset(self, stride: int, shift: int) -> Any:
        """Where each lane's block begins in a table with `stride` bytes a block, in elements of `1 << shift` bytes."""
        key = (stride, shift)
        found = self._offsets.get(key)
        if found is None:
            first, last = int(self.ids[0]) // self.shape.stride, int(self.ids[-1]) // self.shape.stride
            if first == last:
                found = np.int64(first * stride >> shift)
            else:
                found = self.slot * (stride >> shift)
            self._offsets[key] = found
        return found

    def special(self, name: str) -> Any:
        """A special register, by its name without the percent sign."""
        found = self._special.get(name)
        if found is None:
            found = self._special[name] = self._compute(name)
        return found

    def _compute(self, name: str) -> Any:
        head, _, axis = name.partition(".")
        axes = {"x": 0, "y": 1, "z": 2}
        if head == "tid" and axis in axes:
            return self._axis(self.thread, self.shape.block, axes[axis])
        if head == "ctaid" and axis in axes:
            return self._axis(self._uniform_block(), self.shape.grid, axes[axis])
        if name == "laneid":
            return self.lane
        if name == "warpid":
            return (self.thread >> 5).astype(np.uint32)
        if name in LANE_MASKS:
            return LANE_MASKS[name][self.lane]
        if head in ("clusterid", "cluster_ctaid") and axis in axes:
            return self._cluster(head, axes[axis])
        if name == "cluster_ctarank":
            return self.cluster_rank().astype(np.uint32)
        if name in ("smid",):
            return (np.asarray(self._uniform_block()) % 132).astype(np.uint32)
        raise EmulationError(f"special register %{name} is not emulated")

    def _uniform_block(self) -> Any:
        """The block number: one number if all lanes are of one block."""
        first, last = int(self.ids[0]) // self.shape.stride, int(self.ids[-1]) // self.shape.stride
        return self.blocks[first] if first == last else self.block

    @staticmethod
    def _axis(index: Any, shape: tuple[int, int, int], axis: int) -> Any:
        if shape[axis] == 1:
            return np.uint32(0)
        below = shape[0] if axis == 1 else shape[0] * shape[1] if axis == 2 else 1
        value = quotient(index, below)
        if any(size > 1 for size in shape[axis + 1 :]):
            value = remainder(value, shape[axis])
        return value.astype(np.uint32)

    def _cluster(self, head: str, axis: int) -> Any:
        place = unflatten(np.asarray(self._uniform_block()), self.shape.grid)[axis]
        size = self.shape.cluster[axis]
        return (place // size if head == "clusterid" else place % size).astype(np.uint32)

    def cluster_rank(self) -> Array:
        """The rank of each lane's block in its cluster."""
        x, y, z = (p % c for p, c in zip(unflatten(self.block, self.shape.grid), self.shape.cluster, strict=True))
        cx, cy, _ = self.shape.cluster
        rank: Array = x + cx * (y + cy * z)
        return rank


def launch_constants(shape: Shape) -> dict[str, Any]:
    """Special registers that are the same for every thread of a launch."""
    grid, block, cluster = shape.grid, shape.block, shape.cluster
    clusters = [g // c for g, c in zip(grid, cluster, strict=True)]
    values: dict[str, Any] = {"nwarpid": shape.warps, "warpsize": 32, "WARP_SZ": 32, "nsmid": 132,
                              "cluster_nctarank": shape.cluster_blocks, "is_explicit_cluster": 0}  # fmt: skip
    for axis, letter in enumerate("xyz"):
        values[f"ntid.{letter}"] = block[axis]
        values[f"nctaid.{letter}"] = grid[axis]
        values[f"nclusterid.{letter}"] = clusters[axis]
        values[f"cluster_nctaid.{letter}"] = cluster[axis]
    constants: dict[str, Any] = {name: np.uint32(value) for name, value in values.items()}
    constants["is_explicit_cluster"] = np.bool_(shape.cluster_blocks > 1)
    constants["gridid"] = np.uint64(1)
    return constants
