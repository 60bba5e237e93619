"""What a compiled function says of itself: its stages, figures and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import CompileError
from tilewright.compiler.executor.stage_files import write_stages
from tilewright.compiler.executor.stage_map import Compilation, CompiledKernel, StageMap, kernels_of
from tilewright.compiler.viewers import viewer
from tilewright.targets.artifact import Artifact
from tilewright.targets.job import Job
from tilewright.targets.target import back_end

if TYPE_CHECKING:
    from tilewright.hw.occupancy import Occupancy


class Inspection:
    """An artifact, and the compilation that made it where this process did; the back end answers for both."""

    def __init__(self, artifact: Artifact, compilation: Compilation | None) -> None:
        self.artifact = artifact
        self.back_end = back_end(artifact.back_end)
        self.stages = StageMap(self.back_end, artifact, compilation)
        self.kernels = kernels_of(self.back_end, artifact, compilation)
        self.cached = ""
        """Where the function was found: "memory" or "disk"; "" for one that was compiled."""
        self._compilation = compilation

    @property
    def name(self) -> str:
        return self.artifact.name

    @property
    def arch(self) -> str:
        return self.artifact.arch

    @property
    def signature(self) -> Any:
        """What a call takes, see `base.signature`."""
        return self.artifact.signature

    @property
    def chip(self) -> Any:
        """Facts of the chip compiled for."""
        return self.back_end.chip(self.arch)

    @property
    def plan(self) -> Any:
        """What a host needs to launch the function, of a back end that has no host code of its own."""
        return self.back_end.plan(self)

    # The compilation.

    @property
    def job(self) -> Job:
        """The compilation: options, pass list, and what each stage made, and how long it took.

        Raises:
            CompileError: another process compiled the function.
        """
        if self._compilation is None:
            raise CompileError(
                f"{self.name} was not compiled by this process",
                hint="compile it again: cute.compile(..., no_cache=True)",
            )
        return self._compilation()

    @property
    def pipeline(self) -> str:
        """The pass list, as `cute.compile(pipeline=)` reads it."""
        return str(self.job.pipeline)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that each stage took."""
        return dict(self.job.seconds)

    @property
    def pass_timings(self) -> list[tuple[str, float]]:
        """Seconds that each pass took, in order."""
        return [(item.name, item.seconds) for item in self.job.pass_runs]

    @property
    def operations(self) -> dict[str, int]:
        """Operations in the module after each stage that has one."""
        return dict(self.job.operations)

    # Stages under other names.

    @property
    def __mlir__(self) -> str:
        return str(self.stages["cute"])

    _module = __mlir__

    @property
    def __ptx__(self) -> Any:
        return self.stages["ptx"]

    @property
    def __cubin__(self) -> Any:
        return self.stages["cubin"]

    @property
    def __sass__(self) -> Any:
        return self.stages["sass"]

    @property
    def host_llvm(self) -> str:
        """The host function as LLVM IR, where that is what the back end makes of it."""
        if "host_llvm" not in self.artifact.stages:
            raise self.back_end.lacks("host function as LLVM IR")
        return str(self.artifact.stages["host_llvm"])

    @property
    def ptxas_log(self) -> str:
        """What the assembler said, for all kernels."""
        return self.back_end.assembler_log(self)

    # Figures.

    def report(self) -> Any:
        """Registers, spills, memory and occupancy of every kernel; prints as a table."""
        return self.back_end.report(self)

    def machine_code(self, kernel: str | None = None) -> Any:
        """The machine code of a kernel: instructions by kind, accesses, branches, blocks, live registers, graph.

        Raises:
            CompileError: no such kernel was compiled.
        """
        return self.back_end.machine_code(self.kernel(kernel))

    @property
    def source_map(self) -> Any:
        """From Python lines to PTX and SASS lines, and back."""
        return self.back_end.source_map(self)

    def occupancy(
        self, block: int | tuple[int, ...], *, kernel: str | None = None, smem: int | None = None
    ) -> Occupancy:
        """Active warps of the most a multiprocessor holds, with blocks of `block` threads.

        `smem` is the dynamic shared memory in bytes; by default what the kernel allocates.

        Raises:
            CompileError: `block` is not one to three integers, or no such kernel was compiled.
        """
        made: Occupancy = self.back_end.occupancy(self, block, kernel, smem)
        return made

    def smem_bytes(self, kernel: str | None = None) -> int:
        """Bytes of shared memory that a kernel allocates with `SmemAllocator`."""
        return self.kernel(kernel).image.smem_bytes

    def kernel(self, name: str | None) -> CompiledKernel:
        """The kernel of that name; without one the only kernel.

        Raises:
            CompileError: there is none, or there are several.
        """
        if name is None and len(self.kernels) == 1:
            return next(iter(self.kernels.values()))
        if name not in self.kernels:
            raise CompileError(
                f"{self.name} has no kernel {name!r}" if name else f"{self.name} has {len(self.kernels)} kernels",
                hint=f"give kernel=, one of: {', '.join(self.kernels) or 'none'}",
            )
        return self.kernels[name]

    def explore(self, *values: Any, path: str | Path | None = None, seconds: float = 60.0) -> Path:
        """Write a page with all stages side by side, for a browser; gives its path.

        With the arguments of a call the function, compiled for the emulator, runs once, and the page shows what each
        line cost. `path` is by default `<function>.<arch>.html`; the run may take `seconds`.

        Raises:
            ArgumentError: arguments were given, and the function was not compiled for the emulator.
        """
        made: Path = viewer("explore")(self, values, path, seconds)
        return made

    # Files.

    def write(self, folder: str | Path, names: Sequence[str]) -> list[Path]:
        """Write stages as `<function>.<arch>.<extension>`; with several kernels each has its own file.

        A file that holds something else is kept: the new one gets a number.
        """
        return write_stages(self, folder, names)

    def export_to_c(
        self,
        object_file_path: str | Path | None = None,
        function_name: str | None = None,
        *,
        file_path: str | Path | None = None,
        file_name: str | None = None,
        function_prefix: str | None = None,
    ) -> list[Path]:
        """Write the function and its kernels as an object file; gives the files written.

        With `object_file_path` and `function_name` the object has the tvm-ffi symbol `__tvm_ffi_<function_name>`;
        with `file_path` (a folder), `file_name` and `function_prefix` (default: the file's name) it has a C interface,
        declared in `<file_name>.h` beside it.

        Raises:
            CompileError: the forms are mixed, a name is no C identifier, or a parameter has no C type.
        """
        if object_file_path is not None and file_path is None and file_name is None and function_prefix is None:
            return self.back_end.export_tvm_ffi(self.artifact, object_file_path, function_name or self.name)
        if file_path is not None and file_name is not None and object_file_path is None and function_name is None:
            return self.back_end.export_c(self.artifact, file_path, file_name, function_prefix or file_name)
        raise CompileError(
            "export_to_c takes one of two forms",
            hint='export_to_c("add.o", function_name="add") for tvm-ffi, or export_to_c(file_path="build", '
            'file_name="add", function_prefix="add") for C',
        )
