"""What this back end owns: stages `python cute tt cpp`, its pass list, options, architectures and artifacts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar

from tilewright.arguments.aggregates import is_aggregate, member_at
from tilewright.arguments.binding import BoundCall
from tilewright.arguments.runtime_tensor import FakeTensor, RuntimeTensor, is_tensor
from tilewright.base.errors import CompileError
from tilewright.base.signature import TensorParam, TupleParam
from tilewright.hw.tensix import CORES, WORMHOLE
from tilewright.passes.pipeline import PassManager
from tilewright.targets.artifact import Artifact
from tilewright.targets.cute_stage import CUTE, PYTHON
from tilewright.targets.job import Job, KernelJob
from tilewright.targets.options import Options
from tilewright.targets.target import BackEnd
from tilewright.targets.tenstorrent.options import TenstorrentOptions
from tilewright.targets.tenstorrent.passes.standard import STANDARD
from tilewright.targets.tenstorrent.passes.verify_protocol import VerifyProtocol
from tilewright.targets.tenstorrent.stages import CPP, MODULE, PLAN, TT
from tilewright.targets.tenstorrent.tir.data import module_from_json, module_to_json


class Tenstorrent(BackEnd):
    """Block-level kernels for Tensix cores. Shapes are part of a program: a tensor passed as it is has a fixed one."""

    name = "tenstorrent"
    stages = (PYTHON, CUTE, TT, CPP)
    options = TenstorrentOptions
    default_arch = WORMHOLE.name
    emitted = "cpp"
    tests_on = "tenstorrent"
    devices: ClassVar = {"tenstorrent": "tilewright.targets.tenstorrent.device:SimulatedDevice"}

    def normalize_arch(self, name: str) -> str:
        if name not in CORES:
            raise CompileError(f"unknown architecture {name!r}", hint=f"one of {', '.join(CORES)}")
        return name

    def standard_passes(self, arch: str, options: Options) -> PassManager:
        return PassManager([*STANDARD, VerifyProtocol])

    def completed(self, passes: PassManager, arch: str, options: Options) -> PassManager:
        names = [item.name for item in passes]
        missing = [item for item in (*STANDARD, VerifyProtocol) if item.name not in names]
        return replace(passes, passes=[*passes, *missing] if missing else list(passes), runs=[])

    def bound(self, call: BoundCall) -> BoundCall:
        params = [_fixed(param, call.runtime.get(param.name)) for param in call.signature.params]
        return replace(call, signature=replace(call.signature, params=tuple(params)))

    def parts(self, job: Job) -> dict[str, str | bytes]:
        return {"cute": job.texts["cute"], "program": module_to_json(job.parts[MODULE])}

    def kernel_parts(self, kernel: KernelJob) -> dict[str, str | bytes]:
        return {}

    def job_parts(self, artifact: Artifact) -> dict[str, Any]:
        return {MODULE: module_from_json(str(artifact.stages["program"]))}

    def plan(self, executor: Any) -> Any:
        """plan.json of a compiled function, as Python objects."""
        executor.stages["cpp"]
        return json.loads(executor.job.parts[PLAN])


def _fixed(param: Any, value: Any) -> Any:
    """The parameter with the extents of the tensor that is passed, where it is passed as it is."""
    if isinstance(param, TupleParam) and is_aggregate(value):
        return replace(
            param, items=tuple(_fixed(item, member_at(value, param.name, item.name)) for item in param.items)
        )
    if not isinstance(param, TensorParam) or not param.implicit or not is_tensor(value):
        return param
    if isinstance(value, RuntimeTensor | FakeTensor):
        return param
    return RuntimeTensor(value).param(param.name)


BACK_END = Tenstorrent()
