// Loads, stores, state spaces, atomics.
#include "common.cuh"

__constant__ u32 table[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};
__device__ u32 counters[64];

// kernel: {"in": ["u32 any *4", "u16 any *4"], "out": ["u32", 12], "threads": 256}
KERNEL mem_vectors(const u32* a, const u16* b, u32* out, int n) {
    INDEX;
    uint4 x = reinterpret_cast<const uint4*>(a)[i];
    uint2 y = reinterpret_cast<const uint2*>(a)[2 * i + 1];
    ushort4 z = reinterpret_cast<const ushort4*>(b)[i];
    OUT(0, x.x); OUT(1, x.y ^ x.z); OUT(2, x.w); OUT(3, y.x + y.y); OUT(4, z.x | z.w << 16); OUT(5, z.y - z.z);
    u32 p, q;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(p), "=r"(q) : "l"(a + 4 * i));
    OUT(6, p); OUT(7, q);
    u32 s;
    asm volatile("ld.global.cg.s8 %0, [%1];" : "=r"(s) : "l"((const char*)a + 16 * i + 5)); OUT(8, s);
    asm volatile("ld.volatile.global.u16 %0, [%1];" : "=r"(s) : "l"(b + 4 * i + 3)); OUT(9, s);
    asm volatile("ld.relaxed.gpu.global.s16 %0, [%1];" : "=r"(s) : "l"(b + 4 * i + 1)); OUT(10, s);
    asm volatile("prefetch.global.L2 [%1]; ld.acquire.sys.global.u32 %0, [%1];" : "=r"(s) : "l"(a + 4 * i)); OUT(11, s);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 3], "threads": 256}
KERNEL mem_constant_and_local(const u32* a, u32* out, int n) {
    INDEX;
    u32 kept[16];
    for (int k = 0; k < 16; ++k) kept[k] = table[(a[i] + k) & 31] * k;
    u32 sum = 0;
    for (int k = 0; k < 8; ++k) {
        kept[(a[i] >> k) & 15] += k;
        sum += kept[(a[i] >> (2 * k)) & 15];
    }
    OUT(0, sum); OUT(1, table[i & 63]); OUT(2, kept[a[i] & 15]);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 4], "threads": 256, "block": 64}
KERNEL mem_generic_addresses(const u32* a, u32* out, int n) {
    __shared__ u32 tile[64];
    INDEX;
    u32 own[4] = {a[i], 1, 2, 3};
    tile[threadIdx.x] = a[i];
    __syncthreads();
    const u32* where = (a[i] & 3) == 0 ? &tile[63 - threadIdx.x] : (a[i] & 3) == 1 ? own + (a[i] >> 30) : a + (n - 1 - i);
    OUT(0, *where);
    u32 s;
    asm("{ .reg .pred p, q, r; .reg .u32 t; isspacep.shared p, %1; isspacep.local q, %1; isspacep.global r, %1;"
        " selp.u32 %0, 1, 0, p; selp.u32 t, 2, 0, q; or.b32 %0, %0, t; selp.u32 t, 4, 0, r; or.b32 %0, %0, t; }"
        : "=r"(s) : "l"(where));
    OUT(1, s);
    u64 base, back;
    asm("cvta.shared.u64 %0, %1;" : "=l"(base) : "l"((u64)__cvta_generic_to_shared(tile)));
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(back) : "l"(base));
    OUT(2, (u32)(back == __cvta_generic_to_shared(tile)));
    OUT(3, reinterpret_cast<volatile u16*>(tile)[2 * (i & 31) + 1]);
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 1024, "block": 256}
KERNEL mem_transpose(const u32* a, u32* out, int n) {
    __shared__ u32 tile[16][17];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16, base = blockIdx.x * 256;
    tile[y][x] = a[base + threadIdx.x];
    __syncthreads();
    out[base + threadIdx.x] = tile[x][y];
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 256, "block": 128, "smem": 2048}
KERNEL mem_dynamic_shared(const u32* a, u32* out, int n) {
    extern __shared__ u32 pool[];
    INDEX;
    float4* wide = reinterpret_cast<float4*>(pool);
    wide[threadIdx.x] = make_float4(a[i] & 255, threadIdx.x, 2.0f, 3.0f);
    __syncthreads();
    OUT(0, __float_as_uint(reinterpret_cast<float*>(pool)[(threadIdx.x * 37) % 512]));
}

// kernel: {"in": ["s32 any"], "out": ["u32", 20], "threads": 256, "initial": true}
KERNEL atom_private(const s32* a, u32* out, int n) {
    INDEX;
    // Every thread its own words: the fetched values are determined.
#define ATOM(j, op)                                                                                       \
    {                                                                                                     \
        u32 r, *p = out + (j) * n + i;                                                                    \
        asm volatile("atom." op " %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(a[i]) : "memory");               \
        p[n] = r;                                                                                         \
    }
    ATOM(0, "global.add.u32") ATOM(2, "global.min.s32") ATOM(4, "global.max.u32") ATOM(6, "relaxed.gpu.global.and.b32")
    ATOM(8, "acq_rel.sys.global.or.b32") ATOM(10, "release.cta.global.xor.b32") ATOM(12, "acquire.gpu.global.exch.b32")
    ATOM(14, "global.inc.u32") ATOM(16, "global.dec.u32")
    u32 r, *p = out + 18 * n + i;
    asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(p), "r"(i & 1 ? *p : 77), "r"(a[i]) : "memory");
    p[n] = r;
}

// kernel: {"in": ["s64 any", "f32 any"], "out": ["u64", 16], "threads": 256, "initial": true}
KERNEL atom_wide_and_float(const s64* a, const float* b, u64* out, int n) {
    INDEX;
#define ATOM64(j, op)                                                                                     \
    {                                                                                                     \
        u64 r, *p = out + (j) * n + i;                                                                    \
        asm volatile("atom.global." op " %0, [%1], %2;" : "=l"(r) : "l"(p), "l"(a[i]) : "memory");        \
        p[n] = r;                                                                                         \
    }
    ATOM64(0, "add.u64") ATOM64(2, "min.s64") ATOM64(4, "max.u64") ATOM64(6, "exch.b64") ATOM64(8, "xor.b64")
    float f, *p = reinterpret_cast<float*>(out + 10 * n + i);
    asm volatile("atom.global.add.f32 %0, [%1], %2;" : "=f"(f) : "l"(p), "f"(b[i]) : "memory");
    out[11 * n + i] = __float_as_uint(f);
    double d, *q = reinterpret_cast<double*>(out + 12 * n + i);
    asm volatile("atom.global.add.f64 %0, [%1], %2;" : "=d"(d) : "l"(q), "d"((double)b[i]) : "memory");
    out[13 * n + i] = (u64)__double_as_longlong(d);
    u32 h, *s = reinterpret_cast<u32*>(out + 14 * n + i);
    asm volatile("atom.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(h) : "l"(s), "r"((u32)a[i]) : "memory");
    out[15 * n + i] = h;
}

// kernel: {"in": ["u32 any"], "out": ["u32", 1], "threads": 2048, "block": 128, "initial": "zero"}
KERNEL atom_shared_totals(const u32* a, u32* out, int n) {
    // Many threads on the same words: only totals that do not depend on the order.
    __shared__ u32 bins[32], least, most, either;
    INDEX;
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    if (threadIdx.x == 0) { least = 0xffffffff; most = 0; either = 0; }
    __syncthreads();
    atomicAdd(&bins[a[i] & 31], 1 + (a[i] >> 28));
    atomicMin(&least, a[i]);
    atomicMax(&most, a[i]);
    atomicXor(&either, a[i]);
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
    if (threadIdx.x == 32) atomicMax(&out[32], most);
    if (threadIdx.x == 33) atomicAdd(&out[33], least);
    if (threadIdx.x == 34) atomicXor(&out[34], either);
}

// kernel: {"in": ["s16 any"], "out": ["u32", 1], "threads": 1024, "block": 256, "initial": "zero"}
KERNEL red_totals(const s16* a, u32* out, int n) {
    INDEX;
    // Sums of small integers are exact in f32 and f16x2 whatever the order.
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(out), "f"((float)(a[i] % 64)) : "memory");
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(out + 1), "r"((s32)a[i]) : "memory");
    asm volatile("red.release.sys.global.max.s32 [%0], %1;" ::"l"(out + 2), "r"((s32)a[i]) : "memory");
    asm volatile("red.global.or.b32 [%0], %1;" ::"l"(out + 3), "r"(1 << (a[i] & 31)) : "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(out + 4), "r"(a[i] & 1 ? 0x3c000000 : 0x00003c00) : "memory");
    asm volatile("red.global.inc.u32 [%0], %1;" ::"l"(out + 5), "r"(99) : "memory");
    asm volatile("red.global.add.f64 [%0], %1;" ::"l"(out + 6), "d"((double)a[i]) : "memory");
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(out + 8), "l"((u64)(s64)a[i]) : "memory");
}

// kernel: {"in": ["u32 any"], "out": ["u32", 2], "threads": 512, "block": 128, "initial": "zero"}
KERNEL atom_ticket_lock(const u32* a, u32* out, int n) {
    // A spin lock taken by one thread of each warp; the protected sum is exact.
    INDEX;
    u32* lock = out;
    u32* sum = out + 1;
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *(volatile u32*)sum = *(volatile u32*)sum + (a[i] & 0xffff);
        __threadfence();
        atomicExch(lock, 0);
    }
}

// kernel: {"in": ["u32 any *4", "f64 any *2"], "out": ["u32", 8], "threads": 256}
KERNEL mem_policies(const u32* a, const double* b, u32* out, int n) {
    // Cache hints and vector stores change nothing that can be seen.
    INDEX;
    u64 policy;
    u32 x, y, z, w;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
        : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(a + 4 * i), "l"(policy));
    asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(out + i), "r"(x ^ w), "l"(policy) : "memory");
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(out + n + i), "r"(y) : "memory");
    asm volatile("st.global.wt.b8 [%0], %1;" ::"l"((char*)(out + 2 * n + i) + 1), "r"(z) : "memory");
    asm volatile("st.global.b16 [%0], %1;" ::"l"((char*)(out + 2 * n + i) + 2), "h"((u16)w) : "memory");
    double p, q;
    asm volatile("ld.global.cs.v2.f64 {%0,%1}, [%2];" : "=d"(p), "=d"(q) : "l"(b + 2 * i));
    asm volatile("st.global.f64 [%0], %1;" ::"l"(out + 3 * n + 2 * i), "d"(q) : "memory");
    asm volatile("prefetch.global.L1 [%0]; applypriority.global.L2::evict_normal [%1], 128;" ::"l"(a + 4 * i), "l"(a));
    OUT(5, (u32)__double_as_longlong(p)); OUT(6, z + w); OUT(7, __ldg(a + (4 * i + 7) % (4 * n)));
}

// kernel: {"in": ["u32 small *4"], "out": ["f32", 4], "threads": 256, "initial": "zero"}
KERNEL red_vectors(const u32* a, float* out, int n) {
    // Sums of small integers: exact in any order.
    INDEX;
    float* p = out + 4 * (i & 31);
    asm volatile("red.global.v4.f32.add [%0], {%1,%2,%3,%4};" ::"l"(p), "f"((float)a[4 * i]), "f"((float)a[4 * i + 1]),
                 "f"((float)a[4 * i + 2]), "f"((float)a[4 * i + 3]) : "memory");
    asm volatile("red.global.v2.f32.add [%0], {%1,%2};" ::"l"(p + 128), "f"((float)a[4 * i]), "f"(1.0f) : "memory");
    u32 h = 0x3c00 | (a[4 * i] & 3) << 26;
    asm volatile("red.global.v2.f16x2.add.noftz [%0], {%1,%1};" ::"l"(p + 256), "r"(0x3c003c00) : "memory");
    asm volatile("red.global.v2.bf16x2.max.noftz [%0], {%1,%2};" ::"l"(p + 258), "r"(h), "r"(h >> 1) : "memory");
}

// kernel: {"in": ["u16 any", "f16x2 any"], "out": ["u32", 6], "threads": 256, "initial": true}
KERNEL atom_halves(const u16* a, const u32* b, u32* out, int n) {
    INDEX;
    u16 r, *p = reinterpret_cast<u16*>(out + i);
    asm volatile("atom.global.add.noftz.f16 %0, [%1], %2;" : "=h"(r) : "l"(p), "h"(a[i]) : "memory");
    OUT(1, r);
    asm volatile("atom.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(r) : "l"(p + 1), "h"(a[i]) : "memory");
    OUT(2, r);
    u32 s;
    asm volatile("atom.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(s) : "l"(out + 3 * n + i), "r"(b[i]) : "memory");
    OUT(4, s);
    asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;" : "=h"(r) : "l"(reinterpret_cast<u16*>(out + 5 * n + i)), "h"((u16)(i * 3)), "h"(a[i]) : "memory");
}

// kernel: {"in": ["u64 any *2"], "out": ["u64", 6], "threads": 128, "initial": true}
KERNEL atom_128_bits(const u64* a, u64* out, int n) {
    INDEX;
    u64 x, y, *p = out + 2 * i, *q = out + 2 * n + 2 * i;
    asm volatile("{ .reg .b128 o, v; mov.b128 v, {%3, %4}; atom.global.exch.b128 o, [%2], v; mov.b128 {%0, %1}, o; }"
        : "=l"(x), "=l"(y) : "l"(p), "l"(a[2 * i]), "l"(a[2 * i + 1]) : "memory");
    OUT(4, x); OUT(5, y);
    asm volatile("{ .reg .b128 o, c, v; mov.b128 c, {%2, %3}; mov.b128 v, {%3, %2}; atom.global.cas.b128 o, [%1], c, v;"
        " mov.b128 {%0, _}, o; }" : "=l"(x) : "l"(q), "l"(i & 1 ? q[0] : 5), "l"(q[1]) : "memory");
}
