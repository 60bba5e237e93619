"""Several emulated devices: queues, one scheduler, order between devices, and what is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import emulate
from tilewright.base.errors import ArgumentError, EmulationError

SEEDS = (0, 1, 2, 3, 4, 5)
N = 64


@cute.jit
def flag_at(address: cute.Int64) -> Any:
    return cute.make_ptr(cute.Int32, address, cute.AddressSpace.gmem, assumed_align=4)


@cute.jit
def raise_flag(address: cute.Int64, value: Any, how: cutlass.Constexpr) -> None:
    if cutlass.const_expr(how == "fence"):
        cute.arch.fence_acq_rel_sys()
        cute.arch.store(flag_at(address), cute.Int32(value), sem="relaxed", scope="sys")
    elif cutlass.const_expr(how == "add"):
        cute.arch.atomic_add(flag_at(address), cute.Int32(value), sem="release", scope="sys")
    elif cutlass.const_expr(how == "plain"):
        cute.arch.store(flag_at(address), cute.Int32(value))
    elif cutlass.const_expr(how == "relaxed"):
        cute.arch.store(flag_at(address), cute.Int32(value), sem="relaxed", scope="sys")
    else:
        cute.arch.store(flag_at(address), cute.Int32(value), sem="release", scope=how)


@cute.jit
def await_flag(flag: Any, value: Any, how: cutlass.Constexpr) -> None:
    seen = cute.Int32(0)
    while seen < value:
        if cutlass.const_expr(how == "relaxed"):
            seen = cute.arch.load(flag, cute.Int32, sem="relaxed", scope="sys")
        else:
            seen = cute.arch.load(flag, cute.Int32, sem="acquire", scope=how)


@cute.kernel
def swap_kernel(
    data: cute.Tensor, out: cute.Tensor, flag: cute.Tensor, there: cute.Int64, flag_there: cute.Int64,
    rank: cute.Int32, release: cutlass.Constexpr, acquire: cutlass.Constexpr, early: cutlass.Constexpr,
):  # fmt: skip
    """Each of two devices writes numbers into the other's `data`, raises its flag, and copies what has come."""
    t, _, _ = cute.arch.thread_idx()
    if cutlass.const_expr(early):
        if t == 0:
            raise_flag(flag_there, 1, release)
    cute.arch.store(cute.make_ptr(cute.Float32, there, cute.AddressSpace.gmem, assumed_align=4) + t, cute.Float32(rank))
    cute.arch.sync_threads()
    if t == 0:
        if cutlass.const_expr(not early):
            raise_flag(flag_there, 1, release)
        await_flag(flag.iterator, 1, acquire)
    cute.arch.sync_threads()
    out[t] = data[t]


@cute.jit
def swap(
    data: cute.Tensor, out: cute.Tensor, flag: cute.Tensor, there: cute.Int64, flag_there: cute.Int64,
    rank: cute.Int32, release: cutlass.Constexpr, acquire: cutlass.Constexpr, early: cutlass.Constexpr,
):  # fmt: skip
    swap_kernel(data, out, flag, there, flag_there, rank, release, acquire, early).launch(grid=1, block=N)


_compiled: dict[Any, Any] = {}


def run_swap(seed: int, release: str = "sys", acquire: str = "sys", early: bool = False, checks: Any = True,
             absent: bool = False) -> list[Any]:  # fmt: skip
    """What the two devices have copied."""
    with emulate.observe(checks=checks), emulate.devices(2, seed=seed) as devices:
        made = [(d.zeros(N, np.float32), d.empty(N, np.float32), d.zeros(1, np.int32)) for d in devices]
        key = release, acquire, early
        if key not in _compiled:
            _compiled[key] = cute.compile(swap, *made[0], 1, 1, 0, *key, target="emu")
        for rank, (data, out, flag) in enumerate(made):
            other = made[1 - rank]
            if not (absent and rank == 1):
                _compiled[key](data, out, flag, other[0].ctypes.data, other[2].ctypes.data, rank + 1)
    return [out for _, out, _ in made]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("release", ["sys", "fence", "add"])
def test_kernels_of_two_devices_wait_for_each_other(release: str, seed: int) -> None:
    first, second = run_swap(seed, release)
    assert (first == 2).all()
    assert (second == 1).all()


def race(seed: int, **how: Any) -> str:
    with pytest.raises(EmulationError) as raised:
        run_swap(seed, **how)
    assert raised.value.kind == "race"
    return str(raised.value)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flag_before_its_data_is_reported(seed: int) -> None:
    text = race(seed, early=True)
    assert "hint: nothing orders the two devices: write the data, then release a flag" in text
    assert "device        " in text
    assert " of swap_kernel" in text


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("release", "acquire"), [("gpu", "sys"), ("sys", "gpu")])
def test_scope_gpu_is_too_narrow(release: str, acquire: str, seed: int) -> None:
    text = race(seed, release=release, acquire=acquire)
    assert "threads of two devices see each other's accesses in scope sys only" in text
    assert "give both the scope sys" in text


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("release", "acquire"), [("relaxed", "sys"), ("sys", "relaxed"), ("plain", "sys")])
def test_less_than_release_and_acquire_is_reported(release: str, acquire: str, seed: int) -> None:
    assert "Race condition in global memory access" in race(seed, release=release, acquire=acquire)


def test_a_write_that_is_not_released_comes_late() -> None:
    """Without checks the wrong kernel gives wrong numbers under odd seeds, and the right one right ones."""
    assert any((out == 0).any() for seed in range(1, 12, 2) for out in run_swap(seed, "relaxed", checks=False))
    for seed in range(12):
        first, second = run_swap(seed, checks=False)
        assert (first == 2).all()
        assert (second == 1).all()


def test_a_deadlock_names_the_device_the_block_and_the_line() -> None:
    with pytest.raises(EmulationError) as raised:
        run_swap(0, absent=True)
    assert raised.value.kind == "deadlock"
    text = str(raised.value)
    assert "device 0: 1 threads from block (0, 0, 0) thread (0, 0, 0) at line" in text
    assert "test_devices.py" in text


@cute.kernel
def send_kernel(there: cute.Int64, flag_there: cute.Int64, done: cute.Tensor, rounds: cute.Int32,
                waits: cutlass.Constexpr):  # fmt: skip
    """Writes each round's number into the other device's buffer, once its reader is done with the last."""
    t, _, _ = cute.arch.thread_idx()
    for number in range(1, rounds + 1):
        if cutlass.const_expr(waits):
            if t == 0:
                await_flag(done.iterator, number - 1, "sys")
            cute.arch.sync_threads()
        cute.arch.store(cute.make_ptr(cute.Int32, there, cute.AddressSpace.gmem, assumed_align=4) + t, number)
        cute.arch.sync_threads()
        if t == 0:
            raise_flag(flag_there, number, "sys")


@cute.jit
def send(there: cute.Int64, flag_there: cute.Int64, done: cute.Tensor, rounds: cute.Int32, waits: cutlass.Constexpr):
    send_kernel(there, flag_there, done, rounds, waits).launch(grid=1, block=32)


@cute.kernel
def receive_kernel(data: cute.Tensor, flag: cute.Tensor, done_there: cute.Int64, out: cute.Tensor, rounds: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    total = cute.Int32(0)
    for number in range(1, rounds + 1):
        if t == 0:
            await_flag(flag.iterator, number, "sys")
        cute.arch.sync_threads()
        total += data[t]
        cute.arch.sync_threads()
        if t == 0:
            raise_flag(done_there, number, "sys")
    out[t] = total


@cute.jit
def receive(data: cute.Tensor, flag: cute.Tensor, done_there: cute.Int64, out: cute.Tensor, rounds: cute.Int32):
    receive_kernel(data, flag, done_there, out, rounds).launch(grid=1, block=32)


def run_rounds(seed: int, waits: bool) -> Any:
    with emulate.devices(2, seed=seed) as (a, b):
        done, data, flag, out = a.zeros(1, np.int32), b.empty(32, np.int32), b.zeros(1, np.int32), b.empty(32, np.int32)
        if "receive" not in _compiled:
            _compiled["receive"] = cute.compile(receive, data, flag, 1, out, 1, target="emu")
        if waits not in _compiled:
            _compiled[waits] = cute.compile(send, 1, 1, done, 1, waits, target="emu")
        _compiled[waits](data.ctypes.data, flag.ctypes.data, done, 4)
        _compiled["receive"](data, flag, done.ctypes.data, out, 4)
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_two_kernels_hand_a_buffer_to_and_fro(seed: int) -> None:
    assert (run_rounds(seed, True) == 10).all()


def test_a_buffer_that_is_reused_before_its_readers_are_done_is_reported() -> None:
    """Under those schedules in which the reader sees a flag before the last."""
    texts = []
    for seed in range(1, 9):
        try:
            run_rounds(seed, False)
        except EmulationError as error:
            texts.append(str(error))
    assert len(texts) >= 3
    assert all("Race condition" in text for text in texts)
    assert "before a buffer is written again, let its readers say by a flag of theirs that they are done" in texts[0]


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    y[t] = x[t] + 1


@cute.jit
def add_one(x: cute.Tensor, y: cute.Tensor, stream: cutlass.cuda.CUstream):
    add_kernel(x, y).launch(grid=1, block=8, stream=stream)


def test_launches_of_a_stream_are_ordered_and_wait_for_synchronize() -> None:
    with emulate.devices(1, seed=3) as devices:
        x, y, z = (devices[0].zeros(8, np.int32) for _ in range(3))
        executor = cute.compile(add_one, x, y, cutlass.cuda.CUstream(0), target="emu")
        executor(x, y, cutlass.cuda.CUstream(0))
        executor(y, z, cutlass.cuda.CUstream(0))
        assert (z == 0).all()
        devices.synchronize()
        assert (z == 2).all()
        assert [report.kernel for report in devices.reports] == ["add_kernel", "add_kernel"]
        executor(z, x, cutlass.cuda.CUstream(7))  # behind a synchronisation, on any stream
    assert (x == 3).all()


def test_launches_of_two_streams_are_not_ordered() -> None:
    for seed in SEEDS:
        with pytest.raises(EmulationError, match="Race condition"), emulate.devices(1, seed=seed) as devices:
            x, y, z = (devices[0].zeros(8, np.int32) for _ in range(3))
            executor = cute.compile(add_one, x, y, cutlass.cuda.CUstream(1), target="emu")
            executor(x, y, cutlass.cuda.CUstream(1))
            executor(y, z, cutlass.cuda.CUstream(2))


def test_a_call_runs_where_its_arrays_are() -> None:
    with emulate.devices(3) as devices:
        x, y = devices[1].zeros(8, np.int32), devices[1].empty(8, np.int32)
        executor = cute.compile(add_one, x, y, cutlass.cuda.CUstream(0), target="emu")
        with pytest.raises(ArgumentError, match="the arguments are on several devices") as raised:
            executor(x, devices[2].empty(8, np.int32), cutlass.cuda.CUstream(0))
        assert "pass arrays of one device, and addresses of the others' memory as numbers" in str(raised.value)
        executor(x, y, cutlass.cuda.CUstream(0))
        with devices[2]:
            executor(np.zeros(8, np.int32), np.zeros(8, np.int32), cutlass.cuda.CUstream(0))
    assert (y == 1).all()


@cute.kernel
def beyond_kernel(x: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x[t + 10000000] = 1


@cute.jit
def beyond(x: cute.Tensor):
    beyond_kernel(x).launch(grid=1, block=8)


def test_an_error_names_the_device_and_leaves_nothing_behind() -> None:
    with emulate.devices(2) as devices:
        x = devices[1].zeros(8, np.int32)
        cute.compile(beyond, x, target="emu")(x)
        with pytest.raises(EmulationError, match="Out-of-bounds") as raised:
            devices.synchronize()
        assert "device          1" in str(raised.value)
        devices.synchronize()


@pytest.mark.parametrize("count", [0, -1, 65, 1.5, True])
def test_a_number_of_devices_that_cannot_be_is_refused(count: Any) -> None:
    with pytest.raises(ArgumentError, match="1 to 64"):
        emulate.devices(count)


def test_without_a_block_calls_run_at_once() -> None:
    x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
    cute.compile(add_one, x, y, cutlass.cuda.CUstream(0), target="emu")(x, y, cutlass.cuda.CUstream(0))
    assert (y == 1).all()


@cute.kernel
def profiled_kernel(x: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    with cute.profile("whole"):
        x[t] = x[t] + 1


@cute.jit
def profiled(x: cute.Tensor):
    profiled_kernel(x).launch(grid=1, block=32)


def test_a_profiled_kernel_is_refused() -> None:
    with emulate.devices(2) as devices:
        x = devices[0].zeros(32, np.int32)
        executor = cute.compile(profiled, x, target="emu", options="--profile")
        with pytest.raises(ArgumentError, match="a profiled kernel runs on one emulated device") as raised:
            executor(x)
    assert "call it outside of `with emulate.devices(...)`" in str(raised.value)
