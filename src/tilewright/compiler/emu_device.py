"""Running a compiled function on the emulator: its launches arrive here instead of at the driver."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

from tilewright.base import settings
from tilewright.compiler.dlpack import view
from tilewright.compiler.job import Job
from tilewright.compiler.runtime_tensor import RuntimeTensor
from tilewright.targets import emu
from tilewright.targets.host.function import HostFunction, LaunchConfig


class _Call(threading.local):
    """The memory that the kernels of the call under way may touch."""

    buffers: tuple[tuple[int, int, bool], ...] = ()


class EmuDevice:
    """Kernels as programs of the emulator. `reports` are those of the last call, one for each launch."""

    def __init__(self, job: Job, checks: Any) -> None:
        self._job = job
        self._checks = checks
        self._call = _Call()
        self._names = list(job.kernels)
        self.reports: list[Any] = []
        self.host = HostFunction(
            job.host_program.result(), job.signature, kernels=len(self._names), launch=self._launch, device="emu"
        )

    def run(self, values: Sequence[Any]) -> None:
        """Call the host function; kernels may touch the memory of its tensors and nothing else."""
        self.reports = []
        outer, self._call.buffers = self._call.buffers, tuple(_buffers(values))
        try:
            self.host(*values)
        finally:
            self._call.buffers = outer

    def _launch(self, config: LaunchConfig, number: int, params: Any) -> None:
        name = self._names[number]
        program = emu.load(self._job.kernels[name].texts["ptx"])
        sizes = [parameter.size for parameter in program.module.functions[name].params]
        raw = [ctypes.string_at(params[index], size) for index, size in enumerate(sizes)]
        report = emu.launch(
            program,
            name,
            config.grid,
            config.block,
            raw,
            cluster=config.cluster,
            smem=config.smem,
            buffers=self._call.buffers,
            options=emu.Options(checks=self._checks, seed=settings.get("seed")),
        )
        self.reports.append(report)


def _buffers(values: Sequence[Any]) -> list[tuple[int, int, bool]]:
    """(address, bytes, writable) of every tensor among the arguments."""
    found = []
    for value in values:
        if isinstance(value, (tuple, list)):
            found += _buffers(value)
        elif isinstance(value, RuntimeTensor):
            found.append((*value.view.extent(), value.view.writable))
        elif hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__"):
            made = view(value)
            found.append((*made.extent(), made.writable))
    return found
