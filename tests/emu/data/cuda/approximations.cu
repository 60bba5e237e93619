// Approximate functions: compared within the error that the PTX ISA states (twice it, as both sides may err).
#include "common.cuh"

// kernel: {"in": ["f32 any"], "out": ["f32", 6], "threads": 1024, "compare": {"relative": 2.4e-7, "absolute": 1.5e-45}}
KERNEL approx_reciprocals(const float* a, float* out, int n) {
    INDEX;
    F1(0, "rcp.approx.f32") F1(1, "rcp.approx.ftz.f32") F1(2, "rsqrt.approx.f32") F1(3, "rsqrt.approx.ftz.f32")
    F1(4, "sqrt.approx.f32") F1(5, "sqrt.approx.ftz.f32")
}

// kernel: {"in": ["f32 exponent"], "out": ["f32", 2], "threads": 1024, "compare": {"relative": 3.4e-7, "absolute": 3e-45}}
KERNEL approx_ex2(const float* a, float* out, int n) {
    INDEX;
    F1(0, "ex2.approx.f32") F1(1, "ex2.approx.ftz.f32")
}

// kernel: {"in": ["f32 positive"], "out": ["f32", 2], "threads": 1024, "compare": {"relative": 4.8e-7, "absolute": 4.8e-7}}
KERNEL approx_lg2(const float* a, float* out, int n) {
    INDEX;
    F1(0, "lg2.approx.f32") F1(1, "lg2.approx.ftz.f32")
}

// kernel: {"in": ["f32 angle"], "out": ["f32", 4], "threads": 1024, "compare": {"absolute": 1.35e-6}}
KERNEL approx_sin_cos(const float* a, float* out, int n) {
    INDEX;
    F1(0, "sin.approx.f32") F1(1, "cos.approx.f32") F1(2, "sin.approx.ftz.f32") F1(3, "cos.approx.ftz.f32")
}

// kernel: {"in": ["f32 any"], "out": ["f32", 1], "threads": 1024, "compare": {"relative": 9.8e-4}}
KERNEL approx_tanh(const float* a, float* out, int n) {
    INDEX;
    F1(0, "tanh.approx.f32")
}

// kernel: {"in": ["f32 any", "f32 any"], "out": ["f32", 4], "threads": 1024, "compare": {"relative": 4.8e-7, "absolute": 6e-45}}
KERNEL approx_quotients(const float* a, const float* b, float* out, int n) {
    INDEX;
    F2(0, "div.approx.f32") F2(1, "div.approx.ftz.f32") F2(2, "div.full.f32") F2(3, "div.full.ftz.f32")
}

// kernel: {"in": ["f64 any"], "out": ["f64", 3], "threads": 1024, "compare": {"relative": 2e-6}}
KERNEL approx_f64(const double* a, double* out, int n) {
    INDEX;
    D1(0, "rcp.approx.ftz.f64") D1(1, "rsqrt.approx.ftz.f64") D1(2, "rsqrt.approx.f64")
}

// kernel: {"in": ["f16 unit"], "out": ["f16", 2], "threads": 1024, "compare": {"relative": 2.1e-3, "absolute": 9.9e-4}}
KERNEL approx_f16(const u16* a, u16* out, int n) {
    INDEX;
    H1(0, "ex2.approx.f16") H1(1, "tanh.approx.f16")
}

// kernel: {"in": ["bf16x2 unit"], "out": ["bf16x2", 2], "threads": 1024, "compare": {"relative": 1.6e-2, "absolute": 7.9e-3}}
KERNEL approx_bf16x2(const u32* a, u32* out, int n) {
    INDEX;
    R1(0, "ex2.approx.ftz.bf16x2") R1(1, "tanh.approx.bf16x2")
}
