"""The pass lists of this back end: the standard one, and a user's list with what it leaves out."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from tilewright.base.errors import CompileError
from tilewright.base.notices import say_once
from tilewright.lang.locations import user_location
from tilewright.passes.annotate_loops import AnnotateLoops
from tilewright.passes.check_bounds import CheckBounds
from tilewright.passes.communication import told_chip
from tilewright.passes.expand_views import ExpandViews
from tilewright.passes.pipeline import Pass, PassManager, UpstreamPass
from tilewright.passes.pipeline_loops import PipelineLoops
from tilewright.passes.place_shared_memory import PlaceSharedMemory
from tilewright.passes.promote_register_tensors import PromoteRegisterTensors
from tilewright.passes.scf_to_cf import ScfToCf
from tilewright.passes.vectorize_loops import VectorizeLoops
from tilewright.targets.nvidia.backend.options import NvidiaOptions
from tilewright.targets.nvidia.lowering.cute_to_nvvm import CuteToNvvm
from tilewright.targets.nvidia.lowering.place_tensor_maps import PlaceTensorMaps
from tilewright.targets.nvidia.tiles.expand_tiles import ExpandTiles
from tilewright.targets.options import Asked, Options

TO_LLVM = (
    "gpu.module(convert-scf-to-cf,convert-vector-to-llvm,convert-gpu-to-nvvm{allow-pattern-rollback=0},"
    "convert-nvvm-to-llvm,reconcile-unrealized-casts)"
)
DEBUG_SCOPES = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"


_FIELDS = {
    "opt-level": "opt_level",
    "enable-assertions": "enable_assertions",
    "preserve-line-info": "generate_line_info",
    "profile": "profile",
    "profile-warps": "profile_warps",
    "profile-events": "profile_events",
}
# Those of a compilation that cute-to-nvvm itself has no part in.
_OTHERS = {entry.name.replace("_", "-"): entry.name for entry in fields(NvidiaOptions)}
_OTHERS = {
    key: name for key, name in _OTHERS.items() if key in CuteToNvvm.options and key not in (*_FIELDS, "gpu-arch")
}


def standard_pipeline(arch: str, options: Options | None = None) -> PassManager:
    """The passes that lead from traced code to the nvvm dialect."""
    chosen = options or NvidiaOptions()
    lowering = CuteToNvvm(**{"cubin-chip": arch, "opt-level": chosen.opt_level})
    return _checked(
        PassManager(
            [
                ExpandTiles(),
                VectorizeLoops(),
                PromoteRegisterTensors(),
                PipelineLoops(),
                AnnotateLoops(),
                PlaceSharedMemory(),
                ExpandViews(),
                _told(lowering, arch, chosen),
                *_finish(),
            ]
        ),
        chosen,
    )


def _finish() -> list[Pass]:
    """What follows cute-to-nvvm, whatever passes the user gives."""
    return [ScfToCf(), UpstreamPass(TO_LLVM), PlaceTensorMaps(), UpstreamPass(DEBUG_SCOPES)]


def completed(pipeline: PassManager, arch: str, options: Options | None = None) -> PassManager:
    """A user's pass list with the standard passes it leaves out, its cute-to-nvvm told what is compiled for."""
    chosen = options or NvidiaOptions()
    names = [item.name for item in pipeline]
    passes = list(pipeline) if CuteToNvvm.name in names else [*pipeline, CuteToNvvm()]
    passes = [_told(item, arch, chosen) for item in passes]
    if ExpandViews.name not in names:
        passes.insert([item.name for item in passes].index(CuteToNvvm.name), ExpandViews())
    for missing in (PlaceSharedMemory, AnnotateLoops):
        if missing.name not in names:
            passes.insert([item.name for item in passes].index(ExpandViews.name), missing())
    if PromoteRegisterTensors.name not in names:
        passes.insert(names.index(ExpandTiles.name) + 1 if ExpandTiles.name in names else 0, PromoteRegisterTensors())
    place = [item.name for item in passes].index(PromoteRegisterTensors.name)
    if PipelineLoops.name not in names:
        passes.insert(place + 1, PipelineLoops())
    if VectorizeLoops.name not in names:
        passes.insert(place, VectorizeLoops())
    if ExpandTiles.name not in names:
        passes.insert(0, ExpandTiles())
    texts = [str(item) for item in passes]
    passes += [item for item in _finish() if str(item) not in texts]
    return _checked(replace(pipeline, passes=passes, runs=[]), chosen)


def _told(item: Pass, arch: str, options: Options) -> Pass:
    """cute-to-nvvm with the chip and the options of this compilation: a printed list compiles the same again. Passes
    over collectives are told the chip."""
    if not isinstance(item, CuteToNvvm):
        return told_chip(item, arch)
    values = {key: getattr(options, field) for key, field in _FIELDS.items()}
    written = {key: value for key, value in values.items() if key in item.given or value != item.options[key]}
    return CuteToNvvm(**{**item.given, **written, "cubin-chip": arch})


def _checked(manager: PassManager, options: Options) -> PassManager:
    """The list with check-bounds in it where assertions are asked for."""
    if options.enable_assertions and CheckBounds.name not in [item.name for item in manager]:
        manager.insert(CheckBounds(), before=PlaceSharedMemory.name)
    return manager


_WITHOUT_EFFECT = {
    "enable-cuda-dialect": "a launch is an operation of the dialect gpu until the host function becomes native code",
    "cuda-dialect-external-module": "the machine code always lies outside the module",
}


def asked_of(pipeline: PassManager) -> Asked:
    """What a pass list asks for.

    Raises:
        CompileError: `cubin-format` or `toolkitPath` of cute-to-nvvm cannot be.
    """
    for item in pipeline:
        if isinstance(item, CuteToNvvm):
            _check_given(item)
            known = _OTHERS | _FIELDS
            asked = {known[key]: value for key, value in item.given.items() if key in known}
            chip = item.given.get("cubin-chip", "") or item.given.get("gpu-arch", "")
            return Asked(str(chip), str(item.given.get("toolkitPath", "")), asked)
    return Asked()


def _check_given(item: CuteToNvvm) -> None:
    place = user_location()
    form, toolkit = str(item["cubin-format"]), str(item["toolkitPath"])
    if form != "bin":
        raise CompileError(
            f"cubin-format is bin, not {form}",
            location=place,
            hint="the PTX is in .stages['ptx'] and LLVM IR in .stages['llvm']; KeepPTX and KeepIR write them to files",
        )
    if toolkit and not Path(toolkit).expanduser().is_dir():
        raise CompileError(
            f"toolkitPath={toolkit} is no folder",
            location=place,
            hint="name the folder that holds bin/ptxas, or leave toolkitPath out: the installed packages will do",
        )
    for name, why in _WITHOUT_EFFECT.items():
        if item[name]:
            say_once(f"{name} has no effect here: {why}", place)
