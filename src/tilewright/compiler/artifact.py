"""Compiled functions as data: all that running and exporting one takes, without MLIR.

    magic, 8 bytes length, JSON header, blobs one after the other

The header is the dataclasses below written out by name; byte strings in it refer to the blobs. It holds no address and
no time, so two processes that compile the same source write the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from dataclasses import dataclass
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
from tilewright.compiler.job import Job, KernelJob
from tilewright.compiler.options import Options

FORMAT: Final = 1
"""Version of this format and of the interface between host programs and who loads them."""

_MAGIC: Final = b"tilewright artifact\0"
_LENGTH: Final = struct.Struct("<Q")


@dataclass(frozen=True)
class KernelImage:
    """A kernel: `cubin` is None where only the emulator needed it; `user_text` says that the user replaced a stage."""

    name: str
    ptx: str
    cubin: bytes | None
    smem_bytes: int
    launched_at: SourceLocation | None
    user_text: bool


@dataclass(frozen=True)
class Artifact:
    """A compiled function.

    Attributes:
        name: of the function.
        entry: the symbol of its host function in `host_llvm`.
        arch: the chip compiled for.
        options: what it was compiled with.
        signature: what a call takes.
        program: the host program, see `targets.host.bundle`.
        host_llvm: the host function as LLVM IR, which exports are made from.
        kernels: in the order of their numbers in the host program.
        inlined: lines of inlined helpers, with their callers.
    """

    name: str
    entry: str
    arch: str
    options: Options
    signature: Signature
    program: bytes
    host_llvm: str
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


def artifact_of(job: Job) -> Artifact:
    """What a finished compilation made; waits for the host program."""
    assert job.host_program is not None
    return Artifact(
        name=job.name,
        entry=job.entry,
        arch=job.arch,
        options=job.options,
        signature=job.signature,
        program=job.host_program.result(),
        host_llvm=job.host_llvm,
        kernels=tuple(_image(kernel) for kernel in job.kernels.values()),
        inlined=job.inlined,
    )


def _image(kernel: KernelJob) -> KernelImage:
    return KernelImage(
        name=kernel.name,
        ptx=kernel.texts["ptx"],
        cubin=kernel.texts.get("cubin"),
        smem_bytes=kernel.smem_bytes,
        launched_at=kernel.launched_at,
        user_text=kernel.user_text,
    )


_CLASSES: Final[dict[str, Any]] = {
    cls.__name__: cls
    for cls in (
        Artifact, KernelImage, Options, SourceLocation, Signature, Dim, TensorParam, ScalarParam, PointerParam,
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
    if isinstance(value, tuple):
        return [encode(item, blobs) for item in value]
    if dataclasses.is_dataclass(value):
        members = {field.name: encode(getattr(value, field.name), blobs) for field in dataclasses.fields(value)}
        return {"": type(value).__name__, **members}
    return value


def decode(value: Any, blobs: Any = None) -> Any:
    """The inverse of `encode`; `blobs(size)` gives the next byte string."""
    if isinstance(value, list):
        return tuple(decode(item, blobs) for item in value)
    if not isinstance(value, dict):
        return value
    members = dict(value)
    kind = members.pop("")
    if kind == "bytes":
        return blobs(members["size"])
    return _CLASSES[kind](**{name: decode(item, blobs) for name, item in members.items()})


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

    made = decode(header["artifact"], take)
    if not isinstance(made, Artifact) or position != len(data):
        raise ValueError("it holds something else")
    return made
