"""The protocol of back ends, and their registry.

A *back end* makes artifacts: it owns the stages, the pass list, the architectures, the options and the parts of an
artifact, and with them how a host function launches kernels. A *device* runs artifacts (`targets.device`). A *target*,
the word of `cute.compile(target=)`, is the name of a device. The compiler knows back ends by this module alone, and
back ends do not know each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tilewright.base.errors import CompileError
from tilewright.base.lazy import object_at
from tilewright.targets.options import Asked, Options

if TYPE_CHECKING:
    from tilewright.arguments.binding import BoundCall
    from tilewright.passes.pipeline import PassManager
    from tilewright.targets.artifact import Artifact
    from tilewright.targets.device import Device
    from tilewright.targets.job import Job, KernelJob
    from tilewright.targets.stage import Stage


class BackEnd(ABC):
    """What a back end owns. The methods that only raise are what a back end may leave out."""

    name: ClassVar[str]
    stages: ClassVar[tuple[Stage, ...]]
    """In order; the first two are `python` and `cute`, see `targets.cute_stage`."""
    devices: ClassVar[Mapping[str, str]]
    """Target name to `module:class` of the device, imported when it is first used. Of those that are available the
    first is the default."""
    options: ClassVar[type[Options]] = Options
    default_arch: ClassVar[str]
    emitted: ClassVar[str]
    """The stage that `tilewright compile` writes where none is named."""
    tests_on: ClassVar[str]
    """The target on which `validate=` runs programs; it takes NumPy arrays."""

    # What is compiled, and how.

    @abstractmethod
    def normalize_arch(self, name: str) -> str:
        """The architecture by its one name.

        Raises:
            CompileError: there is no such architecture.
        """

    @abstractmethod
    def standard_passes(self, arch: str, options: Options) -> PassManager:
        """The pass list of a compilation that names none."""

    @abstractmethod
    def completed(self, passes: PassManager, arch: str, options: Options) -> PassManager:
        """A user's pass list with the standard passes that it leaves out."""

    def asked_of(self, passes: PassManager) -> Asked:
        """What the options of passes in a user's list ask of the compilation."""
        return Asked()

    def bound(self, call: BoundCall) -> BoundCall:
        """The arguments of a compilation as the back end takes them; it may fix extents that others leave open."""
        return call

    def begin(self, job: Job, until: str) -> None:
        """Called before the stages run up to `until`: to start what takes a while beside them."""
        return

    def files_read(self, options: Options) -> tuple[Path, ...]:
        """The files that options name and whose content becomes part of the code."""
        return ()

    def tool_files(self, options: Options) -> tuple[Path, ...]:
        """The programs and libraries that make code of MLIR's or LLVM's, for the keys of caches."""
        return ()

    def job_parts(self, artifact: Artifact) -> dict[str, Any]:
        """What `Job.parts` held of an artifact's host function, and no text of it."""
        return {}

    def show(self, executor: Any) -> None:
        """Print what options ask to be shown of a compilation, also of one that a cache has kept."""
        return

    # What is kept.

    @abstractmethod
    def parts(self, job: Job) -> dict[str, str | bytes]:
        """What the artifact keeps of the host function."""

    @abstractmethod
    def kernel_parts(self, kernel: KernelJob) -> dict[str, str | bytes]:
        """What the artifact keeps of a kernel."""

    # What a compiled function says of itself.

    def chip(self, arch: str) -> Any:
        """Facts of the architecture."""
        raise self.lacks("table of chips")

    def report(self, executor: Any) -> Any:
        """What the kernels of a compiled function cost; prints as a table."""
        raise self.lacks("report")

    def occupancy(self, executor: Any, block: Any, kernel: str | None, smem: int | None) -> Any:
        """How much of the machine blocks of `block` threads fill."""
        raise self.lacks("occupancy")

    def machine_code(self, kernel: Any) -> Any:
        """The machine code of a compiled kernel, to look at."""
        raise self.lacks("machine code to read")

    def source_map(self, executor: Any) -> Any:
        """From lines of Python to those of the last stages, and back."""
        raise self.lacks("source map")

    def plan(self, executor: Any) -> Any:
        """What a host needs to launch a compiled function, as plain data."""
        raise self.lacks("plan")

    def kernel_info(self, kernel: Any) -> Any:
        """What the machine code says of a kernel."""
        raise self.lacks("machine code to read")

    def assembler_log(self, executor: Any) -> str:
        """What the assembler said of a compiled function."""
        return ""

    def export_c(self, artifact: Artifact, folder: str | Path, file_name: str, prefix: str) -> list[Path]:
        """Write an object file with a C interface and its header."""
        raise self.lacks("export to C")

    def export_tvm_ffi(self, artifact: Artifact, path: str | Path, name: str) -> list[Path]:
        """Write an object file with the symbol of a tvm-ffi function."""
        raise self.lacks("export for tvm-ffi")

    # For the compiler.

    @property
    def stage_names(self) -> tuple[str, ...]:
        return tuple(stage.name for stage in self.stages)

    def stage(self, name: str) -> Stage:
        """The stage of that name.

        Raises:
            KeyError: there is none.
        """
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(f"{name!r}; the stages are {', '.join(self.stage_names)}")

    def lacks(self, what: str) -> CompileError:
        """The error for something that the back end does not have."""
        return CompileError(f"back end {self.name} has no {what}")


@dataclass(frozen=True)
class _Entry:
    """A back end that is known: the place of its object, and its targets."""

    place: str
    targets: tuple[str, ...]


_entries: Final[dict[str, _Entry]] = {}


def register(name: str, place: str, targets: Sequence[str]) -> None:
    """Make a back end known: `place` is `module:object`, imported when one of its `targets` is first used.

    Raises:
        CompileError: another back end has one of the targets.
    """
    for target in targets:
        owner = next((known for known, entry in _entries.items() if target in entry.targets and known != name), None)
        if owner is not None:
            raise CompileError(f"target {target!r} belongs to back end {owner}", hint="give the device another name")
    _entries[name] = _Entry(place, tuple(targets))


def target_names() -> tuple[str, ...]:
    """All targets, in the order in which their back ends were registered."""
    return tuple(target for entry in _entries.values() for target in entry.targets)


def back_end_names() -> tuple[str, ...]:
    """All back ends, in the order in which they were registered."""
    return tuple(_entries)


def back_end(name: str) -> BackEnd:
    """The back end called `name`.

    Raises:
        CompileError: there is none.
    """
    if name not in _entries:
        raise CompileError(f"unknown back end {name!r}", hint=f"back ends: {', '.join(_entries)}")
    found: BackEnd = object_at(_entries[name].place)
    return found


def default_back_end() -> BackEnd:
    """The one registered first."""
    return back_end(next(iter(_entries)))


def back_end_of(target: str) -> BackEnd:
    """The back end that compiles for a target.

    Raises:
        CompileError: there is no such target.
    """
    for name, entry in _entries.items():
        if target in entry.targets:
            return back_end(name)
    raise CompileError(f"unknown target {target!r}", hint=f"targets: {', '.join(target_names())}")


def device_of(target: str) -> type[Device]:
    """The class of the device that a target names.

    Raises:
        CompileError: there is no such target.
    """
    found: type[Device] = object_at(back_end_of(target).devices[target])
    return found


register("nvidia", "tilewright.targets.nvidia.backend.back_end:BACK_END", ("cuda", "emu"))
register("tenstorrent", "tilewright.targets.tenstorrent.back_end:BACK_END", ("tenstorrent",))
