"""The gate to tvm-ffi: importing it, what it cannot take, and what its errors mean.

tvm-ffi carries a call from Python to native code in half a microsecond, but
* importing it imports torch (over a second) unless torch is hidden, which later torch tensors do not mind;
* it refuses read-only NumPy arrays and those of ml_dtypes: they travel as our own views;
* an exception in a ctypes callback is lost, and one of Python's in a tvm-ffi callback becomes a RuntimeError: `Pending`
  and `Carried` keep them;
* an error number without an error set ends the process: native code sets one first (`runtime.py`);
* its own way to set one looks up the names of all functions on the stack: a second, the first time, with LLVM loaded.
"""

from __future__ import annotations

import array as memory
import ctypes
import functools
import importlib
import importlib.machinery
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar, Final

from tilewright.base import errors
from tilewright.base.errors import ArgumentError, LaunchError, MissingPackageError, TilewrightError
from tilewright.base.interrupts import is_outside, uninterrupted
from tilewright.base.location import SourceLocation
from tilewright.base.spans import PHRASE, SpanError
from tilewright.targets.host import abi

_lock = threading.RLock()


class _HideTorch:
    """An import finder that has no torch for the thread which made it; other threads import as ever."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name == "torch" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("hidden while tvm_ffi is imported", name="torch")
        return None


@functools.cache
def tvm_ffi() -> ModuleType:
    """The module tvm_ffi; importing it does not import torch.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        module = uninterrupted(_import_tvm_ffi)
    except ModuleNotFoundError as error:
        if error.name != "tvm_ffi":
            raise
        raise MissingPackageError(
            "calls of compiled functions need the package tvm-ffi, which is not installed",
            hint="pip install apache-tvm-ffi",
        ) from error
    _let_through(module)
    return module


def _import_tvm_ffi() -> ModuleType:
    with _lock:
        if "torch" in sys.modules or "tvm_ffi" in sys.modules:
            return importlib.import_module("tvm_ffi")
        finder = _HideTorch()
        sys.meta_path.insert(0, finder)
        try:
            return importlib.import_module("tvm_ffi")
        finally:
            sys.meta_path.remove(finder)


@functools.cache
def c_function(name: str) -> int:
    """The address of a function of tvm-ffi's C interface."""
    return ctypes.cast(getattr(tvm_ffi().LIB, name), ctypes.c_void_p).value or 0


class _Bytes(ctypes.Structure):
    """`TVMFFIByteArray`."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


def _of(text: bytes) -> _Bytes:
    return _Bytes(text, len(text))


def _made(kind: bytes, message: bytes) -> ctypes.c_void_p:
    """A new error of tvm-ffi, without a trace of native frames."""
    error = ctypes.c_void_p()
    parts = [ctypes.byref(_of(text)) for text in (kind, message, b"")]
    tvm_ffi().LIB.TVMFFIErrorCreate(*parts, ctypes.byref(error))
    return error


def _raise(kind: bytes, message: bytes) -> None:
    """Set tvm-ffi's error of this thread."""
    try:
        library, error = tvm_ffi().LIB, _made(kind, message)
        if error:
            library.TVMFFIErrorSetRaised(error)
            library.TVMFFIObjectDecRef(error)
    except BaseException as outside:  # noqa: BLE001  (it cannot cross native code)
        late.error = outside
        set_raised, error = interrupted()
        set_raised(error)


_raise_callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)(_raise)


def error_setter() -> int:
    """The address of a C function `(const char* kind, const char* message)` that sets tvm-ffi's error."""
    interrupted()
    return ctypes.cast(_raise_callback, ctypes.c_void_p).value or 0


@functools.cache
def interrupted() -> tuple[Any, ctypes.c_void_p]:
    """What sets an error, and the one that stands where the right one was not made: native code has promised one."""
    return tvm_ffi().LIB.TVMFFIErrorSetRaised, _made(
        abi.INTERRUPTED_KIND.encode(), b"a signal came while an error was made"
    )


def make_function(address: int, keep_alive: object) -> Callable[..., Any]:
    """A tvm-ffi function that calls native code at `address` and holds `keep_alive`."""
    function: Callable[..., Any] = tvm_ffi().Function.__from_extern_c__(address, keep_alive_object=keep_alive)
    return function


# Arguments

Converter = Callable[[Any], tuple[Any, Any]]

_PLAIN: set[type] = {type(None), bool, int, float, ctypes.c_void_p}
_CONVERTERS: dict[type, Converter] = {}

# The types whose arrays tvm-ffi takes itself, as NumPy's numbers: bool, integers, float32, float64, float16.
_DLPACK_NUMBERS = frozenset((*range(13), 23))

# NumPy's names of types, ours in all else; NumPy keeps types below 8 bits in a byte each, kernels do not.
_NUMPY_DTYPES = {
    "bool": "bool",
    **{f"{name}{bits}": f"{name[0]}{bits}" for name in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float8_e3m4": "f8e3m4",
    "float8_e4m3": "f8e4m3",
    "float8_e4m3b11fnuz": "f8e4m3b11fnuz",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu",
}


def register_converter(type_: type, convert: Callable[[Any], Any]) -> None:
    """Pass arguments of `type_` (exactly) as `convert(argument)`: a number, a tensor, a tuple, a `c_void_p`."""
    _CONVERTERS[type_] = lambda argument: prepare_one(convert(argument))
    _PLAIN.discard(type_)


def needs_nothing() -> set[type]:
    """The types known to pass as they are: a live set."""
    return _PLAIN


def prepare(arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The arguments as tvm-ffi takes them, and what must live until the call has ended."""
    pairs = [prepare_one(argument) for argument in arguments]
    return [passed for passed, _ in pairs], [held for _, held in pairs]


def prepare_one(argument: Any) -> tuple[Any, Any]:
    """One argument as tvm-ffi takes it, and what must live until the call has ended."""
    type_ = type(argument)
    if type_ in _PLAIN:
        return argument, None
    convert = _CONVERTERS.get(type_)
    if convert is None:
        convert = _classify(type_)
        if convert is None:
            _PLAIN.add(type_)
            return argument, None
        _CONVERTERS[type_] = convert
    return convert(argument)


def _classify(type_: type) -> Converter | None:
    if hasattr(type_, "__tw_dltensor__"):
        return _own_tensor
    if issubclass(type_, (tuple, list)):
        return _sequence
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(type_, numpy.ndarray):
        return _numpy_array
    if numpy is not None and issubclass(type_, numpy.generic):
        return _numpy_scalar
    return None


def _own_tensor(tensor: Any) -> tuple[Any, Any]:
    return ctypes.c_void_p(tensor.__tw_dltensor__() | abi.VIEW_TAG), tensor


def _sequence(items: Sequence[Any]) -> tuple[Any, Any]:
    passed, held = prepare(items)
    return tuple(passed), held


def _numpy_scalar(value: Any) -> tuple[Any, Any]:
    item = value.item()
    return (item if type(item) in _PLAIN else float(value)), None


def _numpy_array(array: Any) -> tuple[Any, Any]:
    """The array itself, or a view of its memory where tvm-ffi would refuse it."""
    dtype = array.dtype
    if array.flags.writeable and dtype.num in _DLPACK_NUMBERS and dtype.isnative:
        return array, None
    code, bits = abi.DTYPES[_numpy_dtype(dtype)]
    rank, shape, itemsize = array.ndim, array.shape, array.itemsize
    strides = [_elements(step, extent, itemsize) for step, extent in zip(array.strides, shape, strict=True)]
    kind = code << 32 | bits << 40 | 1 << 48
    # A DLTensor (abi.py) of six words, then the shape and the strides it points to.
    words = memory.array("q", (0, abi.CPU, rank | kind, 0, 0, 0, *shape, *strides))
    address, _ = words.buffer_info()
    words[0] = array.__array_interface__["data"][0]
    words[3], words[4] = address + 48, address + 48 + 8 * rank
    return ctypes.c_void_p(address | abi.VIEW_TAG), (words, array)


def _elements(step: int, extent: int, itemsize: int) -> int:
    if step % itemsize == 0:
        return step // itemsize
    if extent < 2:
        return 0
    values = {"stride in bytes": step, "bytes of an element": itemsize}
    raise ArgumentError("a NumPy array's stride is not a whole number of elements", values=values, hint="copy it")


@functools.lru_cache(maxsize=64)
def _numpy_dtype(dtype: Any) -> str:
    name = _NUMPY_DTYPES.get(dtype.name)
    if name is None or not dtype.isnative:
        values = {"dtype": dtype, "taken": ", ".join(_NUMPY_DTYPES)}
        if not dtype.isnative:
            hint = 'convert with .astype(x.dtype.newbyteorder("="))'
            what = f"NumPy arrays of {dtype.name} in the other byte order cannot be passed"
            raise ArgumentError(what, values=values, hint=hint)
        raise ArgumentError(f"NumPy arrays of {dtype.name} cannot be passed", values=values)
    return name


# Errors


class Pending(threading.local):
    """The exception raised in a callback of the call that runs in this thread."""

    error: BaseException | None = None

    def take(self) -> BaseException | None:
        """The exception, which is then forgotten."""
        error, self.error = self.error, None
        return error


late = Pending()
"""What came from outside while Python made an error or printed for native code."""


class Raised(Exception):
    """An error of native code, as tvm-ffi has it: its kind, which names a class, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message
        self.__tvm_ffi_error__ = self


class _Cell(ctypes.Structure):
    """`TVMFFIErrorCell`, as far as it is read here: addresses and sizes of two texts."""

    _fields_ = (
        ("kind", ctypes.c_void_p), ("kind_size", ctypes.c_size_t),
        ("message", ctypes.c_void_p), ("message_size", ctypes.c_size_t),
    )  # fmt: skip


def take_raised() -> Raised:
    """The error that native code has set in this thread, which is then set no more."""
    library, error = tvm_ffi().LIB, ctypes.c_void_p()
    library.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
    if not error.value:
        return Raised("RuntimeError", "native code failed and set no error")
    cell = _Cell.from_address(error.value + abi.OBJECT_HEADER)
    texts = [ctypes.string_at(*part) for part in ((cell.kind, cell.kind_size), (cell.message, cell.message_size))]
    library.TVMFFIObjectDecRef(error)
    return Raised(*(text.decode(errors="replace") for text in texts))


class Carried(Exception):
    """An exception on its way through tvm-ffi, which knows a few kinds only: there it is a number."""

    waiting: ClassVar[dict[str, BaseException]] = {}

    @classmethod
    def of(cls, error: BaseException) -> Carried:
        """What to raise in a callback of tvm-ffi for `error`."""
        number = str(id(error))
        cls.waiting[number] = error
        return cls(number)


class _Arrived:
    """The class that tvm-ffi calls with the number for a new exception: it gives the one that was carried."""

    def __new__(cls, number: str) -> Any:
        return Carried.waiting.pop(number, None) or RuntimeError("an exception was raised twice")


def _let_through(module: ModuleType) -> None:
    """Exceptions that are no errors pass through tvm-ffi as themselves."""
    for kind in (KeyboardInterrupt, SystemExit):
        module.error.register_error(kind.__name__, kind)
    module.core.ERROR_TYPE_TO_NAME[Carried] = Carried.__name__
    module.core.ERROR_NAME_TO_TYPE[Carried.__name__] = _Arrived


_PLACE: Final = re.compile(r"(.*) \((.*):(\d+)\)")
_EXPORTED_KINDS = {"TypeError": ArgumentError, "ValueError": ArgumentError, "RuntimeError": LaunchError}


def translate(
    error: BaseException, describe: Callable[[int], str] | None = None, *, exported: bool = False
) -> BaseException:
    """The error to raise for one that tvm-ffi raised.

    Args:
        error: from a call of a tvm-ffi function.
        describe: the name of an error number of the driver.
        exported: it comes from an exported function, whose errors have the kinds that all languages know.
    """
    if (outside := late.take()) is not None:
        return outside
    ffi_error = getattr(error, "__tvm_ffi_error__", None)
    if is_outside(error):
        return error
    if ffi_error is None:
        # Raised before native code ran, by an argument that tvm-ffi cannot convert.
        return ArgumentError(f"an argument cannot be passed: {error}")
    if ffi_error.kind == abi.INTERRUPTED_KIND:
        return KeyboardInterrupt()
    class_ = _EXPORTED_KINDS.get(ffi_error.kind) if exported else getattr(errors, ffi_error.kind, None)
    if not (isinstance(class_, type) and issubclass(class_, TilewrightError)):
        return error
    message, values, hint = _parse(ffi_error.message)
    code = values.get("error", "")
    if class_ is LaunchError and describe is not None and code.isdigit():
        values["error"] = f"{code}: {describe(int(code))}"
    message, place = _placed(message)
    if class_ is ArgumentError and message.endswith(PHRASE):
        class_ = SpanError
    made = class_(message, location=place, values=values, hint=hint)
    if isinstance(made, LaunchError) and code.isdigit():
        made.error_code = int(code)
    return made


def _placed(message: str) -> tuple[str, SourceLocation | None]:
    """A message of an assertion, and the user's line that it names at its end."""
    found = _PLACE.fullmatch(message)
    return (found[1], SourceLocation(found[2], int(found[3]))) if found else (message, None)


def _parse(text: str) -> tuple[str, dict[str, str], str | None]:
    """The parts of a message of native code: a sentence, lines `  name  value`, a line `  hint: ...`."""
    message, *rest = text.split("\n")
    values: dict[str, str] = {}
    hint = None
    for line in rest:
        if line.startswith("  hint: "):
            hint = line.removeprefix("  hint: ")
        else:
            name, _, value = line.strip().partition("  ")
            values[name] = value.strip()
    return message, values, hint
