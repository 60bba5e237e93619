"""Running a compiled function on the emulator: its launches arrive here instead of at the driver.

The emulator itself, a hundred modules, is loaded by the first launch (`devices/emulation`), not by compiling.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.arguments.dlpack import view
from tilewright.arguments.host_memory import mapping_of
from tilewright.arguments.objects import Addresses
from tilewright.arguments.runtime_tensor import RuntimeTensor, is_tensor
from tilewright.base.errors import ArgumentError
from tilewright.base.interrupts import is_outside, reraise_lost
from tilewright.base.lazy import cached_property, function_at, object_at
from tilewright.base.signature import Param, PointerParam, TensorParam, TupleParam
from tilewright.targets.artifact import Artifact
from tilewright.targets.device import Device
from tilewright.targets.host.ffi import Carried, tvm_ffi
from tilewright.targets.host.function import HostFunction, LaunchConfig
from tilewright.targets.nvidia.backend.options import NvidiaOptions, shows_log
from tilewright.targets.nvidia.backend.parts import PROFILE, host_object
from tilewright.targets.options import Options
from tilewright.targets.profile import Profile


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
        self._checks = checks
        self._call = _Call()
        self._kernels = artifact.kernels
        self.reports: list[Any] = []
        self._params = [param for param in artifact.signature.params if not getattr(param, "env", False)]
        if isinstance(checks, (list, tuple)):
            _ = self._emulation  # refuses what are no checkers
        for kernel in self._kernels:
            if kernel.user_text:
                self._emulation.program(kernel)
        self.host = HostFunction(
            host_object(artifact),
            artifact.signature,
            kernels=len(self._kernels),
            launch=self._launch,
            device="emu",
            tensor_map=function_at("tilewright.targets.emu.tensormap:encode_for_driver"),
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

    @cached_property
    def _emulation(self) -> Any:
        return object_at("tilewright.targets.nvidia.devices.emulation:Emulation")(self._artifact, self._checks)

    def _launch(self, config: LaunchConfig, number: int, params: Any) -> None:
        call = self._call
        report = self._emulation.launch(self._kernels[number], config, params, call.buffers, call.values)
        if report is not None:
            call.reports.append(report)

    def profile(self) -> Profile:
        if not any(PROFILE in kernel.stages for kernel in self._kernels):
            return super().profile()
        launches, self._emulation.profiles = self._emulation.profiles, []
        return Profile.in_turn("instructions", launches)


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
