// Arithmetic of f16, bf16 and their pairs.
#include "common.cuh"

// kernel: {"in": ["f16 any", "f16 any", "f16 any"], "out": ["f16", 20], "threads": 1024}
KERNEL f16_arithmetic(const u16* a, const u16* b, const u16* c, u16* out, int n) {
    INDEX;
    H2(0, "add.f16") H2(1, "add.ftz.f16") H2(2, "add.sat.f16") H2(3, "add.rn.ftz.sat.f16")
    H2(4, "sub.f16") H2(5, "sub.ftz.f16") H2(6, "sub.sat.f16")
    H2(7, "mul.f16") H2(8, "mul.ftz.f16") H2(9, "mul.sat.f16")
    H3(10, "fma.rn.f16") H3(11, "fma.rn.ftz.f16") H3(12, "fma.rn.sat.f16") H3(13, "fma.rn.relu.f16")
    H3(14, "fma.rn.ftz.relu.f16")
    H1(15, "neg.f16") H1(16, "abs.f16") H1(17, "neg.ftz.f16") H1(18, "abs.ftz.f16") H2(19, "sub.ftz.sat.f16")
}

// kernel: {"in": ["f16x2 any", "f16x2 any", "f16x2 any"], "out": ["f16x2", 16], "threads": 1024}
KERNEL f16x2_arithmetic(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    INDEX;
    R2(0, "add.f16x2") R2(1, "add.ftz.f16x2") R2(2, "add.sat.f16x2")
    R2(3, "sub.f16x2") R2(4, "sub.ftz.sat.f16x2")
    R2(5, "mul.f16x2") R2(6, "mul.ftz.f16x2") R2(7, "mul.sat.f16x2")
    R3(8, "fma.rn.f16x2") R3(9, "fma.rn.ftz.f16x2") R3(10, "fma.rn.sat.f16x2") R3(11, "fma.rn.relu.f16x2")
    R1(12, "neg.f16x2") R1(13, "abs.f16x2") R1(14, "neg.ftz.f16x2") R1(15, "abs.ftz.f16x2")
}

// kernel: {"in": ["bf16 any", "bf16 any", "bf16 any"], "out": ["bf16", 7], "threads": 1024}
KERNEL bf16_arithmetic(const u16* a, const u16* b, const u16* c, u16* out, int n) {
    INDEX;
    H2(0, "add.rn.bf16") H2(1, "sub.rn.bf16") H2(2, "mul.rn.bf16") H3(3, "fma.rn.bf16") H3(4, "fma.rn.relu.bf16")
    H1(5, "neg.bf16") H1(6, "abs.bf16")
}

// kernel: {"in": ["bf16x2 any", "bf16x2 any", "bf16x2 any"], "out": ["bf16x2", 7], "threads": 1024}
KERNEL bf16x2_arithmetic(const u32* a, const u32* b, const u32* c, u32* out, int n) {
    INDEX;
    R2(0, "add.rn.bf16x2") R2(1, "sub.rn.bf16x2") R2(2, "mul.rn.bf16x2") R3(3, "fma.rn.bf16x2")
    R3(4, "fma.rn.relu.bf16x2") R1(5, "neg.bf16x2") R1(6, "abs.bf16x2")
}

// kernel: {"in": ["f16 any", "f16 any"], "out": ["f16", 12], "threads": 1024}
KERNEL f16_min_max(const u16* a, const u16* b, u16* out, int n) {
    INDEX;
    H2(0, "min.f16") H2(1, "min.ftz.f16") H2(2, "min.NaN.f16") H2(3, "min.ftz.NaN.f16")
    H2(4, "min.xorsign.abs.f16") H2(5, "min.NaN.xorsign.abs.f16")
    H2(6, "max.f16") H2(7, "max.ftz.f16") H2(8, "max.NaN.f16") H2(9, "max.ftz.NaN.f16")
    H2(10, "max.xorsign.abs.f16") H2(11, "max.NaN.xorsign.abs.f16")
}

// kernel: {"in": ["bf16x2 any", "bf16x2 any"], "out": ["bf16x2", 8], "threads": 1024}
KERNEL bf16x2_min_max(const u32* a, const u32* b, u32* out, int n) {
    INDEX;
    R2(0, "min.bf16x2") R2(1, "min.NaN.bf16x2") R2(2, "min.xorsign.abs.bf16x2") R2(3, "min.NaN.xorsign.abs.bf16x2")
    R2(4, "max.bf16x2") R2(5, "max.NaN.bf16x2") R2(6, "max.xorsign.abs.bf16x2") R2(7, "max.NaN.xorsign.abs.bf16x2")
}

#define PAIR(j, op, X)                                                                                       \
    {                                                                                                        \
        u32 r;                                                                                               \
        asm("{ .reg .pred p, q; .reg .b32 s; " op " p|q, %1, %2; selp.u32 %0, 1, 0, p; selp.u32 s, 2, 0, q; " \
            "or.b32 %0, %0, s; }" : "=r"(r) : "r"(a[i]), "r"(b[i]));                                         \
        OUT(j, r);                                                                                           \
    }

// kernel: {"in": ["f16x2 any", "f16x2 alike"], "out": ["u32", 10], "threads": 512}
KERNEL f16x2_compare(const u32* a, const u32* b, u32* out, int n) {
    INDEX;
    PAIR(0, "setp.eq.f16x2", "r") PAIR(1, "setp.ne.f16x2", "r") PAIR(2, "setp.lt.f16x2", "r")
    PAIR(3, "setp.geu.f16x2", "r") PAIR(4, "setp.nan.f16x2", "r") PAIR(5, "setp.num.f16x2", "r")
    PAIR(6, "setp.eq.ftz.f16x2", "r") PAIR(7, "setp.neu.ftz.f16x2", "r")
    R2(8, "set.gt.f16x2.f16x2") R2(9, "set.leu.u32.f16x2")
}

// kernel: {"in": ["bf16 any", "bf16 alike"], "out": ["u32", 6], "threads": 512}
KERNEL bf16_compare(const u16* a, const u16* b, u32* out, int n) {
    INDEX;
    P2(0, "setp.eq.bf16", "h", a[i], b[i]) P2(1, "setp.ne.bf16", "h", a[i], b[i]) P2(2, "setp.lt.bf16", "h", a[i], b[i])
    P2(3, "setp.leu.bf16", "h", a[i], b[i]) P2(4, "setp.gt.bf16", "h", a[i], b[i]) P2(5, "setp.nan.bf16", "h", a[i], b[i])
}
