"""Chains of collectives: ns each; ours beside CUB (block) and cooperative groups (cluster)."""

import glob
import os
import statistics
import subprocess

import torch

import tilewright as cutlass
import tilewright.cute as cute

R = 512


@cute.kernel
def chain(x: cute.Tensor, out: cute.Tensor, work: cute.Tensor, step: cutlass.Constexpr):
    t = cute.arch.thread_idx()[0]
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + t
    v = x[i]
    for n in cutlass.range(R):
        v = step(v, work)
    out[i] = v


@cute.jit
def run(
    x: cute.Tensor,
    out: cute.Tensor,
    work: cute.Tensor,
    step: cutlass.Constexpr,
    grid: cutlass.Constexpr,
    block: cutlass.Constexpr,
    cluster: cutlass.Constexpr,
    coop: cutlass.Constexpr,
):
    chain(x, out, work, step).launch(grid=(grid, 1, 1), block=(block, 1, 1), cluster=cluster, cooperative=coop)


def timed(calls, rounds=21):
    """Interleaved medians of calls, in us."""
    times = {name: [] for name in calls}
    for name, call in calls.items():
        call()
        call()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for name, call in calls.items():
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            call()
            b.record()
            b.synchronize()
            times[name].append(a.elapsed_time(b) * 1000)
    return {name: statistics.median(t) for name, t in times.items()}


def ours(step, grid, block, cluster=None, coop=False, dtype=torch.float32):
    x = torch.ones(grid * block, dtype=dtype, device="cuda")
    out = torch.zeros_like(x)
    work = torch.zeros(1 + 2 * grid * 4, dtype=torch.int64, device="cuda")
    c = cute.compile(run, x, out, work, step, grid, block, cluster, coop)
    c(x, out, work)
    torch.cuda.synchronize()
    return lambda: c(x, out, work)


CUB = r"""
#include <cub/block/block_reduce.cuh>
template <int T> __device__ void body(const float* x, float* out) {
  typedef cub::BlockReduce<float, T> Reduce;
  __shared__ typename Reduce::TempStorage temp;
  int i = blockIdx.x * T + threadIdx.x;
  float v = x[i];
  for (int n = 0; n < 512; n++) {
    float s = Reduce(temp).Sum(v);
    __syncthreads();
    v = threadIdx.x == 0 ? s * 0.001f : v * 0.999f;
  }
  out[i] = v;
}
template <int T> __device__ void all_body(const float* x, float* out) {
  typedef cub::BlockReduce<float, T> Reduce;
  __shared__ typename Reduce::TempStorage temp;
  __shared__ float shared;
  int i = blockIdx.x * T + threadIdx.x;
  float v = x[i];
  for (int n = 0; n < 512; n++) {
    float s = Reduce(temp).Sum(v);
    if (threadIdx.x == 0) shared = s;
    __syncthreads();
    v = shared * 0.001f;
  }
  out[i] = v;
}
#define K(T) extern "C" __global__ void __launch_bounds__(T) first_##T(const float* x, float* out) { body<T>(x, out); } \
  extern "C" __global__ void __launch_bounds__(T) all_##T(const float* x, float* out) { all_body<T>(x, out); }
K(128) K(256) K(512) K(1024)
"""
CG = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(256) cluster_pull(const float* x, float* out) {
  __shared__ float warps[8]; __shared__ float own[2];
  auto c = cg::this_cluster();
  int i = blockIdx.x * 256 + threadIdx.x; float v = x[i];
  for (int n = 0; n < 512; n++) {
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    float s = 0; for (int w = 0; w < 8; w++) s += warps[w];
    if (threadIdx.x == 0) own[n & 1] = s;
    c.sync();
    v = 0; for (int r = 0; r < 4; r++) v += *c.map_shared_rank(&own[n & 1], r);
    v *= 0.001f;
  }
  c.sync();
  out[i] = v;
}
"""


def first(v, w):
    s = cute.block_reduce(v)
    return cutlass.select_(cute.arch.thread_idx()[0] == 0, s * 0.001, v * 0.999)


def everyone(v, w):
    return cute.block_allreduce(v) * 0.001


def native(text, names, tag):
    import cupy

    root = os.path.dirname(cupy.__file__)
    includes = [
        p
        for p in glob.glob(root + "/_core/include/cupy/_cccl/*") + glob.glob(root + "/_core/include/cupy/_cccl")
        if os.path.isdir(p)
    ]
    try:
        from shutil import which

        nvcc = which("nvcc") or next(iter(glob.glob("/usr/local/cuda*/bin/nvcc")), None)
        if nvcc:
            open(f"/tmp/{tag}.cu", "w").write(text)
            subprocess.run(
                [nvcc, "-O3", "-arch=sm_90a", "-std=c++17", "-cubin", f"/tmp/{tag}.cu", "-o", f"/tmp/{tag}.cubin"],
                check=True,
                capture_output=True,
                timeout=100,
            )
            module = cupy.RawModule(path=f"/tmp/{tag}.cubin")
            how = nvcc
        else:
            opts = ["-std=c++17"] + [f"-I{p}" for p in includes]
            module = cupy.RawModule(code=text, backend="nvrtc", options=tuple(opts))
            how = "nvrtc"
        found = {n: module.get_function(n) for n in names}
        print(tag, "by", how)
        return found
    except Exception as e:
        print(
            tag,
            "not built:",
            type(e).__name__,
            getattr(e, "stderr", b"")[-300:] if hasattr(e, "stderr") else str(e)[-300:],
        )
        return {}


def call_native(f, grid, block):
    import cupy

    x = torch.ones(grid * block, device="cuda")
    out = torch.zeros_like(x)
    args = (cupy.asarray(x), cupy.asarray(out))
    s = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def go():
        with s:
            f((grid,), (block,), args)

    go()
    torch.cuda.synchronize()
    return go


def show(title, calls):
    try:
        t = timed(calls)
        print(f"{title:<34}" + "  ".join(f"{n} {v * 1000 / R:8.1f} ns" for n, v in t.items()), flush=True)
    except Exception as e:
        print(title, type(e).__name__, str(e)[:300], flush=True)


def main():
    show(
        "warp f32 / i32 redux / f64",
        {
            "f32": ours(lambda v, w: cute.warp_allreduce(v) * 0.03, 1, 32),
            "i32": ours(lambda v, w: cute.warp_allreduce(v) + 1, 1, 32, dtype=torch.int32),
            "f64": ours(lambda v, w: cute.warp_allreduce(v) * 0.03, 1, 32, dtype=torch.float64),
        },
    )
    show("mul alone", {"f32": ours(lambda v, w: v * 0.03, 1, 32)})
    names = [f"{k}_{t}" for t in (128, 256, 512, 1024) for k in ("first", "all")]
    cub = native(CUB, names, "cub")
    for t in (128, 256, 512, 1024):
        for grid in (132, 132 * 2048 // t):
            calls = {"ours reduce": ours(first, grid, t), "ours allreduce": ours(everyone, grid, t)}
            if cub:
                calls |= {
                    "cub reduce": call_native(cub[f"first_{t}"], grid, t),
                    "cub all": call_native(cub[f"all_{t}"], grid, t),
                }
            show(f"block {t} grid {grid}", calls)
    cgk = native(CG, ["cluster_pull"], "cg")
    for t, c, g in ((256, 4, 132), (256, 4, 132 * 4), (128, 8, 128), (512, 4, 132), (1024, 8, 128)):
        calls = {
            m: ours(lambda v, w, m=m: cute.cluster_allreduce(v, "add", m) * 0.001, g // c * c, t, (c, 1, 1))
            for m in ("push", "pull")
        }
        if t == 256 and cgk:
            calls["cg sync"] = call_native(cgk["cluster_pull"], g // 4 * 4, 256)
        show(f"cluster {c} x {t} grid {g}", calls)
    for t in (256, 1024):
        show(
            f"grid 132 x {t}",
            {
                "barrier": ours(lambda v, w: _b(v, w), 132, t, coop=True),
                "allreduce": ours(lambda v, w: cute.grid_allreduce(v, "add", w) * 1e-5, 132, t, coop=True),
            },
        )


def _b(v, w):
    cute.grid_barrier(w)
    return v * 0.5


if __name__ == "__main__":
    main()
