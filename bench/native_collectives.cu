// What bench_communication compares with: CUB's BlockReduce, and a cluster's reduction by cooperative groups.
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>

namespace cg = cooperative_groups;

template <int T> __device__ void reduce(const float *x, float *out, int rounds) {
  typedef cub::BlockReduce<float, T> Reduce;
  __shared__ typename Reduce::TempStorage temp;
  int i = blockIdx.x * T + threadIdx.x;
  float v = x[i];
  for (int n = 0; n < rounds; n++) {
    float total = Reduce(temp).Sum(v);
    __syncthreads();
    v = threadIdx.x == 0 ? total * 0.001f : v * 0.999f;
  }
  out[i] = v;
}

template <int T> __device__ void allreduce(const float *x, float *out, int rounds) {
  typedef cub::BlockReduce<float, T> Reduce;
  __shared__ typename Reduce::TempStorage temp;
  __shared__ float shared;
  int i = blockIdx.x * T + threadIdx.x;
  float v = x[i];
  for (int n = 0; n < rounds; n++) {
    float total = Reduce(temp).Sum(v);
    if (threadIdx.x == 0) shared = total;
    __syncthreads();
    v = shared * 0.001f;
  }
  out[i] = v;
}

#define KERNELS(T)                                                                                                     \
  extern "C" __global__ void __launch_bounds__(T) reduce_##T(const float *x, float *out, int rounds) {                 \
    reduce<T>(x, out, rounds);                                                                                         \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(T) allreduce_##T(const float *x, float *out, int rounds) {              \
    allreduce<T>(x, out, rounds);                                                                                      \
  }
KERNELS(128)
KERNELS(256)
KERNELS(512)
KERNELS(1024)

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(256)
    cluster_256(const float *x, float *out, int rounds) {
  __shared__ float warps[8];
  __shared__ float own[2];
  auto cluster = cg::this_cluster();
  int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
  for (int n = 0; n < rounds; n++) {
    for (int step = 16; step; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    float total = 0;
    for (int w = 0; w < 8; w++) total += warps[w];
    if (threadIdx.x == 0) own[n & 1] = total;
    cluster.sync();
    v = 0;
    for (int r = 0; r < 4; r++) v += *cluster.map_shared_rank(&own[n & 1], r);
    v *= 0.001f;
  }
  cluster.sync();
  out[i] = v;
}
