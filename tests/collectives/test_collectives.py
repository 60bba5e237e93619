"""Collectives on emulated devices against NumPy, with all checks, under many schedules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.collectives.ranks import run_ranks, whole_numbers
from tilewright import dist, emulate

ALGORITHMS = ("lamport", "one_shot", "two_shot")
COUNTS = (0, 1, 5, 64, 333)
SMALL = {"part": 1 << 12, "lines": 1 << 11}


def in_rank_order(arrays: list[Any], accumulator: Any) -> Any:
    """The sum in the order of ranks, rounded once."""
    total = arrays[0].astype(accumulator)
    for array in arrays[1:]:
        total = (total + array.astype(accumulator)).astype(accumulator)
    return total.astype(arrays[0].dtype)


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("world", [1, 2, 3, *(pytest.param(many, marks=pytest.mark.slow) for many in (4, 8))])
def test_sums_are_those_of_numpy_bit_for_bit(world: int, algo: str) -> None:
    random = np.random.default_rng(world)
    for number, count in enumerate(COUNTS):
        arrays = [(100 * random.normal(size=count)).astype(np.float32) for _ in range(world)]
        found = run_ranks(world, arrays, lambda comm, x, _: comm.all_reduce(x, algo=algo), number, **SMALL)
        want = in_rank_order(arrays, np.float32)
        assert all(one.tobytes() == want.tobytes() for one in found)


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize(
    ("dtype", "accumulator"),
    [(np.float16, np.float32), (ml_dtypes.bfloat16, np.float32), (np.float64, np.float64), (np.int8, np.int8),
     (np.int32, np.int32), (np.uint64, np.uint64)],
)  # fmt: skip
def test_sums_of_every_type(dtype: Any, accumulator: Any, algo: str) -> None:
    random = np.random.default_rng(3)
    arrays = [(20 * random.normal(size=77)).astype(np.float64).astype(np.int64 if np.dtype(dtype).kind in "iu" else
              np.float64).astype(dtype) for _ in range(2)]  # fmt: skip
    found = run_ranks(2, arrays, lambda comm, x, _: comm.all_reduce(x, algo=algo), 1, **SMALL)
    want = in_rank_order(arrays, accumulator)
    assert all(one.tobytes() == want.tobytes() for one in found)


@pytest.mark.parametrize("op", ["prod", "min", "max"])
def test_other_operations_and_nan(op: str) -> None:
    arrays = whole_numbers(3, 50, np.float32)
    arrays[1][7] = np.nan
    arrays[2][8], arrays[0][9] = -0.0, np.inf
    found = run_ranks(3, arrays, lambda comm, x, _: comm.all_reduce(x, op, algo="one_shot"), 2, **SMALL)
    want = {"prod": np.multiply, "min": np.minimum, "max": np.maximum}[op].reduce(arrays)
    assert all(np.array_equal(one, want, equal_nan=True) for one in found)


def test_negative_zeros_stay() -> None:
    for algo in ALGORITHMS:
        arrays = [np.full(6, -0.0, np.float32)] * 2
        found = run_ranks(2, arrays, lambda comm, x, _: comm.all_reduce(x, algo=algo), **SMALL)  # noqa: B023
        assert np.signbit(found).all()


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_more_than_fits_at_a_time(algo: str) -> None:
    arrays = whole_numbers(3, 1000, np.float32)
    found = run_ranks(3, arrays, lambda comm, x, _: comm.all_reduce(x, algo=algo), 1, part=512, lines=512)
    assert all(np.array_equal(one, sum(arrays)) for one in found)


@pytest.mark.parametrize(
    "world", [2, 3, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_the_other_collectives(world: int, rows: int) -> None:
    arrays = whole_numbers(world, (world * rows, 5), np.float16)

    def call(comm: dist.Communicator, x: Any, rank: int) -> tuple[Any, ...]:
        gathered, turned = comm.all_gather(x), comm.all_to_all(x)
        scattered = comm.reduce_scatter(x)
        comm.barrier()
        return gathered, turned, scattered, comm.broadcast(x, world - 1)

    found = run_ranks(world, arrays, call, 5, part=256, lines=256)
    for rank, (gathered, turned, scattered, sent) in enumerate(found):
        part = slice(rank * rows, (rank + 1) * rows)
        assert np.array_equal(gathered, np.concatenate(arrays))
        assert np.array_equal(turned, np.concatenate([array[part] for array in arrays]))
        assert np.array_equal(scattered, sum(array[part] for array in arrays))
        assert np.array_equal(sent, arrays[-1])


def test_tensors_at_odd_addresses() -> None:
    arrays = whole_numbers(2, 103, np.float16)
    for algo in ALGORITHMS:
        found = run_ranks(2, arrays, lambda comm, x, _: comm.all_reduce(x[1:], algo=algo), 3, **SMALL)  # noqa: B023
        assert all(np.array_equal(one, sum(arrays)[1:]) for one in found)


@pytest.mark.parametrize(
    ("seed", "calls"),
    [(0, 8), (1, 8), (2, 8), (3, 8), *(pytest.param(n, 50, marks=pytest.mark.slow) for n in range(6))],
)
def test_many_calls_in_a_row(seed: int, calls: int) -> None:
    """No rank waits for another between calls beyond what the calls themselves do, and one may be far ahead."""
    world = 3
    plan = np.random.default_rng(seed)
    steps = [(ALGORITHMS[plan.integers(3)], int(plan.integers(1, 200))) for _ in range(calls)]
    arrays = whole_numbers(world, 200, np.int32, seed)

    def call(comm: dist.Communicator, x: Any, rank: int) -> Any:
        for algo, count in steps:
            comm.all_reduce(x[:count], algo=algo)
        return x

    found = run_ranks(world, arrays, call, seed, **SMALL)
    want = [array.astype(np.int64) for array in arrays]
    for _, count in steps:
        total = sum(array[:count] for array in want)
        for array in want:
            array[:count] = total
    assert all(np.array_equal(one, array.astype(np.int32)) for one, array in zip(found, want, strict=True))


def test_an_out_of_its_own_leaves_the_input() -> None:
    arrays = whole_numbers(2, 40, np.float32)
    with emulate.devices(2) as devices:
        comms = dist.communicators(devices, **SMALL)
        xs = [device.array(array) for device, array in zip(devices, arrays, strict=True)]
        outs = [comm.empty(40, np.float32) for comm in comms]
        for comm, x, out in zip(comms, xs, outs, strict=True):
            assert comm.all_reduce(x, out=out) is out
    assert all(np.array_equal(x, array) for x, array in zip(xs, arrays, strict=True))
    assert all(np.array_equal(out, sum(arrays)) for out in outs)


def test_the_collectives_are_functions_too() -> None:
    arrays = whole_numbers(2, (4, 3), np.float32)

    def call(comm: dist.Communicator, x: Any, rank: int) -> tuple[Any, ...]:
        found = dist.all_gather(x, comm=comm), dist.all_to_all(x, comm=comm), dist.reduce_scatter(x, comm=comm)
        other = comm.empty((4, 3), np.float32)
        return *found, dist.all_reduce(x, "max", out=other, comm=comm), dist.broadcast(x, 1, comm=comm)

    for rank, (gathered, turned, scattered, reduced, sent) in enumerate(run_ranks(2, arrays, call)):
        part = slice(2 * rank, 2 * rank + 2)
        assert np.array_equal(gathered, np.concatenate(arrays))
        assert np.array_equal(turned, np.concatenate([array[part] for array in arrays]))
        assert np.array_equal(scattered, sum(array[part] for array in arrays))
        assert np.array_equal(reduced, np.maximum(*arrays))
        assert np.array_equal(sent, arrays[1])


def test_the_table_of_thresholds_chooses() -> None:
    from tilewright.dist.algorithms import choose

    room = 1 << 20
    assert [choose(2, size, room, True, False) for size in (1 << 10, 1 << 20, 1 << 22, 1 << 23)] == [
        "lamport", "lamport", "one_shot", "two_shot"
    ]  # fmt: skip
    assert [choose(4, size, room, True, True) for size in (1 << 18, 1 << 19, 1 << 20, 1 << 30)] == [
        "lamport", "one_shot", "two_shot", "two_shot"
    ]  # fmt: skip
    assert choose(4, 1 << 30, room, False, True) == "nccl"
    assert choose(8, (1 << 17) + 1, room, True, False) == "one_shot"
    assert choose(2, 1 << 20, 1 << 10, True, False) == "one_shot"  # lines have no room for it
