"""Products of matrices: `mma.sync` on fragments in registers, `wgmma` on shared memory."""

from __future__ import annotations

from typing import Final

from tilewright.tools.fuzzing.drawing import Drawing

# Shape and types, then the registers of D, A, B and C. Fragments: PTX ISA, "Matrix Fragments for mma".
_PRODUCTS: Final = (
    ("m16n8k16.row.col.f32.f16.f16.f32", "ffff", "xxxx", "xx", "ffff"),
    ("m16n8k16.row.col.f16.f16.f16.f16", "xx", "xxxx", "xx", "xx"),
    ("m16n8k8.row.col.f32.f16.f16.f32", "ffff", "xx", "x", "ffff"),
    ("m16n8k8.row.col.f16.f16.f16.f16", "xx", "xx", "x", "xx"),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", "ffff", "yyyy", "yy", "ffff"),
    ("m16n8k8.row.col.f32.bf16.bf16.f32", "ffff", "yy", "y", "ffff"),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", "ffff", "tttt", "tt", "ffff"),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", "ffff", "tt", "t", "ffff"),
    ("m8n8k4.row.col.f64.f64.f64.f64", "gg", "g", "g", "gg"),
    ("m16n8k16.row.col.s32.s8.s8.s32", "rrrr", "rr", "r", "rrrr"),
    ("m16n8k16.row.col.satfinite.s32.u8.s8.s32", "rrrr", "rr", "r", "rrrr"),
    ("m16n8k32.row.col.s32.s8.u8.s32", "rrrr", "rrrr", "rr", "rrrr"),
    ("m16n8k32.row.col.s32.u8.u8.s32", "rrrr", "rrrr", "rr", "rrrr"),
    ("m8n8k16.row.col.s32.s8.s8.s32", "rr", "r", "r", "rr"),
    ("m16n8k256.row.col.s32.b1.b1.s32.and.popc", "rrrr", "rrrr", "rr", "rrrr"),
)  # fmt: skip

# Types of A and B, depth and the kind of D's registers with their number, for n = 8.
_GROUP_PRODUCTS: Final = (
    ("f32.f16.f16", 16, "ffff", 5), ("f16.f16.f16", 16, "xx", 5), ("f32.bf16.bf16", 16, "ffff", 5),
    ("f32.tf32.tf32", 8, "ffff", 3), ("f32.e4m3.e4m3", 32, "ffff", 3), ("f32.e5m2.e4m3", 32, "ffff", 3),
    ("f16.e4m3.e5m2", 32, "xx", 3), ("s32.s8.s8", 32, "rrrr", 1), ("s32.u8.u8", 32, "rrrr", 1),
)  # fmt: skip
_ROW_PITCH, _GROUP_PITCH = 128, 256  # bytes between core matrices along K and along M or N
_A, _B = 0, 2048


def matrix_product(draw: Drawing) -> tuple[str, ...]:
    """`mma.sync` of registers; tf32 operands are rounded to it before."""
    name, results, left, right, summand = draw.rng.choice(_PRODUCTS)
    before: list[str] = []
    factors = [_factors(draw, kinds, before) for kinds in (left, right)]
    groups = [draw.writes(results), *factors, draw.reads(summand)]
    written = ", ".join("{" + ", ".join(group) + "}" for group in groups)
    line = f"mma.sync.aligned.{name} \t{written};"
    return (f"{{ {' '.join([*before, line])} }}",) if before else (line,)


def _factors(draw: Drawing, kinds: str, before: list[str]) -> list[str]:
    if not kinds.startswith("t"):
        return draw.reads(kinds)
    names = []
    for _ in kinds:
        names.append(f"%t{len(before)}")
        before.append(f".reg .b32 {names[-1]}; cvt.rna.tf32.f32 \t{names[-1]}, {draw.read('f')};")
    return names


def warpgroup_product(draw: Drawing) -> tuple[str, ...]:
    """`wgmma` m64n8, A and B written to shared memory without a swizzle, both K-major; A from registers at times."""
    types, depth, results, scales = draw.rng.choice(_GROUP_PRODUCTS)
    type_ = "f32" if results[0] == "f" else "b32"
    sums = [f"%sum{place}" for place in range(len(results))]
    values = draw.reads(results)
    in_registers = draw.rng.random() < 0.3
    signs = {5: ", 1, 1, 0, 0", 3: ", 1, 1", 1: ""}[scales]
    if scales == 5:
        signs = f", {draw.rng.choice(('1', '-1'))}, 1" + (", 0" if in_registers else ", 0, 0")
    left = "{" + ", ".join(draw.reads("xxxx")) + "}" if in_registers else "%a"
    step = f"wgmma.mma_async.sync.aligned.m64n8k{depth}.{types} \t{{{', '.join(sums)}}}, {left}, %b, %more{signs};"
    return (
        f".reg .b64 %a, %b; .reg .b32 %own, %start; .reg .pred %more, %few; .reg .{type_} %sum<{len(results)}>;",
        "mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, 16, %start;",
        f"st.shared.v4.b32 \t[%own+{_A}], {{{', '.join(draw.reads('xxxx'))}}};",
        "setp.lt.u32 \t%few, %self, 16;",
        f"@%few st.shared.v4.b32 \t[%own+{_B}], {{{', '.join(draw.reads('xxxx'))}}};",
        "fence.proxy.async;",
        "bar.sync \t0;",
        *(f"mov.b32 \t{name}, {value};" for name, value in zip(sums, values, strict=True)),
        *(_descriptor(name, offset) for name, offset in (("%a", _A), ("%b", _B))),
        f"setp.ne.b32 \t%more, {draw.rng.choice(('1', '1', '0'))}, 0;",
        "wgmma.fence.sync.aligned;",
        step,
        *((step,) if draw.rng.random() < 0.3 else ()),
        "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned \t0;",
        *(f"mov.b32 \t{target}, {name};" for target, name in zip(draw.writes(results), sums, strict=True)),
    )


def _descriptor(name: str, offset: int) -> str:
    """A matrix descriptor (PTX ISA, "Matrix Descriptor Format"): address, pitches of core matrices, no swizzle."""
    pitches = (_ROW_PITCH >> 4) << 16 | (_GROUP_PITCH >> 4) << 32
    return (
        f"{{ .reg .b32 %place; add.u32 \t%place, %start, {offset}; and.b32 \t%place, %place, 262143;"
        f" shr.u32 \t%place, %place, 4; cvt.u64.u32 \t{name}, %place; or.b64 \t{name}, {name}, {pitches}; }}"
    )
