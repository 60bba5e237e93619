"""`wgmma.mma_async.sp` in whole kernels, against dense products of matrices built entry by entry."""

import numpy as np
import pytest

from tests.emu.numerics import test_ptx_matrix as dense
from tests.emu.numerics.test_ptx_sparse import NIBBLES, kept_columns, lane_and_bit
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx
from tilewright.targets.emu.numerics.fragments import ELEMENT_BITS
from tilewright.targets.emu.numerics.wgmma import encode_descriptor

N = 24
CASES = [
    ("f16", "f16", "f32", 32),
    ("f16", "f16", "f16", 32),
    ("bf16", "bf16", "f32", 32),
    ("tf32", "tf32", "f32", 16),
    ("e4m3", "e5m2", "f32", 64),
    ("e5m2", "e5m2", "f16", 64),
    ("s8", "u8", "s32", 64),
]


def core_matrices(matrix):
    """Bytes (rows, bytes along K) in the layout without swizzle: 8 rows of 16 bytes, next along K, then along rows."""
    rows, size = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows // 8, 8, size // 16, 16).transpose(0, 2, 1, 3)).reshape(-1)


def descriptor(size):
    """A descriptor of such a matrix with `size` bytes along K, but for its start."""
    return encode_descriptor(0, 128, 8 * size)


def kernel(a_type, b_type, d_type, k, selector, registers, negate="1, 1"):
    size_a, size_b = 64 * 32, N * 64
    count = N // 2 // (2 if d_type == "f16" else 1)
    d = [f"%d{r}" for r in range(count)]
    loads = "".join(f"ld.global.b32 %a{r}, [%x4+{4 * r}];\n" for r in range(4))
    clears = "".join(f"ld.global.b32 {r}, [%x5+{4 * n}];\n" for n, r in enumerate(d))
    stores = "".join(f"st.global.b32 [%x5+{4 * n}], {r};\n" for n, r in enumerate(d))
    transposes = "" if a_type not in ("f16", "bf16") else ", 0" if registers else ", 0, 0"
    tail = "" if d_type == "s32" else f", {negate}{transposes}"
    first = "{%a0, %a1, %a2, %a3}" if registers else "%q1"
    return f"""
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d, .param .u64 meta, .param .u32 add)
{{
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b32 %a<4>; .reg .b32 %d<{count}>; .reg .b64 %x<9>; .reg .b64 %q<9>;
  .shared .align 128 .b8 left[{size_a}];
  .shared .align 128 .b8 right[{size_b}];
  ld.param.u64 %x1, [a]; ld.param.u64 %x2, [b]; ld.param.u64 %x3, [d]; ld.param.u64 %x6, [meta];
  ld.param.u32 %r8, [add]; setp.ne.u32 %p1, %r8, 0;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %q4, %r1, 16; add.u64 %x4, %x1, %q4;
  mul.wide.u32 %q5, %r1, {4 * count}; add.u64 %x5, %x3, %q5;
  mul.wide.u32 %q6, %r1, 4; add.u64 %x6, %x6, %q6; ld.global.b32 %r9, [%x6];
  {loads} {clears}
  shl.b32 %r2, %r1, 4; mov.u32 %r3, left; add.u32 %r3, %r3, %r2;
  st.shared.v4.b32 [%r3], {{%a0, %a1, %a2, %a3}};
  mov.u32 %r4, %r1;
LOOP:
  setp.ge.u32 %p2, %r4, {size_b // 4}; @%p2 bra READY;
  mul.wide.u32 %q7, %r4, 4; add.u64 %q7, %x2, %q7; ld.global.b32 %r5, [%q7];
  shl.b32 %r6, %r4, 2; mov.u32 %r7, right; add.u32 %r7, %r7, %r6; st.shared.b32 [%r7], %r5;
  add.u32 %r4, %r4, 128; bra LOOP;
READY:
  fence.proxy.async; bar.sync 0;
  mov.u32 %r10, left; shr.u32 %r10, %r10, 4; cvt.u64.u32 %q1, %r10; or.b64 %q1, %q1, {descriptor(32)};
  mov.u32 %r11, right; shr.u32 %r11, %r11, 4; cvt.u64.u32 %q2, %r11; or.b64 %q2, %q2, {descriptor(64)};
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sp.sync.aligned.m64n{N}k{k}.{d_type}.{a_type}.{b_type}
    {{{", ".join(d)}}}, {first}, %q2, %r9, {selector}, %p1{tail};
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  {stores}
  ret;
}}
"""


def packed_bytes(values, kind):
    """The bytes of values, each of its type's width."""
    width = ELEMENT_BITS[kind] // 8
    data = b"".join(dense.pack_element(x, kind).to_bytes(width, "little") for x in values.reshape(-1).tolist())
    return np.frombuffer(data, np.uint8).reshape(values.shape[0], -1)


def fragment_bytes(matrix):
    """A's bytes (64, 32) as 128 lanes of four registers: rows by lane, K by member and register."""
    out = np.zeros((128, 4, 4), np.uint8)
    for lane in range(128):
        for register in range(4):
            row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (register % 2)
            start = 4 * (lane % 4) + 16 * (register // 2)
            out[lane, register] = matrix[row, start : start + 4]
    return out.reshape(-1)


def metadata_and_full(packed, kind, k, selector, rng):
    """Random metadata of four warps (other lanes hold anything), and A with its zeros."""
    size = 2 if kind == "tf32" else 4
    words, full = rng.integers(0, 2**32, 128, dtype=np.uint32), np.zeros((64, k))
    for row in range(64):
        for chunk in range(k // size):
            nibble = int(rng.choice([0b0100, 0b1110] if kind == "tf32" else NIBBLES))
            for i in range(4):
                lane, bit = lane_and_bit(kind, k, selector, row % 16, 4 * chunk + i)
                lane += 32 * (row // 16)
                words[lane] = (int(words[lane]) & ~(1 << bit)) | (nibble >> i & 1) << bit
            columns = kept_columns(kind, nibble, chunk)
            full[row, columns] = packed[row, len(columns) * chunk : len(columns) * (chunk + 1)]
    return words, full


def unpacked(out, d_type):
    """D (64, N) from what the lanes stored: element i of a lane lies as PTX ISA 9.7.15.5.1.1.1 shows it."""
    elements = out.reshape(128, -1).view({"f32": np.float32, "f16": np.float16, "s32": np.int32}[d_type])
    d = np.zeros((64, N))
    for lane in range(128):
        for i in range(elements.shape[1]):
            row = 16 * (lane // 32) + lane % 32 // 4 + 8 * (i % 4 // 2)
            d[row, 8 * (i // 4) + 2 * (lane % 4) + i % 2] = elements[lane, i]
    return d


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("a_type", "b_type", "d_type", "k"), CASES)
def test_sparse_products(a_type, b_type, d_type, k, registers):
    rng = np.random.default_rng(k)
    packed, b = dense.small_values(a_type, (64, k // 2), rng), dense.small_values(b_type, (N, k), rng)
    left, right = packed_bytes(packed, a_type), packed_bytes(b, b_type)
    assert left.shape[1] == k // 2 * ELEMENT_BITS[a_type] // 8 == 32 and right.shape[1] == 64
    given = fragment_bytes(left) if registers else core_matrices(left)
    for selector in range(1 if k == 64 else 2):
        metadata, full = metadata_and_full(packed, a_type, k, selector, rng)
        out = np.zeros((128, N // 2 // (2 if d_type == "f16" else 1)), np.uint32)
        text = kernel(a_type, b_type, d_type, k, selector, registers)
        for add in (0, 1):  # the second product is added to the first
            run_ptx(text, "k", 1, 128, [given, core_matrices(right), out, metadata, add])
            np.testing.assert_array_equal(unpacked(out, d_type), (1 + add) * (full @ b.T))


def test_signs():
    rng = np.random.default_rng(1)
    packed, b = dense.small_values("f16", (64, 16), rng), dense.small_values("f16", (N, 32), rng)
    metadata, full = metadata_and_full(packed, "f16", 32, 0, rng)
    out = np.zeros((128, N // 2), np.uint32)
    given = [core_matrices(packed_bytes(packed, "f16")), core_matrices(packed_bytes(b, "f16")), out, metadata, 0]
    run_ptx(kernel("f16", "f16", "f32", 32, 0, False, "-1, 1"), "k", 1, 128, given)
    np.testing.assert_array_equal(unpacked(out, "f32"), -(full @ b.T))


def test_errors():
    given = [np.zeros(2048, np.uint8), np.zeros(N * 64, np.uint8), np.zeros((128, 12), np.uint32)]
    valid, invalid = np.full(128, 0x44444444, np.uint32), np.zeros(128, np.uint32)
    text = kernel("f16", "f16", "f32", 32, 0, False)
    run_ptx(text, "k", 1, 128, [*given, valid, 0])
    with pytest.raises(EmulationError, match="no two different columns in order"):
        run_ptx(text, "k", 1, 128, [*given, invalid, 0])
    with pytest.raises(EmulationError, match="selector is out of range"):
        run_ptx(text.replace("%r9, 0, %p1", "%r9, 2, %p1"), "k", 1, 128, [*given, valid, 0])
    with pytest.raises(EmulationError, match="the sparsity selector is an immediate"):
        run_ptx(text.replace("%r9, 0, %p1", "%r9, %r1, %p1"), "k", 1, 128, [*given, valid, 0])
    with pytest.raises(EmulationError, match=r"wgmma\.sp has no such combination"):
        run_ptx(text.replace(f"n{N}k32", f"n{N}k16"), "k", 1, 128, [*given, valid, 0])
    with pytest.raises(EmulationError, match=r"since the last wgmma\.fence"):
        run_ptx(text.replace("wgmma.fence.sync.aligned;", ""), "k", 1, 128, [*given, valid, 0])
