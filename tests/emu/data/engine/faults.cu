// Twelve correct kernels whose synchronisation the seeded faults remove (tests/emu/faults.py).
// PTX: nvcc -ptx -arch=compute_90a -O3 -std=c++17 faults.cu
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void

__device__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void barrier_init(uint64_t* b, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count));
}

__device__ void barrier_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(b))); }

__device__ void barrier_expect(uint64_t* b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes));
}

__device__ void barrier_wait(uint64_t* b, int parity) {
    uint32_t done;
    do {
        asm volatile(
            "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
            : "=r"(done)
            : "r"(shared_address(b)), "r"(parity));
    } while (!done);
}

// 1. A sum by halving, for each row.
KERNEL row_sum(const float* a, float* out, int n) {
    __shared__ float s[256];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += a[blockIdx.x * n + i];
    s[threadIdx.x] = sum;
    __syncthreads();
#pragma unroll 1
    for (int k = 128; k > 0; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// 2. A 32 x 32 tile, transposed.
KERNEL transpose(const float* a, float* out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// 3. An inclusive scan of 128 numbers, in two buffers.
KERNEL scan(const int* a, int* out) {
    __shared__ int s[2][128];
    int t = threadIdx.x, from = 0;
    s[0][t] = a[blockIdx.x * 128 + t];
    __syncthreads();
#pragma unroll 1
    for (int k = 1; k < 128; k <<= 1) {
        s[1 - from][t] = s[from][t] + (t >= k ? s[from][t - k] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = s[from][t];
}

// 4. A ring of two stages filled by cp.async; threads read what others copied.
KERNEL copy_ring(const float4* a, float4* out, int n) {
    __shared__ float4 s[2][128];
    int t = threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&s[0][t])), "l"(a + t));
    asm volatile("cp.async.commit_group;");
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        if (i + 1 < n)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&s[(i + 1) & 1][t])),
                         "l"(a + (i + 1) * 128 + t));
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        out[i * 128 + t] = s[i & 1][127 - t];
        __syncthreads();
    }
}

// 5. A producer thread fills two stages by bulk copies, four warps consume them.
KERNEL bulk_ring(const float* a, float* out, int n) {
    __shared__ __align__(128) float s[2][256];
    __shared__ uint64_t full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0)
        for (int i = 0; i < 2; i++) barrier_init(&full[i], 1), barrier_init(&empty[i], 128);
    __syncthreads();
    if (t >= 128) {
        if (t == 128)
#pragma unroll 1
            for (int i = 0; i < n; i++) {
                barrier_wait(&empty[i & 1], i >> 1 & 1 ^ 1);
                barrier_expect(&full[i & 1], 1024);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(
                                 shared_address(s[i & 1])),
                             "l"(a + i * 256), "r"(shared_address(&full[i & 1])));
            }
        return;
    }
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        barrier_wait(&full[i & 1], i >> 1 & 1);
        out[i * 256 + t] = 2 * s[i & 1][t];
        out[i * 256 + t + 128] = 2 * s[i & 1][t + 128];
        barrier_arrive(&empty[i & 1]);
    }
}

// 6. Two named barriers between producer and consumer warps.
KERNEL named_barriers(const int* a, int* out, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        if (t < 64) {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            s[t] = a[i * 64 + t];
            asm volatile("bar.arrive 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.arrive 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
            out[i * 64 + t - 64] = s[127 - t] + 1;
        }
    }
}

// 7. One mma.sync product of tiles that two warps have loaded.
KERNEL warp_product(const __half* a, const __half* b, float* c) {
    __shared__ __align__(16) __half as[256], bs[128];
    int t = threadIdx.x & 31;
    for (int i = threadIdx.x; i < 256; i += 64) as[i] = a[i];
    for (int i = threadIdx.x; i < 128; i += 64) bs[i] = b[i];
    __syncthreads();
    if (threadIdx.x >= 32) return;
    uint32_t A[4], B[2];
    float d[4] = {};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(A[0]), "=r"(A[1]), "=r"(A[2]), "=r"(A[3])
                 : "r"(shared_address(&as[t % 16 * 16 + t / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(B[0]), "=r"(B[1])
                 : "r"(shared_address(&bs[t % 16 * 8])));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
    int row = t / 4, column = t % 4 * 2;
    c[row * 8 + column] = d[0], c[row * 8 + column + 1] = d[1];
    c[(row + 8) * 8 + column] = d[2], c[(row + 8) * 8 + column + 1] = d[3];
}

__device__ uint64_t descriptor(const void* p, int leading, int stride) {
    return (uint64_t)(shared_address(p) >> 4 & 0x3FFF) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32;
}

// 8. One wgmma product, tiles written by ordinary stores (no swizzle: 8 x 8 blocks of 128 bytes).
KERNEL group_product(const __half* a, const __half* b, float* c) {
    __shared__ __align__(1024) __half as[64 * 16], bs[8 * 16];
    int t = threadIdx.x;
    for (int i = t; i < 64 * 16; i += 128) as[i / 128 * 128 + i % 16 / 8 * 64 + i / 16 % 8 * 8 + i % 8] = a[i];
    for (int i = t; i < 8 * 16; i += 128) bs[i % 16 / 8 * 64 + i / 16 * 8 + i % 8] = b[i];
    asm volatile("fence.proxy.async;");
    __syncthreads();
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(descriptor(as, 128, 256)), "l"(descriptor(bs, 128, 256)));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
    c[row * 8 + column] = d[0], c[row * 8 + column + 1] = d[1];
    c[(row + 8) * 8 + column] = d[2], c[(row + 8) * 8 + column + 1] = d[3];
}

// 9. Blocks of a cluster read each other's shared memory.
KERNEL cluster_exchange(int* out) {
    __shared__ int s[32];
    auto cluster = cooperative_groups::this_cluster();
    int rank = cluster.block_rank();
    s[threadIdx.x] = rank * 100 + threadIdx.x;
    cluster.sync();
    out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(s, (rank + 1) % cluster.num_blocks())[threadIdx.x];
    cluster.sync();
}

// 10. A block publishes data by a flag with release and acquire.
KERNEL message(const int* a, int* data, int* flag, int* out) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = a[t] * 3;
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        int seen = 0;
        if (t == 0)
            while (!seen) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        out[blockIdx.x * 64 + t] = data[63 - t];
    }
}

// 11. The same with fences and relaxed atomics: the last block to finish adds up all partial sums.
KERNEL last_block(const int* a, int* partial, int* count, int* out) {
    __shared__ int s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * 64 + t];
    __syncthreads();
    if (t == 0) {
        int sum = 0;
        for (int i = 0; i < 64; i++) sum += s[i];
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += partial[i];
        *out = sum;
    }
}

// 12. A lock of compare-and-swap around an ordinary counter.
KERNEL lock(int* mutex, int* counter) {
    if (threadIdx.x % 32) return;
    for (bool done = false; !done;) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            __threadfence();
            *counter = *counter + 1;
            __threadfence();
            atomicExch(mutex, 0);
            done = true;
        }
    }
}
