"""What a GPU has, as the driver tells it, or the one that the emulator stands for."""

from __future__ import annotations

import functools
from typing import Any, Protocol

from tilewright.base import settings
from tilewright.base.errors import ArgumentError
from tilewright.compiler.jit import compile_function, jit, kernel
from tilewright.compiler.target_choice import choose_arch, choose_target
from tilewright.hw.peaks import peak
from tilewright.targets.nvidia.devices import driver


class _Device(Protocol):
    """What is asked of a device."""

    def multiprocessors(self) -> int: ...
    def l2_bytes(self) -> int: ...
    def active_clusters(self, cluster_size: int, stream: Any) -> int: ...


class HardwareInfo:
    """Asks the driver about a device. On the emulator it is the first card of `hw.peaks` of the chip compiled for.

    Raises:
        CudaDriverDependencyError: the target is `cuda`, and there is no driver or no device.
        ArgumentError: the target is the emulator, and no card of its chip is known.
    """

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id
        target = choose_target(None)
        self._device: _Device = (
            _Driven(device_id) if target == "cuda" else _Stated(choose_arch(settings.get("arch"), target))
        )

    def get_device_multiprocessor_count(self) -> int:
        """How many multiprocessors the device has."""
        return self._device.multiprocessors()

    def get_l2_cache_size_in_bytes(self) -> int:
        """The size of the L2 cache."""
        return self._device.l2_bytes()

    def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
        """How many clusters of `cluster_size` blocks run at once, if each block takes the shared memory of its
        multiprocessor whole: the grid of a persistent kernel, in clusters. On `stream` if given. On the emulator as
        many as the multiprocessors hold, as nothing is known of how they are grouped.

        Raises:
            ArgumentError: `cluster_size` is no positive int.
            LaunchError: the device has no clusters of that size.
        """
        if not isinstance(cluster_size, int) or cluster_size < 1:
            raise ArgumentError("a cluster has a positive number of blocks", values={"cluster_size": cluster_size})
        return self._device.active_clusters(cluster_size, stream)


class _Driven:
    """A device of the driver."""

    def __init__(self, device_id: int) -> None:
        self._id = device_id
        self._device = driver.driver().device(device_id)

    def multiprocessors(self) -> int:
        return self._device.attributes["multiprocessors"]

    def l2_bytes(self) -> int:
        return self._device.attributes["l2_bytes"]

    def active_clusters(self, cluster_size: int, stream: Any) -> int:
        owner = driver.driver()
        before = owner.current_device()
        owner.make_current(self._id)
        try:
            whole = self._device.attributes["shared_optin"]
            return _idle(self._device.arch).active_clusters((cluster_size, 1, 1), (1, 1, 1), whole, int(stream or 0))
        finally:
            owner.make_current(before)


class _Stated:
    """A card of the table."""

    def __init__(self, arch: str) -> None:
        self._card = peak(arch)

    def multiprocessors(self) -> int:
        return self._card.multiprocessors

    def l2_bytes(self) -> int:
        return self._card.l2

    def active_clusters(self, cluster_size: int, stream: Any) -> int:
        return self._card.multiprocessors // cluster_size


@kernel
def _nothing() -> None:
    pass


@jit
def _launch_nothing() -> None:
    _nothing().launch(grid=(1, 1, 1), block=(1, 1, 1))


@functools.cache
def _idle(arch: str) -> driver.Kernel:
    made = compile_function(_launch_nothing, options=f"--gpu-arch {arch}")
    ((name, one),) = made.kernels.items()
    return driver.driver().load_library(one.stages["cubin"]).kernel(name)
