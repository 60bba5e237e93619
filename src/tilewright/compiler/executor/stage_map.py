"""The stages of a compiled function as mappings, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import CompileError
from tilewright.compiler import stages
from tilewright.lang.diagnostics.tracebacks import OnlyUserFrames
from tilewright.lang.locations import ErrorsLocated
from tilewright.targets.artifact import Artifact, KernelImage
from tilewright.targets.job import Job
from tilewright.targets.target import BackEnd

Compilation = Callable[[], Job]
"""Gives the compilation that made an artifact, by this process or one before; it is read when it is asked for."""


class StageMap(Mapping[str, Any]):
    """Stage name to text, or to bytes. What was not made yet is made when asked for.

    A function with several kernels has one text for the stages that hold the whole program, such as `python` and
    `cute`, and for the other stages a mapping by kernel name.
    """

    def __init__(
        self, back_end: BackEnd, artifact: Artifact, compilation: Compilation | None, kernel: str | None = None
    ) -> None:
        self._back_end = back_end
        self._artifact = artifact
        self._compilation = compilation
        self._kernel = kernel

    def __getitem__(self, name: str) -> Any:
        stage = self._back_end.stage(name)
        if self._compilation is None:
            raise CompileError(
                f"{self._artifact.name} was not compiled by this process, so its stages are not at hand",
                hint="compile it again: cute.compile(..., no_cache=True)",
            )
        job = self._compilation()
        if name not in job.finished:
            with OnlyUserFrames(), ErrorsLocated():
                stages.run(job, name)
        if self._kernel is not None:
            kernel = job.kernels[self._kernel]
            return kernel.python() if name == "python" else kernel.texts[name]
        if name == "python":
            return job.python()
        if stage.whole:
            return job.texts[name]
        texts = {kernel.name: kernel.texts[name] for kernel in job.kernels.values()}
        if not texts:
            raise CompileError(f"{job.name} launches no kernel, so there is no stage {name}")
        return next(iter(texts.values())) if len(texts) == 1 else texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._back_end.stage_names)

    def __len__(self) -> int:
        return len(self._back_end.stages)

    def __repr__(self) -> str:
        names = list(self)
        return (
            f"<stages of {self._kernel or self._artifact.name}: {' '.join(names)}; read one as stages[{names[-1]!r}]>"
        )


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


def kernels_of(back_end: BackEnd, artifact: Artifact, compilation: Compilation | None) -> dict[str, CompiledKernel]:
    """The kernels of an artifact by name, in the order of their launches."""
    return {
        image.name: CompiledKernel(
            image.name, StageMap(back_end, artifact, compilation, image.name), artifact.arch, image, back_end
        )
        for image in artifact.kernels
    }
