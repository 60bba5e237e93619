"""Correct kernels as users write them, and mistakes that users make in them."""

from __future__ import annotations

from dataclasses import dataclass

COPY = """
@cute.kernel
def copy_kernel(gA: cute.Tensor, gB: cute.Tensor, tv: cute.Layout, tiler: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    block = ((None, None), bidx)
    blkA, blkB = gA[block], gB[block]
    thrA = cute.composition(blkA, tv)[tidx, None]
    thrB = cute.composition(blkB, tv)[tidx, None]
    values = thrA.load()
    thrB.store(values + values)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor):
    thr = cute.make_layout((4, 8), stride=(8, 1))
    val = cute.make_layout((2, 2), stride=(2, 1))
    tiler, tv = cute.make_layout_tv(thr, val)
    gA = cute.zipped_divide(a, tiler)
    gB = cute.zipped_divide(b, tiler)
    copy_kernel(gA, gB, tv, tiler).launch(grid=[cute.size(gA, mode=[1]), 1, 1], block=[cute.size(tv, mode=[0]), 1, 1])
"""

TILED = """
@cute.kernel
def tiled_kernel(a: cute.Tensor, b: cute.Tensor, tiled: cute.TiledCopy):
    tidx, _, _ = cute.arch.thread_idx()
    thr = tiled.get_slice(tidx)
    src = thr.partition_S(a)
    dst = thr.partition_D(b)
    frag = cute.make_rmem_tensor_like(src)
    cute.copy(tiled, src, frag)
    scale = Float32(2.0)
    if tidx > 99:
        scale = scale + 1.0
    frag.store(frag.load() * scale)
    cute.copy(tiled, frag, dst)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=64)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((1, 4)))
    tiled_kernel(a, b, tiled).launch(grid=(1, 1, 1), block=(32, 1, 1))
"""

REDUCE = """
@cute.struct
class Storage:
    sums: cute.struct.Align[cute.struct.MemRange[Float32, 4], 16]
    count: cute.struct.MemRange[Int32, 1]


@cute.kernel
def reduce_kernel(a: cute.Tensor, b: cute.Tensor, scale: Float32, warps: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    storage = cutlass.utils.SmemAllocator().allocate(Storage)
    sums = storage.sums.get_tensor(cute.make_layout(warps))
    total = Float32(0.0)
    for row in cutlass.range(8, unroll=2):
        total += a[row, tidx % 16]
    total = cute.arch.warp_reduction_sum(total)
    if cute.arch.lane_idx() == 0:
        sums[cute.arch.warp_idx()] = total
    cute.arch.sync_threads()
    if tidx < 8:
        result = Float32(0.0)
        for warp in cutlass.range_constexpr(warps):
            result += sums[warp]
        b[tidx, 0] = result * scale


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor):
    warps = 4
    reduce_kernel(a, b, 0.25, warps).launch(grid=(1, 1, 1), block=(32 * warps, 1, 1))
"""

MATMUL = """
@cute.kernel
def mma_kernel(a: cute.Tensor, b: cute.Tensor, tiled_mma: cute.TiledMma):
    tidx, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    sA = smem.allocate_tensor(Float16, cute.make_layout((16, 16), stride=(16, 1)), 16)
    sB = smem.allocate_tensor(Float16, cute.make_layout((8, 16), stride=(16, 1)), 16)
    for i in range(8):
        sA[tidx % 16, i * 2 + tidx // 16] = Float16(a[tidx % 8, i])
    for i in range(4):
        sB[tidx % 8, i * 4 + tidx // 8] = Float16(1.0)
    cute.arch.sync_threads()
    thr = tiled_mma.get_slice(tidx)
    rA = tiled_mma.make_fragment_A(thr.partition_A(sA))
    rB = tiled_mma.make_fragment_B(thr.partition_B(sB))
    gC = cute.local_tile(b, (16, 8), (0, 0))
    tC = thr.partition_C(gC)
    acc = tiled_mma.make_fragment_C(tC)
    acc.fill(0.0)
    cute.autovec_copy(thr.partition_A(sA), rA)
    cute.autovec_copy(thr.partition_B(sB), rB)
    cute.gemm(tiled_mma, acc, rA, rB, acc)
    cute.autovec_copy(acc, tC)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor):
    op = cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)))
    mma_kernel(a, b, tiled_mma).launch(grid=(1, 1, 1), block=(32, 1, 1))
"""


@dataclass(frozen=True)
class Slip:
    """`old`, which stands once in a kernel, written as `new`. An error says `says`, and names that line (or one on
    which `says` stands), or the line of `at`.
    """

    kernel: str
    old: str
    new: str
    says: str = ""
    at: str = ""


KERNELS = {"copy": COPY, "tiled": TILED, "reduce": REDUCE, "matmul": MATMUL}
SLIPS = [
    Slip("copy", "thrA.load()", "thrA.lod()", "lod"),
    Slip("copy", "gA[block], gB[block]", "gA[block], gB[blok]", "blok"),
    Slip("copy", "(blkA, tv)[tidx, None]", "(blkA, tv)[tidx]", "load"),
    Slip("copy", "(blkA, tv)[tidx, None]", "(blkA)[tidx, None]", "composition"),
    Slip("copy", "thrB.store(values + values)", "thrB.store(values + gA)", "t.load()"),
    Slip("copy", "thrB.store(values + values)", "thrB = values + values; thrB.store(values)", "store"),
    Slip("copy", "((None, None), bidx)", "(None, None, bidx)", "block]"),
    Slip("copy", "cute.make_layout((4, 8), stride=(8, 1))", "cute.make_layout((4, 8), stride=(8, 1, 1))", "stride"),
    Slip("copy", "cute.make_layout((2, 2), stride=(2, 1))", "cute.make_layout((2, 2.0), stride=(2, 1))"),
    Slip("copy", "cute.make_layout_tv(thr, val)", "cute.make_layout_tv(thr)", "make_layout_tv"),
    Slip("copy", "cute.zipped_divide(a, tiler)", "cute.zipped_divide(tiler, a)"),
    Slip("copy", "cute.zipped_divide(a, tiler)", "cute.zip_divide(a, tiler)", "zipped_divide"),
    Slip("copy", "copy_kernel(gA, gB, tv, tiler).launch", "copy_kernel(gA, gB, tv).launch", "tiler"),
    Slip("copy", "copy_kernel(gA, gB, tv, tiler).launch", "copy_kernel(gA, gB, tv, tiler, 1).launch"),
    Slip("copy", "copy_kernel(gA, gB, tv, tiler).launch", "copy_kernel(gA, 3, tv, tiler).launch", "gB"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "block=[2048, 1, 1]", "1024"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "blocks=[32, 1, 1]", "block"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "block='32'"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "block=[32, 1, 1, 1]"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "block=[0, 1, 1]"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "block=[32, 1, 1], smem=1 << 20"),
    Slip("copy", "block=[cute.size(tv, mode=[0]), 1, 1]", "block=[32, 1, 1], cluster=[3, 1, 1, 1]"),
    Slip("copy", "grid=[cute.size(gA, mode=[1]), 1, 1]", "grid=[cute.size(gA, mode=[7]), 1, 1]", "mode"),
    Slip("copy", "grid=[cute.size(gA, mode=[1]), 1, 1]", "grid=[-1, 1, 1]"),
    Slip("copy", "    values = thrA.load()", "    values = thrA.load\n", "values + values"),
    Slip("copy", "values + values", "values @ values"),
    Slip("copy", "values + values", "values + 'x'"),
    Slip("tiled", "tiled.get_slice(tidx)", "tiled.get_slice()", "get_slice"),
    Slip("tiled", "thr.partition_S(a)", "thr.partition_A(a)", "partition_A"),
    Slip("tiled", "thr.partition_S(a)", "tiled.partition_S(a)", "partition_S"),
    Slip("tiled", "cute.copy(tiled, src, frag)", "cute.copy(src, frag)", "copy"),
    Slip("tiled", "cute.copy(tiled, src, frag)", "cute.copy(tiled, src, a)"),
    Slip("tiled", "cute.copy(tiled, src, frag)", "cute.copy(tiled, frag.load(), frag)", "TensorSSA"),
    Slip("tiled", "scale = scale + 1.0", "scale = 'big'", "scale", "if tidx > 99"),
    Slip("tiled", "scale = scale + 1.0", "scale = cute.Float64(2.0)", "scale", "if tidx > 99"),
    Slip("tiled", "scale = scale + 1.0", "return", "return"),
    Slip("tiled", "frag.load() * scale", "frag.load() * factor", "factor"),
    Slip("tiled", "    scale = Float32(2.0)\n", "", "scale"),
    Slip("tiled", "num_bits_per_copy=64", "num_bits_per_copy=48", "48"),
    Slip("tiled", "num_bits_per_copy=64", "num_bits_per_copy=4096"),
    Slip("tiled", "cute.nvgpu.CopyUniversalOp(), Float32", "cute.nvgpu.CopyUniversalOp()", "copy_internal_type"),
    Slip("tiled", "cute.nvgpu.CopyUniversalOp(), Float32", "cute.nvgpu.CopyUniversalOp(), 32", "number type"),
    Slip("tiled", "cute.make_layout((1, 4)))", "cute.make_layout((1, 3)))"),
    Slip("tiled", "cute.make_tiled_copy_tv(atom,", "cute.make_tiled_copy_tv(tiled,", "tiled"),
    Slip("tiled", "tiled_kernel(a, b, tiled).launch", "tiled_kernel(a, b, atom).launch", "tiled"),
    Slip("tiled", "cute.make_rmem_tensor_like(src)", "cute.make_rmem_tensor(src.shape)"),
    Slip("tiled", "if tidx > 99:", "if const_expr(tidx > 99):", "const_expr"),
    Slip("reduce", "Align[cute.struct.MemRange[Float32, 4], 16]", "Align[cute.struct.MemRange[Float32, 4], 3]", "3"),
    Slip("reduce", "MemRange[Int32, 1]", "MemRange[Int32, -1]", "-1"),
    Slip("reduce", "MemRange[Int32, 1]", "MemRange[int, 1]", "int"),
    Slip("reduce", "allocate(Storage)", "allocate(Storag)", "Storag"),
    Slip("reduce", "allocate(Storage)", "allocate()", "allocate"),
    Slip("reduce", "storage.sums.get_tensor", "storage.sum.get_tensor", "sum"),
    Slip("reduce", "get_tensor(cute.make_layout(warps))", "get_tensor(cute.make_layout(2 * warps))"),
    Slip("reduce", "a[row, tidx % 16]", "a[row, tidx % 16, 0]", "3 "),
    Slip("reduce", "a[row, tidx % 16]", "a(row, tidx % 16)"),
    Slip("reduce", "a[row, tidx % 16]", "a[row, 16]", "16"),
    Slip("reduce", "cutlass.range(8, unroll=2)", "cutlass.range(8, unrol=2)", "unrol"),
    Slip("reduce", "cutlass.range(8, unroll=2)", "cutlass.range_constexpr(tidx)", "range_constexpr"),
    Slip("reduce", "total += a[row, tidx % 16]", "total += a", ""),
    Slip("reduce", "total += a[row, tidx % 16]", "total = a[row, tidx % 16] > 0.0", "total", "for row"),
    Slip("reduce", "total += a[row, tidx % 16]", "break", "break"),
    Slip("reduce", "warp_reduction_sum(total)", "warp_reduction_sum(total, 32)"),
    Slip("reduce", "warp_reduction_sum(total)", "warp_reduction_sum(total, threads_in_group=5)", "5"),
    Slip("reduce", "sums[cute.arch.warp_idx()] = total", "sums[cute.arch.warp_idx()] = 'total'"),
    Slip("reduce", "sums[cute.arch.warp_idx()] = total", "sums[4] = total", "4"),
    Slip("reduce", "b[tidx, 0] = result * scale", "b[tidx, 0] = result * scales", "scales"),
    Slip("reduce", "        result = Float32(0.0)\n", "", "result"),
    Slip("reduce", "reduce_kernel(a, b, 0.25, warps)", "reduce_kernel(a, b, warps)", "warps"),
    Slip("reduce", "reduce_kernel(a, b, 0.25, warps)", "reduce_kernel(a, b, '0.25', warps)", "scale"),
    Slip("reduce", "reduce_kernel(a, b, 0.25, warps)", "reduce_kernel(a, b, 0.25, warps=warps, c=1)", "c"),
    Slip("reduce", "@cute.kernel\ndef reduce_kernel", "@cute.jit\ndef reduce_kernel", "launch"),
    Slip("matmul", "allocate_tensor(Float16, cute.make_layout((16, 16)", "allocate_tensor(cute.make_layout((16, 16)"),
    Slip("matmul", "(8, 16), stride=(16, 1)), 16)", "(8, 16), stride=(16, 1)), 7)", "7"),
    Slip("matmul", "thr.partition_A(sA))", "thr.partition_A(sA, sB))", "partition_A"),
    Slip("matmul", "make_fragment_A(thr", "make_fragmentA(thr", "make_fragment_A"),
    Slip("matmul", "cute.local_tile(b, (16, 8), (0, 0))", "cute.local_tile(b, (16, 8, 8), (0, 0, 0))"),
    Slip("matmul", "cute.gemm(tiled_mma, acc, rA, rB, acc)", "cute.gemm(tiled_mma, acc, rB, rA, acc)"),
    Slip("matmul", "cute.gemm(tiled_mma, acc, rA, rB, acc)", "cute.gemm(tiled_mma, rA, rB, acc)", "gemm"),
    Slip("matmul", "cute.gemm(tiled_mma, acc, rA, rB, acc)", "cute.gemm(tiled_mma, acc, sA, sB, acc)"),
    Slip("matmul", "cute.autovec_copy(acc, tC)", "cute.autovec_copy(acc, sA)"),
    Slip("matmul", "cute.autovec_copy(acc, tC)", "cute.autovec_copy(acc)", "autovec_copy"),
    Slip("matmul", "(Float16, Float32, (16, 8, 16))", "(Float16, Float32, (16, 16, 16))", "16"),
    Slip("matmul", "(Float16, Float32, (16, 8, 16))", "(Float64, Float32, (16, 8, 16))", "Float64"),
    Slip("matmul", "(Float16, Float32, (16, 8, 16))", "(Float16, Int32, (16, 8, 16))", "Int32"),
    Slip("matmul", "cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)))", "cute.make_tiled_mma(cute.make_layout(1))"),
    Slip("matmul", "block=(32, 1, 1))", "block=(32, 1, 1), stream='now')", "stream"),
]
