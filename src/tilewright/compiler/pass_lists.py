"""The pass lists: the standard one, and a user's list with what it leaves out."""

from __future__ import annotations

from typing import Any

from tilewright.passes.annotate_loops import AnnotateLoops
from tilewright.passes.pipeline import Pass, PassManager, UpstreamPass
from tilewright.passes.place_loop_annotations import PlaceLoopAnnotations
from tilewright.passes.place_shared_memory import PlaceSharedMemory
from tilewright.targets.nvidia.cute_to_nvvm import CuteToNvvm

TO_LLVM = (
    "gpu.module(convert-scf-to-cf,convert-vector-to-llvm,convert-gpu-to-nvvm,convert-nvvm-to-llvm,"
    "reconcile-unrealized-casts)"
)
DEBUG_SCOPES = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"


def standard_pipeline(arch: str, *, opt_level: int = 3) -> PassManager:
    """The passes that lead from traced code to the nvvm dialect."""
    passes: list[Pass] = [
        AnnotateLoops(),
        PlaceSharedMemory(),
        CuteToNvvm(**{"cubin-chip": arch, "opt-level": opt_level}),
    ]
    return PassManager([*passes, *_finish()])


def _finish() -> list[Pass]:
    """What follows cute-to-nvvm, whatever passes the user gives."""
    return [UpstreamPass(TO_LLVM), PlaceLoopAnnotations(), UpstreamPass(DEBUG_SCOPES)]


def completed(pipeline: PassManager, arch: str) -> PassManager:
    """A user's pass list with the standard passes it leaves out."""
    names = [item.name for item in pipeline]
    passes = [_for_chip(item, arch) for item in pipeline]
    if CuteToNvvm.name not in names:
        passes.append(CuteToNvvm(**{"cubin-chip": arch}))
    for missing in (PlaceSharedMemory, AnnotateLoops):
        if missing.name not in names:
            position = [item.name for item in passes].index(CuteToNvvm.name)
            passes.insert(position, missing())
    texts = [str(item) for item in passes]
    passes += [item for item in _finish() if str(item) not in texts]
    return PassManager(passes)


def _for_chip(item: Pass, arch: str) -> Pass:
    return CuteToNvvm(**{**item.given, "cubin-chip": arch}) if isinstance(item, CuteToNvvm) else item


_FLAGS = {
    "opt-level": "opt_level",
    "enable-assertions": "enable_assertions",
    "preserve-line-info": "generate_line_info",
}


def asked_of(pipeline: PassManager) -> tuple[str, dict[str, Any]]:
    """The chip (or "") and the fields of `Options` that the options of cute-to-nvvm in a pass list ask for."""
    for item in pipeline:
        if isinstance(item, CuteToNvvm):
            fields = {_FLAGS[key]: value for key, value in item.given.items() if key in _FLAGS}
            return str(item.given.get("cubin-chip", "")), fields
    return "", {}


def split(pipeline: PassManager) -> tuple[PassManager, PassManager]:
    """The passes of stage `cute`, and those from `cute-to-nvvm` on."""
    names = [item.name for item in pipeline]
    position = names.index(CuteToNvvm.name)
    return PassManager(pipeline.passes[:position]), PassManager(pipeline.passes[position:])
