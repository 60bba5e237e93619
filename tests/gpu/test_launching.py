"""Calls on a device: streams, threads, many launches, processes."""

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading

import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Int32

torch = pytest.importorskip("torch", reason="the GPU tests use torch's tensors")


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, more: Int32):
    block, thread = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    i = block * 64 + thread
    if i < cute.size(x):
        y[i] = y[i] + x[i] + more


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, more: Int32):
    add_kernel(x, y, more).launch(grid=(cute.ceil_div(cute.size(x), 64), 1, 1), block=(64, 1, 1))


@cute.jit
def add_in_clusters(x: cute.Tensor, y: cute.Tensor, more: Int32):
    add_kernel(x, y, more).launch(grid=(2, 1, 1), block=(64, 1, 1), cluster=(2, 1, 1))


def integers(n=128):
    return torch.arange(n, device="cuda", dtype=torch.int32), torch.zeros(n, device="cuda", dtype=torch.int32)


@pytest.mark.parametrize("function", [add, add_in_clusters], ids=["plain", "with an attribute"])
def test_a_call_runs_on_the_current_stream(function):
    x, y = integers()
    compiled = cute.compile(function, x, y, 1)
    compiled(x, y, 1)  # the types of the arguments are known from here on
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # a launch on another stream would end the capture
        compiled(x, y, 1)
    y.zero_()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, 3 * (x + 1))


def test_parameters_views_and_numpy_beside_each_other():
    x, y = integers()
    compiled = cute.compile(add, x, y, 1)
    weight = torch.nn.Parameter(x.clone(), requires_grad=False)
    for _ in range(2):
        compiled(weight, y, 2)
    assert torch.equal(y, 2 * (x + 2))
    host = x.cpu().numpy()
    into = host * 0
    compiled(host, into, 5)
    assert (into == host + 5).all()
    wrong = torch.zeros(128, device="cuda")
    for _ in range(2):
        with pytest.raises(cutlass.ArgumentError, match="wrong dtype"):
            compiled(x, wrong, 1)


def test_many_launches_from_threads_on_two_streams():
    """100,000 launches of four threads on two streams: the sums are right, memory stays as it is."""
    each = 25_000
    streams = [torch.cuda.Stream() for _ in range(2)]
    x, _ = integers()
    results = [torch.zeros_like(x) for _ in range(4)]
    compiled = cute.compile(add, x, results[0], 1)
    torch.cuda.synchronize()
    errors = []

    def work(number, count):
        try:
            with torch.cuda.stream(streams[number % 2]):
                for _ in range(count):
                    compiled(x, results[number], 1)
        except Exception as error:  # noqa: BLE001  (shown by the assertion)
            errors.append(error)

    def run(count):
        threads = [threading.Thread(target=work, args=(number, count)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()

    run(500)
    gc.collect()
    before, device_before = resident(), torch.cuda.mem_get_info()[0]
    run(each - 500)
    assert not errors
    assert resident() - before < 8 << 20
    assert device_before - torch.cuda.mem_get_info()[0] < 8 << 20
    for y in results:  # 32-bit sums wrap alike
        assert torch.equal(y, (x + 1) * each)


def resident():
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


PROGRAM = """
import multiprocessing
import numpy as np
import tilewright.cute as cute
from tests.gpu.test_launching import add
from tilewright import TilewrightError

def work(kept=None):
    x, y = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    try:
        (kept or cute.compile(add, x, y, 1, target="cuda"))(x, y, 1)
    except TilewrightError as error:
        return f"{type(error).__name__}: {error}".replace(chr(10), " | ")
    return "right" if (y == x + 1).all() else "wrong"

def in_child(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply_async(work).get(timeout=60)

if __name__ == "__main__":
    import os, sys
    if sys.argv[1] == "before":
        print(in_child("fork"))
    print(work())
    if sys.argv[1] == "after":
        x = np.zeros(128, np.int32)
        kept = cute.compile(add, x, x, 1, target="cuda")
        kept(x, x.copy(), 1)
        print(in_child("fork"), flush=True)
        child = os.fork()
        if child == 0:
            print(work(kept), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    print(in_child("spawn"))
"""


def told(when, folder):
    file = folder / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(file), when], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_processes_forked_before_the_device_is_used_and_spawned_ones_work(tmp_path):
    assert told("before", tmp_path) == ["right"] * 3


def test_a_process_forked_after_the_device_was_used_says_so(tmp_path):
    here, forked, kept, spawned = told("after", tmp_path)
    assert here == spawned == "right"
    assert "was forked from one that had begun to use CUDA" in forked
    assert "CUDA_ERROR_NOT_INITIALIZED" in kept or "was forked" in kept
    assert 'multiprocessing.get_context("spawn")' in forked and 'multiprocessing.get_context("spawn")' in kept
    assert multiprocessing.active_children() == []
