"""Calls in other threads, whatever becomes of the threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from tilewright.ir import forking
from tilewright.ir.forking import MAX_WORKERS, Background


def test_values_and_errors():
    assert Background(lambda: 5).result() == 5
    failing = Background(lambda: [][1])
    for _ in range(2):  # each time it is asked
        with pytest.raises(IndexError, match="list index out of range"):
            failing.result()


def test_more_calls_than_workers():
    free = threading.Event()
    calls = [Background(lambda n=n: free.wait() and n) for n in range(3 * MAX_WORKERS)]
    threading.Timer(0.2, free.set).start()
    assert [call.result() for call in calls] == list(range(3 * MAX_WORKERS))


def test_calls_that_wait_for_calls():
    def depth(n):
        return 0 if n == 0 else 1 + Background(lambda: depth(n - 1)).result()

    assert depth(4 * MAX_WORKERS) == 4 * MAX_WORKERS


def test_no_thread_can_be_started(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(forking._thread, "start_new_thread", refuse)
    here = threading.get_ident()
    assert Background(threading.get_ident).result() == here


def test_a_thread_that_was_never_started(monkeypatch):
    # What an interrupt between the two leaves behind.
    monkeypatch.setattr(forking._thread, "start_new_thread", lambda *_: None)
    monkeypatch.setattr(forking, "_workers", [])
    calls = [Background(lambda n=n: n) for n in range(2 * MAX_WORKERS)]
    assert [call.result() for call in calls] == list(range(2 * MAX_WORKERS))


def _in_a_child(call):
    child = os.fork()
    if child == 0:
        os._exit(call.result())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_after_and_amid_a_call():
    parent, made = os.getpid(), Background(lambda: 5)
    assert made.result() == 5 and _in_a_child(made) == 5
    begun = threading.Event()
    made = Background(lambda: begun.set() or (time.sleep(0.3), int(os.getpid() == parent))[1])
    begun.wait()
    assert _in_a_child(made) == 1  # the fork waited until it was made in the parent


def test_a_forked_process_makes_a_call_that_had_not_begun(monkeypatch):
    parent = os.getpid()
    monkeypatch.setattr(forking._thread, "start_new_thread", lambda *_: None)
    monkeypatch.setattr(forking, "_workers", [])
    made = Background(lambda: int(os.getpid() == parent))
    assert _in_a_child(made) == 0 and made.result() == 1


def test_a_process_ends_with_calls_under_way():
    script = """
import time
from tilewright.ir.forking import Background
calls = [Background(lambda: (time.sleep(0.3), print("made\\n", end="", flush=True))) for _ in range(40)]
time.sleep(0.1)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout == "made\n" * MAX_WORKERS  # those that had begun; nobody waits for the others
