"""CUB's, libcu++'s and cooperative groups' blocks: NumPy's results, no finding; without a barrier a finding."""

import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.base.errors import EmulationError
from tilewright.emulate import run_ptx

FOLDER = Path(__file__).parent / "data" / "libraries"
PTX = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.ptx"))}
TILE = 512
I32, U32 = np.int32, np.uint32


def numbers(seed, low, high, count, dtype=I32):
    return np.random.default_rng(seed).integers(low, high, count).astype(dtype)


def same(*pairs):
    for found, wanted in pairs:
        np.testing.assert_array_equal(found, wanted)


def reduce_parts(run, seed):
    x, out = numbers(seed, -1000, 1000, 3 * TILE - 77), np.zeros(3, I32)
    run(3, 128, [x, out, len(x)])
    same((out, [x[k * TILE : (k + 1) * TILE].sum() for k in range(3)]))


def reduce_argmax(run, seed):
    x, out = np.random.default_rng(seed).standard_normal(128).astype(np.float32), np.zeros(1, I32)
    run(1, 128, [x, out, 77])
    same((out, [x[:77].argmax()]))


def scan(run, seed):
    x, out = numbers(seed, 0, 1 << 31, TILE, U32), np.zeros(TILE + 1, U32)
    run(1, 128, [x, out])
    same((out, np.concatenate(([0], np.cumsum(x, dtype=U32)))))


def radix_sort(run, seed):
    keys, values = numbers(seed, -50, 50, TILE), np.arange(TILE, dtype=I32)
    ordered, moved = np.zeros_like(keys), np.zeros_like(keys)
    run(1, 128, [keys, values, ordered, moved])
    order = np.argsort(keys, kind="stable")
    same((ordered, keys[order]), (moved, order))


def merge_sort(run, seed):
    keys = numbers(seed, -50, 50, 401)
    ordered = np.zeros_like(keys)
    run(1, 128, [keys, ordered, len(keys)])
    same((ordered, np.sort(keys)))


def histogram(run, seed):
    x, out = numbers(seed, 0, 64, TILE, np.uint8), np.zeros(64, U32)
    run(1, 128, [x, out])
    same((out, np.bincount(x, minlength=64)))


def discontinuity(run, seed):
    x = numbers(seed, 0, 3, TILE)
    heads, apart = np.zeros_like(x), np.zeros_like(x)
    run(1, 128, [x, heads, apart])
    same((heads, np.append(1, x[1:] != x[:-1])), (apart, np.append(x[0], np.diff(x))))


def exchange(run, seed):
    x = numbers(seed, -9999, 9999, TILE, np.int16)
    striped, backwards = np.zeros_like(x), np.zeros_like(x)
    run(1, 128, [x, striped, backwards])
    same((striped, x), (backwards, x[::-1]))


def run_lengths(run, seed):
    values, lengths = numbers(seed, 0, 99, 128), numbers(seed + 9, 1, 20, 128)
    wanted = np.repeat(values, lengths)
    out, total = np.zeros(len(wanted), I32), np.zeros(1, I32)
    run(1, 128, [values, lengths, out, total])
    same((out, wanted), (total, [len(wanted)]))


def warps(run, seed):
    x = numbers(seed, -99, 99, 128)
    sums, scans, small, ordered = (np.zeros(count, I32) for count in (4, 128, 16, 256))
    run(1, 128, [x, sums, scans, small, ordered])
    rows = x.reshape(4, 32)
    same((sums, rows.sum(1)), (scans.reshape(4, 32), np.cumsum(rows, 1) - rows), (small, x.reshape(16, 8).max(1)))
    same((ordered.reshape(4, 64), np.sort(np.concatenate((rows, -rows), 1), 1)))


def shuffle(run, seed):
    x = numbers(seed, -99, 99, 128)
    up, rotated = np.zeros_like(x), np.zeros_like(x)
    run(1, 128, [x, up, rotated])
    same((up, np.append([-1] * 3, x[:-3])), (rotated, np.roll(x, -5)))


def barrier_split(run, seed):
    x = numbers(seed, 0, 99, 96)
    wanted = x.astype(np.int64)
    for _ in range(5):
        wanted = wanted + np.roll(wanted, -1)
    run(1, 96, [x, 5])
    same((x, wanted))


def barrier_drop(run, seed):
    x = numbers(seed, 0, 99, 128)
    wanted = np.append((x[:64] + x[64:])[::-1], x[64:])
    run(1, 128, [x])
    same((x, wanted))


def barrier_copy(run, seed):
    x = numbers(seed, 0, 99, 512)
    out = np.zeros_like(x)
    run(2, 128, [x, out])
    same((out.reshape(2, 256), x.reshape(2, 256)[:, ::-1]))


def pipeline_block(run, seed):
    x, out = numbers(seed, 0, 99, 7 * 128), np.zeros(128, I32)
    run(1, 128, [x, out, 7])
    same((out, x.reshape(7, 128)[:, ::-1].sum(0)))


def pipeline_roles(run, seed):
    x, out, wanted = numbers(seed, 0, 9, 7 * 96), np.zeros(96, I32), np.zeros(96, np.int64)
    for row in x.reshape(7, 96):
        wanted = 3 * wanted + row[::-1]
    run(1, 128, [x, out, 7])
    same((out, wanted))


def pipeline_thread(run, seed):
    x, out = numbers(seed, 0, 99, 7 * 128), np.zeros(128, I32)
    run(1, 128, [x, out, 7])
    same((out, np.bitwise_xor.reduce(x.reshape(7, 128) + np.arange(7)[:, None], 0)))


def turns(run, seed):
    flag, value, out, wanted = np.zeros(1, I32), np.ones(1, I32), np.zeros(8, I32), [1]
    for k in range(8):
        wanted.append(3 * wanted[-1] + k)
    run(2, 128, [flag, value, out])
    same((out, wanted[:8]), (value, wanted[8:]), (flag, [8]))


def atomics(run, seed):
    words, least, pair, t = np.zeros(5, I32), np.full(1, 9.0), np.zeros(1, np.uint64), np.arange(64)
    run(2, 32, [words, least, pair])
    same((words, [t.sum() - 64, 63, 0x7FFFFFFF, np.bitwise_xor.reduce(t), 128]), (least, [-62.0]))
    same((pair, [(64 << 32) + t.sum()]))


def last_block(run, seed):
    x = numbers(seed, 0, 99, 256)
    parts, count, out = np.zeros_like(x), np.zeros(1, U32), np.zeros(64, I32)
    run(4, 64, [x, parts, count, out])
    same((out, 2 * x.reshape(4, 64)[:, ::-1].sum(0)))


def latch(run, seed):
    x = numbers(seed, 0, 99, 128)
    wanted = x[np.arange(128) ^ 37]
    run(1, 128, [x])
    same((x, wanted))


def semaphore(run, seed):
    inside, most, count = (np.zeros(1, I32) for _ in range(3))
    run(1, 256, [inside, most, count])
    same((inside, [0]), (count, [8]))
    assert 1 <= most[0] <= 3


def mutual_exclusion(run, seed):
    value = np.zeros(1, I32)
    run(1, 256, [value])
    same((value, [8]))


def annotated(run, seed):
    x = numbers(seed, 0, 99, 200)
    out = np.zeros_like(x)
    run(2, 128, [x, out, 200])
    same((out, 5 * x))


def groups(run, seed):
    x = numbers(seed, 0, 99, 128)
    sums, scans, counts = np.zeros(128, I32), np.zeros(128, I32), np.zeros(256, I32)
    run(1, 128, [x, sums, scans, counts])
    rows = x.reshape(8, 16)
    same((sums.reshape(8, 16), rows.sum(1, keepdims=True).repeat(16, 1)), (scans, (np.cumsum(rows, 1) - rows).ravel()))
    best = [[max(v for v in row if v % 2 == value % 2) for value in row] for row in rows]
    same((counts[128:].reshape(8, 16), best))
    for warp, found in zip(x.reshape(4, 32), counts[:128].reshape(4, 32), strict=True):
        thirds = warp % 3 == 0
        same((found, np.where(thirds, thirds.sum() * 100 + np.cumsum(thirds) - 1, 0)))


def group_copy(run, seed):
    x = numbers(seed, 0, 99, 300)
    out = np.zeros_like(x)
    run(1, 128, [x, out, 300], smem=1200)
    same((out, x[::-1]))


def look_back(run, seed):
    state, x = np.zeros(1024, np.int64), numbers(seed, -99, 99, 5 * TILE)
    out = np.zeros_like(x)
    run_ptx(PTX["device"], "look_back_init", 1, 128, [state, 5], seed=seed)
    run(5, 128, [state, x, out, 5])
    same((out, np.cumsum(x)))


KERNELS = {
    **dict.fromkeys(("reduce_warps", "reduce_raking", "reduce_commutative"), (reduce_parts, 3)),
    **dict.fromkeys(("scan_raking", "scan_memoize"), (scan, 4)), "scan_warps": (scan, 3),
    "reduce_argmax": (reduce_argmax, 1), "radix_sort": (radix_sort, 9), "merge_sort": (merge_sort, 2),
    "histogram_sort": (histogram, 9), "histogram_atomic": (histogram, 2), "discontinuity": (discontinuity, 3),
    "exchange": (exchange, 3), "run_lengths": (run_lengths, 4), "warps": (warps, 0), "shuffle": (shuffle, 3),
    "barrier_split": (barrier_split, 1), "barrier_drop": (barrier_drop, 1), "barrier_copy": (barrier_copy, 1),
    "pipeline_block": (pipeline_block, 2), "pipeline_roles": (pipeline_roles, 2),
    "pipeline_thread": (pipeline_thread, 4), "turns_release": (turns, 0), "turns_sequential": (turns, 1),
    "atomics": (atomics, 0), "last_block": (last_block, 4), "latch": (latch, 1), "semaphore": (semaphore, 1),
    "mutual_exclusion": (mutual_exclusion, 1), "annotated": (annotated, 0), "groups": (groups, 0),
    "group_copy": (group_copy, 2), "look_back": (look_back, 4),
}  # fmt: skip
"""By kernel: how it is run and judged, and of how many of its `ORDERING` instructions the lack is found."""
ORDERING = re.compile(
    r"^\s*(bar\.sync|barrier\.sync|bar\.warp\.sync|fence\.|membar|cp\.async\.wait)[^\n]*\n", re.MULTILINE
)


def span(kernel):
    """The file of a kernel, and where its text begins and ends there."""
    for name, text in PTX.items():
        start = text.find(f".entry {kernel}(")
        if start >= 0:
            end = text.find(".entry ", start + 1)
            return name, start, end if end >= 0 else len(text)
    raise AssertionError(kernel)


def runner(kernel, text, seed):
    return lambda grid, block, args, **options: run_ptx(text, kernel, grid, block, args, seed=seed, **options)


@pytest.mark.parametrize("kernel", KERNELS)
def test_results_are_numpys_and_nothing_is_found(kernel):
    for seed in (0, 3):
        KERNELS[kernel][0](runner(kernel, PTX[span(kernel)[0]], seed), seed)


@pytest.mark.parametrize("kernel", [kernel for kernel, (_, found) in KERNELS.items() if found])
def test_what_lacks_a_barrier_or_fence_is_found_or_as_good(kernel):
    """Some are superfluous where a warp runs in lockstep, or for these data: then the result is the same."""
    judge, expected = KERNELS[kernel]
    name, start, end = span(kernel)
    found = 0
    for place in ORDERING.finditer(PTX[name], start, end):
        text = PTX[name][: place.start()] + PTX[name][place.end() :]
        try:
            judge(runner(kernel, text, 0), 0)
        except EmulationError as error:
            assert error.kind in ("race", "uninitialised", "mbarrier")
            found += 1
    assert found == expected


def test_every_kernel_is_run():
    entries = {name for text in PTX.values() for name in re.findall(r"\.entry (\w+)\(", text)}
    assert entries == {*KERNELS, "look_back_init"}
