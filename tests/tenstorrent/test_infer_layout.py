from __future__ import annotations

import numpy as np
import pytest

import tilewright.tile as tile
from tests.tenstorrent.programs import launched, zeros
from tilewright import PassError
from tilewright.tenstorrent import InferLayout, trace


def layout(body, *arrays):
    return InferLayout(trace(launched(body, *arrays), *arrays)).prim_funcs[0]


def test_every_tensor_has_a_descriptor(applied):
    _, made = applied("infer-layout")
    for func in made.prim_funcs:
        for buffer in func.buffer_map.values():
            rows, cols = buffer.attrs["tt.padded_shape"]
            assert rows % 32 == cols % 32 == 0
            assert rows - 32 < buffer.shape[0] <= rows and buffer.shape[1] <= cols
            assert (buffer.attrs["tt.memory"], buffer.attrs["tt.layout"]) == ("dram", "interleaved")


def test_padding_covers_every_tile():
    def body(a, b):
        tile.store(b, (0, 0), tile.load(a, (0, 0), (64, 96), pad=-1.0))
        tile.store(b, (0, 0), tile.load(a, (1, 0), (64, 96), pad=-1.0))

    func = layout(body, zeros(100, 100), zeros(70, 97))
    a, b = func.buffer("tensors_0"), func.buffer("tensors_1")
    assert a.attrs["tt.padded_shape"] == (128, 192) and a.attrs["tt.pad"] == -1.0
    assert b.attrs["tt.padded_shape"] == (128, 192)
    assert (a.attrs["tt.usage"], b.attrs["tt.usage"], a.attrs["tt.format"]) == ("read", "written", "Float16_b")


@pytest.mark.parametrize(
    ("body", "array", "message"),
    [
        (lambda a: tile.load(a, (0, 0), (16, 32)), zeros(64, 64), "a tile of extent 16 along mode 0 of tensors_0"),
        (lambda a: tile.load(a, (0, 0), (1, 32)), zeros(64, 64), "a tile of extent 1 along mode 0"),
        (lambda a: tile.load(a, (0,), (32,)), zeros(64), "tensor tensors_0 of 1 modes"),
        (lambda a: tile.load(a, (0, 0), (32, 32)), np.zeros((64, 64), np.float16), "tensor tensors_0 of f16"),
        (lambda a: tile.load(a, (0, 0), (32, 32)), zeros(64, 64).T, "which is not row-major and compact"),
        (
            lambda a: (tile.load(a, (0, 0), (32, 32)), tile.load(a, (0, 0), (32, 32), pad=1)),
            zeros(64, 64),
            "padded by 0.0 and by 1.0",
        ),
    ],
)
def test_what_it_refuses(body, array, message):
    with pytest.raises(PassError, match=f"the tenstorrent target does not take .*{message}") as caught:
        layout(body, array)
    assert caught.value.location.file == __file__
