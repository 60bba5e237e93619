"""Pass Name: infer-layout
Purpose: Say of each tensor how it lies in the machine's memory.

Input Expectations:
- A kernel of stage `cute` whose tensors have two modes, row-major, of bf16 or f32
- Tiles with extents that are multiples of 32, or 1 along a mode of extent 1

Output Guarantees:
- Each buffer has the attributes tt.memory, tt.layout, tt.tile_shape, tt.format, tt.padded_shape, tt.pad, and
  tt.usage: read, written, or both
- Padded extents are multiples of 32 and of every tile that is read or written there

Example:
    Before: def k(a: Buffer((96, 100), 'bf16')): v0 = cute.tile_load(a, 0, 0, pad=0.0)     (tiles of 32 x 32)
    After:  # a: tt.layout = 'interleaved', tt.padded_shape = (96, 128), tt.pad = 0.0

Testing:
    pytest tests/tenstorrent/test_infer_layout.py
"""

from __future__ import annotations

import math
import re
from typing import Any

from tilewright.hw.tensix import FORMATS, TILE
from tilewright.targets.tenstorrent.passing import func_pass, known
from tilewright.targets.tenstorrent.tir.nodes import Buffer, Call, PrimFunc, Var
from tilewright.targets.tenstorrent.tir.read_mlir import refusal
from tilewright.targets.tenstorrent.tir.visitors import calls


def tile_extents(dtype: str) -> tuple[int, ...]:
    """The shape in `tensor<64x32xbf16>`."""
    return tuple(int(text) for text in re.findall(r"(\d+)x", dtype))


def tile_element(dtype: str) -> str:
    """The element type in `tensor<64x32xbf16>`."""
    return dtype.rpartition("x")[2].rstrip(">")


@func_pass(opt_level=0)
def InferLayout(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """Describe every tensor that is loaded or stored."""
    for param, buffer in func.buffer_map.items():
        loads = [item for item in calls(func.body, "cute.tile_load") if item.args[0] is param]
        stores = [item for item in calls(func.body, "cute.tile_store") if item.args[1] is param]
        if loads or stores:
            func = func.with_buffer(param, _described(buffer, loads, stores))
    return func


def _described(buffer: Buffer, loads: list[Call], stores: list[Call]) -> Buffer:
    place = (loads + stores)[0].location
    if buffer.dtype not in FORMATS:
        raise refusal(f"tensor {buffer.name} of {buffer.dtype}", place, f"use {' or '.join(FORMATS)}")
    if len(buffer.shape) != 2:
        modes = len(buffer.shape)
        raise refusal(f"tensor {buffer.name} of {modes} modes", place, "view it as a matrix in the host function")
    if buffer.strides != (buffer.shape[1], 1) and buffer.shape[0] != 1:
        raise refusal(f"tensor {buffer.name}, which is not row-major and compact", place, "pass a contiguous array")
    padded = [-(-size // unit) * unit for size, unit in zip(buffer.shape, _units(buffer, loads + stores), strict=True)]
    pads = {item.attrs["pad"] for item in loads} or {0.0}
    if len(pads) > 1:
        raise refusal(
            f"tensor {buffer.name} padded by {' and by '.join(map(str, sorted(pads)))}", place, "load it with one `pad`"
        )
    usage = "both" if loads and stores else "read" if loads else "written"
    for key, value in {
        "tt.memory": "dram", "tt.layout": "interleaved", "tt.tile_shape": (TILE, TILE),
        "tt.format": FORMATS[buffer.dtype][0], "tt.padded_shape": tuple(padded), "tt.pad": pads.pop(),
        "tt.usage": usage,
    }.items():  # fmt: skip
        buffer = buffer.with_attr(key, value)
    return buffer


def _units(buffer: Buffer, accesses: list[Call]) -> list[int]:
    """What the padded extents are multiples of."""
    found = [TILE, TILE]
    for item in accesses:
        for mode, extent in enumerate(tile_extents(item.dtype or _stored(item))):
            _check_extent(buffer, mode, extent, item)
            found[mode] = math.lcm(found[mode], extent)
    return found


def _stored(item: Call) -> str:
    value: Var = item.args[0]  # type: ignore[assignment]
    return value.dtype


def _check_extent(buffer: Buffer, mode: int, extent: int, item: Call) -> None:
    if extent % TILE and not (extent == 1 and buffer.shape[mode] == 1):
        raise refusal(
            f"a tile of extent {extent} along mode {mode} of {buffer.name}",
            item.location,
            f"tiles are multiples of {TILE}, or 1 where the tensor's extent is 1; a tensor that ends inside a tile is "
            "padded by its load",
        )


known(InferLayout)
