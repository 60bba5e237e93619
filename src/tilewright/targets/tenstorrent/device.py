"""The in-tree simulator as a device: it runs the kernels of stage `tt` on every core, one after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilewright.arguments.dlpack import view
from tilewright.arguments.runtime_tensor import RuntimeTensor
from tilewright.base import dlpack_types
from tilewright.base.errors import ArgumentError, EmulationError
from tilewright.base.signature import Param, ScalarParam, StreamParam, TensorParam, TupleParam
from tilewright.hw.tensix import CORES, FORMATS
from tilewright.targets.artifact import Artifact
from tilewright.targets.device import Device, check_count
from tilewright.targets.tenstorrent.context import PassContext
from tilewright.targets.tenstorrent.passes.verify_protocol import by_kernel
from tilewright.targets.tenstorrent.simulator.data import DataCore
from tilewright.targets.tenstorrent.simulator.faults import Fault
from tilewright.targets.tenstorrent.simulator.numerics import NUMPY, tilize, untilize
from tilewright.targets.tenstorrent.simulator.program import Program
from tilewright.targets.tenstorrent.simulator.schedule import run_core
from tilewright.targets.tenstorrent.tir.data import module_from_json
from tilewright.targets.tenstorrent.tir.read_mlir import HostFunc, LaunchedKernel


class SimulatedDevice(Device):
    """Runs launches in order, each core's three kernels as processes."""

    last_stage = "tt"

    def __init__(self, artifact: Artifact, checks: Any) -> None:
        module = module_from_json(str(artifact.stages["program"]))
        self._context = PassContext(CORES[artifact.arch], artifact.options)  # type: ignore[arg-type]
        self._host = next(item for item in module.functions.values() if isinstance(item, HostFunc))
        self._kernels = by_kernel(module)
        self._checked = checks is not False
        self._params = [param for param in artifact.signature.params if not getattr(param, "env", False)]

    def run(self, values: Sequence[Any]) -> None:
        check_count(self._params, values)
        given: dict[str, Any] = {}
        for param, value in _flat(self._params, values):
            if not isinstance(param, StreamParam):
                given[param.name] = _host_value(param, value)
        for launch in self._host.launches:
            self._launch(launch, given)

    def _launch(self, launch: LaunchedKernel, given: dict[str, Any]) -> None:
        kernels = self._kernels[launch.kernel]
        first = kernels[0]
        taken: dict[str, Any] = {
            name: given[item.name] if item.name else item.value for name, item in launch.arguments.items()
        }
        buffers = {item.name: item for item in first.buffer_map.values() if "tt.padded_shape" in item.attrs}
        memory = {name: _uploaded(taken[name], item) for name, item in buffers.items()}
        programs = [Program(item) for item in kernels]
        for part in first.attrs["tt.work_partition"]["cores"]:
            core = DataCore(
                first.attrs["tt.cb_assignment"],
                memory,
                self._context.dst_capacity,
                self._context.options.dst,
                self._checked,
            )
            self._run_core(core, programs, {**taken, "start_id": part["start"], "count": part["count"]}, launch, part)
        for name, item in buffers.items():
            if item.attrs["tt.usage"] != "read":
                taken[name][...] = untilize(memory[name], tuple(item.attrs["tt.padded_shape"]))[
                    : item.shape[0], : item.shape[1]
                ]

    def _run_core(self, core: DataCore, programs: Any, arguments: Any, launch: LaunchedKernel, part: Any) -> None:
        try:
            run_core(core, programs, arguments)
        except Fault as fault:
            subject = f"the {fault.role} of {launch.kernel} {fault.message}" if fault.role else fault.message
            raise EmulationError(
                subject,
                location=fault.location,
                values={"core": tuple(part["core"]), **fault.values},
                hint=fault.hint or None,
                kind="deadlock" if fault.message.startswith("deadlock") else "program",
            ) from fault


def _flat(params: Sequence[Param], values: Sequence[Any]) -> Iterator[tuple[Param, Any]]:
    """Parameters with their values, those of tuples one by one."""
    for param, value in zip(params, values, strict=True):
        if isinstance(param, TupleParam):
            yield from _flat(param.items, value)
        else:
            yield param, value


def _uploaded(array: Any, buffer: Any) -> Any:
    """An array as pages, padded."""
    padded = np.full(tuple(buffer.attrs["tt.padded_shape"]), buffer.attrs["tt.pad"], dtype=array.dtype)
    padded[: buffer.shape[0], : buffer.shape[1]] = array
    return tilize(padded)


def _host_value(param: Param, value: Any) -> Any:
    """An argument as the simulator takes it."""
    if isinstance(param, ScalarParam):
        return value
    if not isinstance(param, TensorParam):
        raise ArgumentError(
            f"{param.name}: the tenstorrent target takes tensors and numbers", hint="pass pointers as tensors"
        )
    if param.dtype not in FORMATS:
        raise ArgumentError(
            f"{param.name}: tensors of {', '.join(FORMATS)} are taken",
            values={"dtype": param.dtype},
            hint="convert it on the host first",
        )
    seen = value.view if isinstance(value, RuntimeTensor) else view(value)
    wanted = tuple(dim.value for dim in param.shape), tuple(dim.value for dim in param.stride)
    if seen.dtype != param.dtype or (seen.shape, seen.stride) != wanted:
        raise ArgumentError(
            f"{param.name} is another tensor than the function was compiled for",
            values={
                "compiled for": f"{param.dtype} {wanted[0]}, strides {wanted[1]}",
                "got": f"{seen.dtype} {seen.shape}, strides {seen.stride}",
            },
            hint="shapes are part of a program: compile again for others",
        )
    if seen.device != dlpack_types.CPU:
        raise ArgumentError(f"{param.name} is not in the host's memory", hint="the simulator runs on the host")
    address, size = seen.extent()
    raw: Any = (ctypes.c_char * size).from_address(address)
    dtype = NUMPY[FORMATS[param.dtype][0]]
    return np.ndarray(seen.shape, dtype, raw, 0, tuple(step * dtype.itemsize for step in seen.stride))
