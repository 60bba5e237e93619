"""`cutlass.base_dsl.runtime.cuda`: checks of CUDA calls made through NVIDIA's own Python bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tilewright.base.errors import LaunchError
from tilewright.base.not_built import INTERNAL as _INTERNAL
from tilewright.base.not_built import missing as _missing
from tilewright.cuda import default_stream, initialize_cuda_context, stream_create, stream_sync
from tilewright.targets.nvidia import driver


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


if not TYPE_CHECKING:  # a type checker would take any name for granted
    __getattr__ = _missing(__name__, rest=_INTERNAL)
