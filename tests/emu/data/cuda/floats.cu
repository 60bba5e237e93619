// Floating-point arithmetic of f32 and f64.
#include "common.cuh"

#define EACH_MODE(j, F, op, tail)                                              \
    F(j, op ".rn" tail) F(j + 1, op ".rz" tail) F(j + 2, op ".rm" tail) F(j + 3, op ".rp" tail)

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 34], "threads": 1024}
KERNEL f32_add_sub(const float* a, const float* b, float* out, int n) {
    INDEX;
    EACH_MODE(0, F2, "add", ".f32")
    EACH_MODE(4, F2, "add", ".ftz.f32")
    EACH_MODE(8, F2, "add", ".sat.f32")
    EACH_MODE(12, F2, "add", ".ftz.sat.f32")
    EACH_MODE(16, F2, "sub", ".f32")
    EACH_MODE(20, F2, "sub", ".ftz.f32")
    EACH_MODE(24, F2, "sub", ".sat.f32")
    EACH_MODE(28, F2, "sub", ".ftz.sat.f32")
    F2(32, "add.f32")
    F2(33, "sub.f32")
}

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 17], "threads": 1024}
KERNEL f32_mul(const float* a, const float* b, float* out, int n) {
    INDEX;
    EACH_MODE(0, F2, "mul", ".f32")
    EACH_MODE(4, F2, "mul", ".ftz.f32")
    EACH_MODE(8, F2, "mul", ".sat.f32")
    EACH_MODE(12, F2, "mul", ".ftz.sat.f32")
    F2(16, "mul.f32")
}

// kernel: {"in": ["f32 any", "f32 any", "f32 any"], "out": ["f32", 16], "threads": 2048}
KERNEL f32_fma(const float* a, const float* b, const float* c, float* out, int n) {
    INDEX;
    EACH_MODE(0, F3, "fma", ".f32")
    EACH_MODE(4, F3, "fma", ".ftz.f32")
    EACH_MODE(8, F3, "fma", ".sat.f32")
    EACH_MODE(12, F3, "fma", ".ftz.sat.f32")
}

// kernel: {"in": ["f32 edge", "f32 edge", "f32 edge"], "out": ["f32", 12], "threads": 1024}
KERNEL f32_near_the_least_normal(const float* a, const float* b, const float* c, float* out, int n) {
    INDEX;
    EACH_MODE(0, F2, "mul", ".ftz.f32")
    EACH_MODE(4, F3, "fma", ".ftz.f32")
    EACH_MODE(8, F2, "mul", ".f32")
}

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 24], "threads": 1024}
KERNEL f32_div_rcp_sqrt(const float* a, const float* b, float* out, int n) {
    INDEX;
    EACH_MODE(0, F2, "div", ".f32")
    EACH_MODE(4, F2, "div", ".ftz.f32")
    EACH_MODE(8, F1, "rcp", ".f32")
    EACH_MODE(12, F1, "rcp", ".ftz.f32")
    EACH_MODE(16, F1, "sqrt", ".f32")
    EACH_MODE(20, F1, "sqrt", ".ftz.f32")
}

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 16], "threads": 1024}
KERNEL f32_min_max(const float* a, const float* b, float* out, int n) {
    INDEX;
    F2(0, "min.f32") F2(1, "min.ftz.f32") F2(2, "min.NaN.f32") F2(3, "min.ftz.NaN.f32")
    F2(4, "min.xorsign.abs.f32") F2(5, "min.ftz.xorsign.abs.f32") F2(6, "min.NaN.xorsign.abs.f32")
    F2(7, "min.ftz.NaN.xorsign.abs.f32")
    F2(8, "max.f32") F2(9, "max.ftz.f32") F2(10, "max.NaN.f32") F2(11, "max.ftz.NaN.f32")
    F2(12, "max.xorsign.abs.f32") F2(13, "max.ftz.xorsign.abs.f32") F2(14, "max.NaN.xorsign.abs.f32")
    F2(15, "max.ftz.NaN.xorsign.abs.f32")
}

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 5], "threads": 1024}
KERNEL f32_signs(const float* a, const float* b, float* out, int n) {
    INDEX;
    F1(0, "abs.f32") F1(1, "abs.ftz.f32") F1(2, "neg.f32") F1(3, "neg.ftz.f32") F2(4, "copysign.f32")
}

#define TESTP(j, type, X) \
    P1(j, "testp.finite." type, X, a[i]) P1(j + 1, "testp.infinite." type, X, a[i]) \
    P1(j + 2, "testp.number." type, X, a[i]) P1(j + 3, "testp.notanumber." type, X, a[i]) \
    P1(j + 4, "testp.normal." type, X, a[i]) P1(j + 5, "testp.subnormal." type, X, a[i])

// kernel: {"in": ["f32 any"], "out": ["u32", 6], "threads": 512}
KERNEL f32_testp(const float* a, u32* out, int n) {
    INDEX;
    TESTP(0, "f32", "f")
}

#define SETP(j, tail, X) \
    P2(j, "setp.eq" tail, X, a[i], b[i]) P2(j + 1, "setp.ne" tail, X, a[i], b[i]) \
    P2(j + 2, "setp.lt" tail, X, a[i], b[i]) P2(j + 3, "setp.le" tail, X, a[i], b[i]) \
    P2(j + 4, "setp.gt" tail, X, a[i], b[i]) P2(j + 5, "setp.ge" tail, X, a[i], b[i])
#define SETP_UNORDERED(j, tail, X) \
    P2(j, "setp.equ" tail, X, a[i], b[i]) P2(j + 1, "setp.neu" tail, X, a[i], b[i]) \
    P2(j + 2, "setp.ltu" tail, X, a[i], b[i]) P2(j + 3, "setp.leu" tail, X, a[i], b[i]) \
    P2(j + 4, "setp.gtu" tail, X, a[i], b[i]) P2(j + 5, "setp.geu" tail, X, a[i], b[i]) \
    P2(j + 6, "setp.num" tail, X, a[i], b[i]) P2(j + 7, "setp.nan" tail, X, a[i], b[i])

// kernel: {"in": ["f32 any", "f32 alike"], "out": ["u32", 28], "threads": 512}
KERNEL f32_compare(const float* a, const float* b, u32* out, int n) {
    INDEX;
    SETP(0, ".f32", "f")
    SETP_UNORDERED(6, ".f32", "f")
    SETP(14, ".ftz.f32", "f")
    SETP_UNORDERED(20, ".ftz.f32", "f")
}

// kernel: {"in": ["f64 any", "f64 alike"], "out": ["u32", 20], "threads": 512}
KERNEL f64_compare(const double* a, const double* b, u32* out, int n) {
    INDEX;
    SETP(0, ".f64", "d")
    SETP_UNORDERED(6, ".f64", "d")
    TESTP(14, "f64", "d")
}

// kernel: {"in": ["f64 any", "f64 any", "f64 any"], "out": ["f64", 16], "threads": 1024}
KERNEL f64_arithmetic(const double* a, const double* b, const double* c, double* out, int n) {
    INDEX;
    EACH_MODE(0, D2, "add", ".f64")
    EACH_MODE(4, D2, "sub", ".f64")
    EACH_MODE(8, D2, "mul", ".f64")
    EACH_MODE(12, D3, "fma", ".f64")
}

// kernel: {"in": ["f64 any", "f64 any"], "out": ["f64", 12], "threads": 1024}
KERNEL f64_div_rcp_sqrt(const double* a, const double* b, double* out, int n) {
    INDEX;
    EACH_MODE(0, D2, "div", ".f64")
    EACH_MODE(4, D1, "rcp", ".f64")
    EACH_MODE(8, D1, "sqrt", ".f64")
}

// kernel: {"in": ["f64 any", "f64 any"], "out": ["f64", 5], "threads": 1024}
KERNEL f64_min_max_signs(const double* a, const double* b, double* out, int n) {
    INDEX;
    D2(0, "min.f64") D2(1, "max.f64") D1(2, "abs.f64") D1(3, "neg.f64") D2(4, "copysign.f64")
}

// kernel: {"in": ["f32 any", "f32 any", "f32 any", "s32 any"], "out": ["f32", 6], "threads": 512}
KERNEL f32_select(const float* a, const float* b, const float* c, const s32* d, float* out, int n) {
    INDEX;
    float r;
    asm("slct.f32.s32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[i]), "f"(b[i]), "r"(d[i]));
    OUT(0, r);
    asm("slct.f32.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[i]), "f"(b[i]), "f"(c[i]));
    OUT(1, r);
    asm("slct.ftz.f32.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[i]), "f"(b[i]), "f"(c[i]));
    OUT(2, r);
    asm("{ .reg .pred p; setp.gt.s32 p, %3, 0; selp.f32 %0, %1, %2, p; }" : "=f"(r) : "f"(a[i]), "f"(b[i]), "r"(d[i]));
    OUT(3, r);
    asm("set.lt.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a[i]), "f"(b[i]));
    OUT(4, r);
    asm("{ .reg .pred p; setp.gt.s32 p, %3, 0; set.geu.and.f32.f32 %0, %1, %2, p; }"
        : "=f"(r) : "f"(a[i]), "f"(b[i]), "r"(d[i]));
    OUT(5, r);
}

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 1], "threads": 1024}
KERNEL f32_polynomial(const float* a, const float* b, float* out, int n) {
    INDEX;
    float x = a[i], y = b[i], s = 0.0f;
    for (int k = 0; k < 6; ++k) s = s * x + y * (float)k - 0.5f;
    OUT(0, s);
}
