"""How device time is taken: what is inside the clock, in which order, which percentiles."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.bench.fake_gpu import FakeGpu  # noqa: E402
from tilewright.tools.benching import timing  # noqa: E402


@pytest.fixture
def gpu(monkeypatch):
    gpu = FakeGpu()
    monkeypatch.setattr(timing, "torch", gpu.module())
    return gpu


def test_percentiles_are_numpys():
    rng = np.random.default_rng(1)
    for count in (1, 2, 10, 101):
        times = rng.uniform(1, 100, count)
        found = timing.spread(list(times))
        assert found.p50_us == np.percentile(times, 50) and found.p90_us == np.percentile(times, 90)
    assert timing.spread([4.0, 1.0, 2.0, 3.0]) == timing.Spread(2.5, pytest.approx(3.7))


def test_gigabytes_a_second():
    assert timing.Spread(100.0, 200.0).gbs(300_000_000) == 3000.0


def test_only_the_call_is_inside_the_clock_and_calls_take_turns(gpu):
    order = []

    def called(name, microseconds):
        def call():
            order.append(name)
            gpu.now += microseconds

        return call

    def flush():
        order.append("flush")
        gpu.now += 500.0

    functions = {"a": called("a", 7.0), "b": called("b", 11.0)}
    found = timing.interleaved(functions, warmup=1, iterations=3, flush=flush)
    assert found["a"].p50_us == pytest.approx(7.0) and found["b"].p90_us == pytest.approx(11.0)
    rounds = order[-16:]
    assert rounds == ["flush", "a", "flush", "b"] * 4


def test_warm_up_is_not_counted(gpu):
    costs = iter([900.0] * (4 + 2) + [5.0, 6.0, 7.0])  # four calls measure the host, two warm up

    def call():
        gpu.now += next(costs)

    assert timing.interleaved({"a": call}, 2, 3, lambda: None)["a"].p50_us == pytest.approx(6.0)


@pytest.mark.parametrize("bytes_", [1, 1000, 1 << 20, (1 << 20) + 36])
def test_the_roofs_move_at_least_the_bytes_of_the_op(gpu, bytes_):
    functions = timing.copy_functions(bytes_)
    assert set(functions) == {"copy", "copy_kernel", "read"}
    target = functions["copy"]().clone()
    assert 2 * target.numel() * 4 >= bytes_
    sums = functions["read"]()
    assert sums.numel() * timing.COLUMNS * 4 >= bytes_
    assert torch.equal(functions["copy_kernel"](), -target)


def test_the_flush_reads_more_than_the_cache(gpu):
    cache = timing.L2()
    assert cache._memory.numel() * 4 == timing.FLUSHED_L2 * (1 << 12)
    cache.flush()
