"""A driver library that records its calls, for tests on machines without a GPU."""

import ctypes
from typing import Any

from tilewright.targets.nvidia.devices.driver_api import DEVICE_ATTRIBUTES, FUNC_ATTRIBUTES, SIGNATURES, LaunchConfig

HOPPER = {"capability_major": 9, "capability_minor": 0, "multiprocessors": 132, "shared_optin": 232448}


class FakeCuda:
    """Answers like a driver with one H100. `fail` maps a function's name to the status that it gives."""

    def __init__(self, **fail: int) -> None:
        self.fail = fail
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.static_shared = 0
        self.function_shared = 48 * 1024
        self.context = 0
        self.clock = 0.0  # milliseconds
        self.recorded: dict[int, tuple[int, float]] = {}
        self.capturing: int | None = None
        self.nodes = 0
        self.launched: list[dict[str, Any]] = []
        self._next = 0x1000

    def __getattr__(self, name: str) -> Any:
        if name not in SIGNATURES:
            raise AttributeError(name)
        return lambda *arguments: self._call(name, arguments)

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def count(self, name: str) -> int:
        return self.names().count(name)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> int:
        assert len(arguments) == len(SIGNATURES[name]), f"{name} takes {len(SIGNATURES[name])} arguments"
        self.calls.append((name, arguments))
        if name in self.fail:
            return self.fail[name]
        answer = getattr(self, f"_{name}", None)
        if answer is not None:
            answer(*arguments)
        return 0

    def _handle(self, out: Any, *_: Any) -> None:
        self._next += 16
        out._obj.value = self._next

    _cuLibraryLoadData = _cuLibraryGetKernel = _cuKernelGetFunction = _handle
    _cuMemAlloc_v2 = _cuStreamCreate = _cuDevicePrimaryCtxRetain = _cuEventCreate = _handle

    def _cuEventRecord(self, event, stream):
        self.recorded[event.value] = (stream, self.clock)

    def _cuEventElapsedTime(self, out, start, end):
        (first, begun), (last, done) = self.recorded[start.value], self.recorded[end.value]
        assert first == last, "events of two streams"
        out._obj.value = done - begun

    def _cuStreamBeginCapture_v2(self, stream, mode):
        assert stream and self.capturing is None
        self.capturing, self.nodes = stream, 0

    def _cuStreamEndCapture(self, stream, out):
        assert stream == self.capturing
        self.capturing = None
        self._handle(out)

    def _cuGraphGetNodes(self, graph, nodes, count):
        count._obj.value = self.nodes

    _cuGraphInstantiateWithFlags = _handle

    def _cuGraphLaunch(self, graph, stream):
        self.clock += self.nodes

    def work(self, stream: int) -> None:
        """A millisecond of work on a stream, captured where the stream is being captured."""
        if stream == self.capturing:
            self.nodes += 1
        else:
            self.clock += 1.0

    def _cuDriverGetVersion(self, out):
        out._obj.value = 13000

    def _cuDeviceGetCount(self, out):
        out._obj.value = 1

    def _cuDeviceGet(self, out, ordinal):
        out._obj.value = ordinal

    def _cuDeviceGetName(self, buffer, size, device):
        buffer.value = b"NVIDIA H100"

    def _cuDeviceTotalMem_v2(self, out, device):
        out._obj.value = 80 * 2**30

    def _cuDeviceGetAttribute(self, out, attribute, device):
        name = {number: key for key, number in DEVICE_ATTRIBUTES.items()}[attribute]
        out._obj.value = HOPPER.get(name, 1)

    def _cuKernelGetAttribute(self, out, attribute, kernel, device):
        out._obj.value = self.static_shared if attribute == FUNC_ATTRIBUTES["shared_bytes"] else 32

    def _cuCtxGetCurrent(self, out):
        out._obj.value = self.context

    def _cuCtxSetCurrent(self, context):
        self.context = context

    def _cuCtxGetDevice(self, out):
        out._obj.value = 0

    def _cuFuncSetAttribute(self, function, attribute, value):
        self.function_shared = value

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, out, function, block, shared):
        out._obj.value = 3 if shared <= self.function_shared else 0

    def _cuOccupancyMaxActiveClusters(self, out, function, config):
        seen: LaunchConfig = config._obj
        self.asked = (tuple(seen.grid), tuple(seen.block), seen.shared_bytes, seen.stream or 0)
        self.asked_cluster = list(seen.attributes[0].value[:3]) if seen.attribute_count else [1, 1, 1]
        fits = seen.attribute_count and seen.shared_bytes <= self.function_shared
        out._obj.value = 132 // seen.grid[0] if fits else 0

    def _cuLaunchKernelEx(self, config, kernel, pointers, extra):
        seen: LaunchConfig = config._obj
        attributes = {seen.attributes[i].id: list(seen.attributes[i].value[:3]) for i in range(seen.attribute_count)}
        values = [ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint32))[0] for pointer in pointers if pointer]
        self.launched.append(
            {
                "grid": tuple(seen.grid),
                "block": tuple(seen.block),
                "shared": seen.shared_bytes,
                "stream": seen.stream or 0,
                "attributes": attributes,
                "kernel": kernel,
                "arguments": values,
            }
        )
