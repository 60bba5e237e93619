"""Races of bulk and tensor copies on global memory, and which bytes of a partly written box matter."""

import numpy as np
import pytest

from tests.emu.test_tensor_copies import HEAD
from tilewright.base.errors import EmulationError
from tilewright.targets.emu import Buffer, Options, launch, load, tensormap

LOADS = {
    "tensor": "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[tile], [%d4, {%r20, %r21}], [bar];",
    "bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d5], 1024, [bar];",
}
STORES = {
    "tensor": "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d4, {%r20, %r21}], [tile];",
    "bulk": "cp.async.bulk.global.shared::cta.bulk_group [%d5], [tile], 1024;",
}
ADDS = {
    "tensor": "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%d4, {%r20, %r21}], [tile];",
    "bulk": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d5], [tile], 1024;",
}
WAIT = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
FILL = "mov.f32 %f1, 0f3f800000; st.shared.f32 [%r4], %f1; fence.proxy.async; bar.sync 0;"


def doubled(text):
    """A text that `format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def kernel(body):
    """256 threads; the tile is 8 rows of 32 floats. %r1: thread, %r2: block, %r4: its word of the tile, %d6: that
    word's place in the array when the tile's start is %d5 (row 8 * block); %p1: not thread 0."""
    return f"""{HEAD}
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 flag)
{{
  .reg .pred %p<6>; .reg .b32 %r<30>; .reg .b64 %d<9>; .reg .f32 %f<4>;
  .shared .align 1024 .b8 tile[1024];
  .shared .align 8 .b64 bar;
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [flag]; mov.b64 %d4, map;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r1, 0;
  shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
  mul.wide.u32 %d5, %r2, 1024; add.u64 %d5, %d5, %d1; cvt.u64.u32 %d6, %r3; add.u64 %d6, %d6, %d5;
  mov.u32 %r20, 0; shl.b32 %r21, %r2, 3;
  @%p1 bra READY; mbarrier.init.shared.b64 [bar], 1;
READY:
  bar.sync 0;
  {body}
  ret;
}}
"""


def run(body, grid=1, rows=16, swizzle=16, array=None, **options):
    """Runs a body on an array of `rows` x 32 floats; the array."""
    array = np.zeros((rows, 32), np.float32) if array is None else array
    flag = np.zeros(64, np.uint32)
    made = tensormap.encode("f32", array.ctypes.data, (32, rows), (128,), (32, 8), swizzle=swizzle)
    buffers = [Buffer(a.ctypes.data, a.nbytes, True, "array") for a in (array, flag)]
    params = [made, array.ctypes.data.to_bytes(8, "little"), flag.ctypes.data.to_bytes(8, "little")]
    launch(load(kernel(body)), "k", grid, 256, params, buffers=buffers, options=Options(**options))
    return array


def race(body, **options):
    with pytest.raises(EmulationError) as caught:
        run(body, **options)
    assert caught.value.kind == "race"
    assert "global memory access" in caught.value.message
    return caught.value


LOAD = """
  @%p1 bra W; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024; {load}
W: {wait}
"""
TRY = "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;"
TWICE = "ld.shared.f32 %f1, [%r4]; add.f32 %f1, %f1, %f1; st.global.f32 [%d6], %f1;"


@pytest.mark.parametrize("how", LOADS)
def test_what_was_loaded_may_be_overwritten_once_it_has_come(how):
    """The thread that issues the copy has arrived before: only the mbarrier's phase orders the read."""
    array = np.arange(512, dtype=np.float32).reshape(16, 32)
    run(LOAD.format(load=LOADS[how], wait=TRY) + TWICE, grid=2, array=array)
    np.testing.assert_array_equal(array.reshape(-1), 2 * np.arange(512))
    for seed in (0, 1):
        early = LOAD.format(load=LOADS[how], wait="") + "mov.f32 %f1, 0f00000000; st.global.f32 [%d6], %f1;"
        error = race(early, seed=seed)
        assert "asynchronous operation" in str(error) or "cp.async.bulk" in str(error)


@pytest.mark.parametrize("how", LOADS)
def test_a_load_of_what_another_thread_has_written(how):
    write = "mov.f32 %f1, 0f3f800000; st.global.f32 [%d6], %f1; fence.proxy.async;"
    load_it = LOAD.format(load=LOADS[how], wait=TRY)
    assert (run(f"{write} bar.sync 0; {load_it} {TWICE}")[:8] == 2).all()
    race(write + load_it + "ld.shared.f32 %f1, [%r4];")


READ = "ld.global.f32 %f1, [%d6]; st.shared.f32 [%r4], %f1;"


@pytest.mark.parametrize("how", STORES)
def test_what_was_stored_may_be_read_once_its_group_was_waited_for(how):
    store = f"{FILL} @%p1 bra D; {doubled(STORES[how])} {{}} D: bar.sync 0;"
    assert run(store.format(WAIT) + READ).sum() == 256
    for wait in ("cp.async.bulk.commit_group;", WAIT.replace("wait_group", "wait_group.read")):
        error = race(store.format(wait) + "ld.global.f32 %f1, [%d6]; st.global.f32 [%d2], %f1;")
        assert "an asynchronous operation that was not waited for" in str(error)
    own = store.format("cp.async.bulk.commit_group; ld.global.f32 %f2, [%d5];")
    assert race(own).hint.startswith("wait for the asynchronous operation")


@pytest.mark.parametrize("how", STORES)
def test_two_blocks_store_to_one_place(how):
    store = f"{FILL} @%p1 bra D; {{}} {doubled(STORES[how])} {WAIT} D:"
    assert run(store.format(""), grid=2).sum() == 512
    race(store.format("mov.u32 %r21, 0; mov.u64 %d5, %d1;"), grid=2)


def test_boxes_that_overlap_outside_the_tensor_only():
    store = f"{FILL} @%p1 bra D; add.u32 %r21, %r21, 4; {STORES['tensor']} {WAIT} D:"
    assert run(store, grid=2, rows=12).sum() == 256  # block 1 stores nothing
    race(store.replace("add.u32 %r21, %r21, 4;", "shl.b32 %r21, %r2, 2;"), grid=2, rows=12)


@pytest.mark.parametrize("how", ADDS)
def test_reductions_stand_beside_each_other_and_beside_atomics(how):
    one_place = f"{FILL} @%p1 bra D; mov.u32 %r21, 0; mov.u64 %d5, %d1; {ADDS[how]} {WAIT} D:"
    atomic = "cvt.u64.u32 %d6, %r3; add.u64 %d6, %d6, %d1; red.global.add.f32 [%d6], %f1;"
    assert run(one_place, grid=4).sum() == 4 * 256
    assert (run(one_place + atomic, grid=4)[:8] == 8).all()
    race(one_place + atomic.replace("red.global.add.f32", "st.global.f32"), grid=4)


def test_a_flag_hands_a_stored_tile_to_another_block():
    """The other block's loads are ordered by the wait, the fence and the flag; without the wait they are not."""
    store = f"{FILL} @%p1 bra E; {doubled(STORES['tensor'])} {{}} fence.acq_rel.gpu; mov.u32 %r9, 1; " \
        "st.relaxed.gpu.global.u32 [%d2], %r9; bra E;"  # fmt: skip
    wait = "V: ld.relaxed.gpu.global.u32 %r9, [%d2]; setp.eq.u32 %p3, %r9, 0; @%p3 bra V; fence.acq_rel.gpu;"
    body = f"setp.ne.u32 %p4, %r2, 0; @%p4 bra O; {store} O: {wait} ld.global.f32 %f1, [%d6+-1024]; " \
        "st.global.f32 [%d6], %f1; E:"  # fmt: skip
    assert run(body.format(WAIT), grid=2).sum() == 512
    race(body.format("cp.async.bulk.commit_group;"), grid=2)


# ---- partly written boxes -------------------------------------------------------------------------------------


PARTLY = "mov.f32 %f1, 0f3f800000; setp.lt.u32 %p3, %r1, {first}; setp.ge.u32 %p4, %r1, {last}; " \
    "or.pred %p3, %p3, %p4; @%p3 bra S; st.shared.f32 [%r4], %f1; S: fence.proxy.async; bar.sync 0; @%p1 bra D;" \
    "mov.u32 %r20, {x}; mov.u32 %r21, {y}; " + doubled(STORES["tensor"]) + WAIT + " D:"  # fmt: skip


def unwritten(**where):
    with pytest.raises(EmulationError) as caught:
        run(PARTLY.format(**where), rows=16)
    assert caught.value.kind == "uninitialised"
    assert "value stored to global memory" in caught.value.message


def test_unwritten_bytes_matter_where_they_reach_the_tensor():
    """Of a box of 8 rows at row 12 of 16 the first four are stored: 128 words."""
    inside = {"first": 0, "last": 128, "x": 0, "y": 12}
    assert run(PARTLY.format(**inside), rows=16).sum() == 128
    unwritten(**{**inside, "last": 127})
    unwritten(**{**inside, "first": 1})
    unwritten(**{**inside, "y": 11})
    unwritten(**{**inside, "y": 0})
    assert run(PARTLY.format(first=0, last=0, x=0, y=16), rows=16).sum() == 0  # all outside


def test_unwritten_columns():
    """At column 16 only the left half of each row is stored; the right halves need no values."""
    left = "mov.f32 %f1, 0f3f800000; and.b32 %r9, %r1, 31; setp.ge.u32 %p3, %r9, {}; @%p3 bra S;" \
        "st.shared.f32 [%r4], %f1; S: fence.proxy.async; bar.sync 0; @%p1 bra D; mov.u32 %r20, 16;" \
        + doubled(STORES["tensor"]) + WAIT + " D:"  # fmt: skip
    assert run(left.format(16)).sum() == 128
    with pytest.raises(EmulationError, match="never written"):
        run(left.format(15))


def test_unwritten_chunks_of_a_swizzled_box():
    """With a swizzle of 128 bytes, chunk c of row r lies at chunk c ^ r: row 0 of the tile holds row 0 of the box.

    At column 16 the chunks 0 to 3 of each row are stored; of row 1, these lie at 1, 0, 3, 2.
    """
    body = "mov.f32 %f1, 0f3f800000; shr.u32 %r9, %r1, 2; shr.u32 %r10, %r1, 5; and.b32 %r9, %r9, 7;" \
        "and.b32 %r10, %r10, 7; xor.b32 %r9, %r9, %r10; setp.ge.u32 %p3, %r9, {}; @%p3 bra S;" \
        "st.shared.f32 [%r4], %f1; S: fence.proxy.async; bar.sync 0; @%p1 bra D; mov.u32 %r20, 16;" \
        + doubled(STORES["tensor"]) + WAIT + " D:"  # fmt: skip
    assert run(body.format(4), swizzle=128).sum() == 128
    with pytest.raises(EmulationError, match="never written"):
        run(body.format(3), swizzle=128)
    with pytest.raises(EmulationError, match="never written"):
        run(body.replace("xor.b32 %r9, %r9, %r10;", "").format(4), swizzle=128)
