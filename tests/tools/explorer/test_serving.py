"""`tilewright explore --serve`: the page at a local address, renewed when its sources change."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tilewright import ArgumentError
from tilewright.tools.explorer.page import data_of
from tilewright.tools.explorer.serving import serve

SOURCE = """
import tilewright.cute as cute


@cute.kernel
def scale_kernel(x: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    x[i] = x[i] * FACTOR


@cute.jit
def scale(x: cute.Tensor):
    scale_kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))
"""
PATIENCE = 60.0


@pytest.fixture
def server(tmp_path):
    """A server of a file: its address, and the file."""
    file = tmp_path / "kernels.py"
    file.write_text(SOURCE.replace("FACTOR", "2.0"))
    program = "from tilewright.tools.cli import main; main()"
    words = ["explore", f"{file}:scale", "--arg", "f32[32]", "--serve", "--port", "0"]
    process = subprocess.Popen([sys.executable, "-u", "-c", program, *words], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[0]
        yield address, file, process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def fetched(address, path="/", **headers):
    with urllib.request.urlopen(urllib.request.Request(f"{address.rstrip('/')}{path}", headers=headers)) as answer:
        return answer.read().decode()


def until(address, condition):
    """The first state that meets a condition."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        state = json.loads(fetched(address, "/state"))
        if condition(state):
            return state
        time.sleep(0.1)
    raise AssertionError(state)


def test_a_change_makes_a_new_page_and_an_error_keeps_the_old_one(server):
    address, file, process = server
    assert "compiling" in fetched(address)
    assert until(address, lambda state: state["version"] == 1)["problem"] == ""
    page = fetched(address)
    assert 'data-watch="/state"' in page
    assert "* 2.0" in data_of(page)["files"][0]["text"]

    file.write_text(SOURCE.replace("FACTOR", "facto"))
    state = until(address, lambda state: state["problem"])
    assert state["version"] == 1
    assert "name 'facto' is not defined" in state["problem"]
    assert f"{file}:8" in state["problem"]
    assert "* 2.0" in data_of(fetched(address))["files"][0]["text"]

    file.write_text(SOURCE.replace("FACTOR", "3.0"))
    assert until(address, lambda state: state["version"] == 2)["problem"] == ""
    assert "* 3.0" in data_of(fetched(address))["files"][0]["text"]

    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetched(address, "/kernels.py")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        fetched(address, Host="example.com")

    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 0


def test_a_port_that_is_taken():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=f"port {port} cannot be had"):
            serve("kernels.py:add", [], port)
