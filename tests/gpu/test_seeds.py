"""What the seeds promise of a device and no other test of this folder shows; docs/seeds.md names them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tests.lang.atoms import test_copy_hints as hints
from tilewright.compat.jit_executor import load_kernels_from_ir_module


def test_kernels_of_a_compiled_function_are_loaded():
    executor = cute.compile(double, *floats())
    (kernel,) = load_kernels_from_ir_module(executor)
    said = executor.kernels["double_kernel"].info
    assert kernel.blocks_per_sm(32, 0) == executor.occupancy(block=32).blocks_per_sm and said.registers > 0


def test_clusters_of_sixteen_with_64_kilobytes():
    """The seed's launch: grid (16, 16, 1), block 128, cluster (4, 4, 1), 64 KB of dynamic shared memory."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        x, y, _ = cute.arch.block_idx()
        shared = cutlass.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(16384))
        shared[thread * 128 + 127] = cute.Float32(x * 16 + y)
        cute.arch.sync_threads()
        out[x * 16 + y, thread] = shared[(127 - thread) * 128 + 127]

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=(16, 16, 1), block=(128, 1, 1), cluster=(4, 4, 1))

    out = np.zeros((256, 128), np.float32)
    executor = cute.compile(host, out)
    assert executor.smem_bytes() == 65536
    executor(out)
    assert (out == np.arange(256)[:, None]).all()


@pytest.mark.parametrize(
    "given", [{"l1c_evict_priority": "evict_last"}, {"l2_prefetch_size": 256}, {"invariant": True}]
)
def test_hinted_copies_move_what_plain_ones_do(given):
    a = np.random.default_rng(0).standard_normal((hints.ROWS, hints.COLUMNS), dtype=np.float32)
    b = np.zeros_like(a)
    executor = cute.compile(hints.through_registers, a, b, 32, tuple(given.items()))
    executor(a, b)
    assert (b[:, :1] == a[:, :1]).all()


def test_tvm_ffi_calls_take_torch_tensors_on_the_current_stream():
    torch = pytest.importorskip("torch")
    x = torch.arange(64, dtype=torch.float32, device="cuda")
    out = torch.zeros_like(x)
    executor = cute.compile(double, x, out, options="--enable-tvm-ffi")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        executor(x, out)
    stream.synchronize()
    assert bool((out == 2 * x).all())


SCRIPT = """
import numpy as np
import tilewright.cute as cute
from tests.compiler.support import double, floats
x, out = floats()
executor = cute.compile(double, x, out)
executor(x, out)
"""


def test_ranges_are_on_the_timeline(tmp_path):
    nsys = shutil.which("nsys") or pytest.skip("needs nsys")
    report = tmp_path / "timeline"
    command = [nsys, "profile", "--trace=cuda,nvtx,osrt", "-o", str(report), sys.executable, "-c", SCRIPT]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    command = [nsys, "stats", "--report", "nvtx_pushpop_sum", f"{report}.nsys-rep"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "launch double" in shown.stdout and "ptx of double" in shown.stdout
