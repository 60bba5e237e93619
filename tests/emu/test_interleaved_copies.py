"""Copies of interleaved tensors against NumPy: images of shape (N, slices, [D,] [H,] W) whose elements are slices."""

import numpy as np
import pytest

from tests.emu.test_im2col import column_kernel, walked
from tests.emu.test_tensor_copies import load_kernel, padded, run, store_kernel
from tilewright.base.errors import ArgumentError
from tilewright.targets.emu import tensormap
from tilewright.targets.emu.image import aligned_bytes


def images(shape, size):
    """Slices of `size` bytes, as voids: (*shape,), none of them zero; at a multiple of 32."""
    words = aligned_bytes(int(np.prod(shape)) * size, 32).view(np.uint32)
    words[:] = np.arange(1, len(words) + 1)
    return words.view(np.dtype((np.void, size))).reshape(shape)


def encoded(type, tensor, box, steps=None, **more):
    size = tensor.dtype.itemsize
    sizes = (tensor.ctypes.data, tensor.shape[::-1], tensor.strides[::-1][1:])
    return tensormap.encode(type, *sizes, box, steps, interleave=size, **more)


@pytest.mark.parametrize(
    ("type", "size", "shape", "box", "start"),
    [
        ("f16", 16, (3, 5, 12), (8, 8, 2), (0, 0, 0)),
        ("f16", 16, (3, 5, 12), (16, 24, 2), (-3, 4, 2)),
        ("f32", 16, (3, 5, 12), (4, 1, 2), (5, 1, -1)),
        ("u8", 32, (3, 5, 12), (16, 32, 2), (9, 2, 1)),
        ("f16", 16, (2, 5, 4, 12), (8, 3, 8, 2), (1, -1, 3, 0)),
        ("f64", 32, (2, 5, 4, 12), (6, 3, 4, 2), (1, 2, 5, 0)),
        ("f16", 16, (2, 3, 3, 4, 6), (8, 2, 3, 8, 2), (-1, 1, -1, 2, 1)),
    ],
)
def test_a_box_is_one_slice_of_channels(type, size, shape, box, start):
    tensor = images(shape, size)
    made = encoded(type, tensor, box)
    whole = (*box[:-2], 1, box[-1])
    out = np.zeros(whole[::-1], tensor.dtype)
    run(load_kernel(len(shape), out.nbytes), made, out, start, [tensor])
    wanted = padded(tensor, start, whole)
    assert out.tobytes() == wanted.tobytes()


def test_element_strides_count_along_w_too():
    tensor = images((3, 4, 7, 24), 16)
    made = encoded("f16", tensor, (16, 5, 8, 3), (3, 2, 1, 2))
    out = np.zeros((2, 1, 3, 6), tensor.dtype)
    run(load_kernel(4, out.nbytes), made, out, (-3, 1, 2, 0), [tensor])
    wanted = padded(tensor, (-3, 1, 2, 0), (16, 5, 1, 3))[::2, :, ::2, ::3]
    assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("size", "span"), [(16, 32), (16, 128), (32, 32), (32, 64)])
def test_swizzles_go_through_rows(size, span):
    """Pixels lie one after the other in shared memory, in chunks of 16 bytes that the swizzle exchanges."""
    tensor = images((2, 3, 24), size)
    made = encoded("f16", tensor, (24, 8, 2), swizzle=span)
    out = np.zeros(48, tensor.dtype)
    run(load_kernel(3, out.nbytes), made, out, (0, 1, 0), [tensor])
    wanted = np.zeros((out.nbytes // 16, 16), np.uint8)
    for number, chunk in enumerate(np.ascontiguousarray(tensor[:, 1]).view(np.uint8).reshape(-1, 16)):
        wanted[number ^ (number // 8 % (span // 16))] = chunk
    assert out.tobytes() == wanted.tobytes()


def test_what_lies_outside_is_filled_with_nan_where_asked():
    tensor = images((1, 2, 6), 16)
    made = encoded("f16", tensor, (8, 8, 1), fill_nan=True)
    out = np.zeros(8, tensor.dtype)
    run(load_kernel(3, out.nbytes), made, out, (0, 1, 0), [tensor])
    assert out[:6].tobytes() == tensor[0, 1].tobytes()
    assert (np.ascontiguousarray(out[6:]).view(np.uint16) == 0x7FF7).all()


@pytest.mark.parametrize("op", ["", "add"])
def test_stores_and_sums_of_slices(op):
    rng = np.random.default_rng(5)
    tensor = rng.integers(0, 99, (3, 5, 12, 4)).astype(np.uint32)
    tile = rng.integers(0, 99, (256,)).astype(np.uint32)
    kind = f"cp.{'reduce.' if op else ''}async.bulk.tensor.3d.global.shared::cta{'.' * bool(op)}{op}.tile.bulk_group"
    text = store_kernel(kind).replace("%r10, %r11}", "%r10, %r11, %r12}")
    text = text.replace("[%d3+4];", "[%d3+4]; ld.global.s32 %r12, [%d3+8];")
    made = tensormap.encode("u32", tensor.ctypes.data, (12, 5, 3), (192, 960), (8, 4, 2), interleave=16)
    wanted = tensor.copy()
    box = tile[:64].reshape(2, 8, 4)[:1, :6]
    wanted[2:, 3, 6:] = wanted[2:, 3, 6:] + box if op else box
    run(text, made, tile, (6, 3, 2), [tensor])
    np.testing.assert_array_equal(tensor, wanted)


@pytest.mark.parametrize(
    ("shape", "lower", "upper", "base", "offsets", "steps"),
    [
        ((3, 7, 24), (-1,), (0,), (8, 2, 1), (1,), (1, 1, 1)),
        ((2, 4, 5, 9), (-1, -1), (0, 0), (6, 0, 2, 0), (1, 1), (1, 1, 1, 1)),
        ((3, 4, 8, 9), (-1, -2), (0, 1), (7, 1, 3, 0), (0, 2), (2, 3, 1, 2)),
        ((2, 3, 4, 5, 6), (-1, 0, -1), (0, -1, 1), (2, 1, 0, 1, 0), (1, 0, 1), (1, 1, 1, 1, 1)),
    ],
)
def test_columns_take_one_slice_of_channels(shape, lower, upper, base, offsets, steps):
    """As columns of images with one channel, a slice, cut out of the tensor."""
    rank, pixels = len(shape), 40
    tensor = images(shape, 16)
    made = tensormap.encode_im2col(
        "f16", tensor.ctypes.data, shape[::-1], tensor.strides[::-1][1:], lower, upper, 24, pixels, steps, interleave=16
    )
    out = np.zeros(pixels, tensor.dtype)
    run(column_kernel(rank, out.nbytes), made, out, [*base, *offsets], [tensor])
    plane = np.ascontiguousarray(tensor[:, base[-2]])[..., None]
    place, walk = (0, *base[:-2], base[-1]), (1, *steps[:-2], steps[-1])
    assert out.tobytes() == walked(plane, place, lower, upper, walk, offsets, 1, pixels).tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interleave": 32, "address": 1040}, "the address must be a multiple of 32"),
        ({"interleave": 32, "strides": (208, 1024)}, "strides are multiples of 32"),
        ({"box": (4, 8, 2)}, "a multiple of 16 bytes along mode 0"),
    ],
)
def test_interleaved_maps_that_the_driver_refuses(change, message):
    given = {"type": "f16", "address": 1024, "extents": (12, 5, 3), "strides": (192, 960), "box": (8, 8, 2),
             "interleave": 16, **change}  # fmt: skip
    with pytest.raises(ArgumentError, match=message):
        tensormap.encode(**given)


def test_encoding_round_trip():
    data = tensormap.encode("f16", 1 << 40, (12, 5, 3), (192, 960), (8, 8, 2), (2, 1, 1), swizzle=64, interleave=16)
    back = tensormap.decode(data)
    assert (back.interleave, back.counts, back.nbytes, back.unit) == (16, (4, 1, 2), 128, 16)
