"""Running a compiled function on the emulator: its launches arrive here instead of at the driver."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tilewright.arguments.dlpack import view
from tilewright.arguments.host_memory import mapping_of
from tilewright.arguments.objects import Addresses
from tilewright.arguments.runtime_tensor import RuntimeTensor, is_tensor
from tilewright.base import settings
from tilewright.base.errors import ArgumentError, CompileError, EmulationError, TilewrightError
from tilewright.base.interrupts import is_outside, reraise_lost
from tilewright.base.signature import Param, PointerParam, TensorParam, TupleParam
from tilewright.targets import emu
from tilewright.targets.artifact import Artifact, KernelImage
from tilewright.targets.device import Device
from tilewright.targets.emu import tensormap
from tilewright.targets.emu.recording import add_report, overridden
from tilewright.targets.host.ffi import Carried, tvm_ffi
from tilewright.targets.host.function import HostFunction, LaunchConfig
from tilewright.targets.inlined import name_calls
from tilewright.targets.nvidia.backend.assembling import assemble_text
from tilewright.targets.nvidia.backend.options import NvidiaOptions, options_of, shows_log
from tilewright.targets.nvidia.backend.parts import PROFILE, host_object, regions_of
from tilewright.targets.nvidia.profile_buffer import SYMBOL, profile_of, read
from tilewright.targets.nvidia.profile_ptx import own
from tilewright.targets.options import Options
from tilewright.targets.profile import Profile

PROFILED = "call it outside of `with emulate.devices(...)`: what it records lies in memory that all devices share"


class _Call(threading.local):
    """The memory that the kernels of the call under way may touch, and what their launches reported."""

    def __init__(self) -> None:
        self.buffers: tuple[tuple[int, int, bool], ...] = ()
        self.values: Sequence[Any] = ()
        self.reports: list[Any] = []


class EmuDevice(Device):
    """Kernels as programs of the emulator."""

    last_stage = "ptx"

    @classmethod
    def stage_for(cls, options: Options) -> str:
        """The assembler runs as well where the user wants to read what it says."""
        return "cubin" if isinstance(options, NvidiaOptions) and shows_log(options) else cls.last_stage

    def __init__(self, artifact: Artifact, checks: Any) -> None:
        self._artifact = artifact
        self._options = emu.Options(checks=checks, all_arrive=True)
        self._call = _Call()
        self._kernels = artifact.kernels
        self.reports: list[Any] = []
        self._profiles: list[Profile] = []
        self._params = [param for param in artifact.signature.params if not getattr(param, "env", False)]
        for kernel in self._kernels:
            if kernel.user_text:
                self._program(kernel)
        self.host = HostFunction(
            host_object(artifact),
            artifact.signature,
            kernels=len(self._kernels),
            launch=self._launch,
            device="emu",
            tensor_map=tensormap.encode_for_driver,
        )

    @property
    def native(self) -> Any:
        return self.host.function

    def ffi_function(self, run: Callable[..., None]) -> Any:
        """Through Python: the emulator must know the memory of each call."""

        def carried(*values: Any) -> None:
            try:
                run(*values)
            except BaseException as error:
                if not is_outside(error):
                    raise
                raise Carried.of(error) from None

        return tvm_ffi().convert(carried)

    def run(self, values: Sequence[Any]) -> None:
        """Call the host function; kernels may touch the memory of its tensors and nothing else."""
        outer, self._call.buffers = self._call.buffers, tuple(_buffers(self._params, values))
        self._call.values = values
        self.reports = self._call.reports = []  # another thread's call has its own list
        try:
            reraise_lost(lambda: self.host(*values))
        finally:
            self._call.buffers, self._call.values = outer, ()

    def _program(self, kernel: KernelImage) -> emu.Program:
        """The kernel's PTX, compiled. What the emulator cannot take may be wrong: then the assembler says how."""
        try:
            program = emu.load(str(kernel.stages["ptx"]))
            program.image(kernel.name, self._options.checked)
        except EmulationError:
            _assemble(kernel, self._artifact)
            raise
        return program

    def _launch(self, config: LaunchConfig, number: int, params: Any) -> None:
        kernel = self._kernels[number]
        try:
            self._emulate(kernel, config, params)
        except TilewrightError as error:
            self._placed(kernel, error)
            raise

    def _placed(self, kernel: KernelImage, error: TilewrightError) -> None:
        """Say in an error what lines of the source it is about."""
        if error.location is None:
            error.location = kernel.launched_at
        name_calls(error, self._artifact.inlined)

    def _emulate(self, kernel: KernelImage, config: LaunchConfig, params: Any) -> None:
        name = kernel.name
        program = self._program(kernel)
        sizes = [parameter.size for parameter in program.module.functions[name].params]
        raw = [ctypes.string_at(params[index], size) for index, size in enumerate(sizes)]
        timed, fleet, buffers = PROFILE in kernel.stages, emu.current_fleet(), self._call.buffers
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
            fleet.enqueue(
                device, config.stream, self._call.values, partial(self._placed, kernel), program, *shape, **more
            )
            return
        report = emu.launch(program, *shape, **more)
        self._call.reports.append(report)
        add_report(report)
        if timed:
            self._profiles.append(recorded(kernel, program, options_of(self._artifact).profile_events))

    def profile(self) -> Profile:
        if not any(PROFILE in kernel.stages for kernel in self._kernels):
            return super().profile()
        launches, self._profiles = self._profiles, []
        return Profile.in_turn("instructions", launches)


def recorded(kernel: KernelImage, program: emu.Program, events: int) -> Profile:
    """What a launch recorded; its memory is empty afterwards."""
    memory = program.memory[SYMBOL]
    records, asked = read(memory.tobytes(), events)
    memory[:] = 0
    return profile_of(kernel.name, regions_of(kernel), [own(record) for record in records], asked, khz=0)


def _assemble(kernel: KernelImage, artifact: Artifact) -> None:
    """Refuse PTX that is not valid, with the assembler's words; nothing where there is no assembler."""
    try:
        assemble_text(str(kernel.stages["ptx"]), artifact.arch, options_of(artifact), kernel.launched_at)
    except CompileError as error:
        if error.nvvm_error:
            raise


def _buffers(params: Sequence[Param], values: Sequence[Any]) -> list[tuple[int, int, bool]]:
    """(address, bytes, writable) of the memory behind the arguments; what does not fit is left to their check."""
    found = []
    for param, value in zip(params, values, strict=False):
        if isinstance(value, Addresses):
            found += _pointed(value)
        elif isinstance(param, TupleParam):
            found += _buffers(param.items, value) if isinstance(value, (tuple, list)) else []
        elif isinstance(param, PointerParam):
            address = value.value if isinstance(value, ctypes.c_void_p) else value
            found += [mapping_of(address)] if isinstance(address, int) else []
        elif isinstance(value, RuntimeTensor):
            found.append((*value.view.extent(), value.view.writable))
        elif isinstance(param, TensorParam) and is_tensor(value):
            made = view(value)
            found.append((*made.extent(), made.writable))
    return found


def _pointed(values: Addresses) -> list[tuple[int, int, bool]]:
    """The memory that the machine values of an object may point to: what each is, taken as an address."""
    found = []
    for address in values:
        try:
            start, size, _ = mapping_of(address)
            if address + 8 <= start + size:
                found.append(mapping_of(ctypes.c_uint64.from_address(address).value))
        except ArgumentError:
            continue
    return found
