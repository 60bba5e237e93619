// Control flow, calls, warp operations and barriers.
#include "common.cuh"

// kernel: {"in": ["u32 any"], "out": ["u32", 2], "threads": 512}
KERNEL flow_loops(const u32* a, u32* out, int n) {
    INDEX;
    u32 x = a[i] | 1, steps = 0, sum = 0;
    while (x != 1 && steps < 200) {
        x = x & 1 ? (x > 0x50000000 ? 1 : 3 * x + 1) : x >> 1;
        if (steps % 7 == 3) continue;
        for (u32 k = 0; k < (x & 3); ++k) {
            if (k * x > 1000) break;
            sum += k ^ x;
        }
        ++steps;
    }
    OUT(0, steps); OUT(1, sum);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512}
KERNEL flow_switch(const u32* a, u32* out, int n) {
    INDEX;
    u32 x = a[i], r = 0;
    for (int k = 0; k < 8; ++k) {
        switch ((x >> (3 * k)) & 7) {
            case 0: r += 5; break;
            case 1: r ^= x; break;
            case 2: r = r * 3 + 1;
            case 3: r += k; break;
            case 4: r -= x >> k; break;
            case 5: r = __brev(r); break;
            case 6: if (r & 1) { OUT(0, r); return; } break;
            default: r |= 1u << k;
        }
    }
    OUT(0, r);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512}
KERNEL flow_branch_table(const u32* a, u32* out, int n) {
    INDEX;
    u32 r;
    asm volatile(
        "{ .reg .u32 t; and.b32 t, %1, 3;\n"
        "ts: .branchtargets L0, L1, L2, L3;\n"
        "brx.idx t, ts;\n"
        "L0: add.u32 %0, %1, 11; bra L4;\n"
        "L1: mul.lo.u32 %0, %1, 13;\n"
        "L2: not.b32 %0, %1; bra L4;\n"
        "L3: mov.u32 %0, 17;\n"
        "L4: }" : "=r"(r) : "r"(a[i]));
    OUT(0, r);
}

__device__ __noinline__ u32 mixed(u32 x, float y, u64 z) { return x ^ __float_as_uint(y * 2.0f) ^ (u32)(z >> 7); }
__device__ __noinline__ u32 ackermann(u32 m, u32 k) {
    if (m == 0) return k + 1;
    if (k == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, k - 1));
}
typedef u32 (*Function)(u32);
__device__ __noinline__ u32 doubled(u32 x) { return 2 * x; }
__device__ __noinline__ u32 squared(u32 x) { return x * x; }
__device__ __noinline__ u32 negated(u32 x) { return 0 - x; }

// kernel: {"in": ["u32 any", "f32 unit"], "out": ["u32", 3], "threads": 128}
KERNEL flow_calls(const u32* a, const float* b, u32* out, int n) {
    INDEX;
    Function choice = a[i] % 3 == 0 ? doubled : a[i] % 3 == 1 ? squared : negated;
    OUT(0, mixed(a[i], b[i], (u64)a[i] * 977));
    OUT(1, ackermann(a[i] & 1, (a[i] >> 1) & 3) + ackermann(2, a[i] >> 30));
    OUT(2, choice(a[i]));
}

// kernel: {"in": ["u32 any", "u32 place"], "out": ["u32", 14], "threads": 256}
KERNEL warp_shuffles(const u32* a, const u32* b, u32* out, int n) {
    INDEX;
#define SHFL(j, mode, lane, clamp)                                                                          \
    {                                                                                                       \
        u32 r, t;                                                                                           \
        asm volatile("{ .reg .pred p; shfl.sync." mode ".b32 %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p; }" \
            : "=r"(r), "=r"(t) : "r"(a[i]), "r"(lane), "r"(clamp));                                         \
        OUT(j, r);                                                                                          \
        OUT(j + 1, t);                                                                                      \
    }
    SHFL(0, "idx", b[i], 0x1f) SHFL(2, "up", 3, 0) SHFL(4, "down", 5, 0x1f) SHFL(6, "bfly", 9, 0x1f)
    SHFL(8, "idx", 2, 0x181f) SHFL(10, "up", 1, 0x1800) SHFL(12, "down", 2, 0x1c1f)
}

// kernel: {"in": ["u32 small"], "out": ["u32", 14], "threads": 256}
KERNEL warp_votes(const u32* a, u32* out, int n) {
    INDEX;
    u32 x = a[i], r, t;
    OUT(0, __all_sync(0xffffffff, x < 60)); OUT(1, __any_sync(0xffffffff, x == 7)); OUT(2, __ballot_sync(0xffffffff, x & 1));
    asm volatile("{ .reg .pred p, q; setp.gt.u32 p, %1, 31; vote.sync.uni.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
        : "=r"(r) : "r"(x));
    OUT(3, r);
    OUT(4, __match_any_sync(0xffffffff, x >> 2));
    asm volatile("{ .reg .pred p; match.all.sync.b32 %0|p, %2, 0xffffffff; selp.u32 %1, 1, 0, p; }"
        : "=r"(r), "=r"(t) : "r"(x >> 6));
    OUT(5, r); OUT(6, t);
    OUT(7, __match_any_sync(0xffffffff, (u64)(x & 1) << 40));
    OUT(8, __reduce_add_sync(0xffffffff, x)); OUT(9, __reduce_min_sync(0xffffffff, (int)x - 30));
    OUT(10, __reduce_max_sync(0xffffffff, x)); OUT(11, __reduce_xor_sync(0xffffffff, x));
    OUT(12, __reduce_and_sync(0xffffffff, x | 64)); OUT(13, __reduce_or_sync(0xffffffff, x << 3));
}

// kernel: {"in": ["u32 any"], "out": ["u32", 4], "threads": 256}
KERNEL warp_partial_masks(const u32* a, u32* out, int n) {
    INDEX;
    const u32 lane = threadIdx.x & 31;
    u32 r = 0, s = 0, t = 0;
    if (lane < 12) {
        r = __shfl_xor_sync(0x00000fff, a[i], 1);
        s = __ballot_sync(0x00000fff, a[i] & 1);
        t = __reduce_add_sync(0x00000fff, a[i] & 0xff);
    } else if (lane & 1) {
        r = __shfl_sync(0xaaaaa000, a[i], 31);
        s = __any_sync(0xaaaaa000, a[i] == 0);
        t = __match_any_sync(0xaaaaa000, a[i] & 1);
    }
    __syncwarp();
    u32 e;
    asm volatile("{ .reg .pred p; .reg .u32 l; elect.sync l|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(e));
    OUT(0, r); OUT(1, s); OUT(2, t); OUT(3, __reduce_add_sync(0xffffffff, e));
}

// kernel: {"in": ["f32 unit"], "out": ["f32", 1], "threads": 1024, "block": 256}
KERNEL warp_block_sum(const float* a, float* out, int n) {
    __shared__ float parts[8];
    INDEX;
    float x = a[i];
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    float total = 0;
    for (int k = 0; k < 8; ++k) total += parts[k];
    OUT(0, a[i] / total);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 128}
KERNEL bar_scan(const u32* a, u32* out, int n) {
    __shared__ u32 buffer[2][128];
    INDEX;
    int now = 0;
    buffer[0][threadIdx.x] = a[i];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();
        u32 x = buffer[now][threadIdx.x];
        if (threadIdx.x >= step) x += buffer[now][threadIdx.x - step];
        now ^= 1;
        buffer[now][threadIdx.x] = x;
    }
    OUT(0, buffer[now][threadIdx.x]);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 3], "threads": 512, "block": 128}
KERNEL bar_reductions(const u32* a, u32* out, int n) {
    INDEX;
    OUT(0, __syncthreads_count(a[i] & 1)); OUT(1, __syncthreads_and(a[i] != 0)); OUT(2, __syncthreads_or(a[i] == 0x7fffffff));
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 256, "block": 128}
KERNEL bar_producer_consumer(const u32* a, u32* out, int n) {
    // Two warps produce, two consume, through named barriers with arrive and sync.
    __shared__ u32 slot[2][64];
    const int base = blockIdx.x * 128, t = threadIdx.x % 64;
    if (threadIdx.x < 64) {
        for (int k = 0; k < 4; ++k) {
            if (k >= 2) asm volatile("barrier.sync %0, 128;" ::"r"(3 + (k & 1)) : "memory");
            slot[k & 1][t] = a[base + t] * (k + 1);
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + (k & 1)) : "memory");
        }
    } else {
        u32 sum = 0;
        for (int k = 0; k < 4; ++k) {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + (k & 1)) : "memory");
            sum = sum * 31 + slot[k & 1][63 - t];
            if (k < 2) asm volatile("barrier.arrive %0, 128;" ::"r"(3 + (k & 1)) : "memory");
        }
        out[base + t] = sum;
        out[base + 64 + t] = ~sum;
    }
}

// kernel: {"in": ["u32 any"], "out": ["u32", 12], "threads": 192, "block": 96}
KERNEL flow_special_registers(const u32* a, u32* out, int n) {
    INDEX;
#define SPECIAL(j, name) { u32 r; asm volatile("mov.u32 %0, " name ";" : "=r"(r)); OUT(j, r); }
    SPECIAL(0, "%tid.x") SPECIAL(1, "%ntid.x") SPECIAL(2, "%ctaid.x") SPECIAL(3, "%nctaid.x") SPECIAL(4, "%laneid")
    SPECIAL(5, "%lanemask_lt") SPECIAL(6, "%lanemask_ge") SPECIAL(7, "%tid.y") SPECIAL(8, "%ntid.z")
    SPECIAL(9, "%lanemask_eq") SPECIAL(10, "%lanemask_le") SPECIAL(11, "%lanemask_gt")
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 1024, "block": 128, "initial": "zero"}
KERNEL flow_last_block(const u32* a, u32* out, int n) {
    // The block that arrives last sums what all wrote: fence, atomic, volatile reads.
    __shared__ bool last;
    INDEX;
    if (i < n - 1) out[i] = a[i] >> 8;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&out[n - 1], 0x01000000) >> 24 == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        u32 sum = 0;
        for (int k = 0; k < n - 1; ++k) sum += ((volatile u32*)out)[k];
        out[n - 1] = sum;
    }
}

// kernel: {"in": ["f32 unit", "f32 unit"], "out": ["f32", 1], "threads": 1024, "block": 256}
KERNEL flow_tiled_matmul(const float* a, const float* b, float* out, int n) {
    __shared__ float as[16][16], bs[16][17];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16, row = blockIdx.x / 2 * 16 + y, col = blockIdx.x % 2 * 16 + x;
    float sum = 0;
    for (int k = 0; k < 32; k += 16) {
        as[y][x] = a[row * 32 + k + x];
        bs[y][x] = b[(k + y) * 32 + col];
        __syncthreads();
        for (int j = 0; j < 16; ++j) sum = __fmaf_rn(as[y][j], bs[j][x], sum);
        __syncthreads();
    }
    out[row * 32 + col] = sum;
}

// kernel: {"in": ["u32 any"], "out": ["u32", 4], "threads": 256}
KERNEL flow_clocks(const u32* a, u32* out, int n) {
    INDEX;
    u32 before, after;
    u64 start, end;
    asm volatile("mov.u32 %0, %%clock; mov.u64 %1, %%globaltimer;" : "=r"(before), "=l"(start) :: "memory");
    asm volatile("nanosleep.u32 100;" ::: "memory");
    asm volatile("mov.u64 %0, %%globaltimer; mov.u32 %1, %%clock;" : "=l"(end), "=r"(after) :: "memory");
    u32 mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    OUT(0, end >= start); OUT(1, (int)(after - before) > 0); OUT(2, mask); OUT(3, a[i]);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 512, "block": 256}
KERNEL_OF(256) flow_register_budgets(const u32* a, u32* out, int n) {
    // Warp specialisation with register budgets for each warpgroup.
    __shared__ u32 slot[128];
    INDEX;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        slot[threadIdx.x] = a[i];
        asm volatile("bar.arrive 1, 256;" ::: "memory");
        OUT(0, a[i] + 1);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        asm volatile("bar.sync 1, 256;" ::: "memory");
        OUT(0, slot[255 - threadIdx.x] ^ a[i]);
    }
}

// kernel: {"in": ["u32 any"], "out": ["u32", 2], "threads": 256, "block": 64}
KERNEL flow_divergent_exits(const u32* a, u32* out, int n) {
    // Threads leave one after the other; the rest go on through loops and shuffles among themselves.
    INDEX;
    u32 x = a[i], turn = 0, mask = 0xffffffff;
    OUT(1, 0);
    for (; turn < 6; ++turn) {
        const bool leaves = (x >> (4 * turn) & 7) == 0;
        mask = __ballot_sync(mask, !leaves);
        if (leaves) { OUT(0, turn | x << 8); return; }
        x += __shfl_sync(mask, x, __ffs(mask) - 1) & 0x01010101;
    }
    OUT(0, x); OUT(1, mask);
}
