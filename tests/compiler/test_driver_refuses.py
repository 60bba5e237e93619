"""Launches that the driver refuses, on a driver library that only records and refuses."""

from __future__ import annotations

import ctypes

import pytest

import tilewright.cute as cute
from tests.compiler.support import double, double_kernel, floats
from tests.nvidia.fake_cuda import FakeCuda
from tilewright import LaunchError
from tilewright.targets.nvidia.devices import driver as driver_module
from tilewright.targets.nvidia.devices.driver import Driver

LAUNCHED_AT = double.function.__code__.co_firstlineno + 2
_C = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
_PLAIN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)


class RefusingDriver(Driver):
    """A driver whose launches give `status`; its other functions are those of `FakeCuda`."""

    def __init__(self, status: int) -> None:
        super().__init__(FakeCuda())
        self.status = status
        self.launches = 0
        self._functions = {"cuLaunchKernelEx": _C(self._launch), "cuLaunchKernel": _PLAIN(self._launch)}
        self._other = _C(lambda *_: 0)

    def _launch(self, *_):
        self.launches += 1
        return self.status

    def address(self, function):
        return ctypes.cast(self._functions.get(function, self._other), ctypes.c_void_p).value


@pytest.fixture
def refusing(monkeypatch):
    def make(status: int) -> RefusingDriver:
        made = RefusingDriver(status)
        monkeypatch.setattr(driver_module, "driver", lambda: made)
        monkeypatch.setattr(driver_module, "_open", lambda: (made, ""))
        return made

    return make


@pytest.mark.parametrize(
    "status, words",
    [
        (1, ["CUDA_ERROR_INVALID_VALUE", "an argument is out of range"]),
        (701, ["CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "--maxrregcount"]),
        (912, ["CUDA_ERROR_INVALID_CLUSTER_SIZE"]),
    ],
)
def test_the_error_has_the_drivers_code_and_the_users_line(refusing, status, words):
    driver = refusing(status)
    executor = cute.compile(double, *floats(), target="cuda", arch="sm_90a")
    with pytest.raises(LaunchError) as caught:
        executor(*floats())
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.location is not None and caught.value.location.line == LAUNCHED_AT
    assert driver.launches == 1


def test_nothing_is_launched_after_a_refusal(refusing):
    @cute.jit
    def twice(x: cute.Tensor, out: cute.Tensor):
        double_kernel(x, out).launch(grid=1, block=32)
        double_kernel(x, out).launch(grid=1, block=32)

    driver = refusing(1)
    executor = cute.compile(twice, *floats(), target="cuda", arch="sm_90a")
    with pytest.raises(LaunchError):
        executor(*floats())
    assert driver.launches == 1
    driver.status = 0
    executor(*floats())
    assert driver.launches == 3


def test_code_for_another_chip(refusing):
    refusing(0)
    with pytest.raises(LaunchError, match="another architecture") as caught:
        cute.compile(double, *floats(), target="cuda", arch="sm_100a")
    assert "sm_100a" in str(caught.value) and "sm_90" in str(caught.value)
    assert caught.value.location.file == __file__


def test_the_chip_of_the_device_is_the_default(refusing, monkeypatch):
    from tilewright.base import settings

    refusing(0)
    with settings.scope(target="", arch=""):
        executor = cute.compile(double, *floats())
    assert (executor.target, executor.arch) == ("cuda", "sm_90a")
    executor(*floats())
