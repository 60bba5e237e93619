"""The engine on kernels compiled by nvcc: divergence, calls, barriers, communication between blocks, printing."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.emulate import run_ptx

PTX = (Path(__file__).parent / "data" / "engine" / "engine.ptx").read_text()
CHECKS = [True, False]


def launch(name, grid, block, args, **options):
    return run_ptx(PTX, name, grid, block, args, **options)


@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("n", [1, 31, 256, 1000])
def test_guarded_add(checks, n):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n)).astype(np.float32)
    c = np.zeros(n, np.float32)
    report = launch("add", 4, 256, [a, b, c, n], checks=checks)
    np.testing.assert_array_equal(c, a + b)
    assert report.blocks == 4 and report.threads == 256 and report.ok


def steps_to_one(value):
    steps = 0
    while value != 1:
        value, steps = (3 * value + 1 if value % 2 else value // 2), steps + 1
    return steps


@pytest.mark.parametrize("checks", CHECKS)
def test_threads_leave_a_loop_one_by_one(checks):
    a = np.arange(1, 600, dtype=np.uint32)
    out = np.zeros_like(a)
    launch("collatz", 5, 128, [a, out, len(a)], checks=checks)
    assert out.tolist() == [steps_to_one(int(x)) for x in a]


def test_instructions_are_counted_for_each_thread():
    few, many = (np.full(64, x, np.uint32) for x in (2, 1 << 20))
    out = np.zeros(64, np.uint32)
    short = launch("collatz", 1, 64, [few, out, 64]).instructions
    long = launch("collatz", 1, 64, [many, out, 64]).instructions
    half = launch("collatz", 1, 64, [np.where(np.arange(64) < 32, few, many), out, 64]).instructions
    assert 2 * half == short + long


@pytest.mark.parametrize("checks", CHECKS)
def test_recursion(checks):
    out = np.zeros(40, np.int32)
    launch("recursion", 1, 40, [out], checks=checks)
    numbers = [0, 1]
    while len(numbers) < 10:
        numbers.append(numbers[-1] + numbers[-2])
    assert out.tolist() == [numbers[t % 10] for t in range(40)]


@pytest.mark.parametrize("checks", CHECKS)
def test_indirect_calls_to_different_functions(checks):
    out = np.zeros(64, np.int32)
    launch("indirect_calls", 1, 64, [out], checks=checks)
    assert out.tolist() == [t * t if t % 2 else 2 * t for t in range(64)]


def test_printing(capsys):
    report = launch("hello", 1, 32, [3])
    wanted = "".join(f"thread {t} of 32: {t * 0.5:5.2f} text x 10000000000%\n" for t in range(3))
    assert report.output == wanted == capsys.readouterr().out


@pytest.mark.parametrize("checks", CHECKS)
def test_matmul_on_a_two_dimensional_grid(checks):
    rng = np.random.default_rng(3)
    a, b = rng.integers(-5, 6, (2, 32, 32)).astype(np.float32)
    c = np.zeros((32, 32), np.float32)
    launch("matmul", (4, 2), (8, 16), [a, b, c, 32], checks=checks)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_barriers_in_a_loop(checks, seed):
    out = np.zeros(128, np.int32)
    launch("rounds", 1, 128, [out, 9], checks=checks, seed=seed)
    assert out.tolist() == [(t + 9) % 128 + 9 for t in range(128)]


@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("blocks", [2, 700])
def test_a_block_waits_for_all_others(checks, blocks):
    arrived, total = np.zeros((2, 1), np.int32)
    payload = np.zeros(blocks, np.int32)
    launch("wait_for_others", blocks, 32, [arrived, payload, total], checks=checks)
    assert total[0] == blocks * (blocks - 1) // 2


@pytest.mark.parametrize("seed", [0, 5])
def test_cooperative_groups_grid_sync(seed):
    out = np.zeros(2048, np.int32)
    launch("grid_sync", 8, 256, [out], seed=seed)
    assert out.tolist() == [(t + 257) % 2048 for t in range(2048)]


def test_a_load_that_nothing_uses_is_no_fault():
    out = np.ones(64, np.int32)
    launch("unwritten_unused", 1, 64, [out])
    assert out.tolist() == [1] * 32 + [0] * 32


def test_the_same_run_twice_is_the_same():
    outs = []
    for _ in range(2):
        out = np.zeros(128, np.int32)
        report = launch("rounds", 1, 128, [out, 5], seed=3)
        outs.append((out.tolist(), report.instructions, report.by_class))
    assert outs[0] == outs[1]


def test_tensors_of_torch_are_written_in_place():
    torch = pytest.importorskip("torch")
    a = torch.arange(100, dtype=torch.float32)
    c = torch.zeros(100)
    launch("add", 1, 128, [a, a, c, 100])
    assert torch.equal(c, 2 * a)


def test_views_with_an_offset_are_written_in_place():
    a = np.arange(16, dtype=np.float32)
    launch("add", 1, 32, [a[5:9], a[5:9], a[5:9], 4])
    assert a.tolist() == [0, 1, 2, 3, 4, 10, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15]


def assembled(body):
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
  .reg .pred %p<9>; .reg .b32 %r<19>; .reg .b64 %d<9>;
  .shared .align 4 .b8 s[512];
  ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3;
  mov.u32 %r3, s; add.u32 %r4, %r3, %r2;
{body}
  ret;
}}
"""


@pytest.mark.parametrize("checks", CHECKS)
def test_long_loops_of_volatile_loads_and_atomics_are_no_deadlock(checks):
    body = """
  mov.u32 %r5, 0; mov.u32 %r6, 0;
A: ld.volatile.global.u32 %r7, [%d2]; add.u32 %r6, %r6, %r7;
  add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5000; @%p1 bra A;
B: atom.global.add.u32 %r8, [%d1], %r6; setp.lt.u32 %p1, %r8, 3000000; @%p1 bra B;
"""
    out, one = np.zeros(1, np.int32), np.ones(1, np.int32)
    run_ptx(assembled(body), "k", 1, 32, [out, one], checks=checks)
    assert out[0] % 5000 == 0 and 3000000 <= out[0] < 3000000 + 2 * 32 * 5000


@pytest.mark.parametrize("checks", CHECKS)
def test_guarded_arrival_counts_the_guarded_threads(checks):
    body = """
  setp.lt.u32 %p1, %r1, 32;
  @%p1 st.shared.u32 [%r4], %r1;
  @%p1 bar.arrive 3, 64;
  @!%p1 bar.sync 3, 64;
  xor.b32 %r5, %r2, 128; add.u32 %r6, %r3, %r5;
  @!%p1 ld.shared.u32 %r7, [%r6];
  @!%p1 st.global.u32 [%d4], %r7;
"""
    out = np.full(64, -1, np.int32)
    run_ptx(assembled(body), "k", 1, 64, [out, None], checks=checks)
    assert out.tolist() == [-1] * 32 + list(range(32))


@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("threads", [33, 45, 160, 1000])
def test_blocks_that_are_no_whole_number_of_warps(checks, threads):
    body = """
  st.shared.u32 [s], 0;
  bar.sync 0;
  atom.shared.add.u32 %r5, [s], 1;
  vote.sync.ballot.b32 %r6, 1, -1;
  popc.b32 %r6, %r6;
  bar.sync 0;
  ld.shared.u32 %r7, [s];
  mad.lo.u32 %r8, %r7, 100, %r6;
  st.global.u32 [%d4], %r8;
"""
    out = np.zeros(threads, np.int32)
    run_ptx(assembled(body).replace("st.shared.u32 [s], 0;", "setp.eq.u32 %p2, %r1, 0; @%p2 st.shared.u32 [s], 0;"),
            "k", 1, threads, [out, None], checks=checks)  # fmt: skip
    lanes = [min(32, threads - t // 32 * 32) for t in range(threads)]
    assert out.tolist() == [100 * threads + n for n in lanes]


@pytest.mark.parametrize("checks", CHECKS)
def test_irreducible_control_flow(checks):
    """Two entries into one loop; each thread counts its rounds."""
    body = """
  mov.u32 %r5, 0; and.b32 %r6, %r1, 1; and.b32 %r7, %r1, 7;
  setp.eq.u32 %p1, %r6, 0; @%p1 bra SECOND;
FIRST: add.u32 %r5, %r5, 1;
SECOND: add.u32 %r5, %r5, 100;
  setp.eq.u32 %p2, %r7, 0; @%p2 bra DONE;
  sub.u32 %r7, %r7, 1; bra FIRST;
DONE: st.global.u32 [%d4], %r5;
"""
    out = np.zeros(64, np.int32)
    run_ptx(assembled(body), "k", 1, 64, [out, None], checks=checks)
    assert out.tolist() == [t % 2 + 100 + 101 * (t % 8) for t in range(64)]


@pytest.mark.parametrize("op", ["cp.async.wait_group", "cp.async.bulk.wait_group", "cp.async.bulk.wait_group.read"])
def test_waiting_for_all_but_very_many_groups_waits_for_none(op):
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{{
  {op} 18446744073709551615;
  ret;
}}
"""
    assert run_ptx(text, "k", 1, 32, [np.zeros(4, np.int32)]).ok
