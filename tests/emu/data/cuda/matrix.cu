// Tensor-core instructions and their data movement. Operands marked `exact` have sums that every accumulator holds.
#include "common.cuh"

#define LANE const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
#define A(k) "r"(a[4 * i + (k)])
#define B(k) "r"(b[4 * i + (k)])
#define C(k) "r"(c[4 * i + (k)])
#define STORE4(j) OUT(j, d0); OUT(j + 1, d1); OUT(j + 2, d2); OUT(j + 3, d3)
#define D4 "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)

// M16N8 with four, two or one registers of A and half as many of B.
#define MMA_4(j, op)                                                                                          \
    {                                                                                                         \
        u32 d0, d1, d2, d3;                                                                                   \
        asm volatile("mma.sync.aligned." op " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"      \
            : D4 : A(0), A(1), A(2), A(3), B(0), B(1), C(0), C(1), C(2), C(3));                               \
        STORE4(j);                                                                                            \
    }
#define MMA_2(j, op)                                                                                          \
    {                                                                                                         \
        u32 d0, d1, d2, d3;                                                                                   \
        asm volatile("mma.sync.aligned." op " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"                  \
            : D4 : A(0), A(1), B(0), C(0), C(1), C(2), C(3));                                                 \
        STORE4(j);                                                                                            \
    }
#define MMA_1(j, op)                                                                                          \
    {                                                                                                         \
        u32 d0, d1;                                                                                           \
        asm volatile("mma.sync.aligned." op " {%0,%1}, {%2}, {%3}, {%4,%5};"                                  \
            : "=r"(d0), "=r"(d1) : A(0), B(0), C(0), C(1));                                                   \
        OUT(j, d0); OUT(j + 1, d1);                                                                           \
    }
#define MMA_4_HALF(j, op)                                                                                     \
    {                                                                                                         \
        u32 d0, d1;                                                                                           \
        asm volatile("mma.sync.aligned." op " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"                      \
            : "=r"(d0), "=r"(d1) : A(0), A(1), A(2), A(3), B(0), B(1), C(0), C(1));                           \
        OUT(j, d0); OUT(j + 1, d1);                                                                           \
    }

// kernel: {"in": ["f16x2 exact *4", "f16x2 exact *4", "f32 exact *4"], "out": ["u32", 8], "threads": 256}
KERNEL mma_f16_f32(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k16.row.col.f32.f16.f16.f32")
    MMA_2(4, "m16n8k8.row.col.f32.f16.f16.f32")
}

// kernel: {"in": ["f16x2 exact *4", "f16x2 exact *4", "f16x2 exact *4"], "out": ["u32", 4], "threads": 256}
KERNEL mma_f16_f16(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4_HALF(0, "m16n8k16.row.col.f16.f16.f16.f16")
    u32 d0, d1;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%5,%6};"
        : "=r"(d0), "=r"(d1) : A(0), A(1), B(0), C(0), C(1));
    OUT(2, d0); OUT(3, d1);
}

// kernel: {"in": ["f16x2 exact *4", "f16x2 exact *4", "f32 exact *8", "f16x2 exact *4"], "out": ["u32", 20], "threads": 256}
KERNEL mma_m8n8k4(const u32* a, const u32* b, const u32* c, const u32* h, u32* out, int n) {
    LANE;
#define QUAD(j, layouts)                                                                                      \
    {                                                                                                         \
        u32 d0, d1, d2, d3, d4, d5, d6, d7;                                                                   \
        asm volatile("mma.sync.aligned.m8n8k4." layouts ".f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}," \
            " {%12,%13,%14,%15,%16,%17,%18,%19};"                                                             \
            : D4, "=r"(d4), "=r"(d5), "=r"(d6), "=r"(d7) : A(0), A(1), B(0), B(1), "r"(c[8 * i]), "r"(c[8 * i + 1]), \
              "r"(c[8 * i + 2]), "r"(c[8 * i + 3]), "r"(c[8 * i + 4]), "r"(c[8 * i + 5]), "r"(c[8 * i + 6]), "r"(c[8 * i + 7])); \
        STORE4(j); OUT(j + 4, d4); OUT(j + 5, d5); OUT(j + 6, d6); OUT(j + 7, d7);                            \
    }
    QUAD(0, "row.col") QUAD(8, "col.row")
    u32 d0, d1, d2, d3;
    asm volatile("mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11};"
        : D4 : A(0), A(1), B(0), B(1), "r"(h[4 * i]), "r"(h[4 * i + 1]), "r"(h[4 * i + 2]), "r"(h[4 * i + 3]));
    STORE4(16);
}

// kernel: {"in": ["bf16x2 exact *4", "bf16x2 exact *4", "f32 exact *4"], "out": ["u32", 8], "threads": 256}
KERNEL mma_bf16(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k16.row.col.f32.bf16.bf16.f32")
    MMA_2(4, "m16n8k8.row.col.f32.bf16.bf16.f32")
}

// kernel: {"in": ["f32 exact *4", "f32 exact *4", "f32 exact *4"], "out": ["u32", 8], "threads": 256}
KERNEL mma_tf32(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k8.row.col.f32.tf32.tf32.f32")
    MMA_2(4, "m16n8k4.row.col.f32.tf32.tf32.f32")
}

// kernel: {"in": ["e4m3x4 exact *4", "e5m2x4 exact *4", "f32 exact *4"], "out": ["u32", 22], "threads": 256}
KERNEL mma_fp8(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k32.row.col.f32.e4m3.e5m2.f32")
    MMA_4(4, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
    MMA_4(8, "m16n8k32.row.col.f32.e5m2.e5m2.f32")
    MMA_2(12, "m16n8k16.row.col.f32.e4m3.e5m2.f32")
    MMA_2(16, "m16n8k16.row.col.f32.e5m2.e4m3.f32")
    { const u32 zero = 0; u32 d0, d1;
      asm volatile("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
          : "=r"(d0), "=r"(d1) : A(0), A(1), A(2), A(3), B(0), B(1), "r"(zero), "r"(zero));
      OUT(20, d0); OUT(21, d1); }
}

// kernel: {"in": ["u32 any *4", "u32 any *4", "s32 any *4"], "out": ["u32", 26], "threads": 256}
KERNEL mma_bytes(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k32.row.col.s32.s8.s8.s32")
    MMA_4(4, "m16n8k32.row.col.satfinite.s32.u8.s8.s32")
    MMA_4(8, "m16n8k32.row.col.s32.s8.u8.s32")
    MMA_2(12, "m16n8k16.row.col.s32.s8.u8.s32")
    MMA_2(16, "m16n8k16.row.col.satfinite.s32.u8.u8.s32")
    MMA_1(20, "m8n8k16.row.col.s32.s8.s8.s32")
    MMA_1(22, "m8n8k16.row.col.satfinite.s32.u8.s8.s32")
    MMA_1(24, "m8n8k16.row.col.s32.u8.u8.s32")
}

// kernel: {"in": ["u32 any *4", "u32 any *4", "s32 any *4"], "out": ["u32", 16], "threads": 256}
KERNEL mma_nibbles(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k64.row.col.s32.s4.s4.s32")
    MMA_4(4, "m16n8k64.row.col.satfinite.s32.u4.s4.s32")
    MMA_2(8, "m16n8k32.row.col.s32.s4.u4.s32")
    MMA_1(12, "m8n8k32.row.col.s32.s4.s4.s32")
    MMA_1(14, "m8n8k32.row.col.s32.u4.u4.s32")
}

// kernel: {"in": ["u32 any *4", "u32 any *4", "s32 any *4"], "out": ["u32", 20], "threads": 256}
KERNEL mma_bits(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k256.row.col.s32.b1.b1.s32.and.popc")
    MMA_4(4, "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
    MMA_2(8, "m16n8k128.row.col.s32.b1.b1.s32.and.popc")
    MMA_2(12, "m16n8k128.row.col.s32.b1.b1.s32.xor.popc")
    MMA_1(16, "m8n8k128.row.col.s32.b1.b1.s32.and.popc")
    MMA_1(18, "m8n8k128.row.col.s32.b1.b1.s32.xor.popc")
}

#define FA(k) "d"(a[8 * i + (k)])
#define FB(k) "d"(b[4 * i + (k)])
#define FC(k) "d"(c[4 * i + (k)])
#define MMA_F64(j, op, ra, rb, ...)                                                                           \
    {                                                                                                         \
        double d0, d1, d2, d3;                                                                                \
        asm volatile("mma.sync.aligned." op " {%0,%1,%2,%3}, " ra ", " rb ", {%4,%5,%6,%7};"                  \
            : "=d"(d0), "=d"(d1), "=d"(d2), "=d"(d3) : FC(0), FC(1), FC(2), FC(3), __VA_ARGS__);              \
        STORE4(j);                                                                                            \
    }

// kernel: {"in": ["f64 unit *8", "f64 unit *4", "f64 unit *4"], "out": ["f64", 20], "threads": 128}
KERNEL mma_f64(const double* a, const double* b, const double* c, double* out, int n) {
    LANE;
    MMA_F64(0, "m16n8k4.row.col.f64.f64.f64.f64", "{%8,%9}", "{%10}", FA(0), FA(1), FB(0))
    MMA_F64(4, "m16n8k8.row.col.f64.f64.f64.f64", "{%8,%9,%10,%11}", "{%12,%13}", FA(0), FA(1), FA(2), FA(3), FB(0), FB(1))
    MMA_F64(8, "m16n8k16.row.col.f64.f64.f64.f64", "{%8,%9,%10,%11,%12,%13,%14,%15}", "{%16,%17,%18,%19}", FA(0), FA(1),
            FA(2), FA(3), FA(4), FA(5), FA(6), FA(7), FB(0), FB(1), FB(2), FB(3))
#define MMA_F64_SMALL(j, rnd)                                                                                 \
    {                                                                                                         \
        double d0, d1;                                                                                        \
        asm volatile("mma.sync.aligned.m8n8k4.row.col" rnd ".f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"   \
            : "=d"(d0), "=d"(d1) : FA(0), FB(0), FC(0), FC(1));                                               \
        OUT(j, d0); OUT(j + 1, d1);                                                                           \
    }
    MMA_F64_SMALL(12, "") MMA_F64_SMALL(14, ".rz") MMA_F64_SMALL(16, ".rm") MMA_F64_SMALL(18, ".rp")
}

// Sums that are not exact, bit for bit all the same: the order and width of an H100's summation is published.

// kernel: {"in": ["f16x2 unit *4", "f16x2 unit *4", "f32 unit *4"], "out": ["u32", 8], "threads": 256}
KERNEL mma_inexact_f16(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k16.row.col.f32.f16.f16.f32")
    MMA_2(4, "m16n8k8.row.col.f32.f16.f16.f32")
}

// kernel: {"in": ["f16x2 half *4", "f16x2 half *4", "f16x2 unit *4"], "out": ["u32", 2], "threads": 256}
KERNEL mma_inexact_f16_f16(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4_HALF(0, "m16n8k16.row.col.f16.f16.f16.f16")
}

// kernel: {"in": ["f32 unit *4", "f32 unit *4", "f32 unit *4"], "out": ["u32", 8], "threads": 256}
KERNEL mma_inexact_tf32(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k8.row.col.f32.tf32.tf32.f32")
    MMA_2(4, "m16n8k4.row.col.f32.tf32.tf32.f32")
}

// kernel: {"in": ["bf16x2 half *4", "bf16x2 half *4", "f32 half *4"], "out": ["u32", 4], "threads": 256}
KERNEL mma_inexact_bf16(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k16.row.col.f32.bf16.bf16.f32")
}

// kernel: {"in": ["e4m3x4 unit *4", "e5m2x4 unit *4", "f32 unit *4"], "out": ["u32", 10], "threads": 256}
KERNEL mma_inexact_fp8(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k32.row.col.f32.e4m3.e5m2.f32")
    MMA_2(4, "m16n8k16.row.col.f32.e4m3.e5m2.f32")
    MMA_4_HALF(8, "m16n8k32.row.col.f16.e4m3.e5m2.f16")
}

// kernel: {"in": ["f16x2 unit *4", "f16x2 unit *4", "f32 unit *4"], "out": ["u32", 8], "threads": 128}
KERNEL mma_inexact_m8n8k4(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    u32 d0, d1, d2, d3, d4, d5, d6, d7;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11},"
        " {%12,%13,%14,%15,%12,%13,%14,%15};"
        : D4, "=r"(d4), "=r"(d5), "=r"(d6), "=r"(d7) : A(0), A(1), B(0), B(1), C(0), C(1), C(2), C(3));
    STORE4(0); OUT(4, d4); OUT(5, d5); OUT(6, d6); OUT(7, d7);
}

// kernel: {"in": ["f16x2 special *4", "f16x2 special *4", "f32 exact *4"], "out": ["u32", 4], "threads": 256}
KERNEL mma_special_values(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    LANE;
    MMA_4(0, "m16n8k16.row.col.f32.f16.f16.f32")
}

// kernel: {"in": ["u32 any *4"], "out": ["u32", 15], "threads": 128, "block": 64}
KERNEL matrix_moves(const u32* a, u32* out, int n) {
    // 32 rows of 16 bytes for each of the two warps, in a rotated order.
    __shared__ __align__(16) u32 tile[2][32 * 4];
    LANE;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    for (int k = 0; k < 4; ++k) tile[warp][4 * lane + k] = a[4 * i + k];
    __syncthreads();
    const u32 row = (u32)__cvta_generic_to_shared(&tile[warp][4 * ((lane * 5 + 3) & 31)]);
    u32 d0, d1, d2, d3;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d0) : "r"(row) : "memory"); OUT(0, d0);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(d0) : "r"(row) : "memory"); OUT(1, d0);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(d0), "=r"(d1) : "r"(row) : "memory");
    OUT(2, d0 ^ d1);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(d0), "=r"(d1) : "r"(row) : "memory");
    OUT(3, d0); OUT(4, d1);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : D4 : "r"(row) : "memory"); STORE4(5);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : D4 : "r"(row) : "memory"); OUT(9, d0 + 3 * d1 + 5 * d2 + 7 * d3);
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d0) : "r"(a[4 * i])); OUT(10, d0);
    __syncthreads();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row), A(0), A(1), A(2), A(3) : "memory");
    __syncthreads();
    OUT(11, tile[warp][4 * lane]); OUT(12, tile[warp][4 * lane + 3]);
    __syncthreads();
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(row), A(1), A(2) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(row), A(3) : "memory");
    __syncthreads();
    OUT(13, tile[warp][4 * lane + 1]); OUT(14, tile[warp][4 * lane + 2]);
}

// ---- warpgroup products ----

__device__ __forceinline__ u64 descriptor(const void* p, u32 leading, u32 stride, u64 mode) {
    return ((__cvta_generic_to_shared(p) & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | mode << 62;
}
#define FENCE asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define FINISH asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory")
#define READY                                                   \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); \
    __syncthreads()
#define ACC8 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define WGMMA_N16(shape, types, a_operand, a_value, b_value, tail)                                            \
    asm volatile("wgmma.mma_async.sync.aligned." shape "." types " {%0,%1,%2,%3,%4,%5,%6,%7}, " a_operand tail ";" \
        : ACC8 : a_value, "l"(b_value))

// Fill shared memory from the input, as it lies there: the test sees every address the descriptors reach.
#define FILL(words)                                                                          \
    for (int k = threadIdx.x; k < (words); k += 128) pool[k] = a[(blockIdx.x * (words) + k) % (32 * n)]

// kernel: {"in": ["f16x2 exact *32"], "out": ["f32", 40], "threads": 128, "block": 128}
KERNEL wgmma_f16(const u32* a, float* out, int n) {
    __shared__ __align__(1024) u32 pool[6144];
    LANE;
    FILL(6144);
    READY;
    const char* base = reinterpret_cast<const char*>(pool);
    float d[8];
    // K-major with each swizzle, then both operands MN-major, then accumulation over two K steps.
#define CASE(j, a_desc, b_desc, tail)                                                                         \
    for (int k = 0; k < 8; ++k) d[k] = 0.5f * k;                                                              \
    FENCE;                                                                                                    \
    WGMMA_N16("m64n16k16", "f32.f16.f16", "%8, %9", "l"(a_desc), b_desc, tail);                               \
    FINISH;                                                                                                   \
    for (int k = 0; k < 8; ++k) OUT(j + k, d[k]);
    CASE(0, descriptor(base, 128, 256, 0), descriptor(base + 4096, 256, 128, 0), ", 1, 1, 1, 0, 0")
    CASE(8, descriptor(base, 16, 1024, 1), descriptor(base + 8192 + 32, 16, 1024, 1), ", 1, 1, -1, 0, 0")
    CASE(16, descriptor(base + 1024, 16, 512, 2), descriptor(base + 4096, 16, 256, 3), ", 1, -1, 1, 0, 0")
    CASE(24, descriptor(base, 4096, 1024, 1), descriptor(base + 8192, 512, 1024, 3), ", 1, 1, 1, 1, 1")
    CASE(32, descriptor(base, 512, 2048, 0), descriptor(base + 8192, 1024, 512, 2), ", 0, 1, 1, 1, 1")
}

// kernel: {"in": ["bf16x2 exact *32", "bf16x2 exact *4"], "out": ["f32", 8], "threads": 128, "block": 128}
KERNEL wgmma_bf16_registers(const u32* a, const u32* r, float* out, int n) {
    __shared__ __align__(1024) u32 pool[4096];
    LANE;
    FILL(4096);
    READY;
    float d[8];
    for (int k = 0; k < 8; ++k) d[k] = (float)k;
    const u64 b = descriptor(pool, 16, 1024, 1);
    FENCE;
    for (int step = 0; step < 4; ++step)
        asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, 1, 1, 1, 0;"
            : ACC8 : "r"(r[4 * i]), "r"(r[4 * i + 1]), "r"(r[4 * i + 2]), "r"(r[4 * i + 3]), "l"(b + 2 * step));
    FINISH;
    for (int k = 0; k < 8; ++k) OUT(k, d[k]);
}

// kernel: {"in": ["f32 exact *32"], "out": ["f32", 8], "threads": 128, "block": 128}
KERNEL wgmma_tf32(const u32* a, float* out, int n) {
    __shared__ __align__(1024) u32 pool[4096];
    LANE;
    FILL(4096);
    READY;
    float d[8];
    for (int k = 0; k < 8; ++k) d[k] = 1.0f;
    const char* base = reinterpret_cast<const char*>(pool);
    FENCE;
    WGMMA_N16("m64n16k8", "f32.tf32.tf32", "%8, %9", "l"(descriptor(base, 16, 1024, 1)), descriptor(base + 8192, 128, 256, 0), ", 1, 1, 1");
    FINISH;
    for (int k = 0; k < 8; ++k) OUT(k, d[k]);
}

// kernel: {"in": ["e4m3x4 exact *32"], "out": ["f32", 8], "threads": 128, "block": 128}
KERNEL wgmma_fp8(const u32* a, float* out, int n) {
    __shared__ __align__(1024) u32 pool[4096];
    LANE;
    FILL(4096);
    READY;
    float d[8];
    for (int k = 0; k < 8; ++k) d[k] = 2.0f;
    const char* base = reinterpret_cast<const char*>(pool);
    FENCE;
    WGMMA_N16("m64n16k32", "f32.e4m3.e4m3", "%8, %9", "l"(descriptor(base, 16, 512, 2)), descriptor(base + 8192, 16, 1024, 1), ", 1, 1, 1");
    FINISH;
    for (int k = 0; k < 8; ++k) OUT(k, d[k]);
}

// kernel: {"in": ["u32 any *32"], "out": ["u32", 12], "threads": 128, "block": 128}
KERNEL wgmma_integers(const u32* a, u32* out, int n) {
    __shared__ __align__(1024) u32 pool[4096];
    LANE;
    FILL(4096);
    READY;
    u32 d0 = i, d1 = 5, d2 = 0x7fffffff, d3 = 0x80000000;
    const char* base = reinterpret_cast<const char*>(pool);
    const u64 p = descriptor(base, 16, 1024, 1), q = descriptor(base + 8192, 16, 512, 2);
#define WGMMA_INT(j, op)                                                                                      \
    FENCE;                                                                                                    \
    asm volatile("wgmma.mma_async.sync.aligned." op " {%0,%1,%2,%3}, %4, %5, 1;"                              \
        : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3) : "l"(p), "l"(q));                                           \
    FINISH;                                                                                                   \
    STORE4(j);
    WGMMA_INT(0, "m64n8k32.s32.s8.s8") WGMMA_INT(4, "m64n8k32.satfinite.s32.u8.s8") WGMMA_INT(8, "m64n8k256.s32.b1.b1.and.popc")
}

// kernel: {"in": ["f16x2 unit *32"], "out": ["f32", 8], "threads": 128, "block": 128}
KERNEL wgmma_inexact_f16(const u32* a, float* out, int n) {
    __shared__ __align__(1024) u32 pool[4096];
    LANE;
    FILL(4096);
    READY;
    float d[8];
    for (int k = 0; k < 8; ++k) d[k] = 0.1f * k;
    FENCE;
    for (int step = 0; step < 4; ++step)
        WGMMA_N16("m64n16k16", "f32.f16.f16", "%8, %9", "l"(descriptor(pool, 16, 1024, 1) + 2 * step),
                  descriptor(pool + 2048, 16, 1024, 1) + 2 * step, ", 1, 1, 1, 0, 0");
    FINISH;
    for (int k = 0; k < 8; ++k) OUT(k, d[k]);
}

// kernel: {"in": ["e4m3x4 unit *32"], "out": ["f32", 8], "threads": 128, "block": 128}
KERNEL wgmma_inexact_fp8(const u32* a, float* out, int n) {
    __shared__ __align__(1024) u32 pool[4096];
    LANE;
    FILL(4096);
    READY;
    float d[8];
    for (int k = 0; k < 8; ++k) d[k] = 0.1f * k;
    FENCE;
    for (int step = 0; step < 4; ++step)
        WGMMA_N16("m64n16k32", "f32.e4m3.e4m3", "%8, %9", "l"(descriptor(pool, 16, 1024, 1) + 2 * step),
                  descriptor(pool + 2048, 16, 1024, 1) + 2 * step, ", 1, 1, 1");
    FINISH;
    for (int k = 0; k < 8; ++k) OUT(k, d[k]);
}

// kernel: {"in": ["f16x2 exact *32"], "out": ["f32", 48], "threads": 128, "block": 128}
KERNEL wgmma_96_columns(const u32* a, float* out, int n) {
    __shared__ __align__(1024) u32 pool[5120];
    LANE;
    FILL(5120);
    READY;
    float d[48];
    for (int k = 0; k < 48; ++k) d[k] = 0.5f * (k - i);
    FENCE;
    asm volatile("wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}, %48, %49, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
        : "l"(descriptor(pool, 16, 1024, 1)), "l"(descriptor(pool + 2048, 16, 1024, 1)));
    FINISH;
    for (int k = 0; k < 48; ++k) OUT(k, d[k]);
}

// kernel: {"in": ["f16x2 exact *32"], "out": ["f16x2", 32], "threads": 128, "block": 128}
KERNEL wgmma_128_columns_f16(const u32* a, u32* out, int n) {
    __shared__ __align__(1024) u32 pool[5120];
    LANE;
    FILL(5120);
    READY;
    u32 d[32];
    for (int k = 0; k < 32; ++k) d[k] = 0x3c00bc00;
    FENCE;
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 1;"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
          "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
          "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]),
          "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31])
        : "l"(descriptor(pool, 16, 512, 2)), "l"(descriptor(pool + 1024, 2048, 1024, 1)));
    FINISH;
    for (int k = 0; k < 32; ++k) OUT(k, d[k]);
}
