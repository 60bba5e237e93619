"""Threads that launch at once through what an executor calls: each launch arrives once, on its stream; memory is flat.

The launch function is native code that does the kernel's work at once, so the whole way to it is the one of a GPU.
"""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright.cute as cute
from tests.boundary.support import CUstream
from tilewright import Int32
from tilewright.ir.llvm import emit_object
from tilewright.targets.host.function import HostFunction
from tilewright.targets.host.loader import load_object
from tilewright.targets.nvidia.backend.parts import host_object

THREADS, LAUNCHES, STREAMS = 4, 100_000, (16, 32)

LAUNCH = """
; x[stream / 16 - 1] += n
define internal i32 @work(ptr %stream, ptr %params) {
  %n_pp = load ptr, ptr %params
  %n = load i32, ptr %n_pp
  %x_p = getelementptr ptr, ptr %params, i64 1
  %x_pp = load ptr, ptr %x_p
  %x = load ptr, ptr %x_pp
  %number = ptrtoint ptr %stream to i64
  %rest = udiv i64 %number, 16
  %place = sub i64 %rest, 1
  %element = getelementptr i64, ptr %x, i64 %place
  %wide = zext i32 %n to i64
  %before = atomicrmw add ptr %element, i64 %wide seq_cst
  ret i32 0
}

define i32 @plain(ptr %k, i32 %a, i32 %b, i32 %c, i32 %d, i32 %e, i32 %f, i32 %s, ptr %stream, ptr %params, ptr %x) {
  %status = call i32 @work(ptr %stream, ptr %params)
  ret i32 %status
}

define i32 @extended(ptr %config, ptr %kernel, ptr %params, ptr %extra) {
  ret i32 999
}
"""


@cute.kernel
def add_kernel(n: Int32, x: cute.Tensor):
    x[0] = x[0] + n


@cute.jit
def add(n: Int32, x: cute.Tensor, stream: CUstream):
    add_kernel(n, x).launch(grid=1, block=1, stream=stream)


def resident() -> int:
    """Bytes of memory that the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def front():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    loaded = load_object(emit_object(LAUNCH))
    artifact = cute.compile(add, 1, np.zeros(2, np.int64), CUstream(16), target="emu").artifact
    function = HostFunction(
        host_object(artifact), artifact.signature, kernels=1,
        launch=loaded.address("extended"), plain_launch=loaded.address("plain"), keep_alive=loaded,
    )  # fmt: skip

    def other(*args):  # the first call of a type of tensors; later ones go straight to native code
        function(*args)

    return function.front(other, lambda *_: pytest.fail("native code refused a call"))


def test_every_launch_arrives_once_on_its_stream(front):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    each = LAUNCHES // THREADS
    totals = [torch.zeros(2, dtype=torch.int64) for _ in range(THREADS)]
    shared = torch.zeros(2, dtype=torch.int64)
    for total in (*totals, shared):
        front(0, total, 16)

    def work(total, count):
        for n in range(count):
            front(n, total if n % 4 else shared, STREAMS[n & 1])

    def run(count):
        threads = [threading.Thread(target=work, args=(total, count)) for total in totals]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(each // 10)
    before = resident()
    run(each)
    grown = resident() - before

    def expected(mine):
        numbers = [n for count in (each // 10, each) for n in range(count) if bool(n % 4) == mine]
        return [sum(n for n in numbers if n & 1 == stream) for stream in (0, 1)]

    assert [total.tolist() for total in totals] == [expected(True)] * THREADS
    assert shared.tolist() == [THREADS * total for total in expected(False)]
    assert grown < 4 << 20
