"""Python objects that change in place and hold nothing that a program could carry: sets, arrays, iterators.

A region of run time may read them, but not change them. A snapshot says what such an object holds, so that a change
shows; most can be put back.
"""

from __future__ import annotations

import array
import operator
import warnings
from types import GeneratorType
from typing import Any

_MOST = 1 << 16  # bytes of an array that are compared
_NO_HINT = -1


def takes(cls: type) -> bool:
    """True for classes whose objects are watched by snapshots."""
    if issubclass(cls, set | bytearray | array.array | memoryview | GeneratorType) or _is_ndarray(cls):
        return True
    return cls.__module__ in ("builtins", "itertools") and hasattr(cls, "__next__")


def _is_ndarray(cls: type) -> bool:
    return cls.__module__ == "numpy" and cls.__name__ == "ndarray"


def of(value: Any) -> Any:
    """What `value` holds now, to compare and to put back."""
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, bytearray | array.array | memoryview):
        return bytes(value) if memoryview(value).nbytes <= _MOST else None
    if _is_ndarray(type(value)):
        return value.tobytes() if value.nbytes <= _MOST else None
    return _position(value)


def put_back(value: Any, held: Any) -> None:
    """Have `value` hold again what it held; an iterator does not go back."""
    if held is None:
        return
    if isinstance(value, set):
        value.clear()
        value.update(held)
    elif isinstance(value, bytearray | array.array | memoryview):
        _put_bytes(value, held)
    elif _is_ndarray(type(value)) and value.tobytes() != held:
        value[...] = type(value)(value.shape, value.dtype, held)


def _put_bytes(value: Any, held: bytes) -> None:
    if bytes(value) == held:
        return
    if isinstance(value, memoryview):
        value.cast("B")[:] = held
    elif isinstance(value, bytearray):
        value[:] = held
    else:
        del value[:]
        value.frombytes(held)


def _position(iterator: Any) -> Any:
    """How far an iterator has gone, as far as Python says."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        if frame is None:
            return _NO_HINT
        return frame.f_lasti, tuple((name, _item(value)) for name, value in frame.f_locals.items())
    hint = operator.length_hint(iterator, _NO_HINT)
    return _parts(iterator) if hint == _NO_HINT else hint


def _parts(iterator: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            reduced = iterator.__reduce__()
        except TypeError:
            return repr(iterator)
    return tuple(_item(part) for part in reduced[1:]) if isinstance(reduced, tuple) else repr(iterator)


def _item(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_item, value))
    return _position(value) if takes(type(value)) and hasattr(value, "__next__") else value
