"""Copies of boxes by tensor maps (TMA), on the emulator with all checks."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import CompileError, EmulationError, Int64, LaunchError
from tilewright.cute.nvgpu import cpasync

arch = cute.arch
ALL = pytest.mark.parametrize


def _shared_layout(dtype, tile, major, swizzle):
    """A layout of one tile that is contiguous along mode `major`, in blocks of `swizzle` bytes (0: none)."""
    inner = tile[major] if not swizzle else min(tile[major], swizzle * 8 // dtype.width)
    atom = cute.make_layout((1, inner) if major else (inner, 1), stride=(inner, 1) if major else (1, inner))
    order = (0, 1) if major else (1, 0)
    outer = cute.tile_to_shape(atom, tile, order)
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
    return cute.make_composed_layout(cute.make_swizzle(bits, 4, 3), 0, outer)


class Copy:
    """Tiles of `a` through shared memory to the same place in `b`."""

    def __init__(self, tile, major=1, swizzle=128, store=None):
        self.tile, self.major, self.swizzle = tile, major, swizzle
        self.store = store or cpasync.CopyBulkTensorTileS2GOp()

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor):
        layout = _shared_layout(a.element_type, self.tile, self.major, self.swizzle)
        load, ca = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, self.tile)
        store, cb = cpasync.make_tiled_tma_atom(self.store, b, layout, self.tile)
        tiles = cute.ceil_div(a.shape, (*self.tile, *(1,) * (len(a.shape) - 2)))
        grid = (tiles[0], tiles[1], tiles[2] if cutlass.const_expr(len(tiles) == 3) else 1)
        self.kernel(load, ca, store, cb, layout).launch(grid=grid, block=(64, 1, 1))

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, ca: cute.Tensor, store: cute.CopyAtom, cb: cute.Tensor,
               layout: cutlass.Constexpr):  # fmt: skip
        x, y, z = arch.block_idx()
        at = (x, y, z) if cutlass.const_expr(len(ca.shape) == 3) else (x, y)
        tiler = (*self.tile, *(1,) * (len(ca.shape) - 2))
        allocator = cutlass.utils.SmemAllocator()
        barrier = allocator.allocate_array(Int64, 1)
        tile = allocator.allocate_tensor(ca.element_type, layout.outer, 1024, layout.inner)
        warp = arch.make_warp_uniform(arch.warp_idx())
        if warp == 0:
            cpasync.prefetch_descriptor(load)
            with arch.elect_one():
                arch.mbarrier_init(barrier, 1)
            arch.mbarrier_init_fence()
        arch.sync_threads()
        whole = cute.group_modes(tile, 0, 2)
        parts = [cute.group_modes(cute.local_tile(c, tiler, at), 0, len(tiler)) for c in (ca, cb)]
        inside, loaded = cpasync.tma_partition(load, 0, cute.make_layout(1), whole, parts[0])
        _, stored = cpasync.tma_partition(store, 0, cute.make_layout(1), whole, parts[1])
        if warp == 0:
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(ca.element_type, layout))
            cute.copy(load, loaded, inside, tma_bar_ptr=barrier)
        arch.mbarrier_wait(barrier, 0)
        if warp == 0:
            cute.copy(store, inside, stored)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0, read=True)


def _numbers(shape, dtype):
    return np.random.default_rng(7).integers(-8, 8, shape).astype(dtype)


@ALL(
    ("dtype", "tile", "major", "swizzle"),
    (
        (np.float16, (64, 64), 1, 128), (np.float16, (64, 64), 0, 128), (np.float16, (32, 128), 1, 128),
        (np.float32, (64, 32), 1, 128), (np.float32, (64, 16), 1, 64), (ml_dtypes.bfloat16, (128, 16), 1, 32),
        (np.int8, (64, 128), 1, 128), (np.int32, (32, 64), 0, 0), (np.float64, (8, 16), 1, 0),
        (ml_dtypes.float8_e4m3fn, (64, 64), 1, 64),
    ),
)  # fmt: skip
def test_tiles_go_through_shared_memory(dtype, tile, major, swizzle):
    """Rows and columns that are no multiple of the tile: what lies outside is neither read nor written."""
    a = _numbers((100, 160) if major else (160, 100), dtype)
    if not major:
        a = np.asfortranarray(a)
    b = np.zeros_like(a)
    cute.compile(Copy(tile, major, swizzle), a, b)(a, b)
    assert a.tobytes() == b.tobytes()


def test_a_third_mode_is_a_coordinate():
    a = _numbers((3, 64, 72), np.float16).transpose(1, 2, 0)
    b = np.zeros((3, 64, 72), np.float16).transpose(1, 2, 0)
    cute.compile(Copy((64, 64)), a, b)(a, b)
    np.testing.assert_array_equal(b, a)


def test_static_layouts_have_tensor_maps_too():
    a = _numbers((64, 128), np.float16)
    b = np.zeros_like(a)
    arguments = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b)]
    cute.compile(Copy((64, 64)), *arguments)(*arguments)
    np.testing.assert_array_equal(b, a)


def test_a_store_may_reduce():
    a, b = _numbers((64, 64), np.float32), _numbers((64, 64), np.float32)
    expected = a.astype(np.float64) + b
    cute.compile(Copy((64, 32), store=cpasync.CopyReduceBulkTensorTileS2GOp()), a, b)(a, b)
    np.testing.assert_array_equal(b, expected)


BLOCKS = 2


@cute.kernel
def takes_half(load: cute.CopyAtom, source: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr):
    """Each block of the cluster copies half of the tile to both."""
    thread, rank = arch.thread_idx()[0], arch.make_warp_uniform(arch.block_idx_in_cluster())
    allocator = cutlass.utils.SmemAllocator()
    barrier = allocator.allocate_array(Int64, 1)
    tile = allocator.allocate_tensor(source.element_type, layout.outer, 1024, layout.inner)
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(source.element_type, layout))
    arch.cluster_arrive()
    arch.cluster_wait()
    blocks = cute.make_layout(BLOCKS)
    groups = [cute.group_modes(tensor, 0, 2) for tensor in (tile, cute.local_tile(source, (64, 64), (0, 0)))]
    inside, outside = cpasync.tma_partition(load, rank, blocks, *groups)
    if arch.make_warp_uniform(arch.warp_idx()) == 0:
        cute.copy(load, outside, inside, tma_bar_ptr=barrier, mcast_mask=cutlass.Int16(3))
    arch.mbarrier_wait(barrier, 0)
    for row in range(64):
        out[row, thread, rank] = tile[row, thread]
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.jit
def launch_halves(a: cute.Tensor, out: cute.Tensor):
    layout = _shared_layout(a.element_type, (64, 64), 1, 128)
    op = cpasync.CopyBulkTensorTileG2SMulticastOp()
    load, source = cpasync.make_tiled_tma_atom(op, a, layout, (64, 64), num_multicast=BLOCKS)
    takes_half(load, source, out, layout).launch(grid=(BLOCKS, 1, 1), block=(64, 1, 1), cluster=(BLOCKS, 1, 1))


def test_blocks_of_a_cluster_share_a_tile():
    a, out = _numbers((64, 64), np.float16), np.zeros((64, 64, BLOCKS), np.float16)
    cute.compile(launch_halves, a, out)(a, out)
    for rank in range(BLOCKS):
        np.testing.assert_array_equal(out[..., rank], a)


def test_copies_are_operations_over_whole_tensors():
    a = np.zeros((64, 64), np.float16)
    stages = cute.compile(Copy((64, 64)), a, a).stages
    assert stages["cute"].count('"cute.make_tensor_map"') == 2
    assert stages["cute"].count('"cute.tma_load"') == stages["cute"].count('"cute.tma_store"') == 1
    assert '!cute.tensor_map<f16, "64,64", 128 : i32>' in stages["cute"]
    assert stages["ptx"].count(".param .align 64 .b8") == 2


# What cannot be.


def _compile(function, *arrays):
    with pytest.raises(CompileError) as caught:
        cute.compile(function, *arrays)
    assert caught.value.location is not None and caught.value.location.file == __file__
    return str(caught.value)


def test_rows_that_are_no_multiple_of_16_bytes_are_refused():
    a = np.zeros((64, 65), np.float16)
    static = [cute.runtime.from_dlpack(a)] * 2
    assert "a stride of the tensor is 65 elements, no multiple of 16 bytes" in _compile(Copy((64, 64)), *static)
    compiled = cute.compile(Copy((64, 64)), a, a)
    with pytest.raises(LaunchError, match=r"a stride of a tensor for TMA is no multiple of 16 bytes\n.*test_tma.py"):
        compiled(a, a)


def test_addresses_that_are_no_multiple_of_16_bytes_are_refused():
    memory = np.zeros(64 * 64 + 8, np.float16)
    at = next(n for n in range(8) if memory[n:].ctypes.data % 16 == 2)
    a = memory[at : at + 64 * 64].reshape(64, 64)
    with pytest.raises(LaunchError, match="the address of a tensor for TMA is no multiple of 16 bytes"):
        cute.compile(Copy((64, 64)), a, a)(a, a)


def test_orders_that_differ_are_refused():
    text = _compile(Copy((64, 64), major=0), *[np.zeros((64, 64), np.float16)] * 2)
    assert "what lies together in shared memory does not lie together in the tensor" in text


@ALL(
    ("make", "message"),
    (
        (lambda a: cpasync.make_tiled_tma_atom(cpasync.CopyG2SOp(), a, (64, 64), (64, 64)), "takes a TMA operation"),
        (
            lambda a: cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, (64, 32), (64, 64)),
            "the tile and the layout of shared memory are of different sizes",
        ),
        (
            lambda a: cpasync.make_tiled_tma_atom(
                cpasync.CopyBulkTensorTileG2SOp(),
                a,
                cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((64, 64), stride=(64, 1))),
                (64, 64),
            ),
            "a swizzle that the copy engine does not know",
        ),
        (
            lambda a: cpasync.make_tiled_tma_atom(
                cpasync.CopyBulkTensorTileG2SOp(), a, cute.make_layout((64, 4), stride=(4, 1)), (64, 4)
            ),
            "the inner extent of a box is a multiple of 16 bytes",
        ),
        (
            lambda a: cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a.shape, (64, 64), (64, 64)),
            "takes a tensor in global memory",
        ),
        (lambda a: cpasync.CopyReduceBulkTensorTileS2GOp("mul"), "a bulk reduction by mul"),
        (
            lambda a: cute.make_copy_atom(cpasync.CopyBulkTensorTileG2SOp(), a.element_type).text,
            "CopyBulkTensorTileG2SOp needs a tensor map",
        ),
    ),
)
def test_wrong_atoms_are_refused(make, message):
    @cute.jit
    def host(a: cute.Tensor):
        make(a)

    assert message in _compile(host, np.zeros((64, 64), np.float16))


@ALL(
    ("use", "message"),
    (
        (lambda load, part, tile, bar: cute.copy(load, part, tile), "needs tma_bar_ptr="),
        (lambda load, part, tile, bar: cute.copy(load, part, tile, tma_bar_ptr=3), "needs tma_bar_ptr="),
        (lambda load, part, tile, bar: cute.copy(load, tile, tile, tma_bar_ptr=bar), "takes the tensor of coordinates"),
        (
            lambda load, part, tile, bar: cute.copy(load, part, tile[None, 0], tma_bar_ptr=bar),
            "takes whole boxes, as many on both sides",
        ),
        (
            lambda load, part, tile, bar: cute.copy(load, part, tile, tma_bar_ptr=bar, hurry=1),
            "a bulk copy has no option 'hurry'",
        ),
        (
            lambda load, part, tile, bar: cute.copy(load, part, tile, tma_bar_ptr=bar, tma_desc_ptr=bar),
            "tma_desc_ptr is no pointer to a tensor map in global memory",
        ),
        (lambda load, part, tile, bar: cpasync.prefetch_descriptor(tile), "prefetch_descriptor takes a TMA atom"),
        (
            lambda load, part, tile, bar: cpasync.tma_partition(load, 0, cute.make_layout(1), tile[None, 0], part),
            "mode 0 of both tensors of tma_partition is one tile",
        ),
        (
            lambda load, part, tile, bar: cpasync.tma_partition(tile, 0, cute.make_layout(1), tile, part),
            "tma_partition takes a TMA atom",
        ),
        (
            lambda load, part, tile, bar: cpasync.make_tiled_tma_atom(load.op, tile, (64, 64), (64, 64)),
            "make_tiled_tma_atom is called in a kernel",
        ),
        (lambda load, part, tile, bar: arch.cp_async_bulk_wait_group(arch.lane_idx()), "takes a number known while"),
    ),
)
def test_wrong_uses_are_refused(use, message):
    @cute.kernel
    def kernel(load: cute.CopyAtom, coordinates: cute.Tensor, layout: cutlass.Constexpr):
        allocator = cutlass.utils.SmemAllocator()
        tile = allocator.allocate_tensor(coordinates.element_type, layout.outer, 1024, layout.inner)
        use(load, coordinates, tile, allocator.allocate_array(Int64, 1))

    @cute.jit
    def host(a: cute.Tensor):
        layout = _shared_layout(a.element_type, (64, 64), 1, 128)
        load, coordinates = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))
        kernel(load, coordinates, layout).launch(grid=1, block=32)

    assert message in _compile(host, cute.runtime.from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16))


def test_a_multicast_needs_its_mask():
    @cute.kernel
    def kernel(load: cute.CopyAtom, coordinates: cute.Tensor, layout: cutlass.Constexpr):
        allocator = cutlass.utils.SmemAllocator()
        tile = allocator.allocate_tensor(coordinates.element_type, layout.outer, 1024, layout.inner)
        cute.copy(load, coordinates, tile, tma_bar_ptr=allocator.allocate_array(Int64, 1))

    @cute.jit
    def host(a: cute.Tensor):
        layout = _shared_layout(a.element_type, (64, 64), 1, 128)
        op = cpasync.CopyBulkTensorTileG2SMulticastOp()
        kernel(*cpasync.make_tiled_tma_atom(op, a, layout, (64, 64)), layout).launch(grid=1, block=32)

    text = _compile(host, cute.runtime.from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16))
    assert "a multicast copy needs mcast_mask=" in text


@cute.kernel
def forgets(
    load: cute.CopyAtom, source: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr, bytes_: cutlass.Constexpr
):
    thread = arch.thread_idx()[0]
    allocator = cutlass.utils.SmemAllocator()
    barrier = allocator.allocate_array(Int64, 1)
    tile = allocator.allocate_tensor(source.element_type, layout.outer, 1024, layout.inner)
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(barrier, bytes_)
    arch.sync_threads()
    groups = [cute.group_modes(tensor, 0, 2) for tensor in (tile, cute.local_tile(source, (64, 64), (0, 0)))]
    inside, outside = cpasync.tma_partition(load, 0, cute.make_layout(1), *groups)
    if arch.make_warp_uniform(arch.warp_idx()) == 0:
        cute.copy(load, outside, inside, tma_bar_ptr=barrier)
    if cutlass.const_expr(bytes_ != 64 * 64 * 2):
        arch.mbarrier_wait(barrier, 0)
    out[thread, 0] = tile[thread, 0]


@ALL(("bytes_", "words"), ((64 * 64 * 2, "race"), (64 * 64, "mbarrier"), (64 * 64 * 4, "")))
def test_faults_are_found_by_the_emulator(bytes_, words):
    """No wait for the barrier; too few bytes expected; too many."""

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        layout = _shared_layout(a.element_type, (64, 64), 1, 128)
        load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))
        forgets(load, source, out, layout, bytes_).launch(grid=1, block=64)

    a = _numbers((64, 64), np.float16)
    with pytest.raises(EmulationError) as caught:
        cute.compile(host, a, a.copy())(a, a.copy())
    assert words in str(caught.value).lower() and "test_tma.py" in str(caught.value)
