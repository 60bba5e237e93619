"""The process that holds nvJitLink: `python jitlink_child.py LIBRARY` loads it and links until its input ends.

It imports nothing of the package, so that it has started before there is something to link. Both directions carry
pickles. The first answer is `(CUDA version, why the library does not load)`, one of them None. A request is
`(inputs, options)` with inputs `(kind, bytes, name)`; its answer is `(status, cubin, log)`, see `jitlink.Linked`.

Signatures: `nvJitLink.h` of CUDA 13.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_void_p
from typing import Any, BinaryIO


def load(path: str) -> Any:
    """The library with its signatures set; OSError if it does not load."""
    library = ctypes.CDLL(path)
    handle = c_void_p
    signatures: dict[str, tuple[Any, ...]] = {
        "Create": (POINTER(handle), c_uint32, POINTER(c_char_p)),
        "Destroy": (POINTER(handle),),
        "AddData": (handle, c_int, c_char_p, c_size_t, c_char_p),
        "Complete": (handle,),
        "GetLinkedCubinSize": (handle, POINTER(c_size_t)),
        "GetLinkedCubin": (handle, c_void_p),
        "GetErrorLogSize": (handle, POINTER(c_size_t)),
        "GetErrorLog": (handle, c_void_p),
        "GetInfoLogSize": (handle, POINTER(c_size_t)),
        "GetInfoLog": (handle, c_void_p),
        "Version": (POINTER(c_uint), POINTER(c_uint)),
    }
    for name, arguments in signatures.items():
        function = getattr(library, f"nvJitLink{name}")
        function.argtypes = arguments
        function.restype = c_int
    return library


def version(library: Any) -> tuple[int, int]:
    """The CUDA version of the library: (13, 5)."""
    major, minor = c_uint(), c_uint()
    library.nvJitLinkVersion(byref(major), byref(minor))
    return major.value, minor.value


def link(library: Any, inputs: Sequence[tuple[int, bytes, str]], options: Sequence[str]) -> tuple[int, bytes, str]:
    """Status, cubin and log."""
    handle = c_void_p()
    texts = (c_char_p * len(options))(*(option.encode() for option in options))
    status = library.nvJitLinkCreate(byref(handle), len(options), texts)
    for kind, data, name in inputs:
        if status == 0:
            status = library.nvJitLinkAddData(handle, kind, data, len(data), name.encode())
    if status == 0:
        status = library.nvJitLinkComplete(handle)
    cubin = _take(library, handle, "LinkedCubin") if status == 0 else b""
    logs = [_take(library, handle, name).rstrip(b"\0").decode(errors="replace") for name in ("ErrorLog", "InfoLog")]
    if handle:
        library.nvJitLinkDestroy(byref(handle))
    return status, cubin, "\n".join(log.strip() for log in logs if log.strip())


def _take(library: Any, handle: c_void_p, name: str) -> bytes:
    """Call the Size and Get functions of one result."""
    size = c_size_t()
    if not handle or getattr(library, f"nvJitLinkGet{name}Size")(handle, byref(size)) or not size.value:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    if getattr(library, f"nvJitLinkGet{name}")(handle, buffer):
        return b""
    return buffer.raw


def _answer(output: BinaryIO, answer: object) -> None:
    pickle.dump(answer, output)
    output.flush()


def main(path: str) -> None:
    """Serve until the input ends."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no answer
    try:
        library = load(path)
    except (OSError, AttributeError) as error:
        _answer(output, (None, str(error)))
        return
    _answer(output, (version(library), None))
    while True:
        try:
            inputs, options = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _answer(output, link(library, inputs, options))


if __name__ == "__main__":
    main(sys.argv[1])
