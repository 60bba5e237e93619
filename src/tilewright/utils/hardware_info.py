"""What a GPU has, as the driver tells it."""

from __future__ import annotations

import functools
from typing import Any

from tilewright.base.errors import ArgumentError
from tilewright.compiler.jit import compile_function, jit, kernel
from tilewright.targets.nvidia import driver


class HardwareInfo:
    """Asks the driver about a device.

    Raises:
        CudaDriverDependencyError: there is no driver or no device.
    """

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id
        self._device = driver.driver().device(device_id)

    def get_device_multiprocessor_count(self) -> int:
        """How many multiprocessors the device has."""
        return self._device.attributes["multiprocessors"]

    def get_l2_cache_size_in_bytes(self) -> int:
        """The size of the L2 cache."""
        return self._device.attributes["l2_bytes"]

    def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
        """How many clusters of `cluster_size` blocks run at once, if each block takes the shared memory of its
        multiprocessor whole: the grid of a persistent kernel, in clusters. On `stream` if given.

        Raises:
            ArgumentError: `cluster_size` is no positive int.
            LaunchError: the device has no clusters of that size.
        """
        if not isinstance(cluster_size, int) or cluster_size < 1:
            raise ArgumentError("a cluster has a positive number of blocks", values={"cluster_size": cluster_size})
        owner = driver.driver()
        before = owner.current_device()
        owner.make_current(self.device_id)
        try:
            whole = self._device.attributes["shared_optin"]
            return _idle(self._device.arch).active_clusters((cluster_size, 1, 1), (1, 1, 1), whole, int(stream or 0))
        finally:
            owner.make_current(before)


@kernel
def _nothing() -> None:
    pass


@jit
def _launch_nothing() -> None:
    _nothing().launch(grid=(1, 1, 1), block=(1, 1, 1))


@functools.cache
def _idle(arch: str) -> driver.Kernel:
    """A kernel that does nothing, loaded."""
    made = compile_function(_launch_nothing, options=f"--gpu-arch {arch}")
    ((name, one),) = made.kernels.items()
    return driver.driver().load_library(one.stages["cubin"]).kernel(name)
