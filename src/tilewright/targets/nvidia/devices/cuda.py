"""Running a compiled function on the GPU: native host code that calls the driver's launch function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from tilewright.arguments.dlpack import HostView, view
from tilewright.arguments.runtime_tensor import RuntimeTensor
from tilewright.base.errors import LaunchError
from tilewright.hw.chips import chip
from tilewright.targets.artifact import Artifact, KernelImage
from tilewright.targets.device import Device, Timer
from tilewright.targets.host import abi
from tilewright.targets.host.ffi import take_raised
from tilewright.targets.host.function import HostFunction
from tilewright.targets.nvidia.backend.options import options_of
from tilewright.targets.nvidia.backend.parts import HOST_LLVM, PROFILE, host_object, regions_of
from tilewright.targets.nvidia.devices import driver as cuda
from tilewright.targets.nvidia.devices import timing
from tilewright.targets.nvidia.devices.driver_errors import describe
from tilewright.targets.nvidia.profiling.profile_buffer import SYMBOL, profile_of, read
from tilewright.targets.profile import Profile

_PRINTS = "...) @__tw_printf("  # a call, not the declaration


class CudaDevice(Device):
    """Kernels loaded by the driver, for all devices that can run them; a call uses the device of its tensors.

    NumPy arrays among the arguments are copied to the current device and back.
    """

    last_stage = "cubin"
    timer: ClassVar[Timer | None] = timing

    @classmethod
    def available(cls) -> bool:
        return cuda.available()

    @classmethod
    def require(cls) -> None:
        cuda.driver()

    @classmethod
    def arch(cls, places: Iterable[tuple[int, int]] = ()) -> str:
        driver = cuda.driver()
        if driver.device_count() == 1:
            return driver.device().arch
        of_tensors = (number for kind, number in places if kind in abi.DEVICES_OF["cuda"])
        chosen = next(of_tensors, None)
        return driver.device(driver.chosen_device() if chosen is None else chosen).arch

    @classmethod
    def model(cls) -> str:
        driver = cuda.driver()
        return driver.device(driver.current_device()).name

    def __init__(self, artifact: Artifact, checks: Any = None) -> None:
        self._driver = cuda.driver()
        self._artifact = artifact
        self._devices = _able(self._driver, artifact.arch)
        self._driver.current_device()  # a thread without a context gets one
        self.kernels = [self._load(artifact, kernel) for kernel in artifact.kernels]
        self.host = HostFunction(
            host_object(artifact),
            artifact.signature,
            kernels=[kernel.handle for kernel in self.kernels],
            launch=self._driver.address("cuLaunchKernelEx"),
            plain_launch=self._driver.address("cuLaunchKernel"),
            device="cuda" if self.kernels else "emu",  # a function without launches computes on host memory
            tensor_map=self._driver.address("cuTensorMapEncodeTiled"),
            contexts=[self._driver.address(name) for name in abi.CONTEXT_FUNCTIONS],
            devices=self._driver.device_count(),
            describe_error=lambda code: str(describe(code)),
            keep_alive=self.kernels,
        )
        # What prints on the host calls Python, and is called through it.
        self.direct = None if _PRINTS in str(artifact.stages[HOST_LLVM]) else self.host.function

        self.call_key = self.host.call_key

    @property
    def native(self) -> Any:
        return self.host.function

    def ffi_function(self, run: Callable[..., None]) -> Any:
        return self.host.make_function()

    def front(self, other: Callable[..., Any], failed: Callable[..., Any]) -> Callable[..., Any]:
        return other if self.direct is None else self.host.front(other, failed)

    def raised(self, error: BaseException) -> BaseException:
        return self.host.raised(error)

    def raised_natively(self) -> Exception:
        return take_raised()

    def profile(self) -> Profile:
        events = options_of(self._artifact).profile_events
        pairs = zip(self._artifact.kernels, self.kernels, strict=True)
        timed = [(image, kernel) for image, kernel in pairs if PROFILE in image.stages]
        if not timed:
            return super().profile()
        self._driver.synchronize()
        khz = self._driver.device(self._driver.current_device()).attributes["clock_khz"]
        return Profile.joined("ns", [self._recorded(image, kernel, events, khz) for image, kernel in timed])

    def _recorded(self, image: KernelImage, kernel: cuda.Kernel, events: int, khz: int) -> Profile:
        """What a kernel recorded on the current device; its memory is empty afterwards."""
        address, size = kernel.library.variable(SYMBOL)
        memory = ctypes.create_string_buffer(size)
        self._driver.copy_to_host(ctypes.addressof(memory), address, size)
        self._driver.synchronize()
        records, asked = read(memory.raw, events)
        ctypes.memset(memory, 0, size)
        self._driver.copy_to_device(address, ctypes.addressof(memory), size)
        self._driver.synchronize()
        return profile_of(image.name, regions_of(image), records, asked, khz)

    def _load(self, artifact: Artifact, image: KernelImage) -> cuda.Kernel:
        cubin = image.stages["cubin"]
        assert isinstance(cubin, bytes)
        kernel = self._driver.load_library(cubin).kernel(image.name)
        facts = chip(artifact.arch)
        for device in self._devices:  # what a kernel may use is set for each device
            static = kernel.attribute("shared_bytes", device)
            kernel.allow(device, shared_bytes=facts.shared_optin - static, cluster_blocks=facts.cluster_max)
        return kernel

    def run(self, values: Sequence[Any]) -> None:
        """Call the host function on the current stream."""
        if self.kernels and any(_on_host(value) for value in values):
            self._run_with_copies(values)
        else:
            self.host(*values)

    def _run_with_copies(self, values: Sequence[Any]) -> None:
        if self._driver.current_device() in self._devices:
            self._run_copied(values)
            return
        with self._driver.on_device(self._devices[0]):
            self._run_copied(values)

    def _run_copied(self, values: Sequence[Any]) -> None:
        staged = [_Staged(self._driver, value) if _on_host(value) else value for value in values]
        self.host(*(item.tensor if isinstance(item, _Staged) else item for item in staged))
        self._driver.synchronize()
        for item in staged:
            if isinstance(item, _Staged):
                item.copy_back()


def _able(driver: cuda.Driver, arch: str) -> list[int]:
    """The devices that run code for `arch`.

    Raises:
        LaunchError: there is none.
    """
    refused: LaunchError | None = None
    found = []
    for ordinal in range(driver.device_count()):
        try:
            cuda.check_device(arch, ordinal)
        except LaunchError as error:
            refused = refused or error
        else:
            found.append(ordinal)
    if refused is not None and not found:
        raise refused
    return found


def _on_host(value: Any) -> bool:
    if isinstance(value, RuntimeTensor):
        return value.view.device == abi.CPU
    return hasattr(value, "__array_interface__") and hasattr(value, "dtype")


class _Staged:
    """A NumPy array with a copy in device memory."""

    def __init__(self, driver: cuda.Driver, value: Any) -> None:
        self._driver = driver
        self._host = value.view if isinstance(value, RuntimeTensor) else view(value)
        self._low, self._size = self._host.extent()
        self._buffer = driver.allocate(max(self._size, 1))
        driver.copy_to_device(self._buffer.address, self._low, self._size)
        made = HostView(
            self._buffer.address + self._host.data - self._low,
            abi.CUDA,
            driver.current_device(),
            self._host.dtype,
            self._host.shape,
            self._host.stride,
            True,
            self._buffer,
        )
        self.tensor = _DeviceView(made)

    def copy_back(self) -> None:
        if self._host.writable:
            self._driver.copy_to_host(self._low, self._buffer.address, self._size)
        self._buffer.free()


class _DeviceView:
    """A tensor in memory of ours, as native code takes it."""

    def __init__(self, made: HostView) -> None:
        self._words = made.words()
        self._owner = made

    def __tw_dltensor__(self) -> int:
        return int(self._words.buffer_info()[0])
