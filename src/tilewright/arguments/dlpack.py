"""Reading tensors of any framework: address, element type, shape, strides, device.

NumPy arrays are read directly (DLPack refuses read-only ones and the types of ml_dtypes), all others through DLPack.
"""

from __future__ import annotations

import array
import ctypes
import functools
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.base import dlpack_types
from tilewright.base.errors import ArgumentError
from tilewright.lang.locations import user_location

_SHORT_NAMES = {code: name for name, code in dlpack_types.DTYPES.items()}
_NUMPY_SPELLING = {"bool": "bool", "bfloat16": "bf16"} | {f"float{width}": f"f{width}" for width in (16, 32, 64)}


# The types whose tensors of torch are exported at once, by torch's names.
_TORCH_TYPES = {
    **{f"{name}{bits}": f"{name[0]}{bits}" for name in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{name: name.replace("float8_", "f8") for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
                                                        "float8_e5m2fnuz", "float8_e8m0fnu")},
    **_NUMPY_SPELLING,
}  # fmt: skip
_COMPLEX = 5  # kDLComplex

_CAPSULE = b"dltensor"
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _DLTensor(ctypes.Structure):
    """`DLTensor` of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_uint64),
        ("strides", ctypes.c_uint64),
        ("byte_offset", ctypes.c_uint64),
    )


class HostView(NamedTuple):
    """A tensor's memory. `data` is the address of the first element; strides count elements; `device` is a DLPack type.

    `owner` must live as long as the memory is used.
    """

    data: int
    device: int
    device_id: int
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    writable: bool
    owner: Any

    def extent(self) -> tuple[int, int]:
        """The lowest address of an element, and the bytes from there to the end of the highest."""
        bits = dlpack_types.DTYPES[self.dtype][1]
        if 0 in self.shape:
            return self.data, 0
        steps = [(n - 1) * step for n, step in zip(self.shape, self.stride, strict=True)]
        low, high = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
        return self.data + low * bits // 8, -(-(high - low + 1) * bits // 8)

    def words(self) -> Any:
        """A DLTensor followed by its shape and strides, as an array of 64-bit words."""
        code, bits = dlpack_types.DTYPES[self.dtype]
        rank = len(self.shape)
        device = self.device | self.device_id << 32
        kind = rank | code << 32 | bits << 40 | 1 << 48
        made = array.array("q", (self.data, device, kind, 0, 0, 0, *self.shape, *self.stride))
        address, _ = made.buffer_info()
        made[3], made[4] = address + 48, address + 48 + 8 * rank
        return made


def exported(source: Any) -> tuple[Any, str] | None:
    """The DLPack capsule of a tensor, which keeps its memory, and the language's name of its type.

    None for what is no tensor of torch that is plain memory, of a common type and without a gradient.
    """
    export = _EXPORTS.get(type(source))
    if export is None:
        export = _EXPORTS[type(source)] = _exporter(type(source))
    return export(source)


_EXPORTS: dict[type, Callable[[Any], tuple[Any, str] | None]] = {}


def _exporter(kind: type) -> Callable[[Any], tuple[Any, str] | None]:
    """What `exported` does for a type."""
    torch = sys.modules.get("torch")
    if torch is None or kind is not torch.Tensor:
        return lambda _: None
    types = {getattr(torch, name): short for name, short in _TORCH_TYPES.items() if hasattr(torch, name)}
    export = torch.utils.dlpack.to_dlpack

    def exported_by_torch(source: Any) -> tuple[Any, str] | None:
        name = types.get(source.dtype)
        if name is None or source.requires_grad or source.is_neg():
            return None
        try:
            return export(source), name
        except (RuntimeError, ValueError, TypeError, BufferError):  # sparse, nested, without memory: `view` says so
            return None

    return exported_by_torch


def address_of(capsule: Any) -> int:
    """The address of the DLTensor of a capsule."""
    return int(_capsule_pointer(capsule, _CAPSULE))


def view_of(capsule: Any, dtype: str, source: Any) -> HostView:
    """The memory of a tensor that `exported` has read."""
    raw = _DLTensor.from_address(address_of(capsule))
    shape, stride = _longs(raw.shape, raw.ndim), _longs(raw.strides, raw.ndim)
    data = raw.data + raw.byte_offset
    return HostView(data, raw.device_type, raw.device_id, dtype, shape, stride, True, (source, capsule))


def view(source: Any) -> HostView:
    """The memory of a framework's tensor."""
    interface = getattr(source, "__array_interface__", None)
    if interface is not None:
        return _numpy(source, interface)
    if not hasattr(source, "__dlpack__"):
        raise ArgumentError(
            f"a {type(source).__name__} is no tensor", hint="pass an object that supports DLPack, or a NumPy array"
        )
    return _dlpack(source)


@functools.lru_cache(maxsize=64)
def _numpy_type(dtype: Any) -> str:
    """The language's name of a NumPy dtype."""
    name = dtype.name
    short = _NUMPY_SPELLING.get(name) or name.replace("uint", "u").replace("int", "i")
    short = short.replace("float8_", "f8")
    if short in dlpack_types.DTYPES and dlpack_types.DTYPES[short][1] < 8:
        raise ArgumentError(
            f"NumPy keeps each {name} in a byte of its own, the language two in one",
            hint="pack them into uint8 and recast the tensor: cute.recast_tensor(t, dtype)",
        )
    if short not in dlpack_types.DTYPES or not dtype.isnative:
        raise not_passed(dtype)
    return short


def not_passed(dtype: Any) -> ArgumentError:
    """The error for a NumPy array of that type."""
    if not dtype.isnative:
        return ArgumentError(
            f"NumPy arrays of {dtype.name} in the other byte order cannot be passed",
            values={"dtype": dtype.str},
            hint='convert with .astype(x.dtype.newbyteorder("="))',
        )
    hint = "pass its parts: x.real, x.imag, or x.view of the type of the parts" if dtype.kind == "c" else None
    return ArgumentError(f"NumPy arrays of {dtype.name} cannot be passed", hint=hint or "convert with .astype")


def _numpy(source: Any, interface: Any) -> HostView:
    dtype, shape, strides = source.dtype, source.shape, source.strides
    if getattr(source, "mask", None) is not None:
        raise ArgumentError("a masked array cannot be passed", hint="pass x.filled(value), or x.data for all numbers")
    name, size = _numpy_type(dtype), dtype.itemsize
    stride = tuple([step // size for step in strides])
    if tuple([step * size for step in stride]) != strides and any(
        step % size for step, extent in zip(strides, shape, strict=True) if extent > 1
    ):
        raise ArgumentError("a NumPy array's stride is not a whole number of elements", hint="copy it")
    data, read_only = interface["data"]
    return HostView(data, dlpack_types.CPU, 0, name, shape, stride, not read_only, source)


def refuse_lazy(source: Any) -> None:
    """Refuse a tensor of torch whose memory holds other numbers than the tensor shows.

    It cannot be copied either: a kernel may write to it.
    """
    for bit, what in (("neg", "negated"), ("conj", "conjugated")):
        if getattr(source, f"is_{bit}", _no)():
            raise ArgumentError(
                f"the tensor is {what} lazily: its memory holds the numbers before that",
                values={"shape": tuple(source.shape), "dtype": source.dtype},
                hint=f"pass t.resolve_{bit}(), a copy with the numbers that torch shows",
            )


def _no() -> bool:
    return False


def _refuse_without_memory(source: Any) -> None:
    """Refuse tensors of torch that are no plain view of memory, which DLPack says of in its own words or not at all."""
    layout = str(getattr(source, "layout", ""))
    if layout.startswith("torch.") and layout != "torch.strided":
        hint = "pass t.to_dense(), or its parts: t.values(), t.indices()" if "sparse" in layout else "pass t.to_dense()"
        raise ArgumentError(f"a tensor of layout {layout.removeprefix('torch.')} cannot be passed", hint=hint)
    if getattr(source, "is_meta", False) or hasattr(source, "fake_mode"):
        raise ArgumentError(
            "a tensor without memory cannot be passed",
            values={"device": source.device, "shape": tuple(source.shape)},
            hint="to compile without memory pass cute.runtime.make_fake_tensor(...)",
        )
    if getattr(source, "is_nested", False):
        raise ArgumentError("a nested tensor cannot be passed", hint="pass its parts: t.unbind(), or t.values()")
    if getattr(source, "is_quantized", False):
        raise ArgumentError(
            "a quantized tensor cannot be passed",
            values={"dtype": source.dtype},
            hint="pass its integers, t.int_repr(), with scale and zero point as numbers",
        )


def _without_grad(source: Any) -> Any:
    """A tensor of torch that requires a gradient, without; a warning where autograd would record what is done to it."""
    torch = sys.modules.get("torch")
    if torch is None or torch.is_grad_enabled():
        place = user_location()
        message = (
            "a tensor that requires a gradient is passed, and autograd sees nothing of what kernels do with it: "
            "pass t.detach(), call under torch.no_grad(), or give the kernel a backward in a torch.autograd.Function"
        )
        if place is None:
            warnings.warn(message, stacklevel=2)
        else:
            warnings.warn_explicit(message, UserWarning, place.file_here, place.line)
    return source.detach()


def _is_plain(source: Any) -> bool:
    """True for a tensor of torch with nothing odd about it, which is all that most calls see."""
    torch = sys.modules.get("torch")
    if torch is None or type(source) is not torch.Tensor or source.layout is not torch.strided:
        return False
    odd = source.requires_grad or source.is_neg() or source.is_conj()
    return not (odd or source.is_meta or source.is_quantized or source.is_nested)


def _dlpack(source: Any) -> HostView:
    if not _is_plain(source):
        refuse_lazy(source)
        _refuse_without_memory(source)
        if getattr(source, "requires_grad", False):
            source = _without_grad(source)
    device, device_id = source.__dlpack_device__()
    on_gpu = int(device) in (dlpack_types.CUDA, dlpack_types.CUDA_MANAGED)
    capsule = source.__dlpack__(stream=-1) if on_gpu else source.__dlpack__()
    raw = _DLTensor.from_address(address_of(capsule))
    dtype = _SHORT_NAMES.get((raw.code, raw.bits))
    if dtype is None or not (raw.lanes == 1 or (raw.lanes == 2 and raw.bits == 4)):
        raise ArgumentError(
            "the element type is not one of the language",
            values={"DLPack": f"code {raw.code}, {raw.bits} bits, {raw.lanes} lanes"},
            hint="pass real and imaginary parts as numbers: torch.view_as_real(t)" if raw.code == _COMPLEX else None,
        )
    shape = _longs(raw.shape, raw.ndim)
    stride = _longs(raw.strides, raw.ndim) if raw.strides else _row_major(shape)
    if raw.lanes == 2:
        shape, stride = _unpacked(shape, stride)
    dtype = "f32" if dtype == "tf32" else dtype
    owner = (source, capsule)
    return HostView(raw.data + raw.byte_offset, int(device), int(device_id), dtype, shape, stride, True, owner)


def _unpacked(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides that count elements, from those that count pairs of them."""
    leading = next((mode for mode in reversed(range(len(shape))) if stride[mode] == 1), None)
    if leading is None:
        raise ArgumentError(
            "a tensor of packed elements needs a mode of stride 1", values={"layout": f"{shape}:{stride}"}
        )
    extents = tuple(2 * extent if mode == leading else extent for mode, extent in enumerate(shape))
    return extents, tuple(step if mode == leading else 2 * step for mode, step in enumerate(stride))


def _longs(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[mode + 1 :]) for mode in range(len(shape)))
