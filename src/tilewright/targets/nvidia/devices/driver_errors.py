"""The CUDA driver's error codes: name, meaning, and what a user can do.

Numbers and names: `CUresult` in `cuda.h` of CUDA 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class DriverError:
    """One code. `sticky` ones leave the process's context unusable."""

    name: str
    meaning: str
    hint: str = ""
    sticky: bool = False


_EMULATE: Final = "run it with TILEWRIGHT_TARGET=emu, which names the line and the thread, or under compute-sanitizer"
_UPDATE: Final = "update the NVIDIA driver"

ERRORS: Final[dict[int, DriverError]] = {
    1: DriverError(
        "CUDA_ERROR_INVALID_VALUE",
        "an argument is out of range",
        "check grid, block, cluster and shared memory against the limits of the device",
    ),
    2: DriverError("CUDA_ERROR_OUT_OF_MEMORY", "the device has not enough free memory", "free tensors, or use less"),
    3: DriverError(
        "CUDA_ERROR_NOT_INITIALIZED",
        "the driver is not initialised in this process, as in one that was forked after its parent began to use CUDA",
        'start it afresh, with multiprocessing.get_context("spawn"), or fork before anything uses the device',
    ),
    4: DriverError("CUDA_ERROR_DEINITIALIZED", "the driver is shutting down", "do not launch while Python exits"),
    34: DriverError("CUDA_ERROR_STUB_LIBRARY", "libcuda.so.1 is a stub, not a driver", "install the NVIDIA driver"),
    36: DriverError("CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the driver is too old for this call", _UPDATE),
    46: DriverError("CUDA_ERROR_DEVICE_UNAVAILABLE", "another process holds the device exclusively", "use another one"),
    100: DriverError("CUDA_ERROR_NO_DEVICE", "no CUDA device was found", "check nvidia-smi and CUDA_VISIBLE_DEVICES"),
    101: DriverError("CUDA_ERROR_INVALID_DEVICE", "there is no device of that number", "check CUDA_VISIBLE_DEVICES"),
    200: DriverError("CUDA_ERROR_INVALID_IMAGE", "the cubin is damaged or none", "compile it again, without override="),
    201: DriverError("CUDA_ERROR_INVALID_CONTEXT", "this thread has no CUDA context"),
    209: DriverError(
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "the code was compiled for another architecture than the device's",
        "compile for the device: leave TILEWRIGHT_ARCH unset, or set it to the device's architecture",
    ),
    214: DriverError("CUDA_ERROR_ECC_UNCORRECTABLE", "a memory error that could not be corrected", sticky=True),
    218: DriverError("CUDA_ERROR_INVALID_PTX", "the PTX text is not valid"),
    222: DriverError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver does not know this PTX version", _UPDATE),
    304: DriverError("CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"),
    400: DriverError("CUDA_ERROR_INVALID_HANDLE", "a stream, kernel or context handle is not valid"),
    500: DriverError("CUDA_ERROR_NOT_FOUND", "there is no symbol of that name"),
    600: DriverError("CUDA_ERROR_NOT_READY", "the work is not done yet"),
    700: DriverError("CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel accessed memory that is not its own", _EMULATE, True),
    701: DriverError(
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "a block needs more registers or shared memory than a multiprocessor has",
        "use fewer threads per block, or limit registers with --maxrregcount",
    ),
    702: DriverError("CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran too long for a device with a display", "", True),
    710: DriverError("CUDA_ERROR_ASSERT", "an assertion in a kernel was false", "its text is on stderr", True),
    714: DriverError("CUDA_ERROR_HARDWARE_STACK_ERROR", "a kernel's stack overflowed or is damaged", _EMULATE, True),
    715: DriverError(
        "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel ran an instruction that the device lacks", _EMULATE, True
    ),
    716: DriverError("CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel used a misaligned address", _EMULATE, True),
    717: DriverError(
        "CUDA_ERROR_INVALID_ADDRESS_SPACE", "a kernel used an address of another memory space", _EMULATE, True
    ),
    718: DriverError("CUDA_ERROR_INVALID_PC", "a kernel jumped to an address without code", _EMULATE, True),
    719: DriverError("CUDA_ERROR_LAUNCH_FAILED", "a kernel failed while it ran", _EMULATE, True),
    720: DriverError(
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        "a cooperative grid must be resident all at once, and this one is larger than the device",
        "launch at most multiprocessors times blocks per multiprocessor",
    ),
    800: DriverError("CUDA_ERROR_NOT_PERMITTED", "the operation is not permitted"),
    801: DriverError("CUDA_ERROR_NOT_SUPPORTED", "the device or the system does not support the operation"),
    802: DriverError("CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready", "is nvidia-fabricmanager running?"),
    803: DriverError(
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "kernel module and user library of the driver differ",
        "restart the machine after a driver update",
    ),
    804: DriverError("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility lacks this device", _UPDATE),
    900: DriverError("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "the call is not allowed while a stream is captured"),
    901: DriverError("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error spoilt the capture of the stream"),
    912: DriverError(
        "CUDA_ERROR_INVALID_CLUSTER_SIZE",
        "the device cannot place a cluster of that size with this much shared memory",
        "use a smaller cluster or less shared memory per block",
    ),
    999: DriverError("CUDA_ERROR_UNKNOWN", "an unknown error inside the driver", "see dmesg for Xid messages", True),
}
"""The codes that a user of kernels may meet."""


def describe(code: int) -> DriverError:
    """Name, meaning and hint of a code; a code that is not in the table is named by its number."""
    return ERRORS.get(code) or DriverError(f"CUDA error {code}", "see CUresult in the CUDA driver API")
