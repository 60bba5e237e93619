"""The first part of the tutorial (docs/tutorial.md): a row sum, five ways to call it, and its form with layouts.

    python -m tilewright.dropin examples/tutorial/part1.py simple_launch

The subcommands are listed by `--help`. The source is plain CuTe DSL: it imports `cutlass`, which `tilewright.dropin`
resolves to Tilewright. Tensors live on the GPU where there is one, else on the CPU, and the kernels run on the
emulator. Without PyTorch, NumPy stands in for it.
"""

import argparse
import time

import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

try:
    import torch
except ImportError:
    torch = None

ON_GPU = torch is not None and torch.cuda.is_available()
ROWS, COLUMNS = (1024, 1024) if ON_GPU else (64, 1024)
TOLERANCE = 1e-4


# ---------------------------------------------------------------------------------------------------------------
# The kernel, and the host function that launches it


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
def reduce_sum(x: cute.Tensor, output: cute.Tensor):
    num_warps = 4
    threads_per_block = num_warps * 32
    M, N = x.shape

    _reduce_sum_kernel(x, output).launch(
        grid=(M, 1, 1),
        block=(threads_per_block, 1, 1),
    )


@cute.jit
def reduce_sum_dynamic(x, output):
    num_warps = 4
    threads_per_block = num_warps * 32
    M, N = x.shape

    _reduce_sum_kernel(x, output).launch(
        grid=(M, 1, 1),
        block=(threads_per_block, 1, 1),
    )


@cute.jit
def reduce_sum_dynamic_stream(x, output, stream=None):
    num_warps = 4
    threads_per_block = num_warps * 32
    M, N = x.shape

    _reduce_sum_kernel(x, output).launch(grid=(M, 1, 1), block=(threads_per_block, 1, 1), stream=stream)


# ---------------------------------------------------------------------------------------------------------------
# Five ways to call it. `dim` is the dimension that is summed: a transposed view makes dim 0 the last one.


def _invoke_reduce_sum(gInput, dim=-1):
    """Compile, then call: every time."""
    gInput, gOutput = _operands(gInput, dim)
    a_, b_ = from_dlpack(gInput), from_dlpack(gOutput)
    kernel_fn = cute.compile(reduce_sum, a_, b_, no_cache=True)
    kernel_fn(a_, b_)
    return gOutput


custom_cache = {}


def _invoke_reduce_sum_with_cache(gInput, dim=-1):
    """Keep the compiled function; `from_dlpack` makes the layout part of it, so the key must hold the shape."""
    gInput, gOutput = _operands(gInput, dim)
    a_, b_ = from_dlpack(gInput), from_dlpack(gOutput)
    key = ("static", gInput.dtype, tuple(gInput.shape), dim)
    if key not in custom_cache:
        custom_cache[key] = cute.compile(reduce_sum, a_, b_)
    custom_cache[key](a_, b_)
    return gOutput


def _invoke_reduce_sum_with_cache_dynamic(gInput, dim=-1):
    """Pass the framework's tensors themselves: the layout is dynamic, and one compilation takes every shape."""
    gInput, gOutput = _operands(gInput, dim)
    key = ("dynamic", gInput.dtype, dim)
    if key not in custom_cache:
        custom_cache[key] = cute.compile(reduce_sum_dynamic, gInput, gOutput)
    custom_cache[key](gInput, gOutput)
    return gOutput


def _invoke_reduce_sum_middle(gInput):
    """The first extent dynamic, the last static: compiled without any tensor, from a description."""
    gInput, gOutput = _operands(gInput, -1)
    n = gInput.shape[1]
    key = ("middle", gInput.dtype, n)
    if key not in custom_cache:
        m = cute.sym_int()
        input_cute = cute.runtime.make_fake_compact_tensor(cutlass.Float32, (m, n), stride_order=(1, 0))
        output_cute = cute.runtime.make_fake_compact_tensor(cutlass.Float32, (m,))
        custom_cache[key] = cute.compile(reduce_sum_dynamic, input_cute, output_cute)
    custom_cache[key](gInput, gOutput)
    return gOutput


def _invoke_reduce_sum_stream(gInput):
    """The same on the framework's current stream, which is not an argument of the call."""
    gInput, gOutput = _operands(gInput, -1)
    n = gInput.shape[1]
    key = ("stream", gInput.dtype, n)
    if key not in custom_cache:
        m = cute.sym_int()
        custom_cache[key] = cute.compile(
            reduce_sum_dynamic_stream,
            cute.runtime.make_fake_compact_tensor(cutlass.Float32, (m, n), stride_order=(1, 0)),
            cute.runtime.make_fake_compact_tensor(cutlass.Float32, (m,)),
            cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True),
            options="--enable-tvm-ffi",
        )
    custom_cache[key](gInput, gOutput)
    return gOutput


# ---------------------------------------------------------------------------------------------------------------
# The same kernel with layouts


@cute.jit
def print_layout():
    threads_per_block = 32
    thr_layout = cute.make_layout((threads_per_block,), stride=(1,))
    val_layout = cute.make_layout((1,), stride=(1,))
    tiler_mn, layout_tv = cute.make_layout_tv(thr_layout, val_layout)
    print(f"layout: {layout_tv}")
    print(f"tiler: {tiler_mn}")


@cute.kernel
def _reduce_sum(input: cute.Tensor, output: cute.Tensor, tv_layout, num_warps: int, columns: int):
    smem_alloc = cutlass.utils.SmemAllocator()
    shmem = smem_alloc.allocate_tensor(cute.Float32, cute.make_layout((32,)))

    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdimx, _, _ = cute.arch.block_dim()
    lane = cute.arch.lane_idx()
    warp = cute.arch.warp_idx()

    acc = cute.Float32(0.0)

    _, mode1 = input.shape
    ntiles = mode1[1]

    for tile_idx in range(ntiles):
        blk_coord = ((0, None), (bidx, tile_idx))  # all values in this [bidx, tile_idx] tile
        blk = input[blk_coord]
        thr_frag = cute.composition(blk, tv_layout)
        if tile_idx * bdimx + tidx < columns:  # the last tile may reach beyond the row
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

    _reduce_sum(gX, output, tv_layout, num_warps, N).launch(
        grid=(M, 1, 1),
        block=(threads_per_block, 1, 1),
    )


def _invoke_reduce_sum_layout(gInput):
    gInput, gOutput = _operands(gInput, -1)
    if "layout" not in custom_cache:
        custom_cache["layout"] = cute.compile(reduce_sum_layout, gInput, gOutput)
    custom_cache["layout"](gInput, gOutput)
    return gOutput


# ---------------------------------------------------------------------------------------------------------------
# Subcommands


def simple_launch():
    """Compile and run once."""
    x = _random(ROWS, COLUMNS)
    _check(_invoke_reduce_sum(x), x)
    _check(_invoke_reduce_sum(x, dim=0), x, dim=0)
    print("Success!")


def compare_torch_initial():
    """Time a call that compiles against the framework's sum."""
    _compare(_invoke_reduce_sum, repeat=3)


def compare_torch_initial_cached():
    """Time a call of a kept function against the framework's sum."""
    _compare(_invoke_reduce_sum_with_cache, repeat=20)


def static_shapes():
    """A function compiled for one static layout refuses another."""
    a, b = _random(ROWS, 1024), _random(ROWS, 32)
    a_, out_a = from_dlpack(a), from_dlpack(_empty(ROWS))
    compiled = cute.compile(reduce_sum, a_, out_a)
    compiled(a_, out_a)
    try:
        compiled(from_dlpack(b), from_dlpack(_empty(ROWS)))
    except ValueError as error:
        print(error)


def dynamic():
    """One compilation for two shapes."""
    for columns in (1024, 32):
        x = _random(ROWS, columns)
        _check(_invoke_reduce_sum_with_cache_dynamic(x), x)
    print(f"compilations: {len(custom_cache)}")
    print("Success!")


def middle():
    """Dynamic rows, static columns: one compilation for each number of columns."""
    for rows, columns in ((ROWS, 1024), (ROWS // 2, 1024), (ROWS, 32)):
        x = _random(rows, columns)
        _check(_invoke_reduce_sum_middle(x), x)
    print(f"compilations: {len(custom_cache)}")
    print("Success!")


def stream():
    """On the framework's current stream."""
    x = _random(ROWS, COLUMNS)
    _check(_invoke_reduce_sum_stream(x), x)
    print("Success!")


def layout():
    """The form with make_layout_tv, zipped_divide and composition, also where a tile reaches beyond the row."""
    print_layout()
    for columns in (1024, 32, 700):
        x = _random(ROWS, columns)
        _check(_invoke_reduce_sum_layout(x), x)
    print("Success!")


COMMANDS = (
    simple_launch,
    compare_torch_initial,
    compare_torch_initial_cached,
    static_shapes,
    dynamic,
    middle,
    stream,
    layout,
)


# ---------------------------------------------------------------------------------------------------------------
# Tensors of PyTorch or NumPy, checks, times


def _random(rows, columns):
    if torch is not None:
        return torch.randn(rows, columns, device="cuda" if ON_GPU else "cpu", dtype=torch.float32)
    return np.random.default_rng().standard_normal((rows, columns), dtype=np.float32)


def _empty(size, like=None):
    if torch is not None:
        return torch.empty((size,), dtype=torch.float32, device="cuda" if ON_GPU else "cpu")
    return np.empty((size,), dtype=np.float32)


def _operands(gInput, dim):
    """The input with the summed dimension last, and an output for it."""
    x = gInput if dim in (-1, 1) else gInput.T
    return x, _empty(x.shape[0])


def _check(result, x, dim=-1):
    if torch is not None:
        result, x = result.cpu().numpy(), x.cpu().numpy()
    expected = x.astype(np.float64).sum(axis=dim)
    np.testing.assert_allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE)


def _compare(function, repeat):
    x = _random(ROWS, COLUMNS)
    library = "torch" if torch is not None else "numpy"
    reference = (lambda: torch.sum(x, dim=-1)) if torch is not None else (lambda: np.sum(x, axis=-1))
    where = "" if ON_GPU else "  (on the emulator)"
    print(f"  cute dsl reduce sum: {_milliseconds(lambda: function(x), repeat):.3f} ms{where}")
    print(f"  {library} kernel sum: {_milliseconds(reference, repeat):.3f} ms")


def _milliseconds(function, repeat):
    function()
    _synchronize()
    start = time.perf_counter()
    for _ in range(repeat):
        function()
    _synchronize()
    return (time.perf_counter() - start) / repeat * 1e3


def _synchronize():
    if ON_GPU:
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for function in COMMANDS:
        commands.add_parser(function.__name__, help=function.__doc__).set_defaults(run=function)
    parser.parse_args().run()


if __name__ == "__main__":
    main()
