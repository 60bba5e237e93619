"""Hopper kernels written from the documentation, on the emulator with all checks, against NumPy.

Products of all types and majors in clusters, boxes of one to five modes, reductions.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import (
    BFloat16,
    CompileError,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int8,
    Int32,
    Int64,
    TFloat32,
    Uint8,
    pipeline,
)
from tilewright.cute.nvgpu import cpasync, warpgroup
from tilewright.utils import LayoutEnum, sm90

arch = cute.arch
BF16, E4, E5 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
NUMPY = {
    Float16: np.float16, BFloat16: BF16, Float32: np.float32, TFloat32: np.float32, Float8E4M3FN: E4, Float8E5M2: E5,
    Int8: np.int8, Uint8: np.uint8, Int32: np.int32,
}  # fmt: skip
MAJOR = {"k": LayoutEnum.ROW_MAJOR, "mn": LayoutEnum.COL_MAJOR}
ONE = pipeline.CooperativeGroup(pipeline.Agent.Thread)


class Product:
    """C (M, N) = A (M, K) · B (N, K): a warp copies, `warpgroups` (along M, N) multiply; any extents."""

    def __init__(self, types, sums, tile, majors=("k", "k"), *, warpgroups=(1, 1), cluster=(1, 1), stages=2,
                 registers=False):  # fmt: skip
        self.types, self.sums, self.tile, self.majors = types, sums, tile, majors
        self.warpgroups, self.cluster, self.stages, self.registers = warpgroups, cluster, stages, registers

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        m, n, k = self.tile
        la = sm90.make_smem_layout_a(MAJOR[self.majors[0]], self.tile, self.types[0], self.stages)
        lb = sm90.make_smem_layout_b(MAJOR[self.majors[1]], self.tile, self.types[1], self.stages)
        atoms = []
        for tensor, layout, extent, shared, type_ in (
            (a, la, m, self.cluster[1], self.types[0]),
            (b, lb, n, self.cluster[0], self.types[1]),
        ):
            op = cpasync.CopyBulkTensorTileG2SMulticastOp if shared > 1 else cpasync.CopyBulkTensorTileG2SOp
            one, internal = cute.slice_(layout, (None, None, 0)), TFloat32 if type_ is TFloat32 else None
            atoms += cpasync.make_tiled_tma_atom(op(), tensor, one, (extent, k), shared, internal_type=internal)
        source = warpgroup.OperandSource.RMEM if self.registers else warpgroup.OperandSource.SMEM
        major_a, major_b = (MAJOR[major].sm90_mma_major_mode() for major in self.majors)
        mma = sm90.make_trivial_tiled_mma(
            *self.types, warpgroup.OperandMajorMode.K if self.registers else major_a, major_b, self.sums,
            (*self.warpgroups, 1), (64, n // self.warpgroups[1]), a_source=source,
        )  # fmt: skip
        grid = [
            cute.round_up(cute.ceil_div(extent, size), blocks)
            for extent, size, blocks in zip(c.shape, (m, n), self.cluster, strict=True)
        ]
        threads = 128 * self.warpgroups[0] * self.warpgroups[1] + 32
        self.kernel(*atoms, c, mma, la, lb).launch(grid=(*grid, 1), block=threads, cluster=(*self.cluster, 1))

    @cute.kernel
    def kernel(self, load_a: cute.CopyAtom, a: cute.Tensor, load_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
               mma: cute.TiledMma, la: cutlass.Constexpr, lb: cutlass.Constexpr):  # fmt: skip
        m, n, k = self.tile
        readers = 4 * self.warpgroups[0] * self.warpgroups[1]
        thread, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
        x, y, _ = arch.block_idx()
        smem = cutlass.utils.SmemAllocator()
        sa = smem.allocate_tensor(self.types[0], la.outer, 1024, la.inner)
        sb = smem.allocate_tensor(self.types[1], lb.outer, 1024, lb.inner)
        blocks = cute.make_layout((1, *self.cluster, 1))
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=ONE,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, readers * (sum(self.cluster) - 1)),
            tx_count=(m * self.types[0].width + n * self.types[1].width) * k // 8,
            barrier_storage=smem.allocate_array(Int64, 2 * self.stages),
            cta_layout_vmnk=blocks,
        )
        ga, gb = cute.local_tile(a, (m, k), (x, None)), cute.local_tile(b, (n, k), (y, None))
        own = blocks.get_flat_coord(arch.make_warp_uniform(arch.block_idx_in_cluster()))
        copies = []
        for load, shared, tiles, mode in ((load_a, sa, ga, 2), (load_b, sb, gb, 1)):
            groups = [cute.group_modes(tensor, 0, 2) for tensor in (shared, tiles)]
            parts = cpasync.tma_partition(load, own[mode], cute.make_layout(self.cluster[mode - 1]), *groups)
            copies.append((load, *parts, cpasync.create_tma_multicast_mask(blocks, own, mode)))
        steps = cute.size(ga, mode=[2])
        if warp == readers:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for step in cutlass.range(steps):
                pipe.producer_acquire(state)
                for load, inside, outside, mask in copies:
                    cute.copy(
                        load, outside[None, step], inside[None, state.index],
                        tma_bar_ptr=pipe.producer_get_barrier(state), mcast_mask=mask,
                    )  # fmt: skip
                state.advance()
            pipe.producer_tail(state)
        else:
            part = mma.get_slice(thread)
            right, lying = mma.make_fragment_B(part.partition_B(sb)), part.partition_A(sa)
            if cutlass.const_expr(self.registers):
                left = mma.make_fragment_A(lying[None, None, None, 0])
            else:
                left = mma.make_fragment_A(lying)
            sums = cute.make_rmem_tensor(mma.partition_shape_C((m, n)), self.sums)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for _ in cutlass.range(steps):
                pipe.consumer_wait(state)
                if cutlass.const_expr(self.registers):
                    cute.autovec_copy(lying[None, None, None, state.index], left)
                warpgroup.fence()
                for step in cutlass.range_constexpr(cute.size(right, mode=[2])):
                    place = (None, None, step, state.index)
                    taken = left[None, None, step] if cutlass.const_expr(self.registers) else left[place]
                    cute.gemm(mma, sums, taken, right[place], sums)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                pipe.consumer_release(state)
                state.advance()
            target = part.partition_C(cute.local_tile(c, (m, n), (x, y)))
            at = part.partition_C(cute.local_tile(cute.make_identity_tensor(c.shape), (m, n), (x, y)))
            for place in cutlass.range_constexpr(cute.size(sums)):
                if cute.elem_less(at[place], c.shape):
                    target[place] = sums[place]


def _matrix(rows, columns, dtype, major, rng):
    """Small integers; the contiguous mode ends anywhere, rows or columns begin at multiples of 16 bytes."""
    long, short = (columns, rows) if major == "k" else (rows, columns)
    item = np.dtype(dtype).itemsize
    padded = np.zeros((short, -(-long * item // 16) * 16 // item), dtype)[:, :long]
    padded[...] = rng.integers(0 if dtype is np.uint8 else -3, 4, padded.shape).astype(dtype)
    return padded if major == "k" else padded.T


F16, SLOW = (Float16, Float16), pytest.mark.slow
PRODUCTS = [
    (Product(F16, Float32, (64, 72, 48)), (100, 90, 120)),
    (Product(F16, Float32, (128, 104, 32), ("mn", "mn")), (130, 200, 72)),
    (Product((BFloat16,) * 2, Float32, (64, 24, 64), ("mn", "k"), cluster=(2, 1)), (150, 40, 130)),
    (Product((TFloat32,) * 2, Float32, (64, 40, 16)), (70, 50, 44)),
    (Product((Float8E4M3FN, Float8E5M2), Float32, (64, 48, 128), cluster=(4, 1), stages=4), (256, 48, 300)),
    (Product((Int8, Uint8), Int32, (64, 96, 64)), (90, 100, 150)),
    (Product(F16, Float32, (64, 80, 64), ("k", "mn"), registers=True), (80, 90, 136)),
    (Product(F16, Float32, (64, 32, 64), ("mn", "k"), registers=True), (64, 64, 128)),
]  # fmt: skip
MORE = [
    (Product(F16, Float16, (64, 16, 32)), (64, 40, 64)),
    (Product((BFloat16,) * 2, Float32, (128, 64, 64), ("k", "mn"), warpgroups=(2, 1), cluster=(1, 2), stages=3),
     (200, 170, 200)),
    (Product(F16, Float32, (64, 128, 64), warpgroups=(1, 2), cluster=(2, 2), stages=3), (120, 250, 192)),
    (Product((BFloat16,) * 2, Float32, (128, 40, 32), warpgroups=(2, 1), registers=True), (140, 50, 80)),
    (Product((Float8E4M3FN,) * 2, Float32, (64, 32, 64), registers=True), (64, 64, 128)),
    (Product((Int8,) * 2, Int32, (64, 32, 64), registers=True), (70, 40, 128)),
    (Product((TFloat32,) * 2, Float32, (64, 32, 32), registers=True), (64, 64, 64)),
    (Product(F16, Float32, (192, 16, 64), warpgroups=(3, 1)), (200, 30, 128)),
    (Product(F16, Float32, (64, 256, 16), stages=1), (64, 300, 64)),
]  # fmt: skip


def _name(product):
    names = "·".join(type_.__name__ for type_ in product.types)
    return f"{names} {product.tile} {product.majors} {product.cluster}{' registers' if product.registers else ''}"


@pytest.mark.parametrize(
    ("product", "extents"),
    [*PRODUCTS, *(pytest.param(*case, marks=SLOW) for case in MORE)],
    ids=[_name(product) for product, _ in (*PRODUCTS, *MORE)],
)
def test_products(product, extents):
    rng = np.random.default_rng(1)
    m, n, k = extents
    a, b = (
        _matrix(rows, k, NUMPY[type_], major, rng)
        for rows, type_, major in zip((m, n), product.types, product.majors, strict=True)
    )
    c = np.zeros((m, n), NUMPY[product.sums])
    given = [cute.runtime.from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    for tensor, major in zip(given, (*product.majors, "k"), strict=True):
        tensor.mark_layout_dynamic(leading_dim=1 if major == "k" else 0)
    for tensor, type_ in zip(given, product.types, strict=False):
        if type_ is TFloat32:
            tensor.element_type = TFloat32
    cute.compile(product, *given, target="emu")(*given)
    np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)


def test_tiles_that_are_no_multiple_of_the_instruction_are_refused():
    a = np.zeros((64, 24), np.float16)
    with pytest.raises(
        CompileError, match="the tile of operand B is no multiple of what the tiled MMA takes"
    ) as caught:
        cute.compile(Product(F16, Float32, (64, 64, 24)), a, a, np.zeros((64, 64), np.float32), target="emu")
    assert "(64, 24)" in str(caught.value) and caught.value.location.file == __file__


class Box:
    """The tile at `start` of a tensor, which may begin before it and end behind it."""

    def __init__(self, tile, start):
        self.tile, self.start = tile, start

    @cute.jit
    def __call__(self, a: cute.Tensor, out: cute.Tensor):
        layout = cute.make_layout(self.tile)
        op = cpasync.CopyBulkTensorTileG2SOp()
        load, source = cpasync.make_tiled_tma_atom(op, a, layout, self.tile)
        self.kernel(load, source, out, layout).launch(grid=1, block=32)

    @cute.kernel
    def kernel(self, load: cute.CopyAtom, source: cute.Tensor, out: cute.Tensor, layout: cutlass.Constexpr):
        rank = len(self.tile)
        smem = cutlass.utils.SmemAllocator()
        tile, full = smem.allocate_tensor(source.element_type, layout, 128), smem.allocate_array(Int64, 1)
        with arch.elect_one():
            arch.mbarrier_init(full, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(full, cute.size_in_bytes(source.element_type, layout))
        arch.sync_warp()
        part = cute.local_tile(cute.domain_offset(self.start, source), self.tile, (0,) * rank)
        groups = [cute.group_modes(tensor, 0, rank) for tensor in (tile, part)]
        inside, outside = cpasync.tma_partition(load, 0, cute.make_layout(1), *groups)
        cute.copy(load, outside, inside, tma_bar_ptr=full)
        arch.mbarrier_wait(full, 0)
        for place in cutlass.range(arch.thread_idx()[0], cute.size(layout), 32):
            out[place] = tile[place]


@pytest.mark.parametrize(
    ("dtype", "extents", "tile", "start"),
    [
        (np.float32, (100,), (64,), (-8,)), (np.float32, (700,), (512,), (-4,)),
        (np.float16, (37, 21), (32, 8), (8, -3)), (np.uint8, (33, 3), (16, 2), (-16, 2)),
        (np.int64, (5, 5), (2, 5), (-2, -1)), (np.float32, (11, 7, 5), (8, 4, 3), (4, -1, 3)),
        (np.float64, (6, 5, 4, 3), (4, 3, 2, 2), (2, -1, -1, 2)),
        (np.int32, (9, 4, 3, 3, 2), (8, 2, 2, 2, 2), (4, -1, 2, -1, 1)),
    ],
)  # fmt: skip
def test_boxes_of_one_to_five_modes(dtype, extents, tile, start):
    """The first mode is contiguous; what lies outside the tensor, before it too, is zero."""
    item = np.dtype(dtype).itemsize
    room = np.zeros((-(-extents[0] * item // 16) * 16 // item, *extents[1:]), dtype, order="F")
    a = room[: extents[0]]
    a[...] = np.random.default_rng(0).integers(-50, 50, extents).astype(dtype)
    out = np.zeros(int(np.prod(tile)), dtype)
    cute.compile(Box(tile, start), a, out, target="emu")(a, out)
    wanted = np.zeros(tile, dtype)
    for place in itertools.product(*map(range, tile)):
        at = tuple(i + s for i, s in zip(place, start, strict=True))
        if all(0 <= i < extent for i, extent in zip(at, extents, strict=True)):
            wanted[place] = a[at]
    np.testing.assert_array_equal(out.reshape(tile, order="F"), wanted)


class Reduce:
    """`b` combined with `a` by each of two blocks."""

    def __init__(self, kind):
        self.kind = kind

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor):
        layout = sm90.make_smem_layout_epi(a.element_type, LayoutEnum.ROW_MAJOR, (8, 16), 1)
        one = cute.slice_(layout, (None, None, 0))
        op = cpasync.CopyReduceBulkTensorTileS2GOp(self.kind)
        store, target = cpasync.make_tiled_tma_atom(op, b, one, (8, 16))
        self.kernel(store, target, a, one).launch(grid=2, block=32)

    @cute.kernel
    def kernel(self, store: cute.CopyAtom, target: cute.Tensor, a: cute.Tensor, layout: cutlass.Constexpr):
        smem = cutlass.utils.SmemAllocator()
        tile = smem.allocate_tensor(a.element_type, layout.outer, 1024, layout.inner)
        for place in cutlass.range(arch.thread_idx()[0], 128, 32):
            tile[place // 16, place % 16] = a[place // 16, place % 16]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_warp()
        groups = [cute.group_modes(x, 0, 2) for x in (tile, cute.local_tile(target, (8, 16), (0, 0)))]
        inside, outside = cpasync.tma_partition(store, 0, cute.make_layout(1), *groups)
        cute.copy(store, inside, outside)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


COMBINED = {
    "ADD": lambda x, y: x + y, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor, "INC": lambda x, y: np.where(x >= y, 0, x + 1),
    "DEC": lambda x, y: np.where((x == 0) | (x > y), y, x - 1),
}  # fmt: skip
REDUCED = {
    "ADD": (np.float32, np.float16, BF16, np.float64, np.int32, np.uint32, np.int64, np.uint64),
    "MIN": (np.int32, np.uint32, np.int64, np.uint64, np.float16, BF16), "MAX": (np.int32, np.uint64, BF16),
    "AND": (np.uint32, np.int64), "OR": (np.uint32, np.uint64), "XOR": (np.uint32, np.int64), "INC": (np.uint32,),
    "DEC": (np.uint32,),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype"), [(kind, dtype) for kind, types in REDUCED.items() for dtype in types])
def test_reductions(kind, dtype):
    rng = np.random.default_rng(0)
    low = 0 if np.dtype(dtype).kind == "u" else -9
    a, b = (rng.integers(low, 9, (rows, 16)).astype(dtype) for rows in (8, 7))
    wanted = b
    for _ in range(2):
        wanted = COMBINED[kind](wanted, a[:7]).astype(dtype)
    cute.compile(Reduce(kind), a, b, target="emu")(a, b)
    np.testing.assert_array_equal(b, wanted)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("MIN", np.float32), ("AND", np.float32), ("INC", np.int32), ("ADD", np.int8)]
)
def test_reductions_that_there_are_not(kind, dtype):
    a = np.zeros((8, 16), dtype)
    with pytest.raises(CompileError, match=f"a tensor copy has no reduction {kind.lower()} of") as caught:
        cute.compile(Reduce(kind), a, a.copy(), target="emu")
    assert f"types of {kind.lower()}: " in str(caught.value) and caught.value.location.file == __file__
