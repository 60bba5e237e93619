"""Which line an error at run time names, the calls that led there, and launches that give too little memory."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright import Float32, Int32
from tilewright.base.errors import EmulationError, LaunchError
from tilewright.base.location import SourceLocation
from tilewright.targets.artifact_bytes import from_bytes, to_bytes
from tilewright.targets.host.cute_to_host import SharedMemoryWarning
from tilewright.targets.inlined import inlined, name_calls


def write(x, i):
    x[i] = 2.0  # writes


def shifted(x, i):
    write(x, i + 1)  # once


def twice(x, i):
    write(x, i)  # first of two
    write(x, i + 100)  # second of two


@cute.kernel
def in_a_helper(x: cute.Tensor, n: Int32):
    shifted(x, n)  # from the kernel


@cute.kernel
def in_a_helper_twice(x: cute.Tensor, n: Int32):
    twice(x, n)


@cute.jit
def launch(kernel: cutlass.Constexpr, x: cute.Tensor, n: Int32):
    kernel(x, n).launch(grid=(1, 1, 1), block=(1, 1, 1))


@cute.jit
def on_the_host(x: cute.Tensor, n: Int32):
    shifted(x, n)  # from the host


@cute.jit
def asserts(n: Int32):
    cute.testing.assert_(n < 3, "n (the count) is too great")  # asserted


def line_of(mark: str) -> int:
    lines = linecache.getlines(__file__)
    return next(number for number, text in enumerate(lines, 1) if text.rstrip().endswith(f"# {mark}"))


def place(mark: str) -> tuple[str, int]:
    return __file__, line_of(mark)


def call(mark: str) -> str:
    number = line_of(mark)
    return f"{__file__}:{number}  {linecache.getline(__file__, number).strip()}"


def test_a_fault_in_a_helper_names_the_calls():
    x = np.zeros(8, np.float32)
    compiled = cute.compile(launch, in_a_helper, x, 0, target="emu")
    with pytest.raises(EmulationError) as caught:
        compiled(x, 800)
    error = caught.value
    assert (error.location.file, error.location.line) == place("writes")
    assert error.values["called from"] == f"{call('once')}, {call('from the kernel')}"


def test_a_line_that_comes_of_several_calls_names_them_all():
    x = np.zeros(8, np.float32)
    compiled = cute.compile(launch, in_a_helper_twice, x, 0, target="emu")
    with pytest.raises(EmulationError) as caught:
        compiled(x, 2)
    first, second = caught.value.values["called from"].split(" or ")
    assert first.startswith(call("first of two")) and second.startswith(call("second of two"))


def test_calls_are_kept_with_what_was_compiled():
    x = np.zeros(8, np.float32)
    artifact = cute.compile(launch, in_a_helper, x, 0, target="emu").artifact
    assert from_bytes(to_bytes(artifact)).inlined == artifact.inlined
    lines = [[item.line for item in found.chain()] for found in artifact.inlined]
    assert [line_of(mark) for mark in ("writes", "once", "from the kernel")] in lines


def test_host_code_names_the_access():
    x = np.zeros(8, np.float32)
    compiled = cute.compile(on_the_host, x, 0, options="--enable-assertions")
    with pytest.raises(LaunchError, match="index out of bounds of a tensor") as caught:
        compiled(x, 8)
    error = caught.value
    assert (error.location.file, error.location.line) == place("writes")
    assert error.values["called from"] == f"{call('once')}, {call('from the host')}"
    assert __file__ not in error.message


def test_a_failed_assertion_names_its_line():
    compiled = cute.compile(asserts, 0)
    compiled(2)
    with pytest.raises(LaunchError) as caught:
        compiled(3)
    assert caught.value.message == "n (the count) is too great"
    assert (caught.value.location.file, caught.value.location.line) == place("asserted")


def test_calls_without_columns_in_one_order():
    outer = SourceLocation("a.py", 9, 4)
    places = [SourceLocation("a.py", line, column, caller=outer) for line in (5, 3) for column in (0, 8)]
    assert inlined([*places, SourceLocation("a.py", 1)]) == (
        SourceLocation("a.py", 3, caller=SourceLocation("a.py", 9)),
        SourceLocation("a.py", 5, caller=SourceLocation("a.py", 9)),
    )
    error = LaunchError("no calls lead there", location=SourceLocation("a.py", 4))
    name_calls(error, inlined(places))
    assert error.values == {}


@cute.kernel
def allocates(x: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    a, b = smem.allocate_tensor(Float32, cute.make_layout(3)), smem.allocate_tensor(Float32, 4, 16)
    a[0], b[0] = x[0], x[1]
    x[0] = a[0] + b[0]


@cute.jit
def launch_with(x: cute.Tensor, smem: cutlass.Constexpr):
    allocates(x).launch(grid=(1, 1, 1), block=(1, 1, 1), smem=smem)  # too small


def test_a_launch_gives_the_memory_that_its_kernel_allocates():
    x = np.array([1, 2], np.float32)
    for enough in (None, 32, 1000):  # 12 bytes, then 16 at the next multiple of 16
        x[:] = 1, 2
        cute.compile(launch_with, x, enough, target="emu")(x)
        assert x[0] == 3
    with pytest.warns(SharedMemoryWarning, match="smem=17 is less than the 32 bytes that allocates") as caught:
        too_small = cute.compile(launch_with, x, 17, target="emu")
    assert [(warning.filename, warning.lineno) for warning in caught] == [place("too small")]
    with pytest.raises(EmulationError, match="Out-of-bounds"):
        too_small(x)
