"""Compiled functions as data: all that running and exporting one takes, without MLIR.

    magic, 8 bytes length, JSON header, blobs one after the other

The header is the dataclasses below written out by name; byte strings in it refer to the blobs. It holds no address and
no time, so two processes that compile the same source write the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.options import Options
from tilewright.targets.target import back_end

FORMAT: Final = 2
"""Version of this format and of the interface between host programs and who loads them."""

Parts = dict[str, str | bytes]

_MAGIC: Final = b"tilewright artifact\0"
_LENGTH: Final = struct.Struct("<Q")


@dataclass(frozen=True)
class KernelImage:
    """A kernel: the texts and bytes of the stages that its back end keeps; `user_text`: the user replaced a stage."""

    name: str
    stages: dict[str, str | bytes]
    smem_bytes: int
    launched_at: SourceLocation | None
    user_text: bool


@dataclass(frozen=True)
class Artifact:
    """A compiled function.

    Attributes:
        name: of the function.
        entry: the symbol of its host function.
        back_end: what made it.
        arch: the architecture compiled for.
        options: what it was compiled with.
        signature: what a call takes.
        stages: what the back end keeps of the host function.
        kernels: in the order of their numbers in the host function.
        inlined: lines of inlined helpers, with their callers.
    """

    name: str
    entry: str
    back_end: str
    arch: str
    options: Options
    signature: Signature
    stages: dict[str, str | bytes]
    kernels: tuple[KernelImage, ...]
    inlined: tuple[SourceLocation, ...] = ()

    def to_bytes(self) -> bytes:
        """The artifact as bytes."""
        blobs: list[bytes] = []
        header = json.dumps({"format": FORMAT, "artifact": encode(self, blobs)}, separators=(",", ":")).encode()
        return b"".join((_MAGIC, _LENGTH.pack(len(header)), header, *blobs))

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """The artifact that `to_bytes` wrote.

        Raises:
            CompileError: the bytes are damaged, or of another version.
        """
        try:
            return _read(data)
        except (struct.error, ValueError, KeyError, TypeError, AssertionError) as error:
            raise CompileError("the artifact is damaged", values={"bytes": len(data), "reason": error}) from error


def artifact_of(job: Job, parts: Parts, kernel_parts: Callable[[KernelJob], Parts]) -> Artifact:
    """What a finished compilation made, with the parts that its back end keeps of host function and kernels."""
    return Artifact(
        name=job.name,
        entry=job.entry,
        back_end=job.back_end,
        arch=job.arch,
        options=job.options,
        signature=job.signature,
        stages=parts,
        kernels=tuple(_image(kernel, kernel_parts(kernel)) for kernel in job.kernels.values()),
        inlined=job.inlined,
    )


def _image(kernel: KernelJob, parts: Parts) -> KernelImage:
    return KernelImage(
        name=kernel.name,
        stages=parts,
        smem_bytes=kernel.smem_bytes,
        launched_at=kernel.launched_at,
        user_text=kernel.user_text,
    )


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
