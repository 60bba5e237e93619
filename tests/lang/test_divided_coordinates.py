"""An index that counts through several runtime modes of a tensor is divided in 32 bits, without a branch."""

from typing import Any

import numpy as np
import pytest

import tilewright.cute as cute

TILE = (2, 16)


@cute.kernel
def _number_tiles(tiles: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tile = tiles[(None, None), block]
    tile[thread // 16, thread % 16] = block


@cute.jit
def _launch(x: cute.Tensor) -> None:
    tiles = cute.zipped_divide(x, TILE)
    _number_tiles(tiles).launch(grid=(cute.size(tiles, mode=[1]), 1, 1), block=(32, 1, 1))


@cute.kernel
def _number_planes(tiles: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tiles[(None, None, None), block][0, 0, thread] = block


@cute.jit
def _launch_planes(x: cute.Tensor) -> None:
    tiles = cute.zipped_divide(x, (1, 1, 32))
    _number_planes(tiles).launch(grid=(cute.size(tiles, mode=[1]), 1, 1), block=(32, 1, 1))


def _compiled(launch: Any, x: np.ndarray) -> Any:
    return cute.compile(launch, cute.runtime.from_dlpack(x).mark_layout_dynamic(), target="emu", no_cache=True)


@pytest.mark.parametrize("shape", [(2, 16), (6, 64), (10, 16), (2, 80), (14, 48)])
def test_tiles_are_counted_along_the_first_mode_first(shape: tuple[int, int]) -> None:
    x = np.zeros(shape, np.int32)
    made = _compiled(_launch, x)
    made(cute.runtime.from_dlpack(x).mark_layout_dynamic())
    rows = shape[0] // TILE[0]
    tile = np.arange(rows)[:, None] + rows * np.arange(shape[1] // TILE[1])[None, :]
    assert (x == np.repeat(np.repeat(tile, TILE[0], 0), TILE[1], 1)).all()
    assert "bra" not in made.stages["ptx"]
    assert "div.u64" not in made.stages["ptx"]


@pytest.mark.parametrize("shape", [(3, 5, 64), (1, 7, 32), (4, 1, 96)])
def test_planes_of_three_modes(shape: tuple[int, int, int]) -> None:
    x = np.zeros(shape, np.int32)
    made = _compiled(_launch_planes, x)
    made(cute.runtime.from_dlpack(x).mark_layout_dynamic())
    a, b, c = np.indices(shape)
    assert (x == a + shape[0] * b + shape[0] * shape[1] * (c // 32)).all()
    assert "div.u64" not in made.stages["ptx"]
