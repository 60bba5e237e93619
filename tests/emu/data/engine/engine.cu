// Kernels that exercise the emulator's execution: divergence, calls, barriers, communication between blocks.
// PTX: nvcc -ptx -arch=compute_90a -O3 engine.cu
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>

#define KERNEL extern "C" __global__ void

KERNEL add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

// Steps to 1 of the Collatz sequence: every thread leaves the loop at its own time.
KERNEL collatz(const uint32_t* a, uint32_t* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t value = a[i], steps = 0;
    while (value != 1) {
        value = value & 1 ? 3 * value + 1 : value >> 1;
        steps++;
    }
    out[i] = steps;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// Recursion, to a different depth in each thread.
KERNEL recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 10); }

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ int (*const table[2])(int) = {twice, square};

// Calls through function pointers that differ between threads.
KERNEL indirect_calls(int* out) { out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x); }

KERNEL hello(int n) {
    if (threadIdx.x < n) printf("thread %d of %u: %5.2f %s %c %llx%%\n", threadIdx.x, blockDim.x, threadIdx.x * 0.5, "text", 'x', 1ull << 40);
}

KERNEL matmul(const float* a, const float* b, float* c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}

// Neighbours exchange through shared memory, twice a round.
KERNEL rounds(int* out, int count) {
    __shared__ int s[128];
    int value = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        s[threadIdx.x] = value;
        __syncthreads();
        value = s[(threadIdx.x + 1) & 127] + 1;
        __syncthreads();
    }
    out[threadIdx.x] = value;
}

// The first block waits for all others: blocks must progress fairly.
KERNEL wait_for_others(int* arrived, int* payload, int* out) {
    if (blockIdx.x) {
        if (threadIdx.x) return;
        payload[blockIdx.x] = blockIdx.x;
        __threadfence();
        atomicAdd(arrived, 1);
        return;
    }
    if (threadIdx.x == 0) {
        while (*(volatile int*)arrived != gridDim.x - 1) {
        }
        __threadfence();
    }
    __syncthreads();
    int sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += payload[i];
    atomicAdd(out, sum);
}

KERNEL grid_sync(int* out) {
    auto grid = cooperative_groups::this_grid();
    int rank = grid.thread_rank(), size = grid.size();
    out[rank] = rank;
    grid.sync();
    int value = out[(rank + 257) % size];
    grid.sync();
    out[rank] = value;
}

// A warp waits at a barrier that the other never reaches.
KERNEL stuck(int* out) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
    out[threadIdx.x] = 1;
}

// Every thread waits for a flag that no one sets.
KERNEL spin(const int* flag) {
    while (*(const volatile int*)flag == 0) {
    }
}

// A value of shared memory that no one has written decides what is stored.
KERNEL unwritten(int* out) {
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

// The same value is loaded but never used: no fault.
KERNEL unwritten_unused(int* out) {
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = 1;
    __syncthreads();
    int value = ((volatile int*)s)[threadIdx.x];
    out[threadIdx.x] = threadIdx.x < 32 ? value : 0;
}

KERNEL assertion(int n) {
    if (threadIdx.x >= n) asm volatile("trap;");
}
