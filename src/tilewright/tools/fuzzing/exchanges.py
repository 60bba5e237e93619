"""Steps that the block's threads take together: shuffles, shared memory, atomics, asynchronous copies, `ldmatrix`.

Each stands between barriers of its own, writes all memory that it reads, and leaves none in flight, so that it can be
dropped or repeated by itself. They use all of the program's shared memory (`shared`), one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.tools.fuzzing.drawing import Drawing
from tilewright.tools.fuzzing.products import matrix_product, warpgroup_product
from tilewright.tools.fuzzing.program import OUTPUTS, SHARED, THREADS, WIDTH_OF, Step

BARRIER: Final = "bar.sync \t0;"
_MBARRIER: Final = SHARED - 16
_WHOLE_WARP: Final = "-1"


def together(*lines: str) -> Step:
    """Lines in a scope of their own, between barriers of the block."""
    return Step((BARRIER, "{", *lines, BARRIER, "}"), collective=True)


def warp(line: str) -> Step:
    """One instruction that the threads of a warp take together."""
    return Step((line,), collective=True)


def shuffle(draw: Drawing) -> Step:
    """`shfl.sync`, in the whole warp or in parts of it."""
    mode = draw.rng.choice(("up", "down", "bfly", "idx"))
    width = draw.rng.choice((32, 32, 16, 8, 4))
    clamp = 32 - width << 8 | (0 if mode == "up" else 31)
    lane = draw.read("r") if draw.rng.random() < 0.3 else str(draw.rng.randrange(32))
    kind = draw.rng.choice("rrfx")
    targets = draw.write(kind) + (f"|{draw.write('p')}" if draw.rng.random() < 0.5 else "")
    return warp(f"shfl.sync.{mode}.b32 \t{targets}, {draw.read(kind)}, {lane}, {clamp}, {_WHOLE_WARP};")


def vote(draw: Drawing) -> Step:
    """`vote.sync`, `match`, `redux` and `activemask`."""
    kind = draw.rng.choice(("pred", "ballot", "any", "all", "redux", "redux", "active"))
    if kind == "pred":
        mode = draw.rng.choice(("all", "any", "uni"))
        return warp(f"vote.sync.{mode}.pred \t{draw.write('p')}, {draw.read('p')}, {_WHOLE_WARP};")
    if kind == "ballot":
        return warp(f"vote.sync.ballot.b32 \t{draw.write('r')}, {draw.read('p')}, {_WHOLE_WARP};")
    if kind == "active":
        return warp(f"activemask.b32 \t{draw.write('r')};")
    if kind == "redux":
        operation = draw.rng.choice(("add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32",
                                     "or.b32", "xor.b32"))  # fmt: skip
        return warp(f"redux.sync.{operation} \t{draw.write('r')}, {draw.read('r')}, {_WHOLE_WARP};")
    type_, source = draw.rng.choice((("b32", "r"), ("b64", "d")))
    targets = draw.write("r") + (f"|{draw.write('p')}" if kind == "all" else "")
    return warp(f"match.{kind}.sync.{type_} \t{targets}, {draw.read(source)}, {_WHOLE_WARP};")


def through_shared(draw: Drawing) -> Step:
    """Registers to shared memory, and those of another thread back, in vectors at times."""
    kind = draw.rng.choice("hrdebxyfg")
    width = WIDTH_OF[kind]
    count = draw.rng.choice([n for n in (1, 2, 4) if n * width <= 128 and n <= 2 + 2 * (kind not in "g")])
    size = count * width // 8
    vector = f".v{count}" if count > 1 else ""
    kept, taken = draw.reads(kind * count), draw.writes(kind * count)
    return together(
        ".reg .b32 %own, %other, %start;",
        f"mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, {size}, %start;",
        f"st.shared{vector}.b{width} \t[%own], {_group(kept)};",
        BARRIER,
        _other_thread(draw),
        f"mad.lo.u32 \t%other, %other, {size}, %start;",
        f"ld.shared{vector}.b{width} \t{_group(taken)}, [%other];",
    )


def bytes_through_shared(draw: Drawing) -> Step:
    """A word to shared memory, its bytes or halves back with a sign or without, by a generic address at times."""
    type_ = draw.rng.choice(("u8", "s8", "u16", "s16"))
    offset = draw.rng.randrange(4 if type_.endswith("8") else 2) * (1 if type_.endswith("8") else 2)
    generic = draw.rng.random() < 0.3
    load = (
        f"cvt.u64.u32 \t%at, %other; cvta.shared.u64 \t%at, %at; ld.{type_} \t{draw.write('r')}, [%at+{offset}];"
        if generic
        else f"ld.shared.{type_} \t{draw.write('r')}, [%other+{offset}];"
    )
    return together(
        ".reg .b32 %own, %other, %start; .reg .b64 %at;",
        "mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, 4, %start;",
        f"st.shared.b32 \t[%own], {draw.read('r')};",
        BARRIER,
        _other_thread(draw),
        "mad.lo.u32 \t%other, %other, 4, %start;",
        load,
    )


def atomic(draw: Drawing) -> Step:
    """An atomic operation of each thread on a word of its own, whose old value and new value are taken."""
    space = draw.rng.choice(("shared", "global"))
    operation = draw.rng.choice(
        ("add.u32", "add.s32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32", "inc.u32",
         "dec.u32", "exch.b32", "cas.b32", "add.u64", "min.s64", "max.u64", "exch.b64", "cas.b64", "xor.b64")
    )  # fmt: skip
    kind = "d" if operation.endswith("64") else "r"
    width = WIDTH_OF[kind]
    operands = draw.reads(kind * (2 if operation.startswith("cas") else 1))
    setup, place = _own_place(space, 8)
    return together(
        setup,
        f"st.{space}.b{width} \t[{place}], {draw.read(kind)};",
        f"atom.{space}.{operation} \t{draw.write(kind)}, [{place}], {', '.join(operands)};",
        f"ld.{space}.b{width} \t{draw.write(kind)}, [{place}];",
    )


def reduction(draw: Drawing) -> Step:
    """Reductions of all threads on a few words, in an order that does not matter."""
    space = draw.rng.choice(("shared", "global"))
    operation = draw.rng.choice(("add.u32", "add.s32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32",
                                 "xor.b32"))  # fmt: skip
    words = draw.rng.choice((1, 4, 32))
    setup, own = _own_place(space, 4)
    start, wide = ("%start", "b32") if space == "shared" else ("%base", "b64")
    address = "mad.lo.u32 \t%to, %word, 4, %start;" if space == "shared" else "mad.wide.u32 \t%to, %word, 4, %base;"
    base = f"add.s64 \t%base, %target, {THREADS * OUTPUTS * 8};"
    return together(
        setup,
        f".reg .b32 %word; .reg .{wide} %to;" + (f" .reg .b64 %base; {base}" if space == "global" else ""),
        f"st.{space}.b32 \t[{own}], {draw.read('r')};",
        BARRIER,
        f"and.b32 \t%word, %self, {words - 1}; {address}",
        f"red.{space}.{operation} \t[%to], {draw.read('r')};",
        BARRIER,
        f"ld.{space}.b32 \t{draw.write('r')}, [{start}+{4 * draw.rng.randrange(words)}];",
    )


def copy_async(draw: Drawing) -> Step:
    """`cp.async` from the input, of fewer bytes than it writes at times, in one or two groups."""
    mode, size = draw.rng.choice((("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)))
    source = [8 * draw.rng.randrange(48, 62, 2) for _ in range(2)]
    cut = f", {draw.rng.choice((0, 1, size // 2, size))}" if draw.rng.random() < 0.4 else ""
    loads = [
        f"ld.shared.b32 \t{draw.write('r')}, [%own+{4 * draw.rng.randrange(size // 4)}];",
        f"ld.shared.b32 \t{draw.write('r')}, [%other+{2048 + 4 * draw.rng.randrange(size // 4)}];",
    ]
    return together(
        ".reg .b32 %own, %other, %start;",
        "mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, 16, %start;",
        f"cp.async.{mode}.shared.global \t[%own], [%record+{source[0]}], {size}{cut};",
        "cp.async.commit_group;",
        f"cp.async.{mode}.shared.global \t[%own+2048], [%record+{source[1]}], {size};",
        "cp.async.commit_group;",
        "cp.async.wait_group \t1;" if draw.rng.random() < 0.5 else "cp.async.wait_all;",
        loads[0],
        "cp.async.wait_group \t0;",
        BARRIER,
        _other_thread(draw),
        "mad.lo.u32 \t%other, %other, 16, %start;",
        loads[1],
    )


def barrier_of_arrivals(draw: Drawing) -> Step:
    """An `mbarrier` at which all threads arrive and wait, with words exchanged across it."""
    wait = draw.name("$wait")
    arrive, test = draw.rng.choice(
        (("mbarrier.arrive.shared.b64 \t%state, [%at];", "mbarrier.try_wait.shared.b64 \t%done, [%at], %state;"),
         ("mbarrier.arrive.shared.b64 \t%state, [%at];", "mbarrier.test_wait.shared.b64 \t%done, [%at], %state;"),
         ("mbarrier.arrive.shared.b64 \t%state, [%at], 1;", "mbarrier.try_wait.parity.shared.b64 \t%done, [%at], 0;"))
    )  # fmt: skip
    return together(
        *_mbarrier(draw, THREADS),
        ".reg .b32 %own, %other, %start; mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, 4, %start;",
        f"st.shared.b32 \t[%own], {draw.read('r')};",
        arrive,
        f"{wait}:",
        test,
        f"@!%done bra \t{wait};",
        _other_thread(draw),
        "mad.lo.u32 \t%other, %other, 4, %start;",
        f"ld.shared.b32 \t{draw.write('r')}, [%other];",
        *_invalidated(),
    )


def bulk_copy(draw: Drawing) -> Step:
    """`cp.async.bulk` of a part of the input to shared memory, counted by an `mbarrier`."""
    wait, size = draw.name("$wait"), draw.rng.choice((16, 512, 2048))
    source = 16 * draw.rng.randrange(64)
    width, kind = draw.rng.choice(((32, "r"), (64, "d"), (16, "h")))
    return together(
        *_mbarrier(draw, 1),
        ".reg .b32 %own, %start; .reg .b64 %from; mov.u32 \t%start, shared;",
        f"add.s64 \t%from, %source, {source};",
        f"@%lead mbarrier.arrive.expect_tx.shared.b64 \t%state, [%at], {size};",
        f"@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \t[%start], [%from], {size}, [%at];",
        f"{wait}:",
        "mbarrier.try_wait.parity.shared.b64 \t%done, [%at], 0;",
        f"@!%done bra \t{wait};",
        f"mul.lo.u32 \t%own, %self, 16; and.b32 \t%own, %own, {size - 1}; add.u32 \t%own, %own, %start;",
        f"ld.shared.b{width} \t{draw.write(kind)}, [%own];",
        *_invalidated(),
    )


def bulk_store(draw: Drawing) -> Step:
    """`cp.async.bulk` or `cp.reduce.async.bulk` of words of shared memory to the scratch memory, and them back."""
    operation = draw.rng.choice(("", "add.u32", "min.s32", "max.u32", "and.b32", "xor.b32"))
    name = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}" if operation else (
        "cp.async.bulk.global.shared::cta.bulk_group")  # fmt: skip
    return together(
        ".reg .pred %lead; .reg .b32 %own, %start; .reg .b64 %to, %mine;",
        "mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, 4, %start;",
        f"add.s64 \t%to, %target, {THREADS * OUTPUTS * 8}; mad.wide.u32 \t%mine, %self, 4, %to;",
        f"st.shared.b32 \t[%own], {draw.read('r')};",
        f"st.global.b32 \t[%mine], {draw.read('r')};",
        "fence.proxy.async;",
        BARRIER,
        "setp.eq.u32 \t%lead, %self, 0;",
        f"@%lead {name} \t[%to], [%start], {THREADS * 4};",
        "@%lead cp.async.bulk.commit_group;",
        "@%lead cp.async.bulk.wait_group \t0;",
        "@%lead fence.proxy.async;",
        BARRIER,
        f"ld.global.b32 \t{draw.write('r')}, [%mine];",
    )


def matrix_copy(draw: Drawing) -> Step:
    """`stmatrix` and `ldmatrix`, as they are or transposed."""
    count = draw.rng.choice((1, 2, 4))
    ways = [draw.rng.choice(("", ".trans")) for _ in range(2)]
    kept, taken = draw.reads("x" * count), draw.writes("x" * count)
    store = (
        f"stmatrix.sync.aligned.m8n8.x{count}{ways[0]}.shared.b16 \t[%place], {_group(kept, always=True)};"
        if draw.rng.random() < 0.5
        else "st.shared.v4.b32 \t[%own], " + _group(draw.reads("xxxx"), always=True) + ";"
    )
    return together(
        ".reg .b32 %own, %place, %start; mov.u32 \t%start, shared; mad.lo.u32 \t%own, %self, 16, %start;",
        "st.shared.v4.b32 \t[%own], {%self, %self, %self, %self};",
        "and.b32 \t%place, %self, -32; mad.lo.u32 \t%place, %place, 16, %start;",
        f"{{ .reg .b32 %row; and.b32 \t%row, %self, {8 * count - 1}; mad.lo.u32 \t%place, %row, 16, %place; }}",
        BARRIER,
        store,
        BARRIER,
        f"ldmatrix.sync.aligned.m8n8.x{count}{ways[1]}.shared.b16 \t{_group(taken, always=True)}, [%place];",
    )


def product_of_warps(draw: Drawing) -> Step:
    """`mma.sync`."""
    return Step(matrix_product(draw), collective=True)


def product_of_warpgroup(draw: Drawing) -> Step:
    """`wgmma` of operands in shared memory, or with A in registers."""
    return together(*warpgroup_product(draw))


EXCHANGES: Final[tuple[Callable[[Drawing], Step], ...]] = (
    shuffle, shuffle, vote, vote, through_shared, through_shared, bytes_through_shared, atomic, reduction, copy_async,
    barrier_of_arrivals, bulk_copy, bulk_store, matrix_copy, product_of_warps, product_of_warps, product_of_warpgroup,
)  # fmt: skip


def _group(names: list[str], *, always: bool = False) -> str:
    return "{" + ", ".join(names) + "}" if len(names) > 1 or always else names[0]


def _other_thread(draw: Drawing) -> str:
    """The number of another thread, by a constant or by a register."""
    if draw.rng.random() < 0.5:
        return f"add.u32 \t%other, %self, {draw.rng.randrange(THREADS)}; and.b32 \t%other, %other, {THREADS - 1};"
    return f"and.b32 \t%other, {draw.read('r')}, {THREADS - 1};"


def _own_place(space: str, size: int) -> tuple[str, str]:
    """A place of the thread's own in shared memory or in the scratch memory: how it comes, and its register."""
    if space == "shared":
        start = ".reg .b32 %own, %start; mov.u32 \t%start, shared;"
        return f"{start} mad.lo.u32 \t%own, %self, {size}, %start;", "%own"
    behind = f"add.s64 \t%own, %target, {THREADS * OUTPUTS * 8};"
    return f".reg .b64 %own; {behind} mad.wide.u32 \t%own, %self, {size}, %own;", "%own"


def _mbarrier(draw: Drawing, arrivals: int) -> tuple[str, ...]:
    """An mbarrier that the block's first thread sets up, behind a barrier."""
    return (
        ".reg .pred %lead, %done; .reg .b64 %state; .reg .b32 %at;",
        f"mov.u32 \t%at, shared; add.u32 \t%at, %at, {_MBARRIER}; setp.eq.u32 \t%lead, %self, 0;",
        f"@%lead mbarrier.init.shared.b64 \t[%at], {arrivals};",
        "fence.proxy.async;",
        BARRIER,
    )


def _invalidated() -> tuple[str, ...]:
    return (BARRIER, "@%lead mbarrier.inval.shared.b64 \t[%at];")
