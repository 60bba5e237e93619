"""Compiling before and after a fork, in every order; pools of every kind; DataLoader workers; a fork inside a pass."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tests.compiler.support import double, floats
from tilewright.base.lazy import cached_property
from tilewright.ir import forking

SCRIPT = Path(__file__).with_name("forking.py")


def right(before, after, method):
    command = [sys.executable, str(SCRIPT), before, after, method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "right\n", done.stdout + done.stderr


@pytest.mark.parametrize("before", ["nothing", "direct", "compiled", "stages+direct", "emulated", "threaded"])
def test_forks(before):
    right(before, "direct+compiled+stages+emulated", "fork")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_pools_of_other_kinds(method):
    right("direct+stages", "stages+direct", method)


def exit_code(work):
    """What a forked process ends with: 0 where `work` gives True."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def doubled():
    x, out = floats()
    cute.compile(double, x, out, target="emu")(x, out)
    return bool((out == 2 * x).all())


def test_a_fork_in_the_midst_of_a_compilation():
    """Both processes finish it: the child has none of the threads that compile beside."""
    codes = []

    class Fork(cutlass.Pass):
        name = "test-fork"

        def run(self, module):
            codes.append(os.fork())

    x, out = floats()
    compiled = cute.compile(double, x, out, target="emu", passes=[cutlass.after("cute-to-nvvm", Fork())])
    try:
        compiled(x, out)
        right_here = bool((out == 2 * x).all())
    finally:
        if codes[0] == 0:
            os._exit(0 if right_here and doubled() else 1)
    assert right_here
    assert os.waitstatus_to_exitcode(os.waitpid(codes[0], 0)[1]) == 0


def test_a_fork_beside_a_hook_that_waits_for_the_forking_thread(monkeypatch):
    """The fork goes on after a while; it is no deadlock."""
    monkeypatch.setattr(forking, "PATIENCE", 0.2)
    inside, leave = threading.Event(), threading.Event()

    class Wait(cutlass.Pass):
        name = "test-wait"

        def run(self, module):
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=lambda: cute.compile(double, *floats(), target="emu", passes=Wait()))
    thread.start()
    assert inside.wait(30)
    code = exit_code(lambda: True)
    leave.set()
    thread.join()
    assert code == 0 and doubled()


def test_a_fork_while_a_thread_computes_a_cached_property():
    inside, leave = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits):
            self.waits = waits

        @cached_property
        def value(self):
            """What is cached."""
            if self.waits:
                inside.set()
                leave.wait(30)
            return [1]

    slow = Slow(True)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert inside.wait(30)
    code = exit_code(lambda: Slow(False).value == [1])
    leave.set()
    thread.join()
    assert code == 0
    assert slow.value is slow.value and Slow.value.__doc__ == "What is cached."


def test_threads_compile_at_once():
    failures = []

    def work(number):
        try:
            for _ in range(3):
                assert doubled()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    codes = [exit_code(doubled) for _ in range(3)]
    for thread in threads:
        thread.join()
    assert failures == [] and codes == [0, 0, 0]


class Doubled:
    """A data set whose items a kernel makes."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        x, out = np.full(4, index, np.float32), np.zeros(4, np.float32)
        double(x, out)
        return out


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_data_loader(context):
    data = pytest.importorskip("torch.utils.data")
    assert doubled()
    loader = data.DataLoader(Doubled(), batch_size=3, num_workers=2, multiprocessing_context=context)
    batches = [batch.numpy()[:, 0].tolist() for batch in loader]
    assert batches == [[0, 2, 4], [6, 8, 10]]


class Interrupt(BaseException):
    pass


def interrupted_at(number, work):
    """Run `work`, ended at the call of Python code with that number; False where there are not so many."""
    calls = iter(range(number, -1, -1))

    def trace(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "_remove" and next(calls, 1) == 0:
            raise Interrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_leaves_the_gate_open():
    def enter_and_leave():
        with forking.compiling(anew=True):
            pass

    def compiles():
        with forking.compiling():
            passed.append(True)

    numbers = [0]
    while interrupted_at(numbers[-1], enter_and_leave):
        numbers.append(numbers[-1] + 1)
        passed: list[bool] = []
        other = threading.Thread(target=compiles, daemon=True)
        other.start()
        other.join(20)
        assert passed, numbers
    assert len(numbers) > 4
    enter_and_leave()
