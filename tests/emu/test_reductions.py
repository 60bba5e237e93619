"""Asynchronous reductions of every operation and type, in global memory and in another block, against NumPy."""

import numpy as np
import pytest

from tests.emu.test_instructions import HEAD
from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

U32, S32, U64, S64 = np.uint32, np.int32, np.uint64, np.int64
FUNCTIONS = {
    "add": lambda old, b: old + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, b: np.where(old >= b, 0, old + 1).astype(old.dtype),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1).astype(old.dtype),
}
DTYPES = {"u32": U32, "s32": S32, "b32": U32, "u64": U64, "s64": S64, "b64": U64, "f16": np.float16, "f32": np.float32}
DTYPES["f64"] = np.float64
GLOBAL = [
    *[(op, kind) for op in ("and", "or", "xor") for kind in ("b32", "b64")],
    *[(op, kind) for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64", "f16")],
    *[("add", kind) for kind in ("u32", "s32", "u64", "f16", "f32", "f64")],
    ("inc", "u32"),
    ("dec", "u32"),
]
CLUSTER = [
    *[(op, "b32") for op in ("and", "or", "xor")],
    *[(op, kind) for op in ("add", "min", "max") for kind in ("u32", "s32")],
    ("add", "u64"),
    ("inc", "u32"),
    ("dec", "u32"),
]


def operands(op, kind, seed):
    """Two arrays of 256 bytes; small numbers where all of them matter."""
    rng = np.random.default_rng(seed)
    count = 256 // np.dtype(DTYPES[kind]).itemsize
    if op in ("inc", "dec"):
        return [rng.integers(0, 4, count).astype(U32) for _ in range(2)]
    if kind[0] == "f":
        return [rng.integers(-8, 9, count).astype(DTYPES[kind]) / 2 for _ in range(2)]
    return [rng.integers(0, 256, 256, dtype=np.uint8).view(DTYPES[kind]) for _ in range(2)]


COPY_IN = """
  mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mul.wide.u32 %d5, %r1, 8; add.u64 %d6, %d1, %d5; ld.global.b64 %d7, [%d6];
  cvt.u32.u64 %r3, %d5; add.u32 %r4, %r2, %r3; st.shared.b64 [%r4], %d7;
"""
DECLARED = """.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %d<20>;
  .shared .align 128 .b8 tile[256]; .shared .align 128 .b8 sums[256]; .shared .align 8 .b64 bar;"""


def to_global(op, kind):
    rounding = ".noftz" if kind == "f16" and op == "add" else ""
    return f"""{HEAD}
.visible .entry k(.param .u64 source, .param .u64 to)
{{ {DECLARED}
  ld.param.u64 %d1, [source]; ld.param.u64 %d2, [to];
  {COPY_IN}
  fence.proxy.async; bar.sync 0;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}{rounding}.{kind} [%d2], [%r2], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END: ret;
}}
"""


@pytest.mark.parametrize(("op", "kind"), GLOBAL)
def test_bulk_reductions_in_global_memory(op, kind):
    old, b = operands(op, kind, 1)
    got = old.copy()
    run_ptx(to_global(op, kind), "k", 1, 32, [b, got])
    np.testing.assert_array_equal(got, FUNCTIONS[op](old, b))


def to_other_block(instruction, nbytes):
    """Block 1 reduces its tile into the sums of block 0, which has waited for that."""
    return f"""{HEAD}
.visible .entry k(.param .u64 source, .param .u64 to)
{{ {DECLARED}
  ld.param.u64 %d1, [source]; ld.param.u64 %d2, [to];
  {COPY_IN}
  add.u64 %d8, %d2, %d5; ld.global.b64 %d9, [%d8]; mov.u32 %r5, sums; add.u32 %r6, %r5, %r3; st.shared.b64 [%r6], %d9;
  setp.ne.u32 %p1, %r1, 0; @%p1 bra MADE;
  mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {nbytes};
MADE:
  fence.proxy.async; barrier.cluster.arrive; barrier.cluster.wait;
  mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p2, %r7, 0; @%p2 bra WAIT;
  mapa.shared::cluster.u32 %r8, %r5, 0; mov.u32 %r9, bar; mapa.shared::cluster.u32 %r10, %r9, 0;
  {instruction}
  bra DONE;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;
  ld.shared.b64 %d9, [%r6]; st.global.b64 [%d8], %d9;
DONE:
  barrier.cluster.arrive; barrier.cluster.wait; ret;
}}
"""


BULK = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(("op", "kind"), CLUSTER)
def test_bulk_reductions_in_another_block(op, kind):
    text = f"@%p1 bra DONE; {BULK}.{op}.{kind} [%r8], [%r2], 256, [%r10];"
    old, b = operands(op, kind, 2)
    for seed in (0, 1):
        got = old.copy()
        run_ptx(to_other_block(text, 256), "k", 2, 32, [b, got], cluster=2, seed=seed)
        np.testing.assert_array_equal(got, FUNCTIONS[op](old, b))


@pytest.mark.parametrize(("op", "kind"), CLUSTER)
def test_red_async(op, kind):
    """Each thread of block 1 reduces 8 bytes: one element or two."""
    size = np.dtype(DTYPES[kind]).itemsize
    red = f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{kind}"
    parts = [
        f"ld.shared.b{8 * size} %{'d' if size == 8 else 'r'}11, [%r4+{at}]; "
        f"{red} [%r12+{at}], %{'d' if size == 8 else 'r'}11, [%r10];"
        for at in range(0, 8, size)
    ]
    old, b = operands(op, kind, 3)
    text = to_other_block("add.u32 %r12, %r8, %r3; " + " ".join(parts), 256)
    got = old.copy()
    run_ptx(text, "k", 2, 32, [b, got], cluster=2)
    np.testing.assert_array_equal(got, FUNCTIONS[op](old, b))


def test_threads_reduce_into_one_word():
    """Relaxed reductions do not race with one another; who waits sees them all."""
    red = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r1, [%r10];"
    got = np.full(64, 100, U32)
    run_ptx(to_other_block(red, 128), "k", 2, 32, [np.zeros(64, U32), got], cluster=2)
    assert got.tolist() == [100 + 31 * 16, *[100] * 63]


def test_a_red_async_orders_itself_and_nothing_before_it():
    """Block 0 waits for the bytes: it may read the sum, but not what block 1 wrote to its own tile before."""
    red = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r12], %r1, [%r10];"
    text = to_other_block(f"st.shared.b64 [%r4], %d9; add.u32 %r12, %r8, %r3; {red}", 128)
    arguments = [np.zeros(64, U32), np.zeros(64, U32)]
    run_ptx(text, "k", 2, 32, arguments, cluster=2)
    np.testing.assert_array_equal(arguments[1][::2], np.arange(32))
    peek = "mov.u32 %r9, tile; add.u32 %r9, %r9, %r3; mapa.shared::cluster.u32 %r9, %r9, 1;" \
        "ld.shared::cluster.b64 %d9, [%r9]; st.global.b64 [%d8], %d9; DONE:"  # fmt: skip
    peeks = (
        text.replace("DONE:", peek)
        .replace("bra DONE;", "bra END;")
        .replace(
            "barrier.cluster.arrive; barrier.cluster.wait; ret",
            "END: barrier.cluster.arrive; barrier.cluster.wait; ret",
        )
    )
    with pytest.raises(EmulationError, match="Race condition in shared memory access") as caught:
        run_ptx(peeks, "k", 2, 32, arguments, cluster=2)
    assert "ld.shared::cluster.b64" in str(caught.value)
    arrive = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];"
    ordered = peeks.replace(red, red + arrive).replace("[bar], 1;", "[bar], 33;")
    run_ptx(ordered, "k", 2, 32, arguments, cluster=2)


def test_a_red_async_that_is_not_waited_for_is_reported():
    red = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r1, [%r10];"
    text = to_other_block(red, 128).replace("WAIT:\n", "WAIT: ld.shared.b64 %d9, [%r6]; st.global.b64 [%d8], %d9;\n")
    with pytest.raises(EmulationError, match="Race condition in shared memory access") as caught:
        run_ptx(text, "k", 2, 32, [np.zeros(64, U32), np.zeros(64, U32)], cluster=2)
    assert "red.async" in str(caught.value)


def test_a_reduction_that_is_not_waited_for_is_reported():
    text = to_other_block(f"@%p1 bra DONE; {BULK}.add.u32 [%r8], [%r2], 256, [%r10];", 256)
    old, b = operands("add", "u32", 4)
    early = text.replace("WAIT:\n", "WAIT: ld.shared.b64 %d9, [%r6]; st.global.b64 [%d8], %d9;\n")
    with pytest.raises(EmulationError, match="Race condition in shared memory access"):
        run_ptx(early, "k", 2, 32, [b, old], cluster=2)
