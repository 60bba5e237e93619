"""Tensor maps and the copies that use them, against NumPy slices."""

import numpy as np
import pytest

from tests.emu import faults
from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.targets.emu import Buffer, Options, launch, load, tensormap

HEAD = """
.version 8.0
.target sm_90a
.address_size 64
"""


def load_kernel(rank, nbytes, told=None):
    """Loads one box of `told` bytes at the coordinates in `at` and copies `nbytes` of shared memory out."""
    coords = ", ".join(f"%r{10 + k}" for k in range(rank))
    reads = "".join(f"ld.global.s32 %r{10 + k}, [%d3+{4 * k}];\n" for k in range(rank))
    return f"""{HEAD}
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 at)
{{
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<9>;
  .shared .align 1024 .b8 tile[{nbytes}];
  .shared .align 8 .b64 bar;
  ld.param.u64 %d1, [out]; ld.param.u64 %d3, [at];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;
  mbarrier.init.shared.b64 [bar], 1;
  {reads}
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {told or nbytes};
  mov.b64 %d4, map; mov.u32 %r2, tile; mov.u32 %r3, bar;
  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%d4, {{{coords}}}], [%r3];
WAIT:
  bar.sync 0;
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
  shl.b32 %r5, %r1, 2;
LOOP:
  setp.ge.u32 %p3, %r5, {nbytes}; @%p3 bra END;
  mov.u32 %r6, tile; add.u32 %r6, %r6, %r5;
  ld.shared.b32 %r7, [%r6];
  cvt.u64.u32 %d5, %r5; add.u64 %d6, %d1, %d5; st.global.b32 [%d6], %r7;
  add.u32 %r5, %r5, 128; bra LOOP;
END: ret;
}}
"""


def store_kernel(op):
    return f"""{HEAD}
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 source, .param .u64 at)
{{
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<9>;
  .shared .align 1024 .b8 tile[1024];
  ld.param.u64 %d1, [source]; ld.param.u64 %d3, [at];
  mov.u32 %r1, %tid.x; shl.b32 %r5, %r1, 2;
LOOP:
  setp.ge.u32 %p3, %r5, 1024; @%p3 bra DONE;
  cvt.u64.u32 %d5, %r5; add.u64 %d6, %d1, %d5; ld.global.b32 %r7, [%d6];
  mov.u32 %r6, tile; add.u32 %r6, %r6, %r5; st.shared.b32 [%r6], %r7;
  add.u32 %r5, %r5, 128; bra LOOP;
DONE:
  fence.proxy.async; bar.sync 0;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
  ld.global.s32 %r10, [%d3]; ld.global.s32 %r11, [%d3+4];
  mov.b64 %d4, map; mov.u32 %r2, tile;
  {op} [%d4, {{%r10, %r11}}], [%r2];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END: ret;
}}
"""


def run(text, made, out, at, arrays, **options):
    at = np.array(at, np.int32)
    buffers = [Buffer(a.ctypes.data, a.nbytes, True, "array") for a in (*arrays, out, at)]
    params = [made, out.ctypes.data.to_bytes(8, "little"), at.ctypes.data.to_bytes(8, "little")]
    launch(load(text), "k", 1, 32, params, buffers=buffers, options=Options(**options))


def padded(tensor, start, box):
    """The box at `start`, mode 0 last in the array; zeros outside."""
    out = np.zeros(box[::-1], tensor.dtype)
    for index in np.ndindex(out.shape):
        place = tuple(s + i for s, i in zip(start[::-1], index, strict=True))
        if all(0 <= p < n for p, n in zip(place, tensor.shape, strict=True)):
            out[index] = tensor[place]
    return out


@pytest.mark.parametrize(
    ("shape", "box", "start"),
    [
        ((100,), (64,), (0,)),
        ((100,), (64,), (80,)),
        ((100,), (64,), (-32,)),
        ((20, 72), (32, 8), (0, 0)),
        ((20, 72), (32, 8), (64, 16)),
        ((20, 72), (32, 8), (-4, -3)),
        ((20, 72), (32, 8), (500, 2)),
        ((5, 6, 16), (8, 3, 2), (4, 4, 4)),
        ((3, 2, 5, 8), (8, 2, 2, 2), (0, 4, 1, 1)),
        ((2, 3, 2, 5, 6), (4, 2, 2, 2, 2), (4, 1, 1, 2, 1)),
    ],
)
def test_boxes_of_every_rank_inside_and_outside(shape, box, start):
    tensor = np.zeros((*shape[:-1], -(-shape[-1] // 4) * 4), np.float32)[..., : shape[-1]]
    tensor[...] = np.arange(np.prod(shape)).reshape(shape) + 1
    strides = tensor.strides[::-1]
    made = tensormap.encode("f32", tensor.ctypes.data, shape[::-1], strides[1:], box)
    out = np.full(box[::-1], -1, np.float32)
    run(load_kernel(len(shape), out.nbytes), made, out, start, [tensor if tensor.base is None else tensor.base])
    np.testing.assert_array_equal(out, padded(tensor, start, box))


@pytest.mark.parametrize("span", [16, 32, 64, 128])
def test_swizzles_move_chunks_of_16_bytes(span):
    columns = max(span, 32) // 2
    tensor = np.arange(16 * columns, dtype=np.uint16).reshape(16, columns)
    made = tensormap.encode("u16", tensor.ctypes.data, (columns, 16), (2 * columns,), (columns, 16), swizzle=span)
    out = np.zeros_like(tensor)
    run(load_kernel(2, out.nbytes), made, out, (0, 0), [tensor])
    chunks = tensor.reshape(-1, 8)
    wanted = np.zeros_like(chunks)
    for number, chunk in enumerate(chunks):
        row_of_128 = number // 8
        wanted[number ^ (row_of_128 % (span // 16))] = chunk
    np.testing.assert_array_equal(out.reshape(-1, 8), wanted)


@pytest.mark.parametrize(("columns", "span", "rows"), [(48, 64, 6), (16, 32, 9), (64, 128, 12), (112, 128, 5)])
def test_a_box_narrower_than_its_swizzle_leaves_gaps(columns, span, rows):
    """Each row of the box starts at a multiple of the span; what is behind it stays as it was."""
    tensor = np.arange(rows * columns, dtype=np.int64).astype(np.uint8).reshape(rows, columns) | 1
    made = tensormap.encode("u8", tensor.ctypes.data, (columns, rows), (columns,), (columns, rows), swizzle=span)
    out = np.full((rows, span), 255, np.uint8)
    run(load_kernel(2, out.nbytes, tensor.nbytes), made, out, (0, 0), [tensor], checks=False)
    wanted = np.zeros((rows * span // 16, 16), np.uint8)
    for row in range(rows):
        for chunk in range(columns // 16):
            line = row * span // 128
            place = row * span // 16 + (chunk ^ (line % (span // 16)))
            wanted[place] = tensor[row, 16 * chunk : 16 * chunk + 16]
    np.testing.assert_array_equal(out.reshape(-1, 16), wanted)
    with pytest.raises(EmulationError, match="never written"):
        run(load_kernel(2, out.nbytes, tensor.nbytes), made, out, (0, 0), [tensor])


def test_a_narrow_box_is_stored_from_rows_with_gaps():
    tile = np.arange(1024, dtype=np.int64).astype(np.uint8).reshape(16, 64)
    tensor = np.zeros((6, 48), np.uint8)
    made = tensormap.encode("u8", tensor.ctypes.data, (48, 6), (48,), (48, 6), swizzle=64)
    run(store_kernel(STORE), made, tile, (0, 0), [tensor])
    chunks = tile.reshape(16, 4, 16)
    for row in range(6):
        wanted = [chunks[row, chunk ^ (row // 2 % 4)] for chunk in range(3)]
        np.testing.assert_array_equal(tensor[row], np.concatenate(wanted))


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.uint16), ("bf16", np.uint16), ("f32", np.uint32),
                                             ("tf32", np.uint32), ("f64", np.uint64)])  # fmt: skip
def test_outside_is_filled_with_nan_where_asked(type, dtype):
    """Every two bytes are 0x7ff7, in all types."""
    tensor = np.zeros((4, 8), dtype)
    made = tensormap.encode(type, tensor.ctypes.data, (8, 4), (tensor.strides[0],), (8, 4), fill_nan=True)
    out = np.zeros((4, 8), dtype)
    run(load_kernel(2, out.nbytes), made, out, (0, 2), [tensor])
    assert (out[:2] == 0).all() and (out[2:].view(np.uint16) == 0x7FF7).all()


def test_loads_of_tf32_round_and_stores_do_not():
    ties = [1 + 2**-11, 1 + 3 * 2**-11, -(2.0**-126) - 2.0**-137]
    values = [1.0, -2.5, *ties, 1 + 2**-11 + 2**-20, 2.0**-149, np.inf, -np.inf, 2.0**100]
    tensor = np.zeros(32, np.float32)
    tensor[: len(values)] = values
    tensor[10:12].view(np.uint32)[:] = 0x7F800001, 0xFFC12345
    out = np.zeros(32, np.float32)
    made = tensormap.encode("tf32", tensor.ctypes.data, (32,), (), (32,))
    run(load_kernel(1, 128), made, out, (0,), [tensor])
    finite = np.isfinite(tensor)
    exact = tensor[finite].astype(np.float64)
    grid = np.maximum(2.0**-136, 2.0 ** (np.frexp(exact)[1] - 11))
    nearest = np.round(exact / grid) * grid  # ties to even
    np.testing.assert_array_equal(out[finite], nearest.astype(np.float32))
    assert out[7] == np.inf and out[8] == -np.inf and (out[10:12].view(np.uint32) == 0x7FFFE000).all()
    tile, back = np.resize(tensor, 256), np.zeros(256, np.float32)
    made = tensormap.encode("tf32", back.ctypes.data, (32, 8), (128,), (32, 8))
    run(store_kernel(STORE), made, tile, (0, 0), [back])
    np.testing.assert_array_equal(back.view(np.uint32), tile.view(np.uint32))


STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group"


@pytest.mark.parametrize(
    ("op", "combine"),
    [(STORE, lambda a, b: b), (REDUCE.format("add"), np.add), (REDUCE.format("max"), np.maximum)],
)
def test_stores_and_reductions_leave_out_what_lies_outside(op, combine):
    rng = np.random.default_rng(4)
    tensor = rng.integers(-50, 50, (20, 40)).astype(np.int32)
    tile = rng.integers(-50, 50, (8, 32)).astype(np.int32)
    made = tensormap.encode("s32", tensor.ctypes.data, (40, 20), (160,), (32, 8))
    wanted = tensor.copy()
    wanted[15:20, 20:40] = combine(tensor[15:20, 20:40], tile[:5, :20])
    run(store_kernel(op), made, tile, (20, 15), [tensor])
    np.testing.assert_array_equal(tensor, wanted)


@pytest.mark.parametrize(("type", "kept"), [("f32", True), ("tf32", True), ("f32ftz", False), ("tf32ftz", False)])
def test_sums_of_subnormal_numbers(type, kept):
    tensor, tile = np.full((8, 32), 2.0**-140, np.float32), np.full((8, 32), 2.0**-141, np.float32)
    made = tensormap.encode(type, tensor.ctypes.data, (32, 8), (128,), (32, 8))
    run(store_kernel(REDUCE.format("add")), made, tile, (0, 0), [tensor])
    assert (tensor == (np.float32(2.0**-140 + 2.0**-141) if kept else 0)).all()


@pytest.mark.parametrize(("op", "type"), [("add", "s64"), ("xor", "s64"), ("inc", "s32"), ("and", "f32")])
def test_reductions_that_a_gpu_does_not_have(op, type):
    tensor, tile = np.zeros((8, 32), np.uint64), np.zeros((8, 32), np.uint32)
    made = tensormap.encode(type, tensor.ctypes.data, (16, 8), (128,), (16, 8))
    with pytest.raises(EmulationError, match=f"There is no tensor reduction .{op} of {type}") as caught:
        run(store_kernel(REDUCE.format(op)), made, tile, (0, 0), [tensor])
    assert f"types of .{op}: u32" in str(caught.value)


@pytest.mark.parametrize("x", [1, 2, -1, 1001])
def test_a_start_within_16_bytes_of_mode_0_is_refused(x):
    tensor, tile = np.zeros((8, 32), np.float32), np.zeros((8, 32), np.float32)
    made = tensormap.encode("f32", tensor.ctypes.data, (32, 8), (128,), (32, 8))
    for text in (load_kernel(2, 1024), store_kernel(STORE), store_kernel(REDUCE.format("add"))):
        with pytest.raises(EmulationError, match="starts at a multiple of 16 bytes along mode 0") as caught:
            run(text, made, tile, (x, 0), [tensor])
        assert f"[{x}, 0]" in str(caught.value)


def test_a_store_without_a_proxy_fence_is_a_race():
    tensor, tile = np.zeros((20, 40), np.int32), np.ones((8, 32), np.int32)
    made = tensormap.encode("s32", tensor.ctypes.data, (40, 20), (160,), (32, 8))
    with pytest.raises(EmulationError, match="Race condition in shared memory access across proxies"):
        run(store_kernel(STORE).replace("fence.proxy.async;", ""), made, tile, (0, 0), [tensor])


OVERWRITE = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"


def test_overwriting_the_source_of_a_store_before_it_was_read():
    tile = np.ones((8, 32), np.int32)
    early = store_kernel(STORE).replace(OVERWRITE, f"mov.u32 %r12, 0; st.shared.b32 [tile], %r12; {OVERWRITE}")
    waited = store_kernel(STORE).replace(OVERWRITE, f"{OVERWRITE} mov.u32 %r12, 0; st.shared.b32 [tile], %r12;")
    for text, seed, checks, first in (
        (early, 0, False, 1),
        (early, 1, False, 0),
        (waited, 1, False, 1),
        (waited, 1, True, 1),
    ):
        tensor = np.zeros((20, 40), np.int32)
        made = tensormap.encode("s32", tensor.ctypes.data, (40, 20), (160,), (32, 8))
        run(text, made, tile, (0, 0), [tensor], seed=seed, checks=checks)
        assert tensor[0, 0] == first and tensor[0, 1] == 1
    with pytest.raises(EmulationError, match="Race condition in shared memory access") as caught:
        run(early, made, tile, (0, 0), [tensor])
    assert "asynchronous operation" in str(caught.value)


def test_an_odd_seed_lets_copies_land_as_late_as_they_may():
    case = next(case for case in faults.CASES if case.name == "copy_ring")
    unwaited = next(m for m in faults.mutants(case) if "without cp.async.wait_group" in m.what)
    assert faults.run(case, unwaited.text, False, 0) == ""
    assert faults.run(case, unwaited.text, False, 1).startswith("argument 1 is wrong")
    assert faults.run(case, faults.PTX, False, 1) == ""


def test_reading_before_the_copy_has_come_is_reported():
    tensor = np.ones((4, 8), np.float32)
    made = tensormap.encode("f32", tensor.ctypes.data, (8, 4), (32,), (8, 4))
    out = np.zeros((4, 8), np.float32)
    text = load_kernel(2, out.nbytes).replace("@!%p2 bra W;", "")
    for seed in (0, 1):
        with pytest.raises(EmulationError, match=r"race|Race|never written") as caught:
            run(
                text.replace("W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;", ""),
                made,
                out,
                (0, 0),
                [tensor],
                seed=seed,
            )
        assert "asynchronous operation" in str(caught.value) or "never written" in str(caught.value)


def test_a_map_of_the_driver_is_refused():
    out = np.zeros((4, 8), np.float32)
    with pytest.raises(EmulationError, match="not made for the emulator") as caught:
        run(load_kernel(2, out.nbytes), bytes(range(128)), out, (0, 0), [])
    assert "cuTensorMapEncodeTiled" in str(caught.value)


def test_a_map_beyond_its_buffer_is_out_of_bounds():
    tensor = np.zeros((4, 8), np.float32)
    made = tensormap.encode("f32", tensor.ctypes.data, (8, 400), (32,), (8, 4))
    out = np.zeros((4, 8), np.float32)
    with pytest.raises(EmulationError, match="Out-of-bounds read of global memory") as caught:
        run(load_kernel(2, out.nbytes), made, out, (0, 200), [tensor])
    assert "the tensor map spans more than the buffer" in str(caught.value)


@pytest.mark.parametrize("start", [(-4, 0), (0, -1), (-4, -1)])
def test_a_store_before_the_tensor_is_refused(start):
    tensor, tile = np.zeros((8, 32), np.float32), np.zeros((8, 32), np.float32)
    made = tensormap.encode("f32", tensor.ctypes.data, (32, 8), (128,), (32, 8))
    for op in (STORE, REDUCE.format("add")):
        with pytest.raises(EmulationError, match="A tensor store starts at a negative coordinate"):
            run(store_kernel(op), made, tile, start, [tensor])


def test_a_store_writes_whole_16_bytes_of_mode_0():
    """And so what is behind an extent of 101 bytes, up to the next multiple of 16, from the box."""
    tile = np.arange(1024, dtype=np.int64).astype(np.uint8) | 1
    tensor = np.zeros((6, 128), np.uint8)
    made = tensormap.encode("u8", tensor.ctypes.data, (101, 6), (128,), (64, 4))
    wanted = tensor.copy()
    wanted[2:6, 64:112] = tile[:256].reshape(4, 64)[:, :48]
    run(store_kernel(STORE), made, tile, (64, 2), [tensor])
    np.testing.assert_array_equal(tensor, wanted)
    exact = np.zeros(5 * 128 + 101, np.uint8)
    made = tensormap.encode("u8", exact.ctypes.data, (101, 6), (128,), (64, 4))
    with pytest.raises(EmulationError, match="Out-of-bounds write of global memory") as caught:
        run(store_kernel(STORE), made, tile, (64, 2), [exact])
    assert "whole 16 bytes" in str(caught.value)


def test_a_prefetch_has_the_errors_of_a_load_and_no_effect():
    prefetch = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d4, {%r10, %r11}];"
    text = load_kernel(2, 1024).replace("cp.async.bulk.tensor.2d", f"{prefetch} cp.async.bulk.tensor.2d")
    tensor, out = np.ones((8, 32), np.float32), np.zeros((8, 32), np.float32)
    made = tensormap.encode("f32", tensor.ctypes.data, (32, 8), (128,), (32, 8))
    run(text, made, out, (4, 0), [tensor])
    assert out[0, 0] == 1 and out[0, 31] == 0
    with pytest.raises(EmulationError, match="starts at a multiple of 16 bytes along mode 0") as caught:
        run(text, made, out, (2, 0), [tensor])
    assert "prefetch" in str(caught.value)


def test_encoding_round_trip():
    made = tensormap.encode("bf16", 1 << 40, (100, 50, 7), (208, 16 * 700), (64, 8, 2), (1, 2, 1), swizzle=128)
    assert len(made) == 128
    back = tensormap.decode(made)
    assert back == tensormap.TensorMap("bf16", 1 << 40, (100, 50, 7), (208, 11200), (64, 8, 2), (1, 2, 1), 128, False)
    assert back.nbytes == 64 * 4 * 2 * 2 and tensormap.decode(bytes(128)) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": 8}, "the address must be a multiple of 16"),
        ({"strides": (100,)}, "strides are multiples of 16"),
        ({"box": (257, 1)}, "box sizes lie between 1 and 256"),
        ({"box": (3, 1)}, "a multiple of 16 bytes along mode 0"),
        ({"swizzle": 128, "box": (64, 1)}, "the box must fit the swizzle"),
        ({"type": "s32", "fill_nan": True}, "integers are filled with zeros"),
        ({"interleave": 16}, "an interleaved map has 3 to 5 modes"),
        ({"interleave": 8}, "the interleave is 0"),
        ({"type": "f8"}, "no element type 'f8'"),
        ({"strides": ()}, "one stride fewer"),
    ],
)
def test_arguments_that_the_driver_refuses(change, message):
    given = {"type": "f32", "address": 1024, "extents": (64, 64), "strides": (256,), "box": (32, 8), **change}
    with pytest.raises(ArgumentError, match=message):
        tensormap.encode(**given)


@pytest.mark.parametrize(
    ("box", "most", "more"),
    [
        ((256,), 228, {}),
        ((256, 16), 14, {}),
        ((256, 256), 7, {"element_strides": (1, 8, 1)}),
        ((256, 1), 114, {"type": "f64"}),
        ((16, 256), 57, {"type": "u8", "swizzle": 128}),
        ((256, 256), 3, {"type": "u8", "interleave": 16}),
    ],
)
def test_a_box_has_at_most_228_kilobytes(box, most, more):
    """As the driver counts them: the greatest last sizes that it takes were found by trying."""
    rank = len(box) + 1
    given = {"type": "f32", "address": 1024, "extents": (4096,) * rank, "strides": (16384, 1 << 20)[: rank - 1], **more}
    tensormap.encode(**given, box=(*box, most))
    with pytest.raises(ArgumentError, match=r"no more than 233472 bytes"):
        tensormap.encode(**given, box=(*box, most + 1))
