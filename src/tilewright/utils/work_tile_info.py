"""What a tile scheduler hands out: a tile's coordinate, and whether there is one."""

from __future__ import annotations

from typing import Any, Self

from tilewright.lang.leaves import extract_mlir_values, new_from_mlir_values
from tilewright.lang.numbers.numeric import Boolean


class WorkTileInfo:
    """A tile: its coordinate `tile_idx`, (m, n, l) of blocks, which means something while `is_valid_tile`."""

    def __init__(self, tile_idx: Any, is_valid_tile: Any) -> None:
        self._tile_idx = tile_idx
        self._is_valid_tile = Boolean(is_valid_tile)

    @property
    def tile_idx(self) -> Any:
        """The coordinate of the tile."""
        return self._tile_idx

    @property
    def is_valid_tile(self) -> Boolean:
        """False when all tiles are done."""
        return self._is_valid_tile

    def __extract_mlir_values__(self) -> list[Any]:
        return [*extract_mlir_values(self._tile_idx), *extract_mlir_values(self._is_valid_tile)]

    def __new_from_mlir_values__(self, values: list[Any]) -> Self:
        coordinate = new_from_mlir_values(self._tile_idx, values[:-1])
        return type(self)(coordinate, new_from_mlir_values(self._is_valid_tile, values[-1:]))
