"""Which names of CuTe DSL resolve here: `names.csv` has those of a corpus of public sources, by tier.

A name is written as sources reach it: `cute.arch.barrier` (`cute` is `cutlass.cute`, `pipeline` `cutlass.pipeline`), an
attribute of objects as `.retile (ThrCopy)`, a keyword as `launch(grid=)`, a subscript as `cute.compile[...]`.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import tilewright as cutlass
import tilewright.dropin  # (makes `import cutlass` resolve)
from tilewright import cute, pipeline, utils
from tilewright.arguments.binding import RuntimePointer
from tilewright.arguments.runtime_tensor import RuntimeTensor
from tilewright.base.errors import CompileError
from tilewright.base.not_built import NotBuiltError, NotBuiltImportError
from tilewright.base.stubs import is_stub
from tilewright.compiler.executor import Executor
from tilewright.lang.calls.launch import KernelLauncher
from tilewright.lang.structs.struct import MemRange, Scalar, StructBase
from tilewright.lang.tensors.pointer import Pointer
from tilewright.pipeline import participants

TABLE = Path(__file__).with_name("names.csv")
BUILT, STUB, MISSING = VERDICTS = ("built", "stub", "missing")
OPTIONS = ("options", "target", "arch", "passes", "pipeline")
"""What `cute.compile` takes beside the arguments of the function."""
_ROOTS = {"cute": "cutlass.cute", "pipeline": "cutlass.pipeline"}


def rows() -> list[dict[str, str]]:
    """The table: tier, name and kind of each."""
    with TABLE.open() as file:
        return list(csv.DictReader(file))


def verdict(name: str) -> str:
    """Whether a name is built here, is a stub of what is to come, or does not resolve."""
    if name.startswith("."):
        attribute, _, owners = name[1:].partition(" (")
        return BUILT if any(_has(cls, attribute) for cls in _owners(owners.rstrip(")"))) else _of_stubs(owners)
    if keyword := re.fullmatch(r"([\w.]+)\((\w+)=\)", name):
        return BUILT if keyword[2] in _keywords(keyword[1]) else MISSING
    if subscript := re.fullmatch(r"([\w.]+)\[\.\.\.\]", name):
        found = resolved(subscript[1])
        return BUILT if hasattr(found, "__getitem__") or hasattr(found, "__class_getitem__") else MISSING
    found = resolved(re.sub(r"\(\w+\)", "", name))
    return MISSING if found is None else STUB if is_stub(found) else BUILT


def resolved(name: str) -> Any:
    """What a dotted name gives, attribute by attribute and importing modules; None where it does not resolve."""
    first, *rest = name.split(".")
    path = _ROOTS.get(first, first)
    found: Any = importlib.import_module(path)
    for part in rest:
        try:
            found = getattr(found, part)
        except CompileError:  # it is there, for use while a function is traced
            return _Nothing
        except (AttributeError, ImportError):
            try:
                found = importlib.import_module(f"{path}.{part}")
            except (ImportError, NotBuiltError, NotBuiltImportError):
                return None
        if is_stub(found):
            return found
        path = f"{path}.{part}"
    return _Nothing if found is None else found


class _Nothing:
    """Stands for the value None of a name that resolves."""


def _has(cls: type, attribute: str) -> bool:
    """Whether objects of a class, or the class itself, have an attribute: one of the class or one that it sets."""
    kinds = [*cls.__mro__, *type(cls).__mro__]
    if any(attribute in vars(kind) or attribute in inspect.get_annotations(kind) for kind in kinds if kind is not type):
        return True
    sources = [inspect.getsource(kind) for kind in kinds if kind.__module__.startswith("tilewright")]
    return any(re.search(rf"\bself\.{attribute}\b[^=\n]*=", source) for source in sources)


def _keywords(function: str) -> set[str]:
    target = KernelLauncher.launch if function == "launch" else resolved(function)
    return {*inspect.signature(target).parameters, *(OPTIONS if function == "cute.compile" else ())}


def _owners(text: str) -> list[Any]:
    """The classes that a table's owner stands for."""
    found = [_OWNERS.get(part, ()) for part in text.split("|")]
    return [cls for classes in found for cls in (classes if isinstance(classes, tuple) else (classes,))]


def _of_stubs(owners: str) -> str:
    return STUB if owners.rstrip(")") in _TO_COME else MISSING


_PIPELINES = (pipeline.PipelineAsync, pipeline.PipelineCpAsync, pipeline.PipelineTmaAsync, pipeline.PipelineTmaStore)
_SCHEDULERS = (utils.StaticPersistentTileScheduler, utils.StaticPersistentGroupTileScheduler, utils.WorkTileInfo,
               utils.GroupedGemmTileSchedulerHelper)  # fmt: skip
_PARTICIPANTS = (pipeline.PipelineProducer, pipeline.PipelineConsumer)
_OWNERS: dict[str, Any] = {
    "Tensor": cute.Tensor, "Layout": cute.Layout, "ComposedLayout": cute.ComposedLayout, "TensorSSA": cute.TensorSSA,
    "Numeric": cutlass.Float32, "typing": (cutlass.Float32, cutlass.Int32), "Pointer": Pointer,
    "RuntimeTensor": RuntimeTensor, "Atom": (cute.CopyAtom, cute.MmaAtom), "TiledCopy": cute.TiledCopy,
    "ThrCopy": cute.ThrCopy, "TiledMma": cute.TiledMma, "ThrMma": cute.ThrMma, "Kernel": KernelLauncher,
    "CompiledFunction": Executor, "HardwareInfo": utils.HardwareInfo, "LayoutEnum": utils.LayoutEnum,
    "NamedBarrier": pipeline.NamedBarrier, "Pipeline": _PIPELINES, "PipelineState": pipeline.PipelineState,
    "PipelineProducer/Consumer": _PARTICIPANTS,
    "PipelineProducer/Consumer/handle": (*_PARTICIPANTS, participants.ProducerHandle, participants.ConsumerHandle),
    "SmemAllocator": utils.SmemAllocator, "TileScheduler": _SCHEDULERS, "struct field": (MemRange, Scalar, StructBase),
    "JIT protocol": (RuntimePointer, cute.Tensor),
}  # fmt: skip
_TO_COME = frozenset(("TensorMapManager", "TmemAllocator", "prims.Array", "TMA/tcgen desc (prims)"))


def reach(name: str) -> str:
    """The verdict on a dotted name as code has it, which may go on to attributes of values: `cutlass.Int32.x.y`."""
    found = resolved(name)
    if found is None:
        return MISSING
    return STUB if is_stub(found) else BUILT
