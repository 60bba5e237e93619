"""im2col copies against the patches of padded images, and against a walk pixel by pixel; `tensormap.replace`."""

import struct

import numpy as np
import pytest

from tests.emu.test_tensor_copies import HEAD, load_kernel, run, store_kernel
from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu import tensormap
from tilewright.targets.emu.image import aligned_bytes


def column_kernel(rank, nbytes):
    """Loads one column; the im2col offsets follow the coordinates in `at`."""
    offsets = ", ".join(f"%h{k}" for k in range(rank - 2))
    reads = "".join(f"ld.global.u16 %h{k}, [%d3+{4 * (rank + k)}];\n" for k in range(rank - 2))
    text = load_kernel(rank, nbytes).replace(".reg .pred %p<4>;", ".reg .pred %p<4>; .reg .b16 %h<4>;")
    text = text.replace("global.tile.", "global.im2col.").replace("[%r3];", f"[%r3], {{{offsets}}};")
    return text.replace("mbarrier.arrive.expect_tx", f"{reads}  mbarrier.arrive.expect_tx", 1)


def images(shape, dtype=np.float32):
    """A batch of images, (N, D, H, W, C) or fewer, of different values, none of them zero."""
    return np.arange(1, np.prod(shape) + 1, dtype=dtype).reshape(shape)


def map_of(tensor, lower, upper, channels, pixels, steps=None, **more):
    strides = tensor.strides[::-1][1:]
    extents = tensor.shape[::-1]
    return tensormap.encode_im2col(
        "f32", tensor.ctypes.data, extents, strides, lower, upper, channels, pixels, steps, **more
    )


def walked(tensor, base, lower, upper, steps, offsets, channels, pixels):
    """The column, one pixel after the other; zero outside."""
    extents = tensor.shape[::-1]
    place, out = list(base[1:]), np.zeros((pixels, channels), tensor.dtype)
    for pixel in range(pixels):
        at = [p + o for p, o in zip(place, [*offsets, 0], strict=True)]
        for channel in range(channels):
            index = (base[0] + channel, *at)
            if all(0 <= i < n for i, n in zip(index, extents, strict=True)):
                out[pixel, channel] = tensor[index[::-1]]
        for mode in range(len(lower)):
            place[mode] += steps[mode + 1]
            if place[mode] <= extents[mode + 1] - 1 + upper[mode]:
                break
            place[mode] = lower[mode]
        else:
            place[-1] += steps[-1]
    return out


@pytest.mark.parametrize("tap", [(0, 0), (1, 0), (2, 1), (2, 2)])
def test_the_column_of_each_tap_of_a_filter_is_the_shifted_padded_image(tap):
    """A 3 x 3 filter with padding 1: with the offsets of a tap the column is what the tap multiplies."""
    n, h, w, c = 2, 4, 5, 8
    tensor = images((n, h, w, c))
    made = map_of(tensor, (-1, -1), (-1, -1), c, n * h * w)
    out = np.full((n, h, w, c), -1, np.float32)
    run(column_kernel(4, out.nbytes), made, out, [0, -1, -1, 0, *tap], [tensor])
    padded = np.pad(tensor, ((0, 0), (1, 1), (1, 1), (0, 0)))
    np.testing.assert_array_equal(out, padded[:, tap[1] : tap[1] + h, tap[0] : tap[0] + w])


@pytest.mark.parametrize(
    ("shape", "lower", "upper", "base", "offsets", "steps", "channels", "pixels"),
    [
        ((3, 11, 8), (0,), (0,), (0, 4, 1), (0,), (1, 1, 1), 8, 40),
        ((3, 11, 8), (-2,), (1,), (4, -1, 0), (1,), (1, 2, 1), 8, 16),
        ((2, 4, 5, 12), (-1, 0), (0, -1), (8, 2, 1, 0), (1, 1), (1, 1, 1, 1), 8, 32),
        ((2, 6, 7, 8), (-1, -1), (-1, -1), (0, 1, -1, 1), (2, 0), (1, 2, 2, 1), 4, 24),
        ((5, 3, 4, 8), (0, -1), (-1, 0), (4, 1, 0, 1), (1, 1), (1, 1, 1, 2), 4, 40),
        ((2, 3, 4, 5, 8), (-1, 0, -1), (0, -1, 0), (4, 3, 1, 0, 0), (1, 1, 1), (1, 1, 2, 1, 1), 4, 64),
        ((1, 3, 4, 4, 8), (0, 0, 0), (0, 0, 0), (-4, 0, 0, 0, 0), (0, 0, 3), (1, 1, 1, 1, 1), 8, 64),
    ],
)
def test_columns_of_every_rank(shape, lower, upper, base, offsets, steps, channels, pixels):
    tensor = images(shape)
    made = map_of(tensor, lower, upper, channels, pixels, steps)
    out = np.full((pixels, channels), -1, np.float32)
    run(column_kernel(len(shape), out.nbytes), made, out, [*base, *offsets], [tensor], counters=True)
    np.testing.assert_array_equal(out, walked(tensor, base, lower, upper, steps, offsets, channels, pixels))


def test_pixels_after_the_last_image_are_filled_with_nan_where_asked():
    tensor = images((1, 4, 8))
    out = np.zeros((8, 8), np.float32)
    run(column_kernel(3, out.nbytes), map_of(tensor, (0,), (0,), 8, 8, fill_nan=True), out, [0, 2, 0, 0], [tensor])
    np.testing.assert_array_equal(out[:2], tensor[0, 2:])
    assert np.isnan(out[2:]).all()


@pytest.mark.parametrize("op", ["", "add"])
def test_columns_are_stored_without_offsets(op):
    rng = np.random.default_rng(3)
    tensor = rng.integers(-9, 9, (2, 5, 8)).astype(np.float32)
    tile = rng.integers(-9, 9, (32, 8)).astype(np.float32)
    name = (
        f"cp.reduce.async.bulk.tensor.3d.global.shared::cta.{op}"
        if op
        else "cp.async.bulk.tensor.3d.global.shared::cta"
    )
    text = store_kernel(f"{name}.im2col_no_offs.bulk_group").replace("%r11}}", "%r11, %r12}}")
    text = text.replace("%r10, %r11}", "%r10, %r11, %r12}").replace("[%d3+4];", "[%d3+4]; ld.global.s32 %r12, [%d3+8];")
    wanted = tensor.reshape(10, 8).copy()
    wanted[3:] = wanted[3:] + tile[:7] if op else tile[:7]
    run(text, map_of(tensor, (0,), (0,), 8, 32), tile, [0, 3, 0], [tensor])
    np.testing.assert_array_equal(tensor.reshape(10, 8), wanted)


def test_errors_of_im2col():
    tensor = images((2, 5, 8))
    out = np.zeros((8, 8), np.float32)
    made = map_of(tensor, (0,), (-1,), 8, 8)
    with pytest.raises(EmulationError, match="starts outside its bounding box") as caught:
        run(column_kernel(3, out.nbytes), made, out, [0, 4, 0, 0], [tensor])
    assert "lower corner" in str(caught.value)
    with pytest.raises(EmulationError, match="starts at a multiple of 16 bytes"):
        run(column_kernel(3, out.nbytes), made, out, [2, 0, 0, 0], [tensor])
    with pytest.raises(EmulationError, match="rank 3, tiled, with a tensor map of rank 3, im2col"):
        run(load_kernel(3, out.nbytes), made, out, [0, 0, 0], [tensor])
    with pytest.raises(EmulationError, match="takes 1 im2col offsets, not 2"):
        run(column_kernel(3, out.nbytes).replace("{%h0}", "{%h0, %h1}"), made, out, [0, 0, 0, 0], [tensor])
    with pytest.raises(EmulationError, match=r"im2col::w.* needs sm_100a"):
        run(column_kernel(3, out.nbytes).replace("im2col.", "im2col::w."), made, out, [0, 0, 0, 0], [tensor])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pixels": 1025}, "pixels between 1 and 1024"),
        ({"upper": (-5,)}, "the bounding box is empty"),
        ({"lower": (1 << 15,)}, "corners lie between -32768 and 32767"),
        ({"extents": (8, 5), "lower": (), "upper": ()}, "3 to 5 modes"),
    ],
)
def test_im2col_maps_that_the_driver_refuses(change, message):
    given = {"type": "f32", "address": 1024, "extents": (8, 5, 2), "strides": (32, 160), "lower": (0,), "upper": (0,)}
    with pytest.raises(ArgumentError, match=message):
        tensormap.encode_im2col(**{**given, "channels": 8, "pixels": 8, **change})


def test_encoding_round_trip():
    data = tensormap.encode_im2col(
        "bf16", 1 << 40, (64, 9, 14, 3), (128, 1152, 16128), (-1, -2), (1, 0), 16, 100, (1, 2, 3, 1), 32
    )
    back = tensormap.decode(data)
    assert back == tensormap.TensorMap(
        "bf16", 1 << 40, (64, 9, 14, 3), (128, 1152, 16128), (16, 100), (1, 2, 3, 1), 32, False, (-1, -2), (1, 0)
    )
    assert back.nbytes == 16 * 100 * 2 and back.last == (9, 13)


REPLACE = f"""{HEAD}
.visible .entry k(.param .u64 to, .param .u64 tensor)
{{
  .reg .b32 %r<9>; .reg .b64 %d<9>;
  .shared .align 128 .b8 map[128];
  ld.param.u64 %d1, [to]; ld.param.u64 %d2, [tensor];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, map; add.u32 %r4, %r3, %r2;
  mov.b32 %r5, 0; st.shared.b32 [%r4], %r5;
  bar.warp.sync -1;
  .reg .pred %p<2>;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
  mov.u64 %d4, map; cvta.shared.u64 %d4, %d4;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], %d2;
  tensormap.replace.tile.rank.b1024.b32 [%d4], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 0, 32;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r3], 1, 8;
  mov.b32 %r6, 40; mov.b64 %d3, 160;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0, %r6;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 1, 20;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [map], 0, %d3;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [map], 1, 2;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [map], 7;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [map], 0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [map], 3;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [map], 1;
DONE:
  bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [map], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
  ret;
}}
"""


def run_replace(text, room):
    run_ptx(text, "k", 1, 32, [room, 1 << 20])


def test_a_map_made_on_the_device_from_zeros():
    room = aligned_bytes(128, 128)
    run_replace(REPLACE, room)
    wanted = tensormap.encode("f32", 1 << 20, (40, 20), (160,), (32, 8), (1, 2), swizzle=128, fill_nan=True)
    assert room.tobytes() == wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("elemtype.shared::cta.b1024.b32 [map], 7", "elemtype.shared::cta.b1024.b32 [map], 13"), "takes 0 to 12"),
        (("rank.b1024.b32 [%d4], 1", "rank.b1024.b32 [%d4], 5"), "rank got a value out of range"),
        (("mov.b32 %r5, 0", "mov.b32 %r5, 5"), "not made for the emulator"),
        (("[%r3], 1, 8", "[%r3], 5, 8"), "an immediate below 5"),
        (("fill_mode", "colour"), "does not exist"),
        (("[map], 128", "[map], 64"), "copies 128 bytes"),
        (("fill_mode", "swizzle_atomicity"), "needs sm_100a"),
    ],
)
def test_errors_of_replace(change, message):
    with pytest.raises(EmulationError, match=message):
        run_replace(REPLACE.replace(*change), aligned_bytes(128, 128))


def test_a_map_that_was_replaced_badly_is_refused_by_the_copy():
    tensor, out = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    made = bytearray(tensormap.encode("f32", tensor.ctypes.data, (8, 4), (32,), (8, 4)))
    for at, value, message in (
        (72, 3, "multiple of 16 bytes along mode 0"),
        (6, 1, "an interleaved map has 3 to 5 modes"),
        (7, 9, "not made for the emulator"),
    ):
        changed = bytearray(made)
        changed[at] = value
        with pytest.raises(EmulationError, match=message):
            run(load_kernel(2, out.nbytes), bytes(changed), out, (0, 0), [tensor])
    assert struct.unpack_from("<H", made, 72) == (8,)
