"""The stages of a compiled function as mappings, made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.compiler import stages
from tilewright.lang.diagnostics.tracebacks import OnlyUserFrames
from tilewright.lang.locations import ErrorsLocated
from tilewright.targets.artifact import Artifact, KernelImage
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.target import BackEnd


class StageMap(Mapping[str, Any]):
    """Stage name to text, or to bytes. What was not made yet is made when asked for.

    A function with several kernels has one text for the stages that hold the whole program, such as `python` and
    `cute`, and for the other stages a mapping by kernel name.
    """

    def __init__(self, back_end: BackEnd, artifact: Artifact, job: Job | None, kernel: KernelJob | None = None) -> None:
        self._back_end = back_end
        self._artifact = artifact
        self._job = job
        self._kernel = kernel

    def __getitem__(self, name: str) -> Any:
        stage = self._back_end.stage(name)
        if self._job is None:
            raise CompileError(
                f"{self._artifact.name} was not compiled by this process, so its stages are not at hand",
                hint="compile it again: cute.compile always compiles",
            )
        if name not in self._job.finished:
            with OnlyUserFrames(), ErrorsLocated():
                stages.run(self._job, name)
        if name == "python":
            return (self._kernel or self._job).python()
        if self._kernel is not None:
            return self._kernel.texts[name]
        if stage.whole:
            return self._job.texts[name]
        texts = {kernel.name: kernel.texts[name] for kernel in self._job.kernels.values()}
        if not texts:
            raise CompileError(f"{self._job.name} launches no kernel, so there is no stage {name}")
        return next(iter(texts.values())) if len(texts) == 1 else texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._back_end.stage_names)

    def __len__(self) -> int:
        return len(self._back_end.stages)


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel of a compiled function; `image` is what its artifact keeps of it."""

    name: str
    stages: StageMap
    arch: str
    image: KernelImage
    back_end: BackEnd

    @property
    def info(self) -> Any:
        """What the machine code says of the kernel: registers, spills, memory, parameters."""
        return self.back_end.kernel_info(self)

    @property
    def cubin(self) -> Any:
        """Machine code that was made before the function was loaded; None where a device needs none."""
        return self.image.stages.get("cubin")


def kernels_of(back_end: BackEnd, artifact: Artifact, job: Job | None) -> dict[str, CompiledKernel]:
    """The kernels of an artifact by name, in the order of their launches."""
    jobs = job.kernels if job is not None else {}
    return {
        image.name: CompiledKernel(
            image.name, StageMap(back_end, artifact, job, jobs.get(image.name)), artifact.arch, image, back_end
        )
        for image in artifact.kernels
    }
