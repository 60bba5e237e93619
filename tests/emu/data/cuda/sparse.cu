// Products with a structured sparse A. The metadata are valid in every nibble; A's values are anything exact.
#include "common.cuh"

#define LANE const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
#define A(k) "r"(a[4 * i + (k)])
#define B(k) "r"(b[4 * i + (k)])
#define C(k) "r"(c[4 * i + (k)])
#define OPERATION(op) "mma.sp::ordered_metadata.sync.aligned." op
#define SPARSE_4(j, op, selector)                                                                             \
    {                                                                                                         \
        u32 d0, d1, d2, d3;                                                                                   \
        asm volatile(OPERATION(op) " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13,%14,%15}, %16, " selector ";" \
            : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3) : A(0), A(1), A(2), A(3), B(0), B(1), B(2), B(3),        \
              C(0), C(1), C(2), C(3), "r"(e[i]));                                                             \
        OUT(j, d0); OUT(j + 1, d1); OUT(j + 2, d2); OUT(j + 3, d3);                                           \
    }
#define SPARSE_2(j, op, selector)                                                                             \
    {                                                                                                         \
        u32 d0, d1, d2, d3;                                                                                   \
        asm volatile(OPERATION(op) " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11}, %12, " selector ";"    \
            : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3) : A(0), A(1), B(0), B(1), C(0), C(1), C(2), C(3), "r"(e[i])); \
        OUT(j, d0); OUT(j + 1, d1); OUT(j + 2, d2); OUT(j + 3, d3);                                           \
    }

// kernel: {"in": ["f16x2 exact *4", "f16x2 exact *4", "f32 exact *4", "u32 nibbles"], "out": ["u32", 12], "threads": 128}
KERNEL sparse_f16(const u32* a, const u32* b, const u32* c, const u32* e, u32* out, int n) {
    LANE;
    SPARSE_4(0, "m16n8k32.row.col.f32.f16.f16.f32", "0x1")
    SPARSE_4(4, "m16n8k32.row.col.f32.f16.f16.f32", "0x0")
    SPARSE_2(8, "m16n8k16.row.col.f32.f16.f16.f32", "0x2")
}

// kernel: {"in": ["bf16x2 exact *4", "bf16x2 exact *4", "f32 exact *4", "u32 nibbles"], "out": ["u32", 8], "threads": 128}
KERNEL sparse_bf16(const u32* a, const u32* b, const u32* c, const u32* e, u32* out, int n) {
    LANE;
    SPARSE_4(0, "m16n8k32.row.col.f32.bf16.bf16.f32", "0x1")
    SPARSE_2(4, "m16n8k16.row.col.f32.bf16.bf16.f32", "0x3")
}

// kernel: {"in": ["f32 exact *4", "f32 exact *4", "f32 exact *4", "u32 halves"], "out": ["u32", 8], "threads": 128}
KERNEL sparse_tf32(const u32* a, const u32* b, const u32* c, const u32* e, u32* out, int n) {
    LANE;
    SPARSE_4(0, "m16n8k16.row.col.f32.tf32.tf32.f32", "0x1")
    SPARSE_2(4, "m16n8k8.row.col.f32.tf32.tf32.f32", "0x1")
}

// kernel: {"in": ["u32 any *4", "u32 any *4", "s32 any *4", "u32 nibbles"], "out": ["u32", 16], "threads": 128}
KERNEL sparse_integers(const u32* a, const u32* b, const u32* c, const u32* e, u32* out, int n) {
    LANE;
    SPARSE_4(0, "m16n8k64.row.col.s32.s8.u8.s32", "0x0")
    SPARSE_2(4, "m16n8k32.row.col.satfinite.s32.s8.s8.s32", "0x1")
    SPARSE_4(8, "m16n8k128.row.col.s32.s4.s4.s32", "0x0")
    SPARSE_2(12, "m16n8k64.row.col.s32.u4.s4.s32", "0x0")
}
