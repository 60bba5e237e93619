"""The CUDA driver's functions and structures for ctypes.

Signatures and numbers: `cuda.h` of CUDA 13, "CUDA Driver API"; the names with `_v2` are those that the header's
macros stand for. Nothing here is called at import; `load` opens the library.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, ClassVar, Final

LIBRARY: Final = "libcuda.so.1"

CLUSTER_DIMENSION: Final = 4
COOPERATIVE: Final = 2
PROGRAMMATIC_STREAM_SERIALIZATION: Final = 6
"""CUlaunchAttributeID."""

FUNC_MAX_DYNAMIC_SHARED: Final = 8
FUNC_NON_PORTABLE_CLUSTER: Final = 14
"""CUfunction_attribute, to set."""

FUNC_ATTRIBUTES: Final[dict[str, int]] = {
    "max_threads_per_block": 0,
    "shared_bytes": 1,
    "constant_bytes": 2,
    "local_bytes": 3,
    "registers": 4,
    "binary_version": 6,
    "max_dynamic_shared_bytes": 8,
}
"""CUfunction_attribute, to ask for."""

DEVICE_ATTRIBUTES: Final[dict[str, int]] = {
    "max_threads_per_block": 1,
    "shared_per_block": 8,
    "warp_size": 10,
    "registers_per_block": 12,
    "clock_khz": 13,
    "multiprocessors": 16,
    "l2_bytes": 38,
    "threads_per_sm": 39,
    "capability_major": 75,
    "capability_minor": 76,
    "shared_per_sm": 81,
    "registers_per_sm": 82,
    "cooperative_launch": 95,
    "shared_optin": 97,
    "blocks_per_sm": 106,
    "shared_reserved": 111,
    "cluster_launch": 120,
    "multicast": 132,
}
"""CUdevice_attribute."""


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an identifier and a union of 64 bytes, used here as unsigned integers."""

    _fields_: ClassVar = [("id", c_uint), ("pad", c_char * 4), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_: ClassVar = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


_HANDLE: Final = POINTER(c_void_p)

# Argument types by function; every function returns a CUresult.
SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (_HANDLE, c_int),
    "cuCtxGetCurrent": (_HANDLE,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetDevice": (POINTER(c_int),),
    "cuCtxSynchronize": (),
    "cuCtxEnablePeerAccess": (c_void_p, c_uint),
    "cuLibraryLoadData": (_HANDLE, c_char_p, c_void_p, c_void_p, c_uint, c_void_p, c_void_p, c_uint),
    "cuLibraryUnload": (c_void_p,),
    "cuLibraryGetKernel": (_HANDLE, c_void_p, c_char_p),
    "cuLibraryGetGlobal": (POINTER(c_uint64), POINTER(c_size_t), c_void_p, c_char_p),
    "cuKernelGetFunction": (_HANDLE, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuKernelSetAttribute": (c_int, c_int, c_void_p, c_int),
    "cuKernelGetAttribute": (POINTER(c_int), c_int, c_void_p, c_int),
    "cuLaunchKernelEx": (POINTER(LaunchConfig), c_void_p, _HANDLE, _HANDLE),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, _HANDLE, _HANDLE),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuTensorMapEncodeTiled": (
        c_void_p,
        c_int,
        c_uint,
        c_void_p,
        POINTER(c_uint64),
        POINTER(c_uint64),
        POINTER(c_uint),
        POINTER(c_uint),
        c_int,
        c_int,
        c_int,
        c_int,
    ),
    "cuStreamCreate": (_HANDLE, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuEventCreate": (_HANDLE, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuStreamBeginCapture_v2": (c_void_p, c_uint),
    "cuStreamEndCapture": (c_void_p, _HANDLE),
    "cuGraphGetNodes": (c_void_p, _HANDLE, POINTER(c_size_t)),
    "cuGraphInstantiateWithFlags": (_HANDLE, c_void_p, c_uint64),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, c_size_t),
    "cuOccupancyMaxActiveClusters": (POINTER(c_int), c_void_p, POINTER(LaunchConfig)),
}


def load(name: str = LIBRARY) -> Any:
    """Open the driver's library and set its signatures.

    Raises:
        OSError: there is no such library.
        AttributeError: the driver is older than CUDA 12 and lacks a function.
    """
    library = ctypes.CDLL(name)
    for function, arguments in SIGNATURES.items():
        entry = getattr(library, function)
        entry.argtypes = arguments
        entry.restype = c_int
    return library
