"""PTX modules with known properties, for the tests of assembling and of reading cubins."""

from tilewright.hw.chips import chip

ARCHES = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120")


def module(arch: str, text: str, version: str = "") -> str:
    """A module for one target, in the oldest PTX version that knows it."""
    target = chip(arch)
    return f".version {version or target.ptx}\n.target {target.arch}\n.address_size 64\n{text}"


def store(arch: str) -> str:
    """One thread stores 7."""
    body = ".reg .b64 q;\n ld.param.u64 q, [p];\n st.global.b32 [q], 7;\n ret;"
    return module(arch, f".visible .entry store(.param .u64 p)\n{{\n {body}\n}}\n")


def scale(arch: str) -> str:
    """y[i] = a * x[i] for i < n, one element a thread."""
    return module(
        arch,
        """.visible .entry scale(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
 .reg .b32 i, b, t, n1; .reg .b64 px, py, o; .reg .f32 v, w; .reg .pred out;
 ld.param.u64 py, [y]; ld.param.u64 px, [x]; ld.param.f32 w, [a]; ld.param.u32 n1, [n];
 mov.u32 i, %ctaid.x; mov.u32 b, %ntid.x; mov.u32 t, %tid.x; mad.lo.u32 i, i, b, t;
 setp.ge.u32 out, i, n1;
 @out bra done;
 mul.wide.u32 o, i, 4; add.u64 px, px, o; add.u64 py, py, o;
 ld.global.f32 v, [px]; mul.f32 v, v, w; st.global.f32 [py], v;
done:
 ret;
}
""",
    )


def shared(arch: str, bounds: str = ".maxntid 128, 2, 1") -> str:
    """512 bytes of static shared memory, barriers 0 to 3, parameters of 8, 4 and 24 bytes; and an empty kernel."""
    return module(
        arch,
        f""".visible .entry shared(.param .u64 p, .param .u32 n, .param .align 8 .b8 z[24]) {bounds}
{{
 .reg .b64 q, s; .reg .b32 r; .shared .align 16 .b8 tile[512];
 ld.param.u64 q, [p]; ld.param.u32 r, [n]; mov.u64 s, tile;
 st.shared.u32 [s], r; bar.sync 3; ld.shared.u32 r, [s+4]; st.global.b32 [q], r;
 ret;
}}
.visible .entry empty() {{ ret; }}
""",
    )


def dynamic_shared(arch: str) -> str:
    """Shared memory of a size that the launch chooses, block of exactly 64."""
    return module(
        arch,
        """.extern .shared .align 16 .b8 pool[];
.visible .entry dynamic_shared(.param .u64 p) .reqntid 64
{
 .reg .b64 q, s; .reg .b32 r;
 ld.param.u64 q, [p]; mov.u64 s, pool; mov.u32 r, %tid.x;
 st.shared.u32 [s], r; bar.sync 0; ld.shared.u32 r, [s+4]; st.global.b32 [q], r;
 ret;
}
""",
    )


def spilling(arch: str, values: int = 96) -> str:
    """Many live values in a loop: with few registers it spills."""
    load = "\n".join(f" ld.volatile.global.f32 f{i}, [q+{4 * i}];" for i in range(values))
    work = "\n".join(
        f" sin.approx.f32 f{i}, f{i};\n fma.rn.f32 f{i}, f{i}, f{(7 * i + 3) % values}, f{(5 * i + 1) % values};"
        for i in range(values)
    )
    store_all = "\n".join(f" st.volatile.global.f32 [q+{4 * i}], f{i};" for i in range(values))
    return module(
        arch,
        f""".visible .entry spilling(.param .u64 p)
{{
 .reg .b64 q; .reg .f32 f<{values}>; .reg .b32 r; .reg .pred again;
 ld.param.u64 q, [p]; ld.global.u32 r, [q];
{load}
loop:
{work}
 sub.s32 r, r, 1; setp.gt.s32 again, r, 0;
 @again bra loop;
{store_all}
 ret;
}}
""",
    )


def stack(arch: str) -> str:
    """A local array with a runtime index, and a call of a function with an array of its own."""
    return module(
        arch,
        """.const .align 4 .b32 table[16] = {1, 2, 3};
.func (.param .b32 r) helper(.param .b32 i) .noinline
{
 .local .align 16 .b8 own[256]; .reg .b32 a; .reg .b64 l, o;
 ld.param.u32 a, [i]; mul.wide.u32 o, a, 4; mov.u64 l, own; add.u64 l, l, o;
 st.local.u32 [l], a; ld.local.u32 a, [l+8]; st.param.b32 [r], a;
 ret;
}
.visible .entry stack(.param .u64 p)
{
 .local .align 16 .b8 mine[128]; .reg .b64 q, l, o, c; .reg .b32 a, b;
 ld.param.u64 q, [p]; ld.global.u32 a, [q]; mul.wide.u32 o, a, 4;
 mov.u64 l, mine; add.u64 l, l, o; st.local.v2.u32 [l], {a, a}; ld.local.u32 b, [l+16];
 mov.u64 c, table; add.u64 c, c, o; ld.const.u32 a, [c]; add.u32 b, b, a;
 {
  .param .b32 i; .param .b32 r;
  st.param.b32 [i], b; call (r), helper, (i); ld.param.b32 b, [r];
 }
 st.global.b32 [q], b;
 ret;
}
""".replace(" .noinline", ""),
    )


def clusters(arch: str) -> str:
    """A kernel with a required cluster shape, and one with a largest rank."""
    return module(
        arch,
        """.visible .entry pair(.param .u64 p) .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry any(.param .u64 p) .explicitcluster .maxclusterrank 8 { ret; }
""",
    )


def located(arch: str) -> str:
    """Two kernels with `.loc` directives, into two files."""
    return module(
        arch,
        """.file 1 "/home/user/my kernels/first.py"
.file 2 "/home/user/helper.py"
.visible .entry first(.param .u64 p)
{
 .reg .b64 q; .reg .b32 r;
 .loc 1 10 4
 ld.param.u64 q, [p];
 .loc 1 11 4
 ld.global.u32 r, [q];
 .loc 2 1000 2
 add.s32 r, r, 7;
 .loc 2 1001 2
 mul.lo.s32 r, r, r;
 .loc 1 13 4
 st.global.b32 [q], r;
 .loc 1 14 0
 ret;
}
.visible .entry second(.param .u64 p)
{
 .reg .b64 q;
 .loc 2 7 4
 ld.param.u64 q, [p];
 .loc 2 3 4
 st.global.b32 [q], 3;
 ret;
}
""",
    )
