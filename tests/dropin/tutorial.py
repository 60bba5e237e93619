"""The tutorial's kernels and calls, typed as its readers type them. Run by `python -m tilewright.dropin`.

Each step prints a line `NAME: ...`; the tests read them.
"""

# ruff: noqa: RUF059  names are unpacked as the tutorial does

import sys

import cutlass
import cutlass.cute as cute
import numpy as np
import torch
from cutlass.cute.runtime import from_dlpack

device = "cuda" if torch.cuda.is_available() else "cpu"


@cute.kernel
def _reduce_sum_kernel(gA: cute.Tensor, output: cute.Tensor):
    smem_alloc = cutlass.utils.SmemAllocator()
    shmem = smem_alloc.allocate_tensor(cute.Float32, cute.make_layout((32,)))  # warp size

    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdimx, _, _ = cute.arch.block_dim()
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()

    M, N = gA.shape
    ntiles = cute.ceil_div(N, bdimx)
    acc = 0.0
    for tile_idx in range(ntiles):
        idx = tile_idx * bdimx + tidx
        if idx < N:
            acc += gA[bidx, idx]

    acc = cute.arch.warp_reduction_sum(acc)
    if lane == 0:
        shmem[warp] = acc
    cute.arch.sync_threads()

    if warp == 0:
        block_warps = bdimx // 32
        acc2 = shmem[lane] if lane < block_warps else 0.0
        acc2 = cute.arch.warp_reduction_sum(acc2)
        if lane == 0:
            output[bidx] = acc2


@cute.jit
def reduce_sum(x: cute.Tensor, output: cute.Tensor, dim=-1):
    num_warps = 4
    threads_per_block = num_warps * 32
    M, N = x.shape

    _reduce_sum_kernel(x, output).launch(
        grid=(M, 1, 1),
        block=(threads_per_block, 1, 1),
    )


def _invoke_reduce_sum(gInput, dim=-1):
    a_ = from_dlpack(gInput)

    sz = gInput.size(0) if dim == -1 else gInput.size(1)
    gOutput = torch.empty((sz,), dtype=gInput.dtype, device=gInput.device)
    b_ = from_dlpack(gOutput)

    kernel_fn = cute.compile(reduce_sum, a_, b_)
    kernel_fn(a_, b_)
    return gOutput


custom_cache = {}


def _invoke_reduce_sum_with_cache(gInput, dim=-1):
    a_ = from_dlpack(gInput)

    sz = gInput.size(0) if dim == -1 else gInput.size(1)
    gOutput = torch.empty((sz,), dtype=gInput.dtype, device=gInput.device)
    b_ = from_dlpack(gOutput)

    key = f"reduce_sum_{gInput.dtype}"
    if key not in custom_cache:
        custom_cache[key] = cute.compile(reduce_sum, a_, b_)
    fn = custom_cache[key]
    fn(a_, b_)
    return gOutput


@cute.jit
def reduce_sum_dynamic(x, output):
    num_warps = 4
    threads_per_block = num_warps * 32
    M, N = x.shape

    _reduce_sum_kernel(x, output).launch(
        grid=(M, 1, 1),
        block=(threads_per_block, 1, 1),
    )


compilations = 0


def _invoke_reduce_sum_with_cache_dynamic(gInput, dim=-1):
    global compilations
    sz = gInput.size(0) if dim == -1 else gInput.size(1)
    gOutput = torch.empty((sz,), dtype=gInput.dtype, device=gInput.device)

    key = f"reduce_sum_dynamic_{gInput.dtype}"
    if key not in custom_cache:
        compilations += 1
        custom_cache[key] = cute.compile(reduce_sum_dynamic, gInput, gOutput)
    fn = custom_cache[key]
    fn(gInput, gOutput)
    return gOutput


@cute.jit
def reduce_sum_dynamic_stream(x, output, stream=None):
    num_warps = 4
    threads_per_block = num_warps * 32
    M, N = x.shape

    _reduce_sum_kernel(x, output).launch(grid=(M, 1, 1), block=(threads_per_block, 1, 1), stream=stream)


def compile_middle(n):
    m = cute.sym_int()
    input_cute = cute.runtime.make_fake_compact_tensor(cutlass.Float32, (m, n), stride_order=(1, 0))
    output_cute = cute.runtime.make_fake_compact_tensor(cutlass.Float32, (m,))
    fn = cute.compile(
        reduce_sum_dynamic,
        input_cute,
        output_cute,
    )
    streamed = cute.compile(
        reduce_sum_dynamic_stream,
        input_cute,
        output_cute,
        cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True),
        options="--enable-tvm-ffi",
    )
    return fn, streamed


@cute.jit
def print_layout(mA):
    threads_per_block = 32
    thr_layout = cute.make_layout((threads_per_block,), stride=(1,))
    val_layout = cute.make_layout((1,), stride=(1,))
    tiler_mn, layout_tv = cute.make_layout_tv(thr_layout, val_layout)
    print(f"layout: {layout_tv}")
    print(f"tiler: {tiler_mn}")
    tiler_2d = (1, tiler_mn[0])  # cute-viz expects 2d
    gX = cute.zipped_divide(mA, tiler_2d)
    print(f"gx: {gX}")


@cute.kernel
def _reduce_sum(input: cute.Tensor, output: cute.Tensor, tv_layout, num_warps: int):
    smem_alloc = cutlass.utils.SmemAllocator()
    shmem = smem_alloc.allocate_tensor(cute.Float32, cute.make_layout((32,)))

    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()

    acc = cute.Float32(0.0)

    _, mode1 = input.shape
    ntiles = mode1[1]

    for tile_idx in range(ntiles):
        blk_coord = ((0, None), (bidx, tile_idx))  # all values in this [bidx, tile_idx] tile
        blk = input[blk_coord]
        thr_frag = cute.composition(blk, tv_layout)
        thr_val = thr_frag[tidx, 0]
        acc += thr_val

    acc = cute.arch.warp_reduction_sum(acc)
    if lane == 0:
        shmem[warp] = acc
    cute.arch.sync_threads()

    if warp == 0:
        acc2 = shmem[lane] if lane < num_warps else 0.0
        acc2 = cute.arch.warp_reduction_sum(acc2)
        if lane == 0:
            output[bidx] = acc2


@cute.jit
def reduce_sum_layout(x, output):
    num_warps = 16
    threads_per_block = 512
    M, N = x.shape

    thr_layout = cute.make_layout((threads_per_block,), stride=(1,))
    val_layout = cute.make_layout((1,), stride=(1,))
    tiled_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
    gX = cute.zipped_divide(x, (1, tiled_mn[0]))

    _reduce_sum(gX, output, tv_layout, num_warps).launch(
        grid=(M, 1, 1),
        block=(threads_per_block, 1, 1),
    )


def check(name, found, x):
    exact = x.double().sum(dim=-1)
    good = bool(((found.double() - exact).abs() <= 1e-6 * x.double().abs().sum(dim=-1)).all())
    print(f"{name}: {good}")


def main():
    torch.manual_seed(0)
    a = torch.randn(16, 1024, device=device, dtype=torch.float32)
    b = torch.randn(8, 32, device=device, dtype=torch.float32)

    check("simple", _invoke_reduce_sum(a), a)
    check("cached", _invoke_reduce_sum_with_cache(a), a)
    try:
        _invoke_reduce_sum_with_cache(b)
        print("other shape: no error")
    except cutlass.DSLRuntimeError as error:
        print("other shape: DSLRuntimeError", str(error).replace("\n", " | "))
    except (TypeError, ValueError) as error:
        print("other shape:", type(error).__name__, str(error).replace("\n", " | "))

    check("dynamic", _invoke_reduce_sum_with_cache_dynamic(a), a)
    check("dynamic other", _invoke_reduce_sum_with_cache_dynamic(b), b)
    print("compilations:", compilations)

    fn, streamed = compile_middle(32)
    out = torch.empty(8, device=device)
    fn(b, out)
    check("middle", out, b)
    out.zero_()
    streamed(b, out)
    check("streamed", out, b)

    print_layout(a)
    wide = torch.empty(16, device=device)
    reduce_sum_layout(a, wide)
    check("layout form", wide, a)
    if device == "cpu":
        try:
            reduce_sum_layout(b, torch.empty(8))
            print("unguarded: no error")
        except cutlass.TilewrightError as error:
            print("unguarded:", type(error).__name__, str(error).replace("\n", " | "))
    check("still alive", _invoke_reduce_sum(b), b)
    print("argv:", sys.argv[1:], "main:", __name__, "numpy:", np.__name__, "cutlass:", cutlass.__name__)


if __name__ == "__main__":
    main()
