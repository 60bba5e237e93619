"""Calling native code from Python with the arguments as they are: a function of Python's own kind around it.

tvm-ffi makes an owned tensor object of each tensor of a call. `make_front` gives a function that reads a tensor in
place, by the function table of its framework (DLPack's `__dlpack_c_exchange_api__`), in native code (`llvm/front.ll`).
It takes numbers, None, what `from_dlpack` gives, and tensors of types that it has seen before; a call with anything
else, or by name, it passes on.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.arguments.runtime_tensor import RuntimeTensor
from tilewright.targets.host import abi, ffi

_FASTCALL_WITH_KEYWORDS: Final = 0x82
_LOCK = threading.Lock()
_MAJOR = 1  # of DLPack


class _MethodDef(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Exchange(ctypes.Structure):
    """`DLPackExchangeAPI` of dlpack.h."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("export", ctypes.c_void_p), ("import_", ctypes.c_void_p),
        ("read", ctypes.c_void_p), ("current_stream", ctypes.c_void_p),
    )  # fmt: skip


_OBJECTS: Final = {
    "int": int, "float": float, "none": None, "true": True, "false": False,
    "wrapped": RuntimeTensor, "capsule": sys.intern("_capsule"),
    "gradient": sys.intern("requires_grad"),
}  # fmt: skip


def _python_function(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new_capsule = _python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_open_capsule = _python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_new_function = _python_function(
    "PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
)


def make_front(
    support: Any, target: int, other: Callable[..., Any], failed: Callable[..., Any], keep_alive: object
) -> Callable[..., Any]:
    """A function of Python's own kind that calls native code.

    Args:
        support: the loaded support code.
        target: the address of the native function, as tvm-ffi calls it.
        other: called with the arguments where native code cannot take them as they are; its result is that of the call.
        failed: called with the arguments after native code has set an error of tvm-ffi (`ffi.take_raised`).
        keep_alive: held as long as the function.
    """
    _prepare(support)

    def unknown(*args: Any, **kwargs: Any) -> Any:
        _learn(args)
        return other(*args, **kwargs)

    words = (ctypes.c_uint64 * 3)(target, id(unknown), id(failed))
    method = _MethodDef(b"call", support.address("__tw_front"), _FASTCALL_WITH_KEYWORDS, None)
    held = (words, method, unknown, failed, support, keep_alive)
    front: Callable[..., Any] = _new_function(
        ctypes.addressof(method), _new_capsule(ctypes.addressof(words), None, None), held
    )
    return front


@functools.lru_cache(maxsize=4)
def call_key(support: Any) -> Callable[..., bytes | None]:
    """A function that gives the facts of arguments which decide the program that a call of a jit function runs.

    It gives None for arguments by name, for other types than fronts take, and for tensors that require a gradient.
    """
    _prepare(support)
    method = _MethodDef(b"call_key", support.address("__tw_call_key"), _FASTCALL_WITH_KEYWORDS, None)
    made: Callable[..., bytes | None] = _new_function(ctypes.addressof(method), None, (method, support))
    return made


# The support code of a process, usually one, whose tables are filled.
_prepared: weakref.WeakSet[Any] = weakref.WeakSet()
_rows: list[tuple[int, int, int, int]] = []
_known: dict[type, object] = {}  # types that were looked at, and what their row needs


def _prepare(support: Any) -> None:
    """Fill the tables of the support code, once."""
    with _LOCK:
        if support in _prepared:
            return
        table = (ctypes.c_uint64 * len(abi.PYTHON_TABLE)).from_address(support.address("__tw_python"))
        table[:] = [_python_word(name) for name in abi.PYTHON_TABLE]
        _prepared.add(support)
        for place, row in enumerate(_rows):
            _write_row(support, place, row)


def _python_word(name: str) -> int:
    if name in _OBJECTS:
        return id(_OBJECTS[name])
    if name == "type_offset":
        return object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
    if name == "set_stream":
        return ffi.c_function("TVMFFIEnvSetStream")
    return ctypes.cast(getattr(ctypes.pythonapi, abi.PYTHON_FUNCTIONS[name]), ctypes.c_void_p).value or 0


def _write_row(support: Any, place: int, row: tuple[int, int, int, int]) -> None:
    address = support.address("__tw_tensor_types") + 8 * len(row) * place
    words = (ctypes.c_uint64 * len(row)).from_address(address)
    words[1:] = list(row[1:])
    words[0] = row[0]  # from now on the row is seen


def _learn(arguments: Sequence[Any]) -> None:
    """Let fronts take tensors of the types of these arguments, as far as they can."""
    for argument in arguments:
        if type(argument) not in _known:
            _learn_type(type(argument))


def _learn_type(kind: type) -> None:
    with _LOCK:
        if kind in _known:
            return
        _known[kind] = None
        capsule = _exchange_of(kind)
        if capsule is None or len(_rows) == abi.MOST_TENSOR_TYPES:
            return
        api = _Exchange.from_address(_open_capsule(capsule, b"dlpack_exchange_api"))
        if api.major != _MAJOR or not api.read or not api.current_stream:
            return
        lazy = getattr(kind, "is_neg", None)  # PyTorch's; their memory holds other numbers
        _known[kind] = (capsule, lazy)
        _rows.append((id(kind), api.read, api.current_stream, 0 if lazy is None else id(lazy)))
        for support in _prepared:
            _write_row(support, len(_rows) - 1, _rows[-1])


def _exchange_of(kind: type) -> Any:
    """The function table of a framework's tensors; None for subclasses, which may be no plain memory."""
    torch = sys.modules.get("torch")
    if torch is not None and kind is torch.nn.Parameter:
        kind = torch.Tensor
    return vars(kind).get("__dlpack_c_exchange_api__")
