"""`cutlass.cuda`, and `cutlass.cute.cuda`: contexts and streams, for programs that do not use a framework.

Without a GPU (target `emu`) there is one stream, 0, and everything is done when a call returns.
"""

from __future__ import annotations

from typing import Any

from tilewright.arguments.binding import stream_handle
from tilewright.compiler.target_choice import choose_target
from tilewright.targets.nvidia.devices import driver


def initialize_cuda_context(device_id: int = 0, flags: int = 0) -> None:
    """Make the context of a device current; nothing on the emulator."""
    if choose_target(None) == "cuda":
        driver.driver().make_current(device_id)


class HostStream(int):
    """A stream by its handle; 0 is the default stream."""

    @property
    def cuda_stream(self) -> int:
        return int(self)


class CUstream(HostStream):
    """The stream of a handle, under the name of the driver's type."""


def default_stream() -> HostStream:
    """The default stream."""
    return HostStream(0)


def stream_create(device_id: int = 0) -> Any:
    """A new stream, not ordered with the default one; destroyed when no longer used."""
    if choose_target(None) != "cuda":
        return HostStream(0)
    driver.driver().make_current(device_id)
    return driver.driver().new_stream()


def stream_sync(stream: Any = 0) -> None:
    """Wait for the work of a stream. Faults of kernels show here."""
    if choose_target(None) == "cuda":
        driver.driver().synchronize(stream_handle(stream))


def sync() -> None:
    """Wait for all work of the device."""
    if choose_target(None) == "cuda":
        driver.driver().synchronize()


__all__ = [
    "CUstream", "HostStream", "choose_target", "default_stream", "driver", "initialize_cuda_context", "stream_create",
    "stream_handle", "stream_sync", "sync",
]  # fmt: skip
