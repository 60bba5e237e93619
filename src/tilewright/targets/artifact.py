"""Compiled functions as data: all that running and exporting one takes, without MLIR. `targets.artifact_bytes` writes
and reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.base.location import SourceLocation
from tilewright.base.signature import Signature
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.options import Options

Parts = dict[str, str | bytes]


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
