"""Processes made by fork and spawn on a driver that is none: they work, or say clearly why they cannot."""

import textwrap

from tests.boundary.support import fake_driver, needs_c, run_python

pytestmark = needs_c

PROGRAM = """
import multiprocessing
import numpy as np
import tilewright.cute as cute
from tests.boundary.support import add, vector
from tilewright import TilewrightError


def work(kept=None):
    x = np.ones(16, np.float32)
    try:
        (kept or cute.compile(add, vector(), vector(), target="cuda", arch="sm_90a"))(x, x, 1.0)
    except TilewrightError as error:
        return f"{type(error).__name__}: {error} ({error.location})"
    return "launched"


def in_child(method, *arguments):
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.apply_async(work, arguments).get(timeout=60)
"""


BODY = """
import os
print("told", in_child("fork"))
kept = cute.compile(add, vector(), vector(), target="cuda", arch="sm_90a")
print("told", work(kept), flush=True)
print("told", in_child("fork").replace(chr(10), " | "), flush=True)
child = os.fork()
if child == 0:
    print("told", work(kept).replace(chr(10), " | "), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("told", in_child("spawn"))
"""


def test_processes_made_before_and_after_cuda_is_used(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(f"{PROGRAM}\n\nif __name__ == '__main__':\n{textwrap.indent(BODY, '    ')}")
    script = f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')"
    lines = run_python(script, driver=fake_driver(tmp_path / "driver"), FAKE_CUDA_DEVICES="1")
    told = [line.removeprefix("told ") for line in lines if line.startswith("told ")]
    forked_before, here, forked_after, kept, spawned = told
    assert forked_before == here == spawned == "launched"
    assert forked_after.startswith(
        "CudaDriverDependencyError: this process was forked from one that had begun to use CUDA"
    )
    assert kept.startswith("LaunchError: CUDA_ERROR_NOT_INITIALIZED") and "support.py:" in kept
    for text in (forked_after, kept):
        assert 'multiprocessing.get_context("spawn")' in text
