"""Compiled functions on a GPU: what they give there is what NumPy and the emulator give."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import THREADS, double, double_kernel, floats
from tests.compiler.test_stages import reduce
from tests.lang import test_arithmetic as arithmetic
from tests.lang import test_math
from tilewright import ArgumentError, Int32, LaunchError
from tilewright.cute.runtime import from_dlpack
from tilewright.targets.nvidia.devices.driver import driver


def on_both(function, *arrays, constants=()):
    """Run on the GPU and on the emulator; the arrays of each."""
    results = []
    for target in ("cuda", "emu"):
        copies = [array.copy() for array in arrays]
        cute.compile(function, *copies, *constants, target=target)(*copies, *constants)
        results.append(copies)
    return results


def same_bits(left, right):
    """Equal bit for bit, NaNs apart: their payload is the chip's affair."""
    a, b = np.atleast_1d(left), np.atleast_1d(right)
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    bits = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    return bool((bits | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("dtype", arithmetic.INTEGERS, ids=str)
def test_integers(dtype):
    a, b = arithmetic.integer_operands(dtype)
    out, truth = np.zeros((19, arithmetic.N), a.dtype), np.zeros((6, arithmetic.N), bool)
    gpu, emulator = on_both(arithmetic.launch, a, b, out, truth)
    assert all(map(same_bits, gpu, emulator))
    for i in range(arithmetic.N):
        assert [int(v) for v in gpu[2][:, i]] == arithmetic.expected_integers(int(a[i]), int(b[i]), dtype)


@pytest.mark.parametrize("dtype", arithmetic.FLOATS, ids=str)
def test_floats(dtype):
    a, b = arithmetic.float_operands(dtype)
    out, truth = np.zeros((8, arithmetic.N), a.dtype), np.zeros((6, arithmetic.N), bool)
    gpu, emulator = on_both(arithmetic.launch_floats, a, b, out, truth)
    assert all(map(same_bits, gpu, emulator))


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=lambda kind: np.dtype(kind).name)
def test_mathematical_functions(kind):
    random = np.random.default_rng(3)
    x, y = (random.uniform(0.05, 0.95, test_math.N).astype(kind) for _ in range(2))
    out = np.zeros((len(test_math.NAMES), test_math.N), kind)
    (_, _, gpu), (_, _, emulator) = on_both(test_math.on_device, x, y, out)
    exact = np.array(
        [
            test_math.UNARY[name](x.astype(float))
            if name in test_math.UNARY
            else test_math.BINARY[name](x.astype(float), y)
            for name in test_math.NAMES
        ]
    )
    assert (np.abs(gpu - exact) <= test_math.ULPS[kind] * test_math.EPSILON[kind] * np.abs(exact)).all()
    assert np.allclose(gpu, emulator, rtol=4 * test_math.EPSILON[kind])


def test_block_reduction():
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    (_, gpu), (_, emulator) = on_both(reduce, x, np.zeros(1, np.float32))
    assert same_bits(gpu, emulator) and abs(gpu[0] - x.astype(float).sum()) <= 1e-6 * np.abs(x).sum()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1_000_000])
def test_numpy_arrays_are_copied_in_and_out(n):
    x, out = floats(n)
    cute.compile(double, x, out)(x, out)
    assert (out == 2 * x).all()


def test_views_with_an_offset():
    x = np.arange(64, dtype=np.float32)
    out = np.full(64, -1, np.float32)
    executor = cute.compile(double, x[5:9], out[10:14])
    executor(x[5:9], out[10:14])
    assert out[10:14].tolist() == [10, 12, 14, 16] and (np.delete(out, range(10, 14)) == -1).all()


def test_torch_tensors_on_the_current_stream():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch was built without CUDA")
    x = torch.randn(100_000, device="cuda")
    out = torch.empty_like(x)
    executor = cute.compile(double, x, out)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.mul_(0).add_(3)
        executor(x, out)  # after the slow work of this stream
    stream.synchronize()
    assert bool((out == 6).all())
    executor(from_dlpack(x), from_dlpack(out))
    double(x, out)
    torch.cuda.synchronize()
    assert bool((out == 6).all())
    with pytest.raises(ArgumentError, match="cuda"):
        executor(x.cpu(), out)


def test_occupancy_agrees_with_the_driver():
    for function, arguments in ((double, floats()), (reduce, (floats(64)[0], np.zeros(1, np.float32)))):
        executor = cute.compile(function, *arguments)
        (name,) = executor.kernels
        kernel = driver().load_library(executor.stages["cubin"]).kernel(name)
        for block in (32, 64):
            for smem in (0, 40_000):
                said = kernel.blocks_per_sm(block, smem)
                assert executor.occupancy(block=block, smem=smem).blocks_per_sm == said


def test_a_launch_that_the_driver_refuses():
    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor, smem: Int32):
        double_kernel(x, out).launch(grid=2, block=THREADS, smem=smem)

    x, out = floats()
    executor = cute.compile(host, x, out, 0)
    line = host.function.__code__.co_firstlineno + 2
    with pytest.raises((LaunchError, ArgumentError)) as caught:
        executor(x, out, 300_000)
    assert caught.value.location is not None and caught.value.location.line == line
    executor(x, out, 0)
    assert (out == 2 * x).all()


def test_clusters_and_much_shared_memory():
    @cute.kernel
    def kernel(out: cute.Tensor):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(25_000))
        shared[24_999] = cute.Float32(cute.arch.block_idx_in_cluster())
        out[cute.arch.block_idx()[0]] = shared[24_999]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=16, block=32, cluster=(16, 1, 1))

    out = np.zeros(16, np.float32)
    cute.compile(host, out)(out)
    assert out.tolist() == list(range(16))


def test_printf_of_the_device(capfd):
    @cute.kernel
    def kernel(n: Int32):
        cute.printf("n = {} in thread {}", n, cute.arch.thread_idx()[0])

    @cute.jit
    def host(n: Int32):
        kernel(n).launch(grid=1, block=2)

    cute.compile(host, 7)(7)
    driver().synchronize()
    assert sorted(capfd.readouterr().out.splitlines()) == ["n = 7 in thread 0", "n = 7 in thread 1"]
