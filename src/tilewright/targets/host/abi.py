"""Binary layouts that host code and its callers share, as data.

Sources: `tvm/ffi/c_api.h` (TVMFFIAny, type indices), `dlpack/dlpack.h` (DLTensor, type and device codes), `cuda.h`
(CUlaunchConfig, CUlaunchAttribute).
"""

from __future__ import annotations

import ctypes

from tilewright.base.dlpack_types import CPU as CPU
from tilewright.base.dlpack_types import CUDA as CUDA
from tilewright.base.dlpack_types import CUDA_HOST as CUDA_HOST
from tilewright.base.dlpack_types import CUDA_MANAGED as CUDA_MANAGED
from tilewright.base.dlpack_types import DEVICE_NAMES as DEVICE_NAMES
from tilewright.base.dlpack_types import DTYPE_FORMATS as DTYPE_FORMATS
from tilewright.base.dlpack_types import DTYPES as DTYPES

# The pointer table: 8 bytes a slot. An object holds the table; whoever loads the object fills it.
TABLE = "__tw_table"
SLOT_LAUNCH = 0  # int (*)(const CUlaunchConfig*, CUfunction, void** params, void** extra)
SLOT_SET_ERROR = 1  # void (*)(const char* kind, const char* message)
SLOT_ENV_STREAM = 2  # void* (*)(int device_type, int device_id), or null
SLOT_WRITE = 3  # void (*)(const char* text, size_t length): where host printf goes
SLOT_DEVICES = 4  # the DLPack device types that tensors may be on, a bit each
SLOT_ENTER = 5  # int (*)(void* table, int device, void** left): see __tw_enter; null where there is one device
SLOT_CONTEXTS = 6  # the driver's functions for contexts (CONTEXT_FUNCTIONS), or null
SLOT_SIGNALS = 7  # int (*)(): whether a signal handler of Python raised an exception, or null
SLOT_PLAIN = 8  # cuLaunchKernel, for launches without attributes, which it begins faster; or null
SLOT_TENSOR_MAP = 9  # cuTensorMapEncodeTiled, or what stands for it; null where there are no tensor maps
FIRST_KERNEL = 10  # handle of kernel 0

CONTEXT_FUNCTIONS = ("cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxGetDevice", "cuDevicePrimaryCtxRetain")
MOST_DEVICES = 64
INVALID_CONTEXT = 201
"""CUDA_ERROR_INVALID_CONTEXT: the thread has no context."""

INTERRUPTED_KIND = "Interrupted"
"""The kind of the error that stands where a signal came before the right one was set."""

RAISED = -1
"""The result of host code that has set an error."""
INTERRUPTED = -2
"""The result of host code in which a signal handler raised a Python exception: tvm-ffi raises that."""

# TVMFFIAny: int32 type_index, 4 bytes of padding, 8 bytes of value.
ANY_SIZE = 16
ANY_VALUE = 8
OBJECT_HEADER = 24
NONE, INT, BOOL, FLOAT, OPAQUE, DLTENSOR, SHAPE, TENSOR, ARRAY, LIST, BIGINT = 0, 1, 2, 3, 4, 7, 69, 70, 71, 75, 78

KIND_NAMES = {
    NONE: "None", INT: "int", BOOL: "bool", FLOAT: "float", OPAQUE: "pointer", 5: "dtype", 6: "device",
    DLTENSOR: "tensor", 8: "str", 9: "bytes", 11: "str", 12: "bytes", 65: "str", 66: "bytes", 67: "error",
    68: "function", 69: "shape", TENSOR: "tensor", ARRAY: "tuple", 72: "dict", 74: "Python object", LIST: "list",
    76: "dict", BIGINT: "int beyond 64 bits",
}  # fmt: skip

# The first letter of a check's message says what failed: a tensor, another argument, the number of arguments, or the
# function itself, which gave an error number. Then follow what is wrong, what was expected and a hint line, each
# ended by a zero byte.
FAILED_TENSOR, FAILED_ARGUMENT, FAILED_COUNT, FAILED_STATUS = "TACS"

VIEW_TAG = 5
"""An opaque pointer with these low three bits, less the tag, is the address of a DLTensor: how our own views travel."""

# DLTensor
DL_DATA, DL_DEVICE, DL_NDIM, DL_DTYPE, DL_SHAPE, DL_STRIDES, DL_OFFSET = 0, 8, 16, 20, 24, 32, 40

# A route (router.py): how many arguments, how many entries, the address of these, then the kind of each argument. An
# entry: the address of a function, then the facts of each argument, `ROUTE_FACTS` words.
ROUTE_KINDS = ("matrix", "free_matrix", "columns", "strided", "number", "constant")
ROUTE_FACTS, ROUTE_FIRST_KIND, ROUTE_ALIGNMENT = 4, 3, 16
ROUTE_MOST_ARGUMENTS = 16
ROUTE_UNKNOWN = -1
DL_SIZE = 48

# What native code needs of Python to be called by it (front.py): objects, a number, and functions.
PYTHON_FUNCTIONS = {
    "open": "PyCapsule_GetPointer", "to_int": "PyLong_AsLongLongAndOverflow", "to_float": "PyFloat_AsDouble",
    "call": "PyObject_Vectorcall", "call_one": "PyObject_CallOneArg", "incref": "Py_IncRef", "decref": "Py_DecRef",
    "attribute": "PyObject_GetAttr", "clear": "PyErr_Clear", "bytes": "PyBytes_FromStringAndSize",
    "unlock": "PyEval_SaveThread", "lock": "PyEval_RestoreThread",
}  # fmt: skip
PYTHON_TABLE = (
    "int", "float", "none", "true", "false", "wrapped", "capsule", "gradient", "type_offset", "set_stream",
    *PYTHON_FUNCTIONS,
)  # fmt: skip
# Tensors that native code reads: their type, the functions that read one and tell the current stream, and what Python
# asks whether one is lazily negated, or null.
TENSOR_TYPE = ("type", "read", "stream", "lazy")
MOST_TENSOR_TYPES = 8
FRONT_MOST_ARGUMENTS = 64
CALL_KEY_WORDS = 512

DEVICES_OF = {"cuda": (CUDA, CUDA_MANAGED), "emu": (CPU, CUDA_HOST)}


class CUlaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute` of cuda.h; the value is a union of 64 bytes, of which we use up to three words."""

    _fields_ = (("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16))


class CUlaunchConfig(ctypes.Structure):
    """`CUlaunchConfig` of cuda.h."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("smem", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(CUlaunchAttribute)),
        ("attribute_count", ctypes.c_uint32),
    )


ATTRIBUTE_COOPERATIVE, ATTRIBUTE_CLUSTER, ATTRIBUTE_PDL = 2, 4, 6
ATTRIBUTE_PROGRAMMATIC_EVENT, ATTRIBUTE_COMPLETION_EVENT = 7, 12

# Bits of a launch's flags. With EVENTS the stream operand is the address of a record of eight-byte words.
FLAG_COOPERATIVE, FLAG_PDL, FLAG_EVENTS = 1, 2, 4
EVENT_RECORD = ("stream", "completion event", "its flags", "programmatic event", "its flags", "trigger at block start")

LaunchFunction = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(CUlaunchConfig), ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p
)
TensorMapFunction = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32,
    ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32,
)  # fmt: skip
"""cuTensorMapEncodeTiled: map, type, rank, address, extents, strides, box, steps, interleave, swizzle, L2, fill."""
WriteFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
