"""The CUDA driver: devices, kernels, memory, streams and launches.

`driver()` opens it on first use and says clearly why it cannot. Kernels are loaded as *libraries*, which serve every
device and context; contexts are the primary ones, which every framework shares.
"""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Final

from tilewright.base.errors import CudaDriverDependencyError, LaunchError
from tilewright.hw.chips import arch_of_capability, chip
from tilewright.targets.nvidia.devices import driver_api as api
from tilewright.targets.nvidia.devices.driver_api import LaunchAttribute, LaunchConfig
from tilewright.targets.nvidia.devices.driver_errors import describe

Dim3 = tuple[int, int, int]

_PORTABLE_CLUSTER: Final = 8
_DEFAULT_SHARED: Final = 48 * 1024
_NON_BLOCKING: Final = 1
_PEER_ACCESS_ALREADY_ENABLED: Final = 704
_NAME_BYTES: Final = 256
_NOT_INITIALIZED: Final = 3
_FORKED: Final = "this process was forked from one that had begun to use CUDA, and CUDA does not work in it"
_FORKED_HINT: Final = (
    'start it afresh, with multiprocessing.get_context("spawn"), or fork before anything uses the device'
)
_NO_DRIVER_HINT: Final = "run on the emulator (TILEWRIGHT_TARGET=emu), or on a machine with an NVIDIA driver and GPU"


@dataclass(frozen=True)
class Device:
    """One device. `arch` is the richest target that runs on it; `attributes` by the names of the driver table."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    attributes: Mapping[str, int]

    @property
    def arch(self) -> str:
        return arch_of_capability(*self.capability)


class Kernel:
    """A kernel of a loaded library. It keeps the library loaded."""

    def __init__(self, owner: Library, name: str, handle: int) -> None:
        self.library = owner
        self.name = name
        self.handle = handle
        # The largest dynamic shared memory and whether large clusters are allowed, by device.
        self._shared: dict[int, int] = {}
        self._clusters: set[int] = set()

    def attribute(self, name: str, device: int) -> int:
        """A property that the driver computed, a key of `driver_api.FUNC_ATTRIBUTES`."""
        value = c_int()
        call = self.library.driver.call
        call("cuKernelGetAttribute", byref(value), api.FUNC_ATTRIBUTES[name], self.handle, device)
        return value.value

    def allow(self, device: int, *, shared_bytes: int = 0, cluster_blocks: int = 1) -> None:
        """Opt in to what a launch needs beyond the defaults: shared memory over 48 KB, clusters over 8 blocks.

        Args:
            device: the device that will run it.
            shared_bytes: dynamic shared memory per block.
            cluster_blocks: blocks per cluster.

        Raises:
            LaunchError: the device has not that much.
        """
        if shared_bytes > self._shared.get(device, 0):
            static = self.attribute("shared_bytes", device)
            if static + shared_bytes > _DEFAULT_SHARED:
                self._set(api.FUNC_MAX_DYNAMIC_SHARED, shared_bytes, device)
            self._shared[device] = shared_bytes
        if cluster_blocks > _PORTABLE_CLUSTER and device not in self._clusters:
            self._set(api.FUNC_NON_PORTABLE_CLUSTER, 1, device)
            self._clusters.add(device)

    def _set(self, attribute: int, value: int, device: int) -> None:
        values = {"kernel": self.name, "device": device, "value": value}
        self.library.driver.call("cuKernelSetAttribute", attribute, value, self.handle, device, about=values)

    def blocks_per_sm(self, block_threads: int, shared_bytes: int = 0) -> int:
        """How many blocks the driver keeps on one multiprocessor of the current device."""
        driver, count = self.library.driver, c_int()
        function = self._function(shared_bytes)
        driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", byref(count), function, block_threads, shared_bytes)
        return count.value

    def active_clusters(self, cluster: Dim3, block: Dim3, shared_bytes: int = 0, stream: int = 0) -> int:
        """How many clusters the current device runs at once."""
        driver, device = self.library.driver, self.library.driver.current_device()
        blocks = cluster[0] * cluster[1] * cluster[2]
        self.allow(device, shared_bytes=shared_bytes, cluster_blocks=blocks)
        if blocks == 1:  # the driver answers 0 for a launch without a cluster dimension
            per_multiprocessor = self.blocks_per_sm(block[0] * block[1] * block[2], shared_bytes)
            return per_multiprocessor * driver.device(device).attributes["multiprocessors"]
        config = launch_config(cluster, block, cluster, shared_bytes, stream)
        function, count = self._function(shared_bytes), c_int()
        about = {"cluster": cluster, "block": block, "shared": shared_bytes}
        driver.call("cuOccupancyMaxActiveClusters", byref(count), function, byref(config), about=about)
        return count.value

    def _function(self, shared_bytes: int) -> c_void_p:
        """The kernel as a function of the current context, which has a limit of shared memory of its own."""
        driver, function = self.library.driver, c_void_p()
        driver.call("cuKernelGetFunction", byref(function), self.handle)
        if shared_bytes > _DEFAULT_SHARED:
            driver.call("cuFuncSetAttribute", function, api.FUNC_MAX_DYNAMIC_SHARED, shared_bytes)
        return function


class Library:
    """A loaded cubin; unloaded when neither it nor a kernel of it is used any more."""

    def __init__(self, owner: Driver, cubin: bytes) -> None:
        self.driver = owner
        self.handle = c_void_p()
        owner.call("cuLibraryLoadData", byref(self.handle), cubin, None, None, 0, None, None, 0)
        self._finalizer = weakref.finalize(self, owner.api.cuLibraryUnload, self.handle)
        # At exit the driver may already be gone; the process's end frees everything.
        self._finalizer.atexit = False

    def kernel(self, name: str) -> Kernel:
        """The kernel of that symbol name.

        Raises:
            LaunchError: there is none.
        """
        handle = c_void_p()
        self.driver.call("cuLibraryGetKernel", byref(handle), self.handle, name.encode(), about={"kernel": name})
        return Kernel(self, name, handle.value or 0)

    def variable(self, name: str) -> tuple[int, int]:
        """Address, on the current device, and size of a variable in global memory.

        Raises:
            LaunchError: there is none.
        """
        address, size = c_uint64(), c_size_t()
        about = {"variable": name}
        self.driver.call("cuLibraryGetGlobal", byref(address), byref(size), self.handle, name.encode(), about=about)
        return address.value, size.value

    def unload(self) -> None:
        """Unload now. Kernels of this library must not be launched afterwards."""
        self._finalizer()


class Buffer:
    """Device memory; freed when it is no longer used. `address` is the device pointer."""

    def __init__(self, owner: Driver, size: int) -> None:
        pointer = c_uint64()
        # The driver refuses empty allocations; an empty array still needs an address.
        owner.call("cuMemAlloc_v2", byref(pointer), max(size, 1), about={"bytes": size})
        self.address = pointer.value
        self.size = size
        self._finalizer = weakref.finalize(self, owner.api.cuMemFree_v2, pointer.value)
        self._finalizer.atexit = False

    def free(self) -> None:
        """Free now; the driver waits for kernels that use it."""
        self._finalizer()


class Stream:
    """A stream of its own, not ordered with the default one; destroyed when no longer used."""

    def __init__(self, owner: Driver) -> None:
        handle = c_void_p()
        owner.call("cuStreamCreate", byref(handle), _NON_BLOCKING)
        self.handle = handle.value or 0
        self._finalizer = weakref.finalize(self, owner.api.cuStreamDestroy_v2, handle)
        self._finalizer.atexit = False


class Driver:
    """The driver's functions with their errors raised. `api` is the library, or in tests an object like it."""

    def __init__(self, library: Any) -> None:
        self.api = library
        self._contexts: dict[int, int] = {}
        self._devices: dict[int, Device] = {}

    def call(self, function: str, *arguments: Any, about: Mapping[str, object] | None = None) -> None:
        """Call a driver function.

        Raises:
            LaunchError: it did not give success; the message has the error's name, meaning and a hint.
        """
        status = getattr(self.api, function)(*arguments)
        if status != 0:
            raise launch_error(status, function, about)

    def version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports: (13, 0)."""
        value = c_int()
        self.call("cuDriverGetVersion", byref(value))
        return value.value // 1000, value.value % 1000 // 10

    def device_count(self) -> int:
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        return count.value

    def device(self, ordinal: int = 0) -> Device:
        """Name, compute capability and limits of a device."""
        if ordinal not in self._devices:
            self._devices[ordinal] = self._asked(ordinal)
        return self._devices[ordinal]

    def _asked(self, ordinal: int) -> Device:
        name, memory = ctypes.create_string_buffer(_NAME_BYTES), c_size_t()
        handle = self._device_handle(ordinal)
        self.call("cuDeviceGetName", name, _NAME_BYTES, handle)
        self.call("cuDeviceTotalMem_v2", byref(memory), handle)
        attributes = {key: self._device_attribute(number, handle) for key, number in api.DEVICE_ATTRIBUTES.items()}
        capability = attributes["capability_major"], attributes["capability_minor"]
        return Device(ordinal, name.value.decode(errors="replace"), capability, memory.value, attributes)

    def _device_handle(self, ordinal: int) -> int:
        handle = c_int()
        self.call("cuDeviceGet", byref(handle), ordinal, about={"device": ordinal, "devices": self.device_count()})
        return handle.value

    def _device_attribute(self, number: int, handle: int) -> int:
        value = c_int()
        # An attribute that an older driver does not know counts as absent.
        status = self.api.cuDeviceGetAttribute(byref(value), number, handle)
        return value.value if status == 0 else 0

    def make_current(self, ordinal: int) -> None:
        """Make the primary context of a device current in this thread; it stays retained."""
        if ordinal not in self._contexts:
            context = c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(context), self._device_handle(ordinal))
            self._contexts[ordinal] = context.value or 0
        self.call("cuCtxSetCurrent", self._contexts[ordinal])

    def enable_peer_access(self, ordinal: int, peer: int) -> None:
        """Let kernels of a device reach the memory of another; nothing where they may already."""
        before = self.current_device()
        self.make_current(peer)
        self.make_current(ordinal)
        status = self.api.cuCtxEnablePeerAccess(c_void_p(self._contexts[peer]), 0)
        self.make_current(before)
        if status not in (0, _PEER_ACCESS_ALREADY_ENABLED):
            raise launch_error(status, "cuCtxEnablePeerAccess", {"device": ordinal, "peer": peer})

    def current_device(self) -> int:
        """The device of this thread's context; without a context, device 0, which becomes current."""
        context, device = c_void_p(), c_int()
        self.call("cuCtxGetCurrent", byref(context))
        if not context.value:
            self.make_current(0)
        self.call("cuCtxGetDevice", byref(device))
        return device.value

    def chosen_device(self) -> int:
        """The same, but nothing becomes current."""
        device = c_int()
        return device.value if self.api.cuCtxGetDevice(byref(device)) == 0 else 0

    @contextmanager
    def on_device(self, ordinal: int) -> Iterator[None]:
        """Inside the block the device is current in this thread; behind it, what was before."""
        before = c_void_p()
        self.call("cuCtxGetCurrent", byref(before))
        self.make_current(ordinal)
        try:
            yield
        finally:
            self.call("cuCtxSetCurrent", before)

    def load_library(self, cubin: bytes) -> Library:
        """Load a cubin for all devices."""
        return Library(self, cubin)

    def allocate(self, size: int) -> Buffer:
        """Device memory on the current device, `size` in bytes."""
        return Buffer(self, size)

    def new_stream(self) -> Stream:
        return Stream(self)

    def copy_to_device(self, destination: int, source: int, size: int, stream: int = 0) -> None:
        """Copy `size` bytes from host address `source`, in stream order. The host memory must live until then."""
        self.call("cuMemcpyHtoDAsync_v2", destination, source, size, stream, about={"bytes": size})

    def copy_to_host(self, destination: int, source: int, size: int, stream: int = 0) -> None:
        """Copy `size` bytes to host address `destination`, in stream order; `synchronize` before reading them."""
        self.call("cuMemcpyDtoHAsync_v2", destination, source, size, stream, about={"bytes": size})

    def synchronize(self, stream: int | None = None) -> None:
        """Wait for a stream, or for all work of the context. Faults of kernels show here."""
        if stream is None:
            self.call("cuCtxSynchronize")
        else:
            self.call("cuStreamSynchronize", stream)

    def launch(
        self,
        kernel: Kernel,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Any],
        *,
        cluster: Dim3 = (1, 1, 1),
        shared_bytes: int = 0,
        stream: int = 0,
        cooperative: bool = False,
        programmatic: bool = False,
    ) -> None:
        """Launch a kernel on the current device; compiled host code calls the driver itself (`address`).

        Args:
            kernel: what to run.
            grid: extents in blocks.
            block: extents in threads.
            arguments: one ctypes value per kernel parameter.
            cluster: extents in blocks; it divides the grid.
            shared_bytes: dynamic shared memory per block.
            stream: the stream's handle, 0 for the default one.
            cooperative: all blocks must be resident at once.
            programmatic: may start before the kernel before it in the stream has ended.

        Raises:
            LaunchError: the driver refuses.
        """
        device = self.current_device()
        kernel.allow(device, shared_bytes=shared_bytes, cluster_blocks=cluster[0] * cluster[1] * cluster[2])
        config = launch_config(grid, block, cluster, shared_bytes, stream, cooperative, programmatic)
        pointers = (c_void_p * max(len(arguments), 1))(*(ctypes.addressof(argument) for argument in arguments))
        about = {"kernel": kernel.name, "grid": grid, "block": block, "cluster": cluster, "shared": shared_bytes}
        self.call("cuLaunchKernelEx", byref(config), kernel.handle, pointers, None, about=about)

    def address(self, function: str) -> int:
        """The address of a function of the driver, for native code."""
        return ctypes.cast(getattr(self.api, function), c_void_p).value or 0


def launch_config(
    grid: Dim3,
    block: Dim3,
    cluster: Dim3 = (1, 1, 1),
    shared_bytes: int = 0,
    stream: int = 0,
    cooperative: bool = False,
    programmatic: bool = False,
) -> LaunchConfig:
    """A CUlaunchConfig, with the attributes that differ from the defaults; it keeps them alive."""
    wanted: list[tuple[int, tuple[int, ...]]] = []
    wanted += [(api.CLUSTER_DIMENSION, cluster)] if cluster != (1, 1, 1) else []
    wanted += [(api.COOPERATIVE, (1,))] if cooperative else []
    wanted += [(api.PROGRAMMATIC_STREAM_SERIALIZATION, (1,))] if programmatic else []
    attributes = (LaunchAttribute * max(len(wanted), 1))()
    for entry, (identifier, value) in zip(attributes, wanted, strict=False):
        entry.id = identifier
        entry.value[: len(value)] = value
    config = LaunchConfig()
    config.grid[:], config.block[:] = grid, block
    config.shared_bytes, config.stream = shared_bytes, stream
    config.attributes = ctypes.cast(attributes, ctypes.POINTER(LaunchAttribute)) if wanted else None
    config.attribute_count = len(wanted)
    return config


def launch_error(status: int, function: str, about: Mapping[str, object] | None = None) -> LaunchError:
    """The error for a status that a driver function returned, also to native code."""
    error = describe(status)
    lost = " The process's CUDA context is lost: start a new process." if error.sticky else ""
    return LaunchError(
        f"{error.name} in {function}: {error.meaning}.{lost}", values={**(about or {}), "code": status}, hint=error.hint
    )


@functools.cache
def _open() -> tuple[Driver | None, str]:
    """The driver with at least one device, or why not."""
    try:
        library = api.load()
    except OSError:
        return None, f"no NVIDIA driver: {api.LIBRARY} was not found"
    except AttributeError as error:
        return None, f"the NVIDIA driver is too old (CUDA 12 is needed): {error}"
    status = library.cuInit(0)
    if status == _NOT_INITIALIZED:
        return None, _FORKED
    if status != 0:
        return None, f"the NVIDIA driver does not start: {describe(status).name}, {describe(status).meaning}"
    opened = Driver(library)
    return (opened, "") if opened.device_count() else (None, "the NVIDIA driver sees no device")


def _after_fork() -> None:
    """In a forked process: the parent's driver, if it had opened it, is of no use here."""
    if _open.cache_info().currsize:
        _open.cache_clear()


os.register_at_fork(after_in_child=_after_fork)


def available() -> bool:
    """Whether a driver and a device are there, if not for this process: a forked one may not use them."""
    opened, reason = _open()
    return opened is not None or reason == _FORKED


def unavailable_reason() -> str:
    """Why the driver cannot be opened; empty when it can."""
    return _open()[1]


def driver() -> Driver:
    """The driver.

    Raises:
        CudaDriverDependencyError: no driver, or no device, with the reason.
    """
    opened, reason = _open()
    if opened is None:
        raise CudaDriverDependencyError(reason, hint=_FORKED_HINT if reason == _FORKED else _NO_DRIVER_HINT)
    return opened


def check_device(arch: str, ordinal: int = 0) -> None:
    """Refuse code that was compiled for another architecture than the device's.

    Raises:
        LaunchError: naming both.
    """
    device = driver().device(ordinal)
    target = chip(arch)
    exact = target.suffix == "a"
    fits = target.capability == device.capability if exact else _runs_on(target.capability, device.capability)
    if not fits:
        raise LaunchError(
            "the kernel was compiled for another architecture than the device's",
            values={"compiled for": arch, "device": f"{device.name} ({device.arch})"},
            hint=f"compile for {device.arch}",
        )


def _runs_on(code: tuple[int, int], device: tuple[int, int]) -> bool:
    """Cubins run on devices of the same major and no lower minor number."""
    return code[0] == device[0] and code[1] <= device[1]
