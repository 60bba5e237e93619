"""Compiled functions as bytes on disk: data, never code.

    magic, digest of the rest, length of the header, header (JSON), artifact, what the compilation said (JSON, packed)

The header holds the key, so that a file under another name is noticed. The last part is what `executor.stages` and its
kin show; it is unpacked when they are asked for.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from tilewright.base.errors import CompileError
from tilewright.compiler.plan import Plan
from tilewright.passes.pipeline import PassManager, PassRun
from tilewright.targets import artifact_bytes
from tilewright.targets.artifact import Artifact
from tilewright.targets.cute_stage import print_later
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.target import back_end

MAGIC: Final = b"tilewright cache 1\0"
_DIGEST: Final = 32
_LENGTHS: Final = struct.Struct("<QQ")
_START: Final = len(MAGIC) + _DIGEST


class DamagedError(Exception):
    """Bytes that are no entry, or not the one that was asked for."""


def sealed(payload: bytes) -> bytes:
    """Bytes with the magic and their digest before them."""
    return MAGIC + hashlib.blake2b(payload, digest_size=_DIGEST).digest() + payload


def unsealed(data: bytes) -> bytes:
    """What `sealed` was given.

    Raises:
        DamagedError: it is not as it was written.
    """
    payload = data[_START:]
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedError("it does not begin as entries do")
    if hashlib.blake2b(payload, digest_size=_DIGEST).digest() != data[len(MAGIC) : _START]:
        raise DamagedError("its digest is wrong")
    return payload


def entry_bytes(key: str, artifact: Artifact, job: Job) -> bytes:
    """An entry for what a compilation made."""
    header = json.dumps({"key": key, "name": artifact.name, "arch": artifact.arch}).encode()
    body = artifact_bytes.to_bytes(artifact)
    said = zlib.compress(json.dumps(_said(job, artifact), separators=(",", ":")).encode(), 1)
    return sealed(b"".join((_LENGTHS.pack(len(header), len(body)), header, body, said)))


@dataclass(frozen=True)
class Entry:
    """A compiled function that was kept."""

    artifact: Artifact
    _said: bytes

    @classmethod
    def read(cls, data: bytes, key: str) -> Entry:
        """The entry under `key`.

        Raises:
            DamagedError: the bytes are not what was written under this key.
        """
        payload = unsealed(data)
        header, body, said = _split(payload)
        if header.get("key") != key:
            raise DamagedError("it is the entry of another key")
        try:
            return cls(artifact_bytes.from_bytes(body), said)
        except CompileError as error:
            raise DamagedError(str(error).partition("\n")[0]) from error

    def for_plan(self, made: Plan) -> Artifact:
        """The artifact with the options of this compilation: those that change no code may differ."""
        return replace(self.artifact, options=made.options)

    def job(self, made: Plan, source: Callable[[], str], trace: Callable[[Job], Any]) -> Job:
        """The compilation as it was when it ended; `source` gives the Python text."""
        said = json.loads(zlib.decompress(self._said))
        job = replace(made.job(trace, source), entry=self.artifact.entry, inlined=self.artifact.inlined)
        for name in ("seconds", "operations", "finished"):
            setattr(job, name, said[name])
        if str(job.pipeline) != said["pipeline"]:  # passes were added for what the program needs
            job.pipeline = PassManager.parse(said["pipeline"])
        job.pass_runs = [PassRun(name, seconds) for name, seconds in said["pass_runs"]]
        job.locations = list(artifact_bytes.decode(said["locations"]))
        job.parts = {**said["parts"], **back_end(job.back_end).job_parts(self.artifact)}
        job.kernels = {item["name"]: self._kernel(item, job) for item in said["kernels"]}
        for stage, code in said["bytecode"].items():
            print_later(job, stage, base64.b64decode(code))
        job.texts.update(said["texts"])
        for item in said["kernels"]:
            job.kernels[item["name"]].texts.update(item["texts"])
        return job

    def _kernel(self, said: dict[str, Any], job: Job) -> KernelJob:
        image = next(kernel for kernel in self.artifact.kernels if kernel.name == said["name"])
        made = KernelJob(
            name=said["name"],
            python=lambda: _kernel_source(job, said["name"]),
            launched_at=image.launched_at,
            features=tuple(said["features"]),
            smem_bytes=image.smem_bytes,
            user_text=image.user_text,
            changed_by=said["changed_by"],
            in_child=said["in_child"],
        )
        made.texts.update(image.stages)
        return made


def described(data: bytes) -> dict[str, Any]:
    """The header of an entry, for lists: `key`, `name`, `arch`.

    Raises:
        DamagedError: it is no entry.
    """
    return _split(unsealed(data))[0]


def _split(payload: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    header, body = _LENGTHS.unpack_from(payload)
    start = _LENGTHS.size + header
    found = json.loads(payload[_LENGTHS.size : start])
    return found, payload[start : start + body], payload[start + body :]


def _said(job: Job, artifact: Artifact) -> dict[str, Any]:
    images = {kernel.name: kernel for kernel in artifact.kernels}
    return {
        "texts": _rest(job.texts.made(), {}),
        "bytecode": {stage: base64.b64encode(code).decode() for stage, code in job.bytecode.items()},
        "seconds": job.seconds,
        "operations": job.operations,
        "finished": job.finished,
        "pipeline": str(job.pipeline),
        "pass_runs": [[item.name, item.seconds] for item in job.pass_runs],
        "locations": artifact_bytes.encode(tuple(job.locations)),
        "parts": {name: part for name, part in job.parts.items() if isinstance(part, str)},
        "kernels": [
            {
                "name": kernel.name,
                "texts": _rest(kernel.texts.made(), images[kernel.name].stages),
                "features": kernel.features,
                "changed_by": kernel.changed_by,
                "in_child": kernel.in_child,
            }
            for kernel in job.kernels.values()
        ],
    }


def _rest(texts: dict[str, Any], kept: dict[str, Any]) -> dict[str, str]:
    """The texts that the artifact does not have anyway."""
    found = {name: texts[name] for name in texts if name not in kept}
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _kernel_source(job: Job, kernel: str) -> str:
    """The Python text of a kernel, which only tracing finds."""
    again = replace(job, kernels={}, finished=[])
    again.trace(again)
    return again.kernels[kernel].python()
