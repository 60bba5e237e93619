"""What the boundary's tests share: two small functions, and a driver that is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright.cute as cute
from tilewright import Constexpr, Float32

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_c = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
FAKE_SOURCE = Path(__file__).with_name("fake_libcuda.c")


class CUstream:
    """Like the driver bindings' stream."""

    def __init__(self, handle: int = 0) -> None:
        self.handle = handle

    def __int__(self) -> int:
        return self.handle


class CUevent(CUstream):
    """Like the driver bindings' event."""


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, shift: Float32):
    i, _, _ = cute.arch.thread_idx()
    if i < x.shape[0]:
        y[i] = x[i] + shift


ONE = Float32(1)


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, shift: Float32 = ONE):
    add_kernel(x, y, shift).launch(grid=1, block=32)


@cute.jit
def add_on(x: cute.Tensor, y: cute.Tensor, shift: Float32, stream: CUstream):
    add_kernel(x, y, shift).launch(grid=1, block=32, stream=stream)


@cute.jit
def with_events(
    x: cute.Tensor, y: cute.Tensor, stream: CUstream, event: CUevent, at_start: Constexpr[int], pdl: Constexpr[bool]
):
    add_kernel(x, y, 1.0).launch(
        grid=1,
        block=32,
        stream=stream,
        launch_completion_event=event,
        launch_completion_event_flags=2,
        programmatic_event=event,
        programmatic_event_trigger_at_block_start=at_start,
        use_pdl=pdl,
        cooperative=True,
    )


def vector(align=4, divisibility=1, dtype=Float32, symbol=None):
    extent = cute.sym_int(divisibility=divisibility) if symbol is None else symbol
    return cute.runtime.make_fake_compact_tensor(dtype, (extent,), assumed_align=align)


def fake_driver(folder: Path) -> Path:
    """A folder with a `libcuda.so.1` that prints what it is asked."""
    folder.mkdir(exist_ok=True)
    command = [COMPILER, "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(FAKE_SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def run_child(*command, driver: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program, with a fake driver where one is given."""
    environment = {**os.environ, **variables}
    if driver is not None:
        environment["LD_LIBRARY_PATH"] = f"{driver}:{environment.get('LD_LIBRARY_PATH', '')}"
    root = Path(__file__).resolve().parents[2]
    environment["PYTHONPATH"] = f"{root / 'src'}:{root}"
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, check=False)


def run_python(script: str, **options) -> list[str]:
    """The lines that a Python program prints; it must end well."""
    done = run_child(sys.executable, "-c", script, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
