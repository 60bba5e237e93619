// What the kernels share. Every kernel is `NAME(const T* in..., U* out, int n)`: thread i works on element i of each
// input and writes results j to out[j * n + i]. The comment before a kernel is its row of the manifest (see
// scripts/build_emu_kernels.py).
#pragma once
#include <stdint.h>

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define KERNEL extern "C" __global__ void
#define KERNEL_OF(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
#define INDEX                                      \
    const int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= n) return
#define OUT(j, value) out[(j) * n + i] = (value)

// One instruction on registers of constraint letters R (result) and X (operands).
#define OP1(j, type, op, R, X, a)                                   \
    {                                                               \
        type r;                                                     \
        asm(op " %0, %1;" : "=" R(r) : X(a));                       \
        OUT(j, r);                                                  \
    }
#define OP2(j, type, op, R, X, a, b)                                \
    {                                                               \
        type r;                                                     \
        asm(op " %0, %1, %2;" : "=" R(r) : X(a), X(b));             \
        OUT(j, r);                                                  \
    }
#define OP3(j, type, op, R, X, a, b, c)                             \
    {                                                               \
        type r;                                                     \
        asm(op " %0, %1, %2, %3;" : "=" R(r) : X(a), X(b), X(c));   \
        OUT(j, r);                                                  \
    }

// Floats as bit patterns, so that NaN payloads and zeros' signs are compared too.
#define F1(j, op) OP1(j, float, op, "f", "f", a[i])
#define F2(j, op) OP2(j, float, op, "f", "f", a[i], b[i])
#define F3(j, op) OP3(j, float, op, "f", "f", a[i], b[i], c[i])
#define D1(j, op) OP1(j, double, op, "d", "d", a[i])
#define D2(j, op) OP2(j, double, op, "d", "d", a[i], b[i])
#define D3(j, op) OP3(j, double, op, "d", "d", a[i], b[i], c[i])
#define H1(j, op) OP1(j, u16, op, "h", "h", a[i])
#define H2(j, op) OP2(j, u16, op, "h", "h", a[i], b[i])
#define H3(j, op) OP3(j, u16, op, "h", "h", a[i], b[i], c[i])
#define R1(j, op) OP1(j, u32, op, "r", "r", a[i])
#define R2(j, op) OP2(j, u32, op, "r", "r", a[i], b[i])
#define R3(j, op) OP3(j, u32, op, "r", "r", a[i], b[i], c[i])
#define L1(j, op) OP1(j, u64, op, "l", "l", a[i])
#define L2(j, op) OP2(j, u64, op, "l", "l", a[i], b[i])
#define L3(j, op) OP3(j, u64, op, "l", "l", a[i], b[i], c[i])

// A predicate as 0 or 1.
#define P2(j, op, X, a, b)                                                                          \
    {                                                                                               \
        u32 r;                                                                                      \
        asm("{ .reg .pred p; " op " p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(r) : X(a), X(b));    \
        OUT(j, r);                                                                                  \
    }
#define P1(j, op, X, a)                                                                             \
    {                                                                                               \
        u32 r;                                                                                      \
        asm("{ .reg .pred p; " op " p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r) : X(a));              \
        OUT(j, r);                                                                                  \
    }
