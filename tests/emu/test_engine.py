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
