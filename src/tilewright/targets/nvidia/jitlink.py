"""nvJitLink by ctypes: PTX, cubins and libraries to one cubin, in this process.

Signatures: `nvJitLink.h` of CUDA 13. ctypes releases the GIL during the calls; handles are independent, so
threads link side by side.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilewright.base.errors import CompileError
from tilewright.targets.nvidia import toolchain

CUBIN: Final = 1
PTX: Final = 2
LTO_IR: Final = 3
FATBIN: Final = 4
OBJECT: Final = 5
LIBRARY: Final = 6

_KINDS: Final = {".a": LIBRARY, ".lib": LIBRARY, ".o": OBJECT, ".cubin": CUBIN, ".fatbin": FATBIN, ".ptx": PTX,
                 ".ltoir": LTO_IR}  # fmt: skip


@dataclass(frozen=True)
class Input:
    """One thing to link: its kind (a constant of this module), its bytes and a name for messages."""

    kind: int
    data: bytes
    name: str


@dataclass(frozen=True)
class Linked:
    """What came out: `status` 0 and a cubin, or another status and the log that says why."""

    status: int
    cubin: bytes
    log: str


def library_input(path: str) -> Input:
    """A file to link, its kind told by its suffix: `.a .o .cubin .fatbin .ptx .ltoir`.

    A name without a folder that is not in the working directory is one of the toolkit's libraries: `libcudadevrt.a`.

    Raises:
        CompileError: no such file, or a suffix that nvJitLink cannot take.
    """
    file = Path(path)
    bare = file.name == path and not file.exists()
    file = (toolchain.library(path) if bare else None) or file
    kind = _KINDS.get(file.suffix)
    if kind is None:
        raise CompileError(f"cannot link {path!r}", hint=f"a library ends in one of {' '.join(_KINDS)}")
    try:
        return Input(kind, file.read_bytes(), file.name)
    except OSError as error:
        hint = f"{path} is in no toolkit or package either; give its path" if bare else "give the path of the library"
        raise CompileError(f"cannot read {path!r}: {error.strerror}", hint=hint) from error


def load(path: Path) -> Any:
    """The library with its signatures set.

    Raises:
        CompileError: it does not load.
    """
    return _load(str(path))


@functools.cache
def _load(path: str) -> Any:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise CompileError(f"cannot load nvJitLink: {error}", hint=toolchain.remedy("nvJitLink")) from error
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


def version(path: Path) -> tuple[int, int]:
    """The CUDA version of the library: (13, 5)."""
    major, minor = c_uint(), c_uint()
    load(path).nvJitLinkVersion(byref(major), byref(minor))
    return major.value, minor.value


def link(path: Path, inputs: Sequence[Input], options: Sequence[str]) -> Linked:
    """Link `inputs` under `options` (`-arch=sm_90a`, `-O3`, `-lineinfo`, `-Xptxas=...`).

    A refusal is not an exception but a status and a log; only a library that does not load raises.
    """
    library = load(path)
    handle = c_void_p()
    texts = (c_char_p * len(options))(*(option.encode() for option in options))
    status = library.nvJitLinkCreate(byref(handle), len(options), texts)
    try:
        return _link(library, handle, status, inputs)
    finally:
        if handle:
            library.nvJitLinkDestroy(byref(handle))


def _link(library: Any, handle: c_void_p, status: int, inputs: Sequence[Input]) -> Linked:
    for item in inputs:
        if status == 0:
            status = library.nvJitLinkAddData(handle, item.kind, item.data, len(item.data), item.name.encode())
    if status == 0:
        status = library.nvJitLinkComplete(handle)
    cubin = _take(library, handle, "LinkedCubin") if status == 0 else b""
    logs = [_take(library, handle, name).rstrip(b"\0").decode(errors="replace") for name in ("ErrorLog", "InfoLog")]
    return Linked(status, cubin, "\n".join(log.strip() for log in logs if log.strip()))


def _take(library: Any, handle: c_void_p, name: str) -> bytes:
    """Call the Size and Get functions of one result."""
    size = c_size_t()
    if not handle or getattr(library, f"nvJitLinkGet{name}Size")(handle, byref(size)) or not size.value:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    if getattr(library, f"nvJitLinkGet{name}")(handle, buffer):
        return b""
    return buffer.raw
