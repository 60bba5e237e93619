// Asynchronous copies, mbarriers, clusters.
#include "common.cuh"

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void barrier_init(u64* b, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_wait(u64* b, u32 phase) {
    asm volatile(
        "{ .reg .pred p;\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@p bra DONE;\n bra WAIT;\n DONE: }" ::"r"(shared_address(b)), "r"(phase) : "memory");
}
__device__ __forceinline__ void barrier_expect(u64* b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}

// kernel: {"in": ["u32 any *4"], "out": ["u32", 4], "threads": 256, "block": 128}
KERNEL cp_async_groups(const u32* a, u32* out, int n) {
    __shared__ __align__(16) u32 stage[2][128 * 4];
    INDEX;
    const u32 low = shared_address(&stage[0][threadIdx.x * 4]), high = shared_address(&stage[1][threadIdx.x * 4]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(low), "l"(a + 4 * i));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(high), "l"(a + 4 * i + 1));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, 4;" ::"r"(high + 8), "l"(a + 4 * i + 2));  // 4 bytes, 4 zeros
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 0;" ::"r"(high + 4), "l"(a));              // all zeros
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    OUT(0, stage[0][(threadIdx.x * 4 + 7) % 512]);
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    OUT(1, stage[1][511 - threadIdx.x * 4]); OUT(2, stage[1][threadIdx.x * 4]); OUT(3, stage[1][threadIdx.x * 4 + 1]);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 1024, "block": 128}
KERNEL cp_async_pipeline(const u32* a, u32* out, int n) {
    // Three stages over four chunks of 128 words; every thread reads its neighbour's copy.
    __shared__ u32 stage[3][128];
    const int t = threadIdx.x, base = blockIdx.x * 128;
    auto load = [&](int chunk) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&stage[chunk % 3][t])),
                     "l"(a + (base + chunk * 128 + t) % n));
        asm volatile("cp.async.commit_group;");
    };
    load(0); load(1);
    u32 sum = 0;
    for (int chunk = 0; chunk < 4; ++chunk) {
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        if (chunk + 2 < 4) load(chunk + 2);
        else asm volatile("cp.async.commit_group;");
        sum = sum * 5 + stage[chunk % 3][(t + 1) % 128];
    }
    out[base + t] = sum;
}

// kernel: {"in": ["u32 any"], "out": ["u32", 2], "threads": 256, "block": 128}
KERNEL mbarrier_phases(const u32* a, u32* out, int n) {
    __shared__ u64 full, empty;
    __shared__ u32 slot[64];
    INDEX;
    if (threadIdx.x == 0) { barrier_init(&full, 64); barrier_init(&empty, 64); }
    __syncthreads();
    const int t = threadIdx.x % 64;
    u32 sum = 0;
    if (threadIdx.x < 64) {
        for (u32 k = 0; k < 3; ++k) {
            if (k > 0) barrier_wait(&empty, (k - 1) & 1);
            slot[t] = a[i] + k;
            asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(&full)) : "memory");
        }
    } else {
        for (u32 k = 0; k < 3; ++k) {
            barrier_wait(&full, k & 1);
            sum = sum * 7 + slot[63 - t];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty)) : "memory");
        }
    }
    __syncthreads();
    u64 state;
    u32 count;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(state) : "r"(shared_address(&full)));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
    OUT(0, sum); OUT(1, count * 0);
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&full)) : "memory");
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 128}
KERNEL mbarrier_tests(const u32* a, u32* out, int n) {
    // State tokens, test_wait, arrive with a count, drop.
    __shared__ u64 b;
    INDEX;
    if (threadIdx.x == 0) barrier_init(&b, 128);
    __syncthreads();
    u64 token;
    u32 done = 0, before;
    if (threadIdx.x == 127) {
        asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 1;" : "=l"(token) : "r"(shared_address(&b)) : "memory");
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(before) : "r"(shared_address(&b)), "l"(token) : "memory");
    }
    __syncthreads();
    if (threadIdx.x < 127)
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(shared_address(&b)) : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(shared_address(&b)), "l"(token) : "memory");
    OUT(0, a[i] + done + (threadIdx.x == 127 ? before : 0));
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 128}
KERNEL bulk_copies(const u32* a, u32* out, int n) {
    __shared__ __align__(128) u32 tile[128];
    __shared__ u64 full;
    const int base = blockIdx.x * 128;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(&full, 512);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(
                         shared_address(tile)), "l"(a + base), "r"(shared_address(&full)) : "memory");
    }
    barrier_wait(&full, 0);
    const u32 x = tile[127 - threadIdx.x];
    __syncthreads();
    tile[threadIdx.x] = x * 3;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out + base), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// kernel: {"in": ["u32 small"], "out": ["u32", 1], "threads": 512, "block": 128, "initial": "zero"}
KERNEL bulk_reductions(const u32* a, u32* out, int n) {
    // Every block adds its words onto the same 128.
    __shared__ __align__(128) u32 tile[128];
    tile[threadIdx.x] = a[blockIdx.x * 128 + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 512;" ::"l"(out), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}

// kernel: {"in": ["u32 any"], "out": ["u32", 4], "threads": 512, "block": 64, "cluster": 4}
KERNEL cluster_shared_memory(const u32* a, u32* out, int n) {
    __shared__ u32 mine[64];
    INDEX;
    u32 rank, size, remote, x, y;
    asm volatile("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(size));
    mine[threadIdx.x] = a[i];
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(&mine[63 - threadIdx.x])), "r"((rank + 1) % size));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(remote) : "memory");
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(y) : "r"(remote));
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(&mine[threadIdx.x & 7])), "r"(0));
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(remote), "r"(x & 255) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    OUT(0, x); OUT(1, y + 16 * rank + 256 * size); OUT(2, mine[threadIdx.x]); OUT(3, (y + 3 - rank) % size);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 256, "block": 64, "cluster": 2}
KERNEL cluster_async_stores(const u32* a, u32* out, int n) {
    // st.async to the other block of the cluster, counted by its mbarrier.
    __shared__ u64 full;
    __shared__ u32 slot[64];
    INDEX;
    u32 rank, there, barrier;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&full, 256);
    }
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(&slot[63 - threadIdx.x])), "r"(rank ^ 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(shared_address(&full)), "r"(rank ^ 1));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there), "r"(a[i]), "r"(barrier) : "memory");
    barrier_wait(&full, 0);
    OUT(0, slot[threadIdx.x]);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 128, "initial": "zero"}
KERNEL flag_between_blocks(const u32* a, u32* out, int n) {
    // Block 0 publishes by a release; the others spin with an acquire.
    INDEX;
    if (blockIdx.x == 0) {
        out[i] = a[i] | 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(out + n - 1), "r"(0x5eed) : "memory");
        }
    } else {
        u32 flag = 0;
        if (threadIdx.x == 0)
            while (flag != 0x5eed) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(out + n - 1) : "memory");
        __syncthreads();
        if (i < n - 1) out[i] = out[threadIdx.x] ^ i;
    }
}

// kernel: {"in": ["u32 any *4"], "out": ["u32", 1], "threads": 256, "block": 128}
KERNEL cp_async_mbarrier(const u32* a, u32* out, int n) {
    // Copies of cp.async that arrive on an mbarrier when they are done.
    __shared__ __align__(16) u32 tile[128 * 4];
    __shared__ u64 full;
    INDEX;
    if (threadIdx.x == 0) barrier_init(&full, 128);
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(tile + 4 * threadIdx.x)), "l"(a + 4 * i));
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&full)) : "memory");
    barrier_wait(&full, 0);
    OUT(0, tile[(threadIdx.x * 5 + 2) % 512]);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 128, "cluster": 2}
KERNEL cluster_mbarriers(const u32* a, u32* out, int n) {
    // Each block writes into the other's shared memory and arrives on the other's mbarrier.
    __shared__ u64 full;
    __shared__ u32 slot[128];
    INDEX;
    u32 rank, there, barrier;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        barrier_init(&full, 128);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(&slot[threadIdx.x])), "r"(rank ^ 1));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(shared_address(&full)), "r"(rank ^ 1));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(a[i] + rank) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
    asm volatile(
        "{ .reg .pred p;\n"
        "WAITC: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n"
        "@!p bra WAITC; }" ::"r"(shared_address(&full)) : "memory");
    OUT(0, slot[127 - threadIdx.x]);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 128, "cluster": 4}
KERNEL cluster_multicast(const u32* a, u32* out, int n) {
    // One block of the cluster copies 512 bytes into the shared memory of all four.
    __shared__ __align__(128) u32 tile[128];
    __shared__ u64 full;
    INDEX;
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&full, 512);
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (rank == 2 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 512, [%2], %3;" ::"r"(
                         shared_address(tile)), "l"(a + 256), "r"(shared_address(&full)), "h"((u16)0xf) : "memory");
    barrier_wait(&full, 0);
    OUT(0, tile[threadIdx.x] + rank);
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
