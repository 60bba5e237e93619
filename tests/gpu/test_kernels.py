"""Compiled kernels on a real device: torch, CuPy and NumPy arguments, streams, large launches, refused launches."""

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream
from tilewright.tools import demo_kernels
from tilewright.tools.demo import CASES

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")


@pytest.fixture(scope="module")
def generator():
    return np.random.default_rng(0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_kernels_of_the_demonstration_on_torch_tensors(case, generator):
    problem = case.problem(generator)
    arguments = [torch.from_numpy(array).cuda() for array in problem.arguments]
    executor = cute.compile(case.function, *arguments, target="cuda")
    executor(*arguments)
    error = np.abs(arguments[-1].cpu().numpy().astype(np.float64) - problem.exact)
    assert (error <= problem.allowed).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_gpu_and_emulator_agree_bit_for_bit(case, generator):
    problem = case.problem(generator)
    results = []
    for target in ("cuda", "emu"):
        arguments = [array.copy() for array in problem.arguments]
        cute.compile(case.function, *arguments, target=target)(*arguments)
        results.append(arguments[-1])
    np.testing.assert_array_equal(results[0].view(np.uint8), results[1].view(np.uint8))


def test_numpy_arguments_are_copied_in_and_out(generator):
    a, b = generator.integers(-100, 100, (2, 5000), dtype=np.int32)
    c = np.zeros_like(a)
    cute.compile(demo_kernels.add, a, b, c, target="cuda")(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    a, b = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, dtype=cupy.float32)
    c = cupy.zeros_like(a)
    cute.compile(demo_kernels.add, a, b, c, target="cuda")(a, b, c)
    np.testing.assert_array_equal(cupy.asnumpy(c), np.arange(1000, dtype=np.float32) + 1)


def test_one_compilation_takes_many_shapes():
    x, output = torch.randn(64, 1024, device="cuda"), torch.empty(64, device="cuda")
    executor = cute.compile(demo_kernels.row_sum, x, output, target="cuda")
    for rows, columns in ((64, 1024), (1024, 32), (7, 4097), (1, 1)):
        x, output = torch.randn(rows, columns, device="cuda"), torch.empty(rows, device="cuda")
        executor(x, output)
        torch.testing.assert_close(output, x.double().sum(1).float(), rtol=1e-4, atol=1e-4)


def test_a_static_layout_refuses_another_shape():
    x, output = torch.randn(64, 1024, device="cuda"), torch.empty(64, device="cuda")
    executor = cute.compile(demo_kernels.row_sum, from_dlpack(x), from_dlpack(output), target="cuda")
    with pytest.raises(cutlass.ArgumentError, match=r"\(64, 1024\)[\s\S]*\(64, 32\)"):
        executor(torch.randn(64, 32, device="cuda"), output)


def test_the_stream_current_at_the_call_is_used():
    a = torch.zeros(1 << 24, device="cuda")
    b, c = torch.ones_like(a), torch.empty_like(a)
    executor = cute.compile(demo_kernels.add, a, b, c, target="cuda")
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        executor(a, b, c)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            executor(a, b, c)
            executor(c, b, c)
    c.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert (c == 2).all()


def test_a_stream_argument(generator):
    @cute.jit
    def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream):
        demo_kernels.add_kernel(a, b, c).launch(grid=(8, 1, 1), block=(256, 1, 1), stream=stream)

    a = torch.arange(2000, device="cuda", dtype=torch.float32)
    c = torch.zeros_like(a)
    stream = torch.cuda.Stream()
    executor = cute.compile(add, a, a, c, stream, target="cuda")
    executor(a, a, c, stream)
    stream.synchronize()
    assert torch.equal(c, a + a)


def test_fake_tensors_and_the_environment_stream():
    rows = cute.sym_int()
    fake = make_fake_compact_tensor(cutlass.Float32, (rows, 256), stride_order=(1, 0))
    output = make_fake_compact_tensor(cutlass.Float32, (rows,))

    @cute.jit
    def row_sum(x, output, stream=None):
        count, _ = x.shape
        demo_kernels.row_sum_kernel(x, output).launch(grid=(count, 1, 1), block=(128, 1, 1), stream=stream)

    executor = cute.compile(
        row_sum, fake, output, make_fake_stream(use_tvm_ffi_env_stream=True), options="--enable-tvm-ffi", target="cuda"
    )
    for count in (1, 300):
        x, result = torch.randn(count, 256, device="cuda"), torch.empty(count, device="cuda")
        executor(x, result)
        torch.testing.assert_close(result, x.sum(1), rtol=1e-4, atol=1e-4)


def test_shared_memory_over_48_kb_opts_in_by_itself():
    words = 50 * 1024

    @cute.kernel
    def reverse(x: cute.Tensor):
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Int32, cute.make_layout((words,)))
        thread = cute.arch.thread_idx()[0]
        for step in range(words // 1024):
            shared[step * 1024 + thread] = x[step * 1024 + thread]
        cute.arch.sync_threads()
        for step in range(words // 1024):
            x[step * 1024 + thread] = shared[words - 1 - step * 1024 - thread]

    @cute.jit
    def run(x: cute.Tensor):
        reverse(x).launch(grid=(1, 1, 1), block=(1024, 1, 1))

    x = torch.arange(words, dtype=torch.int32, device="cuda")
    cute.compile(run, x, target="cuda")(x)
    assert torch.equal(x.cpu(), torch.arange(words - 1, -1, -1, dtype=torch.int32))


def test_a_cluster_of_sixteen_blocks_opts_in_by_itself():
    @cute.kernel
    def ranks(x: cute.Tensor):
        x[cute.arch.block_idx()[0]] = cute.arch.block_idx_in_cluster()

    @cute.jit
    def run(x: cute.Tensor):
        ranks(x).launch(grid=(32, 1, 1), block=(32, 1, 1), cluster=(16, 1, 1))

    x = torch.full((32,), -1, dtype=torch.int32, device="cuda")
    cute.compile(run, x, target="cuda")(x)
    assert x.tolist() == list(range(16)) * 2


def test_a_launch_that_the_driver_refuses_is_an_error_and_the_next_one_runs():
    @cute.jit
    def run(x: cute.Tensor, bytes_: cutlass.Int32):
        demo_kernels.add_kernel(x, x, x).launch(grid=(1, 1, 1), block=(32, 1, 1), smem=bytes_)

    x = torch.ones(32, device="cuda")
    executor = cute.compile(run, x, 0, target="cuda")
    with pytest.raises(cutlass.LaunchError, match="CUDA_ERROR_INVALID_VALUE"):
        executor(x, 1 << 20)
    executor(x, 0)
    assert (x == 2).all()


def test_a_host_tensor_is_refused_with_its_device():
    x = torch.ones(32, device="cuda")
    executor = cute.compile(demo_kernels.add, x, x, x, target="cuda")
    with pytest.raises(cutlass.ArgumentError, match="cpu"):
        executor(x, x, torch.ones(32))


def test_occupancy_agrees_with_the_driver():
    x, output = torch.randn(64, 1024, device="cuda"), torch.empty(64, device="cuda")
    executor = cute.compile(demo_kernels.row_sum, x, output, target="cuda")
    kernel = executor.device.kernels[0]
    for block in (32, 64, 128, 256, 512, 1024):
        expected = kernel.blocks_per_sm(block, executor.smem_bytes())
        assert executor.occupancy(block).blocks_per_sm == expected


def test_storage_offsets():
    base = torch.arange(16, dtype=torch.int32, device="cuda")
    view, zero = base[5:9], torch.zeros(4, dtype=torch.int32, device="cuda")
    executor = cute.compile(demo_kernels.add, view, view, zero, target="cuda")
    executor(view, view, zero)
    assert zero.tolist() == [10, 12, 14, 16]
