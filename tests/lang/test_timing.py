"""Timing and tuning on the emulator, and on a driver that only records."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.nvidia.fake_cuda import FakeCuda
from tilewright.compiler import benchmark as benchmark_module
from tilewright.cute import testing
from tilewright.targets.nvidia.devices import timing as cuda_timing
from tilewright.targets.nvidia.devices.driver import Driver

calls: list[int] = []


@cute.kernel
def fill(x: cute.Tensor, width: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0] + cute.arch.block_idx()[0] * 32
    cute.local_tile(x, (width,), (i,)).fill(width)


@testing.autotune_jit(params_dict={"width": [2, 4]}, update_on_change=["n"], warmup_iterations=0, iterations=1)
@cute.jit
def tuned(x: cute.Tensor, n: cutlass.Int32, width: cutlass.Constexpr = 2):
    calls.append(width)
    fill(x, width).launch(grid=128 // (32 * width), block=32)


def test_autotuning_tries_all_and_remembers():
    calls.clear()
    x = np.zeros(128, np.float32)
    tuned(x, 1)
    assert sorted(calls) == [2, 4] and set(x) <= {2.0, 4.0} and x[0] == tuned.best_config["width"]
    tuned(x, 1)
    assert len(calls) == 2
    tuned(x, 2)
    assert len(calls) == 4


def test_tune_skips_what_cannot_be():
    def make(n, width=0):
        if width == 1:
            raise testing.CantImplementError("too narrow")
        return lambda: None

    best = testing.tune(make, {"width": [1, 2]}, testing.JitArguments(4), warmup_iterations=0, iterations=1)
    assert best == {"width": 2}
    with pytest.raises(cutlass.CompileError, match="no configuration works") as caught:
        testing.tune(make, {"width": [1]}, testing.JitArguments(4))
    assert "width=1  too narrow" in str(caught.value)


def test_benchmark_uses_workspaces_in_turn():
    seen = []
    made = iter(range(10))
    time = testing.benchmark(
        seen.append, workspace_generator=lambda: testing.JitArguments(next(made)), workspace_count=3,
        warmup_iterations=1, iterations=4,
    )  # fmt: skip
    assert seen == [0, 0, 1, 2, 0] and time > 0


def test_benchmark_refuses_nonsense():
    with pytest.raises(cutlass.ArgumentError, match="counts are positive"):
        testing.benchmark(lambda: None, iterations=0)


def test_workspaces_exceed_the_cache():
    assert testing.get_workspace_count(1 << 20, 10, 1000) == 150
    assert testing.get_workspace_count(1 << 30, 10, 100) == 1
    assert testing.get_workspace_count(1, 1, 1) == 2


def test_convert_between_element_types():
    source = np.array([[1.5, -2.25], [300.0, 0.1]], np.float32)
    target = np.zeros((2, 2), np.float16)
    testing.convert(source, target)
    assert np.array_equal(target, source.astype(np.float16))


# Device time, with a driver whose calls take a millisecond each.


@pytest.fixture
def fake(monkeypatch):
    made = FakeCuda()
    shared = Driver(made)
    monkeypatch.setattr(cuda_timing, "driver", lambda: shared)
    monkeypatch.setattr(benchmark_module, "choose_target", lambda _: "cuda")
    return made


def test_events_time_the_calls_after_the_warm_up(fake):
    time = testing.benchmark(lambda: fake.work(7), stream=7, warmup_iterations=3, iterations=5)
    assert time == pytest.approx(1000.0) and fake.clock == 8.0
    assert [stream for stream, _ in fake.recorded.values()] == [7, 7]
    assert fake.count("cuEventCreate") == fake.count("cuEventDestroy_v2") == 2
    names = fake.names()
    assert names.index("cuCtxSetCurrent") < names.index("cuEventCreate")  # this thread had no context
    assert names.index("cuStreamSynchronize") < names.index("cuEventRecord")


def test_a_graph_holds_the_timed_calls(fake):
    time = testing.benchmark(lambda: fake.work(7), stream=7, warmup_iterations=2, iterations=5, use_cuda_graphs=True)
    assert time == pytest.approx(1000.0)
    assert fake.clock == 2 + 5 + 5  # warm-up, the launch that uploads, the one timed
    assert fake.count("cuGraphLaunch") == 2
    assert fake.count("cuGraphExecDestroy") == fake.count("cuGraphDestroy") == 1 and fake.capturing is None


def test_a_graph_of_nothing_is_refused(fake):
    with pytest.raises(cutlass.ArgumentError, match="nothing was captured") as caught:
        testing.benchmark(lambda: fake.work(8), stream=7, use_cuda_graphs=True)
    assert "0x7" in str(caught.value) and fake.count("cuGraphDestroy") == 1
    with pytest.raises(cutlass.ArgumentError, match="the default stream cannot be captured"):
        testing.benchmark(lambda: fake.work(0), use_cuda_graphs=True)


def test_an_error_while_capturing_ends_the_capture_and_is_raised(fake):
    def call():
        if fake.capturing:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        testing.benchmark(call, stream=7, use_cuda_graphs=True)
    assert fake.capturing is None and fake.count("cuGraphDestroy") == 1


def test_a_fault_of_a_kernel_is_raised_and_the_events_destroyed(fake):
    fake.fail["cuEventSynchronize"] = 700
    with pytest.raises(cutlass.LaunchError, match="ILLEGAL_ADDRESS"):
        testing.benchmark(lambda: fake.work(7), stream=7)
    assert fake.count("cuEventDestroy_v2") == 2
