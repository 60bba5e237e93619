"""Persistent kernels: as many clusters as run at once share out the tiles, each taking every n-th.

The grid is (cluster m, cluster n, clusters). Tiles are counted in clusters, m fastest. With `swizzle_size` s they are
visited in bands s clusters wide, for the sake of the L2 cache: along m a band holds s columns and is walked row by row,
along n it holds s rows. The last band is as narrow as what is left, so that no tile lies outside of the problem.
"""

from __future__ import annotations

from typing import Any, Self

from tilewright.base.errors import CompileError
from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values
from tilewright.lang.locations import user_location
from tilewright.lang.numbers.extremes import minimum
from tilewright.lang.numbers.fast_divmod import FastDivmodDivisor
from tilewright.lang.numbers.numeric import Int32
from tilewright.lang.tensors.algebra import ceil_div, size
from tilewright.utils.work_tile_info import WorkTileInfo


class PersistentTileSchedulerParams:
    """How many tiles there are, and how they are visited.

    Args:
        problem_shape_ntile_mnl: the tiles along m, n and l (batches), each of one block.
        cluster_shape_mnk: the blocks of a cluster along m, n and k, of which k is 1.
        swizzle_size: how many clusters wide the bands are.
        raster_along_m: walk along m, else along n; without bands m is the faster one either way.

    Raises:
        CompileError: a cluster of several blocks along k, or a swizzle size that is not positive.
    """

    def __init__(
        self,
        problem_shape_ntile_mnl: Any,
        cluster_shape_mnk: Any,
        swizzle_size: int = 1,
        raster_along_m: bool = True,
        *,
        loc: object = None,
        ip: object = None,
    ) -> None:
        if cluster_shape_mnk[2] != 1 or not isinstance(swizzle_size, int) or swizzle_size < 1:
            raise CompileError(
                "tiles are shared out among clusters along m and n, in bands of one or more",
                location=user_location(),
                values={"cluster_shape_mnk": cluster_shape_mnk, "swizzle_size": swizzle_size},
                hint="cluster_shape_mnk=(m, n, 1), swizzle_size=1 or more",
            )
        self.problem_shape_ntile_mnl = tuple(problem_shape_ntile_mnl)
        self._cluster_shape_mnk = tuple(cluster_shape_mnk)
        self.swizzle_size = swizzle_size
        self._raster_along_m = raster_along_m
        shape = ceil_div(self.problem_shape_ntile_mnl, self._cluster_shape_mnk)
        self.problem_shape_ncluster_mnl = shape
        self._fast, self._slow = (shape[0], shape[1]) if self._swaps else (shape[1], shape[0])
        self._tiles = _divisor(shape[0] * shape[1])
        self._inner = _divisor(shape[0] if swizzle_size == 1 else self._band * self._fast)

    @property
    def cluster_shape_mn(self) -> tuple[int, int]:
        """The blocks of a cluster along m and n."""
        return self._cluster_shape_mnk[:2]

    @property
    def cluster_shape_mnk(self) -> tuple[int, int, int]:
        """The blocks of a cluster."""
        return self._cluster_shape_mnk

    @property
    def _swaps(self) -> bool:
        return self._raster_along_m

    @property
    def _band(self) -> int:
        return self.swizzle_size

    def get_grid_shape(
        self, max_active_clusters: Any, *, loc: object = None, ip: object = None
    ) -> tuple[Any, Any, Any]:
        """The grid: the blocks of a cluster, and no more clusters than there are tiles or run at once."""
        total = size(self.problem_shape_ncluster_mnl)
        return (*self.cluster_shape_mn, minimum(total, max_active_clusters))

    def tile_of_cluster(self, index: Int32) -> tuple[Any, Any, Any]:
        """(m, n, l), counted in clusters, of the cluster that is visited as number `index`."""
        batch, rest = divmod(index, self._tiles)
        if self.swizzle_size == 1:
            n, m = divmod(rest, self._inner)
            return m, n, batch
        band, inside = divmod(rest, self._inner)
        first = band * self._band
        width = minimum(self._slow - first, self._band)
        along, across = inside // width, first + inside % width
        return (along, across, batch) if self._swaps else (across, along, batch)

    def __extract_mlir_values__(self) -> list[Any]:
        return extract_mlir_values((self.problem_shape_ntile_mnl, self._derived()))

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.problem_shape_ntile_mnl, derived = new_from_mlir_values(
            (self.problem_shape_ntile_mnl, self._derived()), values
        )
        made.problem_shape_ncluster_mnl, made._fast, made._slow, made._tiles, made._inner = derived
        return made

    def _derived(self) -> tuple[Any, ...]:
        return self.problem_shape_ncluster_mnl, self._fast, self._slow, self._tiles, self._inner


def _divisor(number: Any) -> Any:
    """A divisor of 0 tiles is never divided by; it counts as 1."""
    return FastDivmodDivisor(max(number, 1) if isinstance(number, int) else number)


class StaticPersistentTileScheduler:
    """Which tiles a cluster does: those numbered as it is, and every so many clusters on."""

    def __init__(
        self, params: PersistentTileSchedulerParams, step: Any, index: Any, cta_id_in_cluster: Any, executed: Any
    ) -> None:
        self.params = params
        self.num_persistent_clusters = step
        self._current_work_linear_idx = index
        self.cta_id_in_cluster = cta_id_in_cluster
        self._num_tiles_executed = executed

    @classmethod
    def create(
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        *,
        loc: object = None,
        ip: object = None,
    ) -> Self:
        """The scheduler of a block at `block_idx` of a grid of `grid_dim` blocks, as `get_grid_shape` gives it."""
        m, n = params.cluster_shape_mn
        x, y, z = (Int32(item) for item in block_idx)
        step = Int32(size(tuple(grid_dim)) // (m * n))
        return cls(params, step, z, (x % m, y % n, Int32(0)), Int32(0))

    @staticmethod
    def get_grid_shape(
        params: PersistentTileSchedulerParams, max_active_clusters: Any, *, loc: object = None, ip: object = None
    ) -> tuple[Any, Any, Any]:
        """The grid of a kernel that may run `max_active_clusters` clusters at once."""
        return params.get_grid_shape(max_active_clusters)

    def get_current_work(self, *, loc: object = None, ip: object = None) -> WorkTileInfo:
        """The tile at hand."""
        index = self._current_work_linear_idx
        shape = self.params.cluster_shape_mnk
        cluster = self.params.tile_of_cluster(index)
        tile = tuple(
            Int32(at) * extent + inside
            for at, extent, inside in zip(cluster, shape, self.cta_id_in_cluster, strict=True)
        )
        return WorkTileInfo(tile, index < size(self.params.problem_shape_ncluster_mnl))

    def initial_work_tile_info(self, *, loc: object = None, ip: object = None) -> WorkTileInfo:
        """The first tile."""
        return self.get_current_work()

    def advance_to_next_work(self, *, advance_count: int = 1, loc: object = None, ip: object = None) -> None:
        """On to the next tile, or the `advance_count`-th."""
        step = Int32(advance_count) * Int32(self.num_persistent_clusters)
        self._current_work_linear_idx = self._current_work_linear_idx + step
        self._num_tiles_executed = self._num_tiles_executed + 1

    @property
    def num_tiles_executed(self) -> Int32:
        """How many tiles have been left behind."""
        return Int32(self._num_tiles_executed)

    def __extract_mlir_values__(self) -> list[Any]:
        return extract_mlir_values(self._state())

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        return type(self)(*new_from_mlir_values(self._state(), values))

    def _state(self) -> tuple[Any, ...]:
        return (
            self.params, self.num_persistent_clusters, self._current_work_linear_idx, self.cta_id_in_cluster,
            self._num_tiles_executed,
        )  # fmt: skip
