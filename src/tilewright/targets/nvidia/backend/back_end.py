"""The back end for NVIDIA's GPUs, as the compiler sees it."""

from __future__ import annotations

import math
import operator
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tilewright.base import settings
from tilewright.base.errors import CompileError
from tilewright.base.lazy import function_at
from tilewright.hw.chips import Chip, chip, normalize_arch
from tilewright.passes.pipeline import PassManager
from tilewright.targets.artifact import Artifact, Parts
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.nvidia.backend import pass_list
from tilewright.targets.nvidia.backend.options import NvidiaOptions, shows_log
from tilewright.targets.nvidia.backend.parts import HOST_LLVM, HOST_OBJECT, PROFILE, PTXAS_LOG, REMARKS
from tilewright.targets.nvidia.backend.stages import STAGES
from tilewright.targets.nvidia.toolkit.toolchain import locate
from tilewright.targets.options import Asked, Options
from tilewright.targets.target import BackEnd

if TYPE_CHECKING:
    from tilewright.hw.occupancy import Occupancy
    from tilewright.targets.nvidia.backend.report import Report
    from tilewright.targets.nvidia.backend.source_map import SourceMap
    from tilewright.targets.nvidia.binary.cubin import KernelInfo
    from tilewright.targets.nvidia.sass.machine_code import MachineCode

# What a compilation or a look at it needs, and a function from the cache does not.
_NVIDIA = "tilewright.targets.nvidia"
_prepare = function_at(f"{_NVIDIA}.toolkit.assemble:prepare")
_library_file = function_at(f"{_NVIDIA}.toolkit.jitlink:library_file")
_read_cubin = function_at(f"{_NVIDIA}.binary.cubin:read_cubin")
_machine_code = function_at(f"{_NVIDIA}.sass.machine_code:MachineCode")
_report_of = function_at(f"{_NVIDIA}.backend.report:Report.of")
_source_map_of = function_at(f"{_NVIDIA}.backend.source_map:SourceMap.of")
_occupancy = function_at("tilewright.hw.occupancy:occupancy")
_export_c = function_at(f"{_NVIDIA}.export.object_files:export_c")
_export_tvm_ffi = function_at(f"{_NVIDIA}.export.object_files:export_tvm_ffi")


class Nvidia(BackEnd):
    """Kernels become machine code or PTX, host functions native code that calls the driver's launch function."""

    name = "nvidia"
    stages = STAGES
    options = NvidiaOptions
    default_arch = "sm_90a"
    emitted = "ptx"
    tests_on = "emu"
    devices: ClassVar = {
        "cuda": "tilewright.targets.nvidia.devices.cuda:CudaDevice",
        "emu": "tilewright.targets.nvidia.devices.emu:EmuDevice",
    }

    def normalize_arch(self, name: str) -> str:
        return normalize_arch(name)

    def standard_passes(self, arch: str, options: Options) -> PassManager:
        return pass_list.standard_pipeline(arch, options)

    def completed(self, passes: PassManager, arch: str, options: Options) -> PassManager:
        return pass_list.completed(passes, arch, options)

    def asked_of(self, passes: PassManager) -> Asked:
        return pass_list.asked_of(passes)

    def tool_files(self, options: Options) -> tuple[Path, ...]:
        names = ["libdevice", "nvJitLink", "ptxas"]
        names += ["libnvvm"] if getattr(options, "ptx_backend", "") == "nvidia-nvvm" else []
        return tuple(tool.path for tool in map(locate, names) if tool is not None)

    def job_parts(self, artifact: Artifact) -> dict[str, Any]:
        return {name: artifact.stages[name] for name in (HOST_LLVM, HOST_OBJECT)}

    def begin(self, job: Job, until: str) -> None:
        if until == "cubin":
            with settings.scope(toolkit=job.toolkit):
                _prepare()

    def files_read(self, options: Options) -> tuple[Path, ...]:
        chosen = cast(NvidiaOptions, options)
        return tuple(_library_file(name) for bitcode in (True, False) for name in chosen.linked(bitcode))

    def show(self, executor: Any) -> None:
        if shows_log(cast(NvidiaOptions, executor.artifact.options)):
            sys.stderr.write(f"{executor.ptxas_log}\n")

    def parts(self, job: Job) -> Parts:
        return {HOST_LLVM: job.parts[HOST_LLVM], HOST_OBJECT: job.parts[HOST_OBJECT].result()}

    def kernel_parts(self, kernel: KernelJob) -> Parts:
        return {
            name: kernel.texts[name] for name in ("ptx", "cubin", PTXAS_LOG, REMARKS, PROFILE) if name in kernel.texts
        }

    def chip(self, arch: str) -> Chip:
        return chip(arch)

    def report(self, executor: Any) -> Report:
        found: Report = _report_of(executor)
        return found

    def source_map(self, executor: Any) -> SourceMap:
        found: SourceMap = _source_map_of(executor)
        return found

    def occupancy(self, executor: Any, block: Any, kernel: str | None, smem: int | None) -> Occupancy:
        found = executor.kernel(kernel)
        extents = block if isinstance(block, tuple | list) else (block,)
        if not 1 <= len(extents) <= 3 or not all(hasattr(extent, "__index__") for extent in extents):
            raise CompileError(
                "block is one to three integers", values={"block": repr(block)}, hint="occupancy(256), or (16, 16, 1)"
            )
        threads = math.prod(map(operator.index, extents))
        info = self.kernel_info(found)
        dynamic = found.image.smem_bytes if smem is None else smem
        limits: Occupancy = _occupancy(executor.arch, info.registers, info.shared_bytes + dynamic, threads)
        return limits

    def kernel_info(self, kernel: Any) -> KernelInfo:
        info: KernelInfo = _read_cubin(kernel.cubin or kernel.stages["cubin"]).kernels[kernel.name]
        return info

    def machine_code(self, kernel: Any) -> MachineCode:
        code: MachineCode = _machine_code(kernel.cubin or kernel.stages["cubin"], kernel.name)
        return code

    def assembler_log(self, executor: Any) -> str:
        kept = [kernel.image.stages.get(PTXAS_LOG) for kernel in executor.kernels.values()]
        if None in kept:  # this target has needed no cubin
            executor.stages["cubin"]
            kept = [kernel.texts.get(PTXAS_LOG) for kernel in executor.job.kernels.values()]
        return "\n".join(str(log) for log in kept if log)

    def export_c(self, artifact: Artifact, folder: str | Path, file_name: str, prefix: str) -> list[Path]:
        paths: list[Path] = _export_c(artifact, folder, file_name, prefix)
        return paths

    def export_tvm_ffi(self, artifact: Artifact, path: str | Path, name: str) -> list[Path]:
        paths: list[Path] = _export_tvm_ffi(artifact, path, name)
        return paths


BACK_END = Nvidia()
