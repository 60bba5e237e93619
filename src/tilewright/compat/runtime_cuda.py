"""`cutlass.base_dsl.runtime.cuda`: checks of CUDA calls made through NVIDIA's own Python bindings."""

from __future__ import annotations

import contextlib
import importlib
from enum import IntEnum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tilewright.base.errors import LaunchError
from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.cuda import default_stream, initialize_cuda_context, stream_create, stream_sync
from tilewright.targets.nvidia.devices import driver


def checkCudaErrors(result: Any) -> Any:
    """The values of a call that gives `(error, values...)`: None, one, or a tuple.

    Raises:
        LaunchError: the error is not success; its attribute `error_code` is the error.
    """
    code, *values = result if isinstance(result, tuple) else (result,)
    if int(cast(Any, getattr(code, "value", code))):
        error = LaunchError(f"CUDA call failed: {getattr(code, 'name', code)}")
        error.error_code = code
        raise error
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


def get_device_attribute(attribute: Any, device_id: int = 0) -> int:
    """An attribute of a device, by the driver's number or the bindings' enumerator."""
    owner = driver.driver()
    return int(owner._device_attribute(int(attribute), owner._device_handle(device_id)))


def load_cubin_module_data(cubin: bytes) -> Any:
    """A cubin loaded by the driver."""
    return driver.driver().load_library(cubin)


class CUdevice_attribute(IntEnum):
    """Attributes of a device by the driver's names, for sources that read them without NVIDIA's bindings installed.

    Source: CUDA driver API 13, enum CUdevice_attribute.
    """

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


def _bindings() -> Any:
    """`cuda.bindings.driver` where it is installed, else what stands for it here."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("cuda.bindings.driver")
    return SimpleNamespace(CUdevice_attribute=CUdevice_attribute)


if not TYPE_CHECKING:  # a type checker would take any name for granted
    _otherwise = _missing(__name__, rest=_INTERNAL)

    def __getattr__(name: str) -> Any:
        return _bindings() if name == "cuda" else _otherwise(name)
