"""Exports, events, dependent and cooperative launches, several devices, on real ones."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.boundary.support import CUevent, CUstream, add, add_kernel, add_on, vector
from tilewright import Constexpr, Float32, Int32
from tilewright.base.errors import ArgumentError, LaunchError
from tilewright.targets.host.ffi import tvm_ffi

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/export"
several = pytest.mark.skipif(
    torch.cuda.is_available() and torch.cuda.device_count() < 2, reason="there is only one device"
)
compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")


def arch() -> str:
    return "sm_90a" if torch.cuda.get_device_capability() == (9, 0) else ""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    n = cute.sym_int(divisibility=4)
    x = vector(align=16, symbol=n)
    plain = cute.compile(add, x, x, Float32(1))
    plain.export_to_c(folder / "add_ffi.o", function_name="add_ffi")
    cute.compile(add_on, x, x, Float32(1), CUstream()).export_to_c(file_path=folder, file_name="add_on")
    libraries = cute.runtime.find_runtime_libraries(enable_tvm_ffi=True)
    objects = [str(folder / "add_ffi.o"), str(folder / "add_on.o")]
    if shutil.which("gcc"):
        subprocess.run(["gcc", "-shared", "-o", str(folder / "all.so"), *objects, *libraries], check=True)
    return folder


@pytest.mark.parametrize("source", ["add_ffi.o", "all.so"])
def test_a_loaded_tvm_ffi_function(exported, source):
    if not (exported / source).exists():
        pytest.skip("there is no C compiler")
    function = cute.runtime.load_module(exported / source).add_ffi
    x = torch.arange(32, dtype=torch.float32, device="cuda")
    y = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function(x, y, 3.0)
    stream.synchronize()
    assert torch.equal(y, x + 3)
    with pytest.raises(ArgumentError, match="not a multiple of 4"):
        function(x[:30], y[:30], 3.0)


def test_a_loaded_function_as_tvm_ffi_has_it(exported):
    function = cute.runtime.load_module(exported / "add_ffi.o", enable_tvm_ffi=True).add_ffi
    assert isinstance(function, tvm_ffi().Function)
    x, y = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
    function(x, y, 2.0)
    assert (y == 3).all()
    with pytest.raises(ValueError, match="must equal 'n0' = 32"):
        function(x, y[:16], 2.0)
    with pytest.raises(TypeError, match="is not a tensor"):
        function(1, y, 2.0)


def test_a_loaded_function_with_a_c_interface(exported):
    function = cute.runtime.load_module(exported / "add_on.o").add_on
    x, y = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
    stream = torch.cuda.Stream()
    function(x, y, 2.0, stream=stream)
    stream.synchronize()
    assert (y == 3).all()


@compiler
def test_the_example_in_cpp(tmp_path):
    subprocess.run([sys.executable, str(EXAMPLE / "export.py"), str(tmp_path)], check=True, capture_output=True)
    command = ["g++", "-std=c++17", f"-I{tmp_path}", "-o", str(tmp_path / "use_scale"),
               str(EXAMPLE / "use_scale.cpp"), str(tmp_path / "scale.o"), "-ldl"]  # fmt: skip
    subprocess.run(command, check=True)
    done = subprocess.run([str(tmp_path / "use_scale")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "ran on the GPU: 1000 elements are right" in done.stdout


def test_register_global_func_calls_native_code():
    compiled = cute.compile(add, vector(), vector(), options="--enable-tvm-ffi")
    tvm_ffi().register_global_func("tilewright.test.gpu_add", compiled, override=True)
    function = tvm_ffi().get_global_func("tilewright.test.gpu_add")
    x, y = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
    function(x, y, 4.0)
    tvm_ffi().remove_global_func("tilewright.test.gpu_add")
    assert (y == 5).all()


def test_a_thread_that_never_used_cuda():
    compiled = cute.compile(add, vector(), vector())
    x, y = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
    torch.cuda.synchronize()
    failures = []

    def work():
        try:
            compiled.native(x, y, 1.0)
        except Exception as error:  # noqa: BLE001  (shown by the assertion below)
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert failures == []
    assert (y == 2).all()


def test_threads_that_launch_at_once():
    compiled = cute.compile(add, vector(), vector())
    failures = []

    def work(number):
        x, y = torch.full((32,), float(number), device="cuda"), torch.zeros(32, device="cuda")
        for shift in range(200):
            compiled(x, y, float(shift))
        torch.cuda.synchronize()
        if not (y == number + 199).all():
            failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@several
def test_tensors_on_another_device():
    compiled = cute.compile(add, vector(), vector())
    large = cute.compile(add_with_large_smem, vector())
    for device in (1, 0, 1):
        x, y = torch.ones(32, device=f"cuda:{device}"), torch.zeros(32, device=f"cuda:{device}")
        compiled(x, y, 2.0)
        large(y)
        torch.cuda.synchronize(device)
        assert (y == 4).all()
        assert torch.cuda.current_device() == 0
    with pytest.raises(ArgumentError, match="not on the device"):
        compiled(torch.ones(32, device="cuda:0"), torch.ones(32, device="cuda:1"), 1.0)


@several
def test_an_exported_function_on_another_device(exported):
    function = cute.runtime.load_module(exported / "add_ffi.o").add_ffi
    x, y = torch.ones(32, device="cuda:1"), torch.zeros(32, device="cuda:1")
    function(x, y, 2.0)
    torch.cuda.synchronize(1)
    assert (y == 3).all()
    assert torch.cuda.current_device() == 0


@cute.kernel
def large_smem_kernel(y: cute.Tensor):
    allocator = cutlass.utils.SmemAllocator()
    stage = allocator.allocate_tensor(Float32, cute.make_layout(25 * 1024), 16)
    i, _, _ = cute.arch.thread_idx()
    stage[i * 800] = y[i]
    y[i] = stage[i * 800] + 1


@cute.jit
def add_with_large_smem(y: cute.Tensor):
    large_smem_kernel(y).launch(grid=1, block=32)


# Launch attributes


def test_events_fire():
    x, y = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")
    event = torch.cuda.Event(enable_timing=False)
    event.record()
    stream = torch.cuda.current_stream()

    @cute.jit
    def completion(x: cute.Tensor, y: cute.Tensor, stream: CUstream, event: CUevent):
        add_kernel(x, y, 1.0).launch(grid=1, block=32, stream=stream, launch_completion_event=event)

    compiled = cute.compile(completion, vector(), vector(), CUstream(), CUevent())
    compiled(x, y, stream, event)
    event.synchronize()
    torch.cuda.synchronize()
    assert (y == 2).all()


@cute.kernel
def first_kernel(x: cute.Tensor, y: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_launch_dependents()
    y[block * 128 + i] = x[block * 128 + i] + 1


@cute.kernel
def second_kernel(y: cute.Tensor, z: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    cute.arch.griddepcontrol_wait()
    z[block * 128 + i] = y[block * 128 + i] * 2


@cute.jit
def dependent(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, use_pdl: Constexpr[bool]):
    blocks = x.shape[0] // 128
    first_kernel(x, y).launch(grid=blocks, block=128, use_pdl=use_pdl)
    second_kernel(y, z).launch(grid=blocks, block=128, use_pdl=use_pdl)


@pytest.mark.parametrize("use_pdl", [True, False])
def test_dependent_launches(use_pdl):
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("dependent launches need sm_90")
    n = 1 << 20
    x = torch.rand(n, device="cuda")
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    compiled = cute.compile(dependent, x, y, z, use_pdl)
    for _ in range(20):
        z.zero_()
        compiled(x, y, z)
        assert torch.equal(z, (x + 1) * 2)


@cute.kernel
def count_kernel(counter: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    if i == 0:
        counter[block] = Int32(1)


@cute.jit
def cooperative(counter: cute.Tensor, blocks: Int32):
    count_kernel(counter).launch(grid=blocks, block=32, cooperative=True)


def test_cooperative_launches():
    counter = torch.zeros(1 << 20, dtype=torch.int32, device="cuda")
    compiled = cute.compile(cooperative, counter, 1)
    compiled(counter, 64)
    torch.cuda.synchronize()
    assert counter.sum().item() == 64
    with pytest.raises(LaunchError, match="the launch was refused") as caught:
        compiled(counter, 1 << 19)  # more blocks than the device holds at once
    assert "COOPERATIVE_LAUNCH_TOO_LARGE" in str(caught.value)
    compiled(counter, 65)
    torch.cuda.synchronize()
    assert counter.sum().item() == 65


def test_capture_in_a_graph_with_a_programmatic_event():
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("programmatic events need sm_90")
    x, y = torch.ones(32, device="cuda"), torch.zeros(32, device="cuda")

    @cute.jit
    def programmatic(x: cute.Tensor, y: cute.Tensor, stream: CUstream, event: CUevent):
        add_kernel(x, y, 1.0).launch(
            grid=1, block=32, stream=stream, programmatic_event=event, programmatic_event_trigger_at_block_start=1
        )

    compiled = cute.compile(programmatic, vector(), vector(), CUstream(), CUevent())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        event = torch.cuda.Event(enable_timing=False)
        event.record()
        compiled(x, y, torch.cuda.current_stream(), event)
    x.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    assert (y == 6).all()


@cute.jit
def with_completion_event(x: cute.Tensor, y: cute.Tensor, stream: CUstream, event: CUevent):
    add_kernel(x, y, 1.0).launch(
        grid=1, block=32, stream=stream, launch_completion_event=event, launch_completion_event_flags=0
    )


def test_numpy_arguments_and_events_together():
    compiled = cute.compile(with_completion_event, vector(), vector(), CUstream(), CUevent())
    event = torch.cuda.Event(enable_timing=False)
    event.record()
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    compiled(x, y, torch.cuda.Stream(), event)
    assert (y == 2).all()
