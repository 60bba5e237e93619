"""Launches of a compiled function as programs of the emulator; loaded when the first of them comes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tilewright.base import settings
from tilewright.base.errors import ArgumentError, CompileError, EmulationError, TilewrightError
from tilewright.base.lazy import function_at
from tilewright.targets import emu
from tilewright.targets.artifact import Artifact, KernelImage
from tilewright.targets.emu.recording import add_report, overridden
from tilewright.targets.host.function import LaunchConfig
from tilewright.targets.inlined import name_calls
from tilewright.targets.nvidia.backend.options import options_of
from tilewright.targets.nvidia.backend.parts import PROFILE, regions_of
from tilewright.targets.nvidia.profiling.profile_buffer import SYMBOL, profile_of, read
from tilewright.targets.nvidia.profiling.profile_ptx import own
from tilewright.targets.profile import Profile

_assemble_text = function_at("tilewright.targets.nvidia.backend.assembling:assemble_text")
PROFILED = "call it outside of `with emulate.devices(...)`: what it records lies in memory that all devices share"


class Emulation:
    """The kernels of an artifact on the emulator; `profiles` is what the timed ones recorded.

    Raises:
        ArgumentError: `checks` is nothing that the emulator's `Options` take.
    """

    def __init__(self, artifact: Artifact, checks: Any) -> None:
        self._artifact = artifact
        self._options = emu.Options(checks=checks, all_arrive=True)
        self.profiles: list[Profile] = []

    def program(self, kernel: KernelImage) -> emu.Program:
        """The kernel's PTX, compiled. What the emulator cannot take may be wrong: then the assembler says how."""
        try:
            program = emu.load(str(kernel.stages["ptx"]))
            program.image(kernel.name, self._options.checked)
        except EmulationError:
            _assemble(kernel, self._artifact)
            raise
        return program

    def launch(
        self,
        kernel: KernelImage,
        config: LaunchConfig,
        params: Any,
        buffers: Sequence[tuple[int, int, bool]],
        values: Sequence[Any],
    ) -> emu.Report | None:
        """Run a kernel over the parameters at `params`: its report; None where it runs later, on one of a fleet.

        `buffers` is the memory that it may touch, `values` what keeps this memory.
        """
        try:
            return self._launch(kernel, config, params, buffers, values)
        except TilewrightError as error:
            self._placed(kernel, error)
            raise

    def _placed(self, kernel: KernelImage, error: TilewrightError) -> None:
        """Say in an error what lines of the source it is about."""
        if error.location is None:
            error.location = kernel.launched_at
        name_calls(error, self._artifact.inlined)

    def _launch(
        self,
        kernel: KernelImage,
        config: LaunchConfig,
        params: Any,
        buffers: Sequence[tuple[int, int, bool]],
        values: Sequence[Any],
    ) -> emu.Report | None:
        name = kernel.name
        program = self.program(kernel)
        sizes = [parameter.size for parameter in program.module.functions[name].params]
        raw = [ctypes.string_at(params[index], size) for index, size in enumerate(sizes)]
        timed, fleet = PROFILE in kernel.stages, emu.current_fleet()
        seed = settings.get("seed") if fleet is None else fleet.next_seed()
        options = replace(self._options, seed=seed, thread_clock=timed)
        shape = name, config.grid, config.block, raw
        more: dict[str, Any] = {
            "cluster": config.cluster, "smem": config.smem, "buffers": buffers, "options": overridden(options, program),
        }  # fmt: skip
        if fleet is not None:
            if timed:
                raise ArgumentError("a profiled kernel runs on one emulated device", hint=PROFILED)
            device = fleet.device_of([address for address, size, _ in buffers if size])
            fleet.enqueue(device, config.stream, values, partial(self._placed, kernel), program, *shape, **more)
            return None
        report = emu.launch(program, *shape, **more)
        add_report(report)
        if timed:
            self.profiles.append(recorded(kernel, program, options_of(self._artifact).profile_events))
        return report


def recorded(kernel: KernelImage, program: emu.Program, events: int) -> Profile:
    """What a launch recorded; its memory is empty afterwards."""
    memory = program.memory[SYMBOL]
    records, asked = read(memory.tobytes(), events)
    memory[:] = 0
    return profile_of(kernel.name, regions_of(kernel), [own(record) for record in records], asked, khz=0)


def _assemble(kernel: KernelImage, artifact: Artifact) -> None:
    """Refuse PTX that is not valid, with the assembler's words; nothing where there is no assembler."""
    try:
        _assemble_text(str(kernel.stages["ptx"]), artifact.arch, options_of(artifact), kernel.launched_at)
    except CompileError as error:
        if error.nvvm_error:
            raise
