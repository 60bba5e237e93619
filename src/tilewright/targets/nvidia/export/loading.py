"""Loading what `export_to_c` wrote: object files and shared libraries, without MLIR or LLVM."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tilewright.arguments.binding import converted
from tilewright.base.errors import ArgumentError, CompileError
from tilewright.base.signature import Signature
from tilewright.targets.artifact_bytes import FORMAT, decode
from tilewright.targets.host import abi, elf, ffi, seal, symbols
from tilewright.targets.host.exported import CHECKED, META, TABLE
from tilewright.targets.host.exported_c import passed
from tilewright.targets.host.loader import load_object
from tilewright.targets.nvidia.devices.driver_errors import describe

_TVM: Final = "__tvm_ffi_"
_TVM_FORM: Final = "tvm-ffi"
_SYSTEM: Final = frozenset(("dlopen", "dlsym", "sched_yield", "printf", "dprintf", "fflush", "strstr", "strcmp"))
_MOST_TEXT: Final = 1 << 20


class LoadedModule:
    """A loaded file; each exported function is an attribute."""

    def __init__(self, path: Path, names: list[str], make: Callable[[str], Any]) -> None:
        self._path, self._names, self._make = path, names, make

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(
                f"{self._path} exports no function {name!r}; its functions: {', '.join(self._names) or 'none'}"
            )
        made = self._make(name)
        setattr(self, name, made)
        return made

    def __getitem__(self, name: str) -> Any:
        """The same by subscript, for names that are no identifiers.

        Raises:
            KeyError: the file exports no function of that name.
        """
        if name not in self._names:
            raise KeyError(f"{self._path} exports no function {name!r}; its functions: {', '.join(self._names)}")
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __dir__(self) -> list[str]:
        return self._names


class LoadedFunction:
    """An exported function. It takes its arguments by position or by name."""

    def __init__(self, name: str, facts: Mapping[str, Any], function: Any) -> None:
        self.name = name
        self._common_kinds = facts["form"] == _TVM_FORM
        self.arch = facts["arch"]
        self.signature: Signature = decode(facts["signature"])
        self.native = function
        self._params = passed(self.signature)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Check the arguments and run.

        Raises:
            ArgumentError: an argument does not fit its parameter.
            LaunchError: a launch was refused.
            CudaDriverDependencyError: there is no driver.
        """
        values = self._in_order(args, kwargs) if kwargs or len(args) != len(self._params) else args
        given = [converted(value, param) for value, param in zip(values, self._params, strict=True)]
        arguments, held = ffi.prepare(given)
        try:
            self.native(*arguments)
        except Exception as error:  # noqa: BLE001  (tvm-ffi raises whatever class an error names)
            raise ffi.translate(error, _described, exported=self._common_kinds) from None
        del held  # the views had to live until here

    def _in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        names = [param.name for param in self._params]
        given = dict(zip(names, args, strict=False)) | dict(kwargs)
        if len(args) > len(names) or given.keys() - set(names) or len(given) < len(names):
            raise ArgumentError(
                f"{self.name} takes {len(names)} argument{'s' * (len(names) != 1)}, {len(given)} were given",
                values={"parameters": ", ".join(names) or "none", "given": ", ".join(map(str, given)) or "none"},
                hint="defaults are not exported: give every argument",
            )
        return [given[name] for name in names]

    def __repr__(self) -> str:
        return f"<exported function {self.name}({', '.join(param.name for param in self._params)}) for {self.arch}>"


def _described(code: int) -> str:
    return str(describe(code))


def load_module(path: str | Path, enable_tvm_ffi: bool = False) -> LoadedModule:
    """Load an exported object file (`.o`) or a shared library of several (`.so`).

    With `enable_tvm_ffi` its functions are tvm-ffi functions: positional arguments, tvm-ffi's errors.

    Raises:
        CompileError: there is no such file, it is damaged, it exports nothing, or another version of the interface
            wrote it.
    """
    file = Path(path)
    if not file.is_file():
        raise CompileError(f"there is no file {str(path)!r}", hint="give the path of an exported .o or of a .so")
    data = file.read_bytes()
    if data[:4] != b"\x7fELF":
        raise CompileError(f"{file} is not an object file or a shared library", values={"first bytes": data[:8].hex()})
    is_object = _is_object(data)
    problem = seal.fault(data) if is_object else elf.torn(data)
    if problem:
        raise CompileError(
            f"{file} is damaged, or no object that export_to_c wrote",
            values={"reason": problem},
            hint="export it again, also where an older version wrote it; an object that another tool has changed is "
            "loaded as a shared library",
        )
    address_of, names, owner = _open_object(data) if is_object else _open_library(file, data)
    if not names:
        raise CompileError(f"{file} exports no function of Tilewright", hint="make it with executor.export_to_c")
    for name in names:
        _check(file, _facts(address_of, name))

    def make(name: str) -> Any:
        facts = _facts(address_of, name)
        checked = _TVM if facts["form"] == _TVM_FORM else CHECKED
        if facts["form"] != _TVM_FORM:
            _take_over(address_of(f"{TABLE}{name}"), device=bool(facts["kernels"]))
        function = ffi.make_function(address_of(f"{checked}{name}"), owner)
        return function if enable_tvm_ffi else LoadedFunction(name, facts, function)

    return LoadedModule(file, names, make)


def find_runtime_libraries(*, enable_tvm_ffi: bool = True) -> list[str]:
    """The libraries to link exported objects with: tvm-ffi's for its form, none for the C form."""
    return [str(ffi.tvm_ffi().libinfo.find_libtvm_ffi())] if enable_tvm_ffi else []


def _is_object(data: bytes) -> bool:
    return int.from_bytes(data[16:18], "little") == elf.ET_REL or seal.is_sealed(data)


def _open_object(data: bytes) -> tuple[Callable[[str], int], list[str], object]:
    loaded = load_object(data, resolve=_resolve)
    names = [symbol.removeprefix(META) for symbol in loaded.symbols if symbol.startswith(META)]
    return loaded.address, names, loaded


def _resolve(name: str) -> int:
    if name.startswith("TVMFFI"):
        return ffi.c_function(name)
    if name in _SYSTEM:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    return symbols.address_of(name)


def _open_library(file: Path, data: bytes) -> tuple[Callable[[str], int], list[str], object]:
    for library in find_runtime_libraries():
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)  # the file may have been linked without naming it
    try:
        loaded = ctypes.CDLL(str(file.resolve()))
    except OSError as error:
        raise CompileError(f"{file} cannot be loaded", values={"reason": error}) from error
    found = re.findall(rb"\0" + META.encode() + rb"(\w+)(?=\0)", data)
    names = list(dict.fromkeys(name.decode() for name in found if hasattr(loaded, META + name.decode())))
    return lambda name: ctypes.addressof(ctypes.c_char.in_dll(loaded, name)), names, loaded


def _facts(address_of: Callable[[str], int], name: str) -> dict[str, Any]:
    text = ctypes.string_at(address_of(f"{META}{name}"))
    try:
        return dict(json.loads(text[:_MOST_TEXT]))
    except ValueError as error:
        raise CompileError(f"the metadata of {name!r} is damaged", values={"reason": error}) from error


def _check(file: Path, facts: Mapping[str, Any]) -> None:
    if facts.get("tilewright") != FORMAT:
        raise CompileError(
            f"{file} was exported by another version of Tilewright",
            values={"its interface": facts.get("tilewright"), "this version's": FORMAT},
            hint="export it again with this version",
        )


def _take_over(table: int, *, device: bool) -> None:
    """Errors and the current stream of a function with a C interface come from tvm-ffi, as for compiled functions."""
    slots = (ctypes.c_uint64 * abi.FIRST_KERNEL).from_address(table)
    slots[abi.SLOT_SET_ERROR] = ffi.error_setter()
    slots[abi.SLOT_SIGNALS] = ffi.c_function("TVMFFIEnvCheckSignals")
    if device:
        slots[abi.SLOT_ENV_STREAM] = ffi.c_function("TVMFFIEnvGetStream")
