"""Artifacts as bytes.

    magic, 8 bytes length, JSON header, blobs one after the other

The header is the dataclasses of an artifact written out by name; byte strings in it refer to the blobs. It holds no
address and no time, so two processes that compile the same source write the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tilewright.base.errors import CompileError
from tilewright.base.location import SourceLocation
from tilewright.base.signature import (
    Dim,
    PointerParam,
    ScalarParam,
    Signature,
    StreamParam,
    TensorParam,
    TupleParam,
)
from tilewright.targets.artifact import Artifact, KernelImage
from tilewright.targets.target import back_end

FORMAT: Final = 2
"""Version of this format and of the interface between host programs and who loads them."""

_MAGIC: Final = b"tilewright artifact\0"
_LENGTH: Final = struct.Struct("<Q")


def to_bytes(artifact: Artifact) -> bytes:
    """The artifact as bytes."""
    blobs: list[bytes] = []
    header = json.dumps({"format": FORMAT, "artifact": encode(artifact, blobs)}, separators=(",", ":")).encode()
    return b"".join((_MAGIC, _LENGTH.pack(len(header)), header, *blobs))


def from_bytes(data: bytes) -> Artifact:
    """The artifact that `to_bytes` wrote.

    Raises:
        CompileError: the bytes are damaged, of another version, or of a back end that is not registered.
    """
    try:
        return _read(data)
    except (struct.error, ValueError, KeyError, TypeError, AssertionError) as error:
        raise CompileError("the artifact is damaged", values={"bytes": len(data), "reason": error}) from error


_CLASSES: Final[dict[str, Any]] = {
    cls.__name__: cls
    for cls in (
        Artifact, KernelImage, SourceLocation, Signature, Dim, TensorParam, ScalarParam, PointerParam,
        StreamParam, TupleParam,
    )
}  # fmt: skip


def encode(value: Any, blobs: list[bytes] | None = None) -> Any:
    """Dataclasses of this module as JSON objects; byte strings go to `blobs`."""
    if isinstance(value, bytes):
        if blobs is None:
            raise TypeError("no place for bytes")
        blobs.append(value)
        return {"": "bytes", "size": len(value)}
    if isinstance(value, dict):
        return {"": "dict", "items": [[name, encode(item, blobs)] for name, item in value.items()]}
    if isinstance(value, tuple):
        return [encode(item, blobs) for item in value]
    if dataclasses.is_dataclass(value):
        members = {field.name: encode(getattr(value, field.name), blobs) for field in dataclasses.fields(value)}
        return {"": type(value).__name__, **members}
    return value


def decode(value: Any, blobs: Any = None, classes: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The inverse of `encode`; `blobs(size)` gives the next byte string, `classes` are further ones by name."""
    if isinstance(value, list):
        return tuple(decode(item, blobs, classes) for item in value)
    if not isinstance(value, dict):
        return value
    members = dict(value)
    kind = members.pop("")
    if kind == "bytes":
        return blobs(members["size"])
    if kind == "dict":
        return {name: decode(item, blobs, classes) for name, item in members["items"]}
    made = classes.get(kind) or _CLASSES[kind]
    return made(**{name: decode(item, blobs, classes) for name, item in members.items()})


def _read(data: bytes) -> Artifact:
    if not data.startswith(_MAGIC):
        raise ValueError("it does not start as artifacts do")
    (size,) = _LENGTH.unpack_from(data, len(_MAGIC))
    start = len(_MAGIC) + _LENGTH.size
    header = json.loads(data[start : start + size])
    if header["format"] != FORMAT:
        values = {"format": header["format"], "this version reads": FORMAT}
        raise CompileError("the artifact was written by another version", values=values, hint="compile again")
    position = start + size

    def take(length: int) -> bytes:
        nonlocal position
        position += length
        if position > len(data):
            raise ValueError("it ends too early")
        return data[position - length : position]

    options = back_end(header["artifact"]["back_end"]).options
    made = decode(header["artifact"], take, {options.__name__: options})
    if not isinstance(made, Artifact) or position != len(data):
        raise ValueError("it holds something else")
    return made
