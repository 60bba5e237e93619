"""Tiles of several problems of different sizes, numbered one problem after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from tilewright.compiler.jit import jit
from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.tensors.algebra import ceil_div
from tilewright.utils.static_persistent_tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)
from tilewright.utils.work_tile_info import WorkTileInfo


@dataclass
class GroupSearchResult:
    """Where a tile lies: its problem, its coordinate in blocks, the problem's sizes, its tiles along k."""

    group_idx: Int32
    cta_tile_idx_m: Int32
    cta_tile_idx_n: Int32
    problem_shape_m: Int32
    problem_shape_n: Int32
    problem_shape_k: Int32
    cta_tile_count_k: Int32


@dataclass
class GroupedGemmGroupSearchState:
    """Where the search for a tile goes on: a problem, and the number of the first cluster of it."""

    group_idx: Int32
    first_cluster: Int32


def create_initial_search_state(*, loc: object = None, ip: object = None) -> GroupedGemmGroupSearchState:
    """A search that begins at the first problem."""
    return GroupedGemmGroupSearchState(Int32(0), Int32(0))


class GroupedGemmTileSchedulerHelper:
    """Finds the problem to which a tile belongs.

    Args:
        group_count: how many problems there are.
        tile_sched_params: the tiles of all, as (1, 1, clusters) times the cluster's shape.
        cluster_tile_shape_mnk: what a cluster covers of m and n, and a block of k.
        search_state: from `create_initial_search_state`.

    Numbers that are asked for one after the other may not fall, as those of a persistent kernel do not.
    """

    def __init__(
        self,
        group_count: Any,
        tile_sched_params: PersistentTileSchedulerParams,
        cluster_tile_shape_mnk: Any,
        search_state: GroupedGemmGroupSearchState,
    ) -> None:
        self.group_count = group_count
        self.tile_sched_params = tile_sched_params
        self.cluster_tile_shape_mnk = tuple(cluster_tile_shape_mnk)
        self.search_state = search_state

    @jit
    def delinearize_z(
        self, cta_tile_coord: Any, problem_shape_mnkl: Any, *, loc: object = None, ip: object = None
    ) -> GroupSearchResult:
        """The tile (m, n, number of its cluster) of the problems whose (m, n, k, l) are the rows of a tensor.

        A number beyond the last cluster gives a tile that lies outside of the last problem.
        """
        group, first = self.search_state.group_idx, self.search_state.first_cluster
        index = Int32(cta_tile_coord[2])
        if index < first:
            group, first = Int32(0), Int32(0)
        clusters_m, clusters_n = self._clusters(problem_shape_mnkl, group)
        while index >= first + clusters_m * clusters_n and group + 1 < self.group_count:
            first += clusters_m * clusters_n
            group += 1
            clusters_m, clusters_n = self._clusters(problem_shape_mnkl, group)
        self.search_state = GroupedGemmGroupSearchState(group, first)
        return self._found(cta_tile_coord, problem_shape_mnkl, group, index - first, clusters_m)

    def _clusters(self, problem_shape_mnkl: Any, group: Int32) -> tuple[Int32, Int32]:
        m, n, _ = self.cluster_tile_shape_mnk
        return Int32(ceil_div(problem_shape_mnkl[group, 0], m)), Int32(ceil_div(problem_shape_mnkl[group, 1], n))

    def _found(
        self, cta_tile_coord: Any, problem_shape_mnkl: Any, group: Int32, inside: Int32, clusters_m: Int32
    ) -> GroupSearchResult:
        m, n = self.tile_sched_params.cluster_shape_mn
        extent_m, extent_n, extent_k = (Int32(problem_shape_mnkl[group, mode]) for mode in range(3))
        return GroupSearchResult(
            group,
            inside % clusters_m * m + cta_tile_coord[0],
            inside // clusters_m * n + cta_tile_coord[1],
            extent_m,
            extent_n,
            extent_k,
            Int32(ceil_div(extent_k, self.cluster_tile_shape_mnk[2])),
        )

    def __extract_mlir_values__(self) -> list[Any]:
        return extract_mlir_values(self._state())

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        group_count, params, state = new_from_mlir_values(self._state(), values)
        return type(self)(group_count, params, self.cluster_tile_shape_mnk, state)

    def _state(self) -> tuple[Any, ...]:
        return self.group_count, self.tile_sched_params, self.search_state


class GroupedWorkTileInfo(WorkTileInfo):
    """A tile, and what was found of its problem."""

    def __init__(self, tile_idx: Any, is_valid_tile: Any, group_search_result: GroupSearchResult) -> None:
        super().__init__(tile_idx, is_valid_tile)
        self.group_search_result = group_search_result

    def __extract_mlir_values__(self) -> list[Any]:
        return extract_mlir_values((self._tile_idx, self._is_valid_tile, self.group_search_result))

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        own = self._tile_idx, self._is_valid_tile, self.group_search_result
        return type(self)(*new_from_mlir_values(own, values))


class StaticPersistentGroupTileScheduler:
    """Shares the tiles of several problems out among the clusters that run at once."""

    def __init__(
        self, tile_sched: StaticPersistentTileScheduler, helper: GroupedGemmTileSchedulerHelper, problems: Any
    ) -> None:
        self._tile_sched = tile_sched
        self._group_helper = helper
        self._problem_sizes_mnkl = problems

    @classmethod
    def create(
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        cluster_tile_shape_mnk: Any,
        initial_search_state: GroupedGemmGroupSearchState,
        group_count: Any,
        problem_shape_mnkl: Any,
        *,
        loc: object = None,
        ip: object = None,
    ) -> Self:
        """The scheduler of a block; `problem_shape_mnkl` is a tensor with a row (m, n, k, l) for each problem."""
        helper = GroupedGemmTileSchedulerHelper(group_count, params, cluster_tile_shape_mnk, initial_search_state)
        return cls(StaticPersistentTileScheduler.create(params, block_idx, grid_dim), helper, problem_shape_mnkl)

    get_grid_shape = staticmethod(StaticPersistentTileScheduler.get_grid_shape)

    def get_current_work(self, *, loc: object = None, ip: object = None) -> GroupedWorkTileInfo:
        """The tile at hand."""
        work = self._tile_sched.get_current_work()
        found = self._group_helper.delinearize_z(work.tile_idx, self._problem_sizes_mnkl)
        return GroupedWorkTileInfo(work.tile_idx, work.is_valid_tile, found)

    def initial_work_tile_info(self, *, loc: object = None, ip: object = None) -> GroupedWorkTileInfo:
        """The first tile."""
        return self.get_current_work()

    def advance_to_next_work(self, *, advance_count: int = 1, loc: object = None, ip: object = None) -> None:
        """On to the next tile."""
        self._tile_sched.advance_to_next_work(advance_count=advance_count)

    @property
    def num_tiles_executed(self) -> Int32:
        """How many tiles have been left behind."""
        return self._tile_sched.num_tiles_executed

    def __extract_mlir_values__(self) -> list[Any]:
        return extract_mlir_values((self._tile_sched, self._group_helper, self._problem_sizes_mnkl))

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        own = self._tile_sched, self._group_helper, self._problem_sizes_mnkl
        return type(self)(*new_from_mlir_values(own, values))
