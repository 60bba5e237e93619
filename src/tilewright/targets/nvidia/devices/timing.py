"""Device time of what is enqueued on a stream, and CUDA graphs of it.

Driver functions and what they ask of their callers: "CUDA Driver API", event management, stream management, graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from typing import Final

from tilewright.base.errors import ArgumentError
from tilewright.targets.nvidia.devices.driver import Driver, driver

_L2_SIZE: Final = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_CAPTURE_RELAXED: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: kernels may be loaded meanwhile


def seconds(run: Callable[[], None], stream: int) -> float:
    """Device time from before to after what `run` enqueues on `stream`, which is idle when it starts.

    The clock's resolution is about half a microsecond.
    """
    cuda = driver()
    cuda.current_device()  # events belong to the thread's context: without one there must be one now
    with _event(cuda) as start, _event(cuda) as end:
        cuda.synchronize(stream)
        cuda.call("cuEventRecord", start, stream)
        run()
        cuda.call("cuEventRecord", end, stream)
        cuda.call("cuEventSynchronize", end)
        milliseconds = c_float()
        cuda.call("cuEventElapsedTime", byref(milliseconds), start, end)
        return milliseconds.value / 1e3


@contextmanager
def _event(cuda: Driver) -> Iterator[c_void_p]:
    event = c_void_p()
    cuda.call("cuEventCreate", byref(event), 0)
    try:
        yield event
    finally:
        cuda.call("cuEventDestroy_v2", event)


@contextmanager
def captured(run: Callable[[], None], stream: int) -> Iterator[Callable[[], None]]:
    """A function that enqueues, as one graph, what `run` enqueues on `stream`; inside the block only.

    Raises:
        ArgumentError: `run` enqueued nothing on `stream`.
        LaunchError: the driver cannot capture it.
    """
    cuda = driver()
    cuda.current_device()
    cuda.synchronize(stream)
    graph = _capture(cuda, run, stream)
    try:
        with _runnable(cuda, graph) as runnable:
            yield lambda: cuda.call("cuGraphLaunch", runnable, stream)
    finally:
        cuda.call("cuGraphDestroy", graph)


def _capture(cuda: Driver, run: Callable[[], None], stream: int) -> c_void_p:
    graph, count = c_void_p(), c_size_t()
    cuda.call("cuStreamBeginCapture_v2", stream, _CAPTURE_RELAXED)
    try:
        run()
    except BaseException:
        # The stream must not be left capturing; what this says does not matter beside the error.
        if cuda.api.cuStreamEndCapture(stream, byref(graph)) == 0 and graph.value:
            cuda.api.cuGraphDestroy(graph)
        raise
    cuda.call("cuStreamEndCapture", stream, byref(graph))
    cuda.call("cuGraphGetNodes", graph, None, byref(count))
    if not count.value:
        cuda.call("cuGraphDestroy", graph)
        raise ArgumentError(
            "nothing was captured: the calls enqueue no work on the stream given",
            values={"stream": f"{stream:#x}"},
            hint="pass the function the same stream as benchmark, or make it the framework's current one",
        )
    return graph


@contextmanager
def _runnable(cuda: Driver, graph: c_void_p) -> Iterator[c_void_p]:
    made = c_void_p()
    cuda.call("cuGraphInstantiateWithFlags", byref(made), graph, 0)
    try:
        yield made
    finally:
        cuda.call("cuGraphExecDestroy", made)


def cache_bytes() -> int:
    """The L2 cache of the current device in bytes; 0 where the driver does not say."""
    found = c_int()
    driver().call("cuDeviceGetAttribute", byref(found), _L2_SIZE, driver().current_device())
    return found.value
