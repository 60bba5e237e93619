"""What of the arguments of a call decides which program it runs, as keys of a table.

Two calls whose arguments have the same `key_of`, and the same numbers where these are baked in, run the same program.
`program_key_of` leaves out what does not matter: extents and strides that are values of run time.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

from tilewright.arguments.aggregates import is_aggregate
from tilewright.arguments.binding import RuntimePointer, is_stream
from tilewright.arguments.objects import adapter_count, has_adapter, is_jit_argument
from tilewright.arguments.runtime_tensor import FakeTensor, RuntimeTensor, implicit_param
from tilewright.base.errors import TilewrightError
from tilewright.lang.numbers.numeric import Numeric
from tilewright.lang.numbers.numpy_scalars import is_numpy_scalar, to_python

Key = Any  # hashable
_Maker = Callable[[Any], Key]

NUMBERS = (bool, int, float)
"""The types of which only the kind is in a key: a call may have others each time, unless they are baked in."""
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def key_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Key, ...] | None:
    """The key of a call; None where an argument has none, as objects that may change have not."""
    if adapter_count() != _state.adapters:
        _state.forget()
    keys = []
    for value in args:
        key = (_makers.get(type(value)) or _learn(value))(value)
        if key is None:
            return None
        keys.append(key)
    if kwargs:
        for name, value in kwargs.items():
            key = (_makers.get(type(value)) or _learn(value))(value)
            if key is None:
                return None
            keys.append((name, key))
    return tuple(keys)


def program_key_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Key, ...] | None:
    """The same with what a framework's tensor is compiled as in its place; None too where one cannot be passed."""
    found = key_of(args, kwargs)
    if found is None:
        return None
    pairs = [*zip(args, found, strict=False), *zip(kwargs.values(), found[len(args) :], strict=True)]
    try:
        return tuple(_program_key(value, key) for value, key in pairs)
    except TilewrightError:
        return None


def number_key(value: Any) -> Key:
    """A number that is baked in: what is equal but another program, as 1, 1.0 and True or 0.0 and -0.0, differs."""
    return type(value), repr(value)


def constant_key(value: Any) -> Key:
    """The key of a value of compile time, all of it; None where it has none."""
    return number_key(value) if type(value) in NUMBERS else (_makers.get(type(value)) or _learn(value))(value)


def _program_key(value: Any, key: Key) -> Key:
    """What decides the program of one argument, whose key is `key`; of one by name, with the name."""
    if type(value) not in _frameworks:
        return key
    named = isinstance(key, tuple) and isinstance(key[0], str)
    return key[0] if named else "", implicit_param(value, ""), _frameworks[type(value)](value)


def _none(_: Any) -> None:
    """The maker of what has no key."""
    return


def _integer(value: int) -> Key:
    return "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if -(1 << 63) <= value < 1 << 63 else value


def _torch_tensor(tensor: Any) -> Key:
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        return None  # each such call warns
    try:
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.device
    except RuntimeError:  # sparse
        return None


def _numpy_array(array: Any) -> Key:
    return array.dtype, array.shape, array.strides


def _cupy_array(array: Any) -> Key:
    return array.dtype, array.shape, array.strides, array.device.id


def _numpy_scalar(value: Any) -> Key:
    number = to_python(value)
    return type(value), _integer(number) if type(number) is int else None


def _wrapped(tensor: RuntimeTensor) -> Key:
    return tensor.key()


def _pointer(pointer: RuntimePointer) -> Key:
    return pointer.dtype, pointer.memspace, pointer.alignment


def _kind(value: Any) -> Key:
    return type(value)


def _itself(value: Any) -> Key:
    return type(value), value


def _class(value: Any) -> Key:
    return value if issubclass(value, Numeric) else None


def _items(value: Any) -> Key:
    """A tuple: its numbers may be baked in, and are compared as such."""
    keys = tuple(constant_key(item) for item in value)
    return None if None in keys else (type(value), *keys)


class _Itself:
    """A key that is equal to that of the same object only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Itself and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _baked_in(value: Any) -> Key:
    """An object that is never passed at run time: what it holds now, or, where that has no key, the object itself.

    Whoever keeps a call sees to it that what the object holds is still the same.
    """
    return _attributes(value) or _Itself(value)


def _attributes(value: Any) -> Key:
    """An object of the user: what its attributes hold now."""
    try:
        keys = tuple((name, constant_key(item)) for name, item in vars(value).items())
    except RecursionError:  # it holds itself
        return None
    return None if any(key is None for _, key in keys) else (type(value), *keys)


_START: dict[type, _Maker] = {
    NoneType: _kind, bool: _kind, float: _kind, int: _integer, str: _itself, tuple: _items,
    RuntimeTensor: _wrapped, RuntimePointer: _pointer, FakeTensor: _none,
}  # fmt: skip
_makers: dict[type, _Maker] = dict(_START)
_frameworks: dict[type, Callable[[Any], Key]] = {}  # tensors that are passed as they are: which device one is on


class _State:
    adapters = 0

    def forget(self) -> None:
        """Adapters were registered: types that were looked at may be passed in another way now."""
        _makers.clear()
        _frameworks.clear()
        _makers.update({kind: make for kind, make in _START.items() if not has_adapter(kind)})
        self.adapters = adapter_count()


_state = _State()


def _learn(value: Any) -> _Maker:
    """What makes the keys of values of the type of this one."""
    kind = type(value)
    made = _makers[kind] = _none if has_adapter(kind) else _maker_for(value, kind)
    return made


def _maker_for(value: Any, kind: type) -> _Maker:
    module, name = kind.__module__, kind.__name__
    if (module, name) in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter")):
        _frameworks[kind] = lambda tensor: tensor.device
        return _torch_tensor
    if (module, name) == ("numpy", "ndarray"):
        _frameworks[kind] = _none
        return _numpy_array
    if name == "ndarray" and module.partition(".")[0] == "cupy":
        _frameworks[kind] = lambda array: array.device.id
        return _cupy_array
    if isinstance(value, Numeric) or (is_stream(value) and not hasattr(value, "env")):
        return _kind
    if is_numpy_scalar(value):
        return _numpy_scalar
    if issubclass(kind, enum.Enum):
        return _itself
    if isinstance(value, type):
        return _class
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _items
    if not hasattr(value, "__dict__") or not _is_plain_class(kind):
        return _none
    return _attributes if is_aggregate(value) or is_jit_argument(value) else _baked_in


def _is_plain_class(kind: type) -> bool:
    """Whether all that its objects hold is in their attributes: the class and its bases are written in Python."""
    return all(
        base is object or (base.__flags__ & _HEAP_TYPE and "__slots__" not in vars(base)) for base in kind.__mro__
    )
