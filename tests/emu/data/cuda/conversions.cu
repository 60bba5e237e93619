// cvt among all types that sm_90 has.
#include "common.cuh"

#define CVT(j, type, op, R, X) OP1(j, type, op, R, X, a[i])
#define MODES(j, type, to, from, R, X)                                                              \
    CVT(j, type, "cvt.rn." to "." from, R, X) CVT(j + 1, type, "cvt.rz." to "." from, R, X)         \
    CVT(j + 2, type, "cvt.rm." to "." from, R, X) CVT(j + 3, type, "cvt.rp." to "." from, R, X)
#define INTEGRAL(j, type, to, from, R, X)                                                           \
    CVT(j, type, "cvt.rni." to "." from, R, X) CVT(j + 1, type, "cvt.rzi." to "." from, R, X)       \
    CVT(j + 2, type, "cvt.rmi." to "." from, R, X) CVT(j + 3, type, "cvt.rpi." to "." from, R, X)

// kernel: {"in": ["s32 any"], "out": ["u32", 14], "threads": 512}
KERNEL cvt_32_bit_integers(const s32* a, u32* out, int n) {
    INDEX;
    CVT(0, u32, "cvt.s8.s32", "r", "r") CVT(1, u32, "cvt.u8.s32", "r", "r") CVT(2, u32, "cvt.sat.s8.s32", "r", "r")
    CVT(3, u32, "cvt.sat.u8.s32", "r", "r") CVT(4, u32, "cvt.sat.s8.u32", "r", "r")
    CVT(5, u32, "cvt.sat.u8.u32", "r", "r") CVT(6, u32, "cvt.sat.s16.s32", "r", "r")
    CVT(7, u32, "cvt.sat.u16.s32", "r", "r") CVT(8, u32, "cvt.sat.s16.u32", "r", "r")
    CVT(9, u32, "cvt.sat.u32.s32", "r", "r") CVT(10, u32, "cvt.sat.s32.u32", "r", "r")
    CVT(11, u32, "cvt.s16.s32", "r", "r") OP1(12, u32, "cvt.u32.u16", "r", "h", (u16)a[i])
    OP1(13, u32, "cvt.s32.s16", "r", "h", (u16)a[i])
}

// kernel: {"in": ["s64 any"], "out": ["u64", 8], "threads": 512}
KERNEL cvt_64_bit_integers(const s64* a, u64* out, int n) {
    INDEX;
    OP1(0, u64, "cvt.s64.s32", "l", "r", (u32)a[i]) OP1(1, u64, "cvt.u64.u32", "l", "r", (u32)a[i])
    CVT(2, u64, "cvt.sat.u64.s64", "l", "l")
    CVT(3, u64, "cvt.sat.s64.u64", "l", "l")
    { u32 r; asm("cvt.sat.s32.s64 %0, %1;" : "=r"(r) : "l"(a[i])); OUT(4, r); }
    { u32 r; asm("cvt.sat.u32.s64 %0, %1;" : "=r"(r) : "l"(a[i])); OUT(5, r); }
    { u32 r; asm("cvt.sat.u16.u64 %0, %1;" : "=r"(r) : "l"(a[i])); OUT(6, r); }
    { u32 r; asm("cvt.u32.s64 %0, %1;" : "=r"(r) : "l"(a[i])); OUT(7, r); }
}

// kernel: {"in": ["s32 any"], "out": ["f32", 8], "threads": 512}
KERNEL cvt_integer_to_f32(const s32* a, float* out, int n) {
    INDEX;
    MODES(0, float, "f32", "s32", "f", "r")
    MODES(4, float, "f32", "u32", "f", "r")
}

// kernel: {"in": ["s64 any"], "out": ["f32", 8], "threads": 512}
KERNEL cvt_wide_integer_to_f32(const s64* a, float* out, int n) {
    INDEX;
    MODES(0, float, "f32", "s64", "f", "l")
    MODES(4, float, "f32", "u64", "f", "l")
}

// kernel: {"in": ["s64 any"], "out": ["f64", 10], "threads": 512}
KERNEL cvt_integer_to_f64(const s64* a, double* out, int n) {
    INDEX;
    MODES(0, double, "f64", "s64", "d", "l")
    MODES(4, double, "f64", "u64", "d", "l")
    OP1(8, double, "cvt.rn.f64.s32", "d", "r", (u32)a[i]) OP1(9, double, "cvt.rn.f64.u32", "d", "r", (u32)a[i])
}

// kernel: {"in": ["s64 any"], "out": ["f16", 16], "threads": 512}
KERNEL cvt_integer_to_half(const s64* a, u16* out, int n) {
    INDEX;
    MODES(0, u16, "f16", "s64", "h", "l")
    MODES(4, u16, "f16", "u64", "h", "l")
    MODES(8, u16, "bf16", "s64", "h", "l")
    MODES(12, u16, "bf16", "u64", "h", "l")
}

// kernel: {"in": ["f32 integral"], "out": ["u32", 32], "threads": 1024}
KERNEL cvt_f32_to_integer(const float* a, u32* out, int n) {
    INDEX;
    INTEGRAL(0, u32, "s32", "f32", "r", "f")
    INTEGRAL(4, u32, "u32", "f32", "r", "f")
    INTEGRAL(8, u32, "s16", "f32", "r", "f")
    INTEGRAL(12, u32, "u16", "f32", "r", "f")
    INTEGRAL(16, u32, "s8", "f32", "r", "f")
    INTEGRAL(20, u32, "u8", "f32", "r", "f")
    INTEGRAL(24, u32, "ftz.s32", "f32", "r", "f")
    INTEGRAL(28, u32, "ftz.u32", "f32", "r", "f")
}

// kernel: {"in": ["f32 integral"], "out": ["u64", 8], "threads": 1024}
KERNEL cvt_f32_to_wide_integer(const float* a, u64* out, int n) {
    INDEX;
    INTEGRAL(0, u64, "s64", "f32", "l", "f")
    INTEGRAL(4, u64, "u64", "f32", "l", "f")
}

// kernel: {"in": ["f64 integral"], "out": ["u64", 20], "threads": 1024}
KERNEL cvt_f64_to_integer(const double* a, u64* out, int n) {
    INDEX;
    INTEGRAL(0, u64, "s64", "f64", "l", "d")
    INTEGRAL(4, u64, "u64", "f64", "l", "d")
#define SHORT(j, to) { u32 r; asm("cvt.rni." to ".f64 %0, %1;" : "=r"(r) : "d"(a[i])); OUT(j, r); } \
                     { u32 r; asm("cvt.rzi." to ".f64 %0, %1;" : "=r"(r) : "d"(a[i])); OUT(j + 1, r); }
    SHORT(8, "s32") SHORT(10, "u32") SHORT(12, "s16") SHORT(14, "u16") SHORT(16, "s8") SHORT(18, "u8")
}

// kernel: {"in": ["f16 integral", "bf16 integral"], "out": ["u32", 16], "threads": 1024}
KERNEL cvt_half_to_integer(const u16* f, const u16* g, u32* out, int n) {
    INDEX;
    { const u16* a = f; INTEGRAL(0, u32, "s32", "f16", "r", "h") INTEGRAL(4, u32, "u16", "f16", "r", "h") }
    { const u16* a = g; INTEGRAL(8, u32, "u32", "bf16", "r", "h") INTEGRAL(12, u32, "s32", "bf16", "r", "h") }
}

// kernel: {"in": ["f32 integral"], "out": ["f32", 12], "threads": 1024}
KERNEL cvt_f32_to_integral_f32(const float* a, float* out, int n) {
    INDEX;
    INTEGRAL(0, float, "f32", "f32", "f", "f")
    INTEGRAL(4, float, "ftz.f32", "f32", "f", "f")
    CVT(8, float, "cvt.sat.f32.f32", "f", "f") CVT(9, float, "cvt.ftz.f32.f32", "f", "f")
    CVT(10, float, "cvt.ftz.sat.f32.f32", "f", "f") CVT(11, float, "cvt.rni.sat.f32.f32", "f", "f")
}

// kernel: {"in": ["f64 integral"], "out": ["f64", 4], "threads": 1024}
KERNEL cvt_f64_to_integral_f64(const double* a, double* out, int n) {
    INDEX;
    INTEGRAL(0, double, "f64", "f64", "d", "d")
}

// kernel: {"in": ["f64 any"], "out": ["f32", 6], "threads": 1024}
KERNEL cvt_f64_to_f32(const double* a, float* out, int n) {
    INDEX;
    MODES(0, float, "f32", "f64", "f", "d")
    CVT(4, float, "cvt.rn.ftz.f32.f64", "f", "d") CVT(5, float, "cvt.rn.sat.f32.f64", "f", "d")
}

// kernel: {"in": ["f64 half"], "out": ["u16", 8], "threads": 1024}
KERNEL cvt_f64_to_half(const double* a, u16* out, int n) {
    INDEX;
    MODES(0, u16, "f16", "f64", "h", "d")
    MODES(4, u16, "bf16", "f64", "h", "d")
}

// kernel: {"in": ["f32 half"], "out": ["u16", 16], "threads": 1024}
KERNEL cvt_f32_to_half(const float* a, u16* out, int n) {
    INDEX;
    MODES(0, u16, "f16", "f32", "h", "f")
    MODES(4, u16, "bf16", "f32", "h", "f")
    CVT(8, u16, "cvt.rn.relu.f16.f32", "h", "f") CVT(9, u16, "cvt.rn.sat.f16.f32", "h", "f")
    CVT(10, u16, "cvt.rz.relu.satfinite.f16.f32", "h", "f") CVT(11, u16, "cvt.rn.satfinite.f16.f32", "h", "f")
    CVT(12, u16, "cvt.rn.relu.bf16.f32", "h", "f") CVT(13, u16, "cvt.rz.satfinite.bf16.f32", "h", "f")
    CVT(14, u16, "cvt.rn.satfinite.relu.bf16.f32", "h", "f") CVT(15, u16, "cvt.rn.ftz.f16.f32", "h", "f")
}

// kernel: {"in": ["f16 any", "bf16 any"], "out": ["u32", 12], "threads": 1024}
KERNEL cvt_half_to_f32(const u16* f, const u16* g, u32* out, int n) {
    INDEX;
    float r;
    u16 h;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(f[i])); OUT(0, __float_as_uint(r));
    asm("cvt.f32.bf16 %0, %1;" : "=f"(r) : "h"(g[i])); OUT(1, __float_as_uint(r));
    asm("cvt.sat.f32.f16 %0, %1;" : "=f"(r) : "h"(f[i])); OUT(2, __float_as_uint(r));
    asm("cvt.rn.bf16.f16 %0, %1;" : "=h"(h) : "h"(f[i])); OUT(3, h);
    asm("cvt.rz.f16.bf16 %0, %1;" : "=h"(h) : "h"(g[i])); OUT(4, h);
    asm("cvt.rni.f16.f16 %0, %1;" : "=h"(h) : "h"(f[i])); OUT(5, h);
    asm("cvt.rpi.bf16.bf16 %0, %1;" : "=h"(h) : "h"(g[i])); OUT(6, h);
    asm("cvt.rzi.f16.f16 %0, %1;" : "=h"(h) : "h"(f[i])); OUT(7, h);
    asm("cvt.rmi.bf16.bf16 %0, %1;" : "=h"(h) : "h"(g[i])); OUT(8, h);
    asm("cvt.rp.f16.bf16 %0, %1;" : "=h"(h) : "h"(g[i])); OUT(9, h);
    asm("cvt.rm.bf16.f16 %0, %1;" : "=h"(h) : "h"(f[i])); OUT(10, h);
    asm("cvt.sat.f16.f16 %0, %1;" : "=h"(h) : "h"(f[i])); OUT(11, h);
}

// kernel: {"in": ["f32 any", "f16 any", "bf16 any"], "out": ["f64", 3], "threads": 1024}
KERNEL cvt_to_f64(const float* a, const u16* f, const u16* g, double* out, int n) {
    INDEX;
    double r;
    asm("cvt.f64.f32 %0, %1;" : "=d"(r) : "f"(a[i])); OUT(0, r);
    asm("cvt.f64.f16 %0, %1;" : "=d"(r) : "h"(f[i])); OUT(1, r);
    asm("cvt.f64.bf16 %0, %1;" : "=d"(r) : "h"(g[i])); OUT(2, r);
}

// kernel: {"in": ["f32 half"], "out": ["u32", 5], "threads": 1024}
KERNEL cvt_to_tf32(const float* a, u32* out, int n) {
    INDEX;
    CVT(0, u32, "cvt.rna.tf32.f32", "r", "f") CVT(1, u32, "cvt.rna.satfinite.tf32.f32", "r", "f")
    CVT(2, u32, "cvt.rn.tf32.f32", "r", "f") CVT(3, u32, "cvt.rz.relu.tf32.f32", "r", "f")
    CVT(4, u32, "cvt.rn.relu.tf32.f32", "r", "f")
}

// kernel: {"in": ["f32 half", "f32 half"], "out": ["u32", 8], "threads": 1024}
KERNEL cvt_pairs(const float* a, const float* b, u32* out, int n) {
    INDEX;
#define PAIR(j, op) OP2(j, u32, op, "r", "f", a[i], b[i])
    PAIR(0, "cvt.rn.f16x2.f32") PAIR(1, "cvt.rz.f16x2.f32") PAIR(2, "cvt.rn.relu.f16x2.f32")
    PAIR(3, "cvt.rn.satfinite.f16x2.f32") PAIR(4, "cvt.rn.bf16x2.f32") PAIR(5, "cvt.rz.bf16x2.f32")
    PAIR(6, "cvt.rn.relu.bf16x2.f32") PAIR(7, "cvt.rz.satfinite.relu.bf16x2.f32")
}

// kernel: {"in": ["f32 tiny", "f32 tiny", "f16x2 any"], "out": ["u16", 8], "threads": 1024}
KERNEL cvt_to_fp8(const float* a, const float* b, const u32* c, u16* out, int n) {
    INDEX;
#define FP8(j, op) OP2(j, u16, op, "h", "f", a[i], b[i])
    FP8(0, "cvt.rn.satfinite.e4m3x2.f32") FP8(1, "cvt.rn.satfinite.e5m2x2.f32")
    FP8(2, "cvt.rn.satfinite.relu.e4m3x2.f32") FP8(3, "cvt.rn.satfinite.relu.e5m2x2.f32")
    OP1(4, u16, "cvt.rn.satfinite.e4m3x2.f16x2", "h", "r", c[i]) OP1(5, u16, "cvt.rn.satfinite.e5m2x2.f16x2", "h", "r", c[i])
    OP1(6, u16, "cvt.rn.satfinite.relu.e4m3x2.f16x2", "h", "r", c[i])
    OP1(7, u16, "cvt.rn.satfinite.relu.e5m2x2.f16x2", "h", "r", c[i])
}

// kernel: {"in": ["u16 any"], "out": ["u32", 4], "threads": 1024}
KERNEL cvt_from_fp8(const u16* a, u32* out, int n) {
    INDEX;
    OP1(0, u32, "cvt.rn.f16x2.e4m3x2", "r", "h", a[i]) OP1(1, u32, "cvt.rn.f16x2.e5m2x2", "r", "h", a[i])
    OP1(2, u32, "cvt.rn.relu.f16x2.e4m3x2", "r", "h", a[i]) OP1(3, u32, "cvt.rn.relu.f16x2.e5m2x2", "r", "h", a[i])
}

// kernel: {"in": ["s32 any", "s32 any", "u32 any"], "out": ["u32", 4], "threads": 512}
KERNEL cvt_pack(const s32* a, const s32* b, const u32* c, u32* out, int n) {
    INDEX;
    OP2(0, u32, "cvt.pack.sat.s16.s32", "r", "r", a[i], b[i]) OP2(1, u32, "cvt.pack.sat.u16.s32", "r", "r", a[i], b[i])
    OP3(2, u32, "cvt.pack.sat.s8.s32.b32", "r", "r", a[i], b[i], c[i])
    OP3(3, u32, "cvt.pack.sat.u8.s32.b32", "r", "r", a[i], b[i], c[i])
}
