# ruff: noqa: ANN001, ANN201, D103 -- sources typed as Triton users type them
"""Compile the Triton kernels of the emulator's tests to PTX, for sm_90; needs Triton, no GPU.

    python scripts/build_triton_ptx.py

writes tests/emu/data/triton/NAME.ptx and manifest.json: for each kernel its entry name, warps and shared memory.
The kernels are written for this project. tests/emu/test_triton.py runs them against NumPy.
"""

import json
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "emu" / "data" / "triton"
TARGET = GPUTarget("cuda", 90, 32)


@triton.jit
def vector_add(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


@triton.jit
def softmax(a, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(a + row * columns + at, at < columns, float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), at < columns)


@triton.jit
def layer_norm(a, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(a + row * columns + at, inside, 0.0)
    mean = tl.sum(x, 0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    y = centred * scale * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, y, inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + inner[None, :])
        y = tl.load(b + inner[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def attention(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + inner[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        keys = start + tl.arange(0, BN)
        s = tl.dot(x, tl.trans(tl.load(k + keys[:, None] * D + inner[None, :]))) * scale
        s = tl.where(rows[:, None] >= keys[None, :], s, float("-inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - higher[:, None])
        fade = tl.exp(top - higher)
        norm = norm * fade + tl.sum(p, 1)
        total = total * fade[:, None] + tl.dot(p.to(tl.float16), tl.load(v + keys[:, None] * D + inner[None, :]))
        top = higher
    tl.store(out + rows[:, None] * D + inner[None, :], total / norm[:, None])


@triton.jit
def running_sum(a, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(a + row * columns + at, at < columns, 0)
    tl.store(out + row * columns + at, tl.cumsum(x, 0), at < columns)


@triton.jit
def histogram(a, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(counts + tl.load(a + at, inside, 0), 1, inside)


@triton.jit
def sort_rows(a, out, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * BLOCK + at, tl.sort(tl.load(a + row * BLOCK + at)))


@triton.jit
def transpose(a, out, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + rows[:, None] * N + columns[None, :], (rows[:, None] < M) & (columns[None, :] < N))
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(x), (columns[:, None] < N) & (rows[None, :] < M))


@triton.jit
def argmax_rows(a, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(a + row * columns + at, at < columns, float("-inf"))
    tl.store(out + row, tl.argmax(x, 0))


@triton.jit
def gelu(a, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, at < n).to(tl.float32)
    tl.store(out + at, (0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476))).to(tl.bfloat16), at < n)


@triton.jit
def int8_matmul(a, b, c, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + inner[None, :])
    y = tl.load(b + columns[None, :] * K + inner[:, None])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(x, y))


KERNELS = {
    vector_add: ({"a": "*fp32", "b": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 256}),
    softmax: ({"a": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": 512}),
    layer_norm: (
        {"a": "*fp32", "weight": "*fp32", "bias": "*fp32", "out": "*fp32", "columns": "i32", "epsilon": "fp32"},
        {"BLOCK": 512},
    ),
    matmul: (
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
        {"BM": 64, "BN": 64, "BK": 32},
    ),
    attention: (
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "length": "i32", "scale": "fp32"},
        {"BM": 64, "BN": 64, "D": 64},
    ),
    running_sum: ({"a": "*i32", "out": "*i32", "columns": "i32"}, {"BLOCK": 512}),
    histogram: ({"a": "*i32", "counts": "*i32", "n": "i32"}, {"BLOCK": 256}),
    sort_rows: ({"a": "*i32", "out": "*i32"}, {"BLOCK": 128}),
    transpose: ({"a": "*fp32", "out": "*fp32", "M": "i32", "N": "i32"}, {"BLOCK": 32}),
    argmax_rows: ({"a": "*fp32", "out": "*i32", "columns": "i32"}, {"BLOCK": 512}),
    gelu: ({"a": "*bf16", "out": "*bf16", "n": "i32"}, {"BLOCK": 256}),
    int8_matmul: ({"a": "*i8", "b": "*i8", "c": "*i32", "N": "i32"}, {"K": 64, "BM": 32, "BN": 32}),
}


def main():
    rows = []
    for kernel, (signature, constants) in KERNELS.items():
        types = {**signature, **dict.fromkeys(constants, "constexpr")}
        aligned = {(k,): [["tt.divisibility", 16]] for k, name in enumerate(signature.values()) if name[0] == "*"}
        source = ASTSource(fn=kernel, signature=types, constexprs=constants, attrs=aligned)
        compiled = triton.compile(source, target=TARGET)
        name = compiled.metadata.name
        text = compiled.asm["ptx"].split("\t.section")[0]
        for folder in (ROOT, Path(triton.__file__).parents[1]):
            text = text.replace(f"{folder}/", "")
        (FOLDER / f"{name}.ptx").write_text(text)
        rows.append(
            {"kernel": name, "warps": compiled.metadata.num_warps, "shared": compiled.metadata.shared, **constants}
        )
        print(name, compiled.metadata.num_warps, compiled.metadata.shared)
    text = json.dumps({"triton": triton.__version__, "kernels": rows}, indent=1)
    (FOLDER / "manifest.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
