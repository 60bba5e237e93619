"""Names of CuTe DSL that are not built yet, and what they are for.

A module of the public face says of such a name which hardware or which part of CuTe DSL it belongs to, instead of
"has no attribute". Names of hardware that is not built (`_STUBS`) resolve as stubs, which refuse when they are used; of
the others `hasattr` and `getattr` with a default work as usual, since sources ask by them what is there. The names are
those that CuTe DSL's public documentation and public kernels use. A row goes when its name is built.
"""

from __future__ import annotations

import importlib
import opcode
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

from tilewright.base.errors import TilewrightError
from tilewright.base.stubs import NotBuiltError, StubModule, stub

HOPPER: Final = "needs sm_90 (Hopper), whose bulk copies and wgmma are not built yet"
_BLACKWELL: Final = "needs sm_100 (Blackwell), whose tensor memory and tcgen05 are not built yet"
_BLACKWELL_MOVES: Final = "needs sm_100 (Blackwell) and is not built yet"
_SCALED: Final = "needs sm_120 (GeForce Blackwell), whose block-scaled products are not built yet"
INTERNAL: Final = "is a part of NVIDIA's compiler that has no counterpart here"
PRIMITIVES: Final = "belongs to CuTe DSL's experimental primitives and is not built yet"
EXPERIMENTAL: Final = "belongs to CuTe DSL's experimental part and is not built yet"
_SEVERAL: Final = "is CuTe DSL's own part for several GPUs, not built: tilewright.dist has collectives, put and get"
_DIALECT: Final = "is a dialect of NVIDIA's compiler: atoms, layouts and launches are Python objects here"
_STUBS: Final = frozenset((_DIALECT, HOPPER, _BLACKWELL, _BLACKWELL_MOVES, _SCALED, PRIMITIVES, EXPERIMENTAL))

_BY_MODULE: Final[dict[str, dict[str, str]]] = {
    "tilewright": {
        "jax": "calls kernels from JAX, not built yet: pass JAX arrays as they are, they have DLPack",
        "Float4E2M1FNx2": "is a pair of Float4E2M1FN: here a tensor of pairs has twice as many Float4E2M1FN elements",
        "Float6E3M2FNx4": "is four of Float6E3M2FN: a tensor of them has four times as many elements here",
        "inttoptr print_nd_vector": PRIMITIVES,
    },
    "mlir.dialects": {"cute cute_nvgpu cuda": _DIALECT},
    "tilewright.compat.mlir_helpers": {
        "vector": INTERNAL,
    },
    "tilewright.memory": {"TmemAllocator": _BLACKWELL},
    "tilewright.cute": {
        "_pack_tile _pack_shape": INTERNAL,
        "make_atom get_leaves static kernel_smem_size ffi": INTERNAL,
    },
    "tilewright.cute.math": {
        "expm1 log1p": "is not built: MLIR's own loses digits near 0",
        "add sub mul div neg rem fpowi ipowi isnormal RoundingMode": "is an operator or not built yet: numbers and "
        "vectors have + - * / % **, which round to the nearest",
    },
    "tilewright.cute.arch": {
        "add_cc addc sub_cc subc mad_cc madc": "keeps a carry between two instructions, not built: use Int64 or Int128",
        "prefetch": "asks for memory ahead: cute.prefetch(atom, tensor) does it here",
        "aggr_smem_size": HOPPER,
        "cvt_i8_bf16_intrinsic cvt_i4_bf16_intrinsic cvt_i8x4_to_f32x4 cvt_i8x2_to_f32x2 cvt_i8_bf16 "
        "cvt_i8x2_to_bf16x2 cvt_i8x4_to_bf16x4 cvt_f32_tf32 cvt_f32x2_bf16x2 sext_unpacked_i4_i8_intrinsic": "converts "
        "MLIR vectors, not built: `v.to(cutlass.BFloat16)` converts a TensorSSA",
        "alloc_tmem clc_response dealloc_tmem fence_view_async_tmem_load fence_view_async_tmem_store "
        "get_max_tmem_alloc_cols get_min_tmem_alloc_cols issue_clc_query relinquish_tmem_alloc_permit "
        "retrieve_tmem_ptr": _BLACKWELL,
    },
    "tilewright.torch": {"as_tensor": _SEVERAL},
    "tilewright.cute.testing": {
        "add_tensor_init_args validate_tensor_init_args": "reads from the command line how tensors are filled, not "
        "built: fill them with PyTorch or NumPy",
    },
    "tilewright.cute.nvgpu": {
        "MemoryOrder MemoryScope CopyG2ROp CopyR2GOp": "says how a copy orders memory, not built: cute.arch.load and "
        "store take sem=, scope= and cop=",
        "make_tiled_tma_atom_A make_tiled_tma_atom_B": HOPPER,
        "tcgen05": _BLACKWELL,
    },
    "tilewright.cute.nvgpu.cpasync": {
        "helpers CopyBulkTensorTileG2SNonExecTrait CopyBulkTensorTileG2SMulticastNonExecTrait "
        "CopyBulkTensorTileS2GNonExecTrait CopyReduceBulkTensorTileS2GNonExecTrait "
        "CopyDsmemStoreOp TmaInfo": HOPPER,
    },
    "tilewright.cute.nvgpu.warp": {
        "mma copy": _DIALECT,
        "_pack_shape _cute_nvgpu_ir MmaFP8Trait make_atom": INTERNAL,
        "LdMatrix16x16x8bOp StMatrix16x8x8bOp": _BLACKWELL_MOVES,
        "MXF8F6F4_SUPPORTED_PAIRS MmaMXF4NVF4Op MmaMXF4Op MmaMXF8F6F4Op MmaMXF8Op": _SCALED,
    },
    "tilewright.pipeline": {
        "TmaStoreFence SyncObject": HOPPER,
        "PipelineTmaMultiConsumersAsync PipelineAsyncUmma PipelineClcFetchAsync PipelineTmaUmma PipelineUmmaAsync "
        "sm100": _BLACKWELL,
    },
    "tilewright.utils": {
        "compute_epilogue_tile_shape": HOPPER,
        "ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams TmemAllocator blackwell_helpers "
        "blockscaled_layout gemm get_num_tmem_alloc_cols mixed_input_helpers sm100": _BLACKWELL,
        "StaticPersistentRuntimeTileScheduler": _BLACKWELL,
        "distributed": _SEVERAL,
    },
}
NOT_BUILT: Final[dict[str, dict[str, str]]] = {
    module: {name: why for names, why in rows.items() for name in names.split()} for module, rows in _BY_MODULE.items()
}
"""By module: what each name that is not built yet is for."""

_CALLED: Final = {
    "tilewright": "cutlass",
    "tilewright.base_dsl": "cutlass.base_dsl",
    "tilewright.compat.base_dsl": "cutlass.base_dsl",
    "tilewright.compat.dsl_module": "cutlass.base_dsl.dsl",
    "tilewright.compat.runtime_cuda": "cutlass.base_dsl.runtime.cuda",
    **{
        f"tilewright.compat.{name}": f"cutlass.base_dsl.{name}"
        for name in ("compiler", "jit_executor", "runtime", "typing", "utils")
    },
    "tilewright.cutlass_dsl": "cutlass.cutlass_dsl",
    "tilewright.experimental": "cutlass.experimental",
    "tilewright.experimental.primitives": "cutlass.experimental.primitives",
    "tilewright.compat.ast_preprocessor": "cutlass.base_dsl.ast_preprocessor",
    "tilewright.compat.mlir_helpers": "cutlass._mlir_helpers",
}
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]


class NotBuiltImportError(TilewrightError, ImportError):
    """`from module import name` of a name of CuTe DSL that is not built yet."""


def missing(module: str, late: Mapping[str, str] | None = None, *, rest: str = "") -> Callable[[str], Any]:
    """The `__getattr__` of a module of the face: it raises the error that fits the name.

    Args:
        module: the module's full name.
        late: modules that are loaded when asked for, by the name under which they are; `module:name` for a name in one.
        rest: what every name is for that has no row, where the module stands for one of NVIDIA's compiler.
    """
    modules = late or {}

    def absent(name: str) -> Any:
        if name in modules:
            path, _, attribute = modules[name].partition(":")
            found = importlib.import_module(path)
            return getattr(found, attribute) if attribute else found
        return stub_of(module, name, sys._getframe(1), rest)

    return absent


def stub_of(module: str, name: str, caller: FrameType, rest: str = "") -> Any:
    """The stub of a name that the module does not have, or an error where the name is not one of hardware to come."""
    why = _why(module, name, rest)
    if why in _STUBS:
        return stub(f"{_public(module)}.{name}", why)
    raise absence(module, name, caller, rest)


def _why(module: str, name: str, rest: str) -> str:
    return NOT_BUILT.get(module, {}).get(name, "" if name.startswith("__") else rest)


def absence(module: str, name: str, caller: FrameType, rest: str = "") -> Exception:
    """What `caller` gets for a name that the module does not have."""
    why = _why(module, name, rest)
    if not why:
        message = f"module {module!r} has no attribute {name!r}"
        return AttributeError(message, name=name, obj=sys.modules.get(module))  # from which a close name is suggested
    error = NotBuiltImportError if imports_from(caller) else NotBuiltError
    return error(f"{_public(module)}.{name} {why}")


def module_not_built(name: str) -> NotBuiltImportError | None:
    """The error for importing the module of that full name, if it or a module above it is not built yet."""
    module, why = _not_built(name)
    return NotBuiltImportError(f"{module} {why}") if why and why not in _STUBS else None


def stub_module(name: str) -> StubModule | None:
    """What stands for the module of that full name, if it or a module above it is of hardware to come."""
    _, why = _not_built(name)
    return StubModule(name, _public(name), why) if why in _STUBS else None


def _not_built(name: str) -> tuple[str, str]:
    """The public name of the module, or of one above it, that has a row here, and the row."""
    while "." in name:
        module, _, leaf = name.rpartition(".")
        if leaf in NOT_BUILT.get(module, {}):
            return f"{_public(module)}.{leaf}", NOT_BUILT[module][leaf]
        name = module
    return "", ""


def _public(module: str) -> str:
    if module.startswith("mlir."):
        return f"cutlass._{module}"
    return _CALLED.get(module, module.removeprefix("tilewright."))


def imports_from(frame: FrameType) -> bool:
    """Whether the frame is at `from module import name`, where Python would drop the text of an AttributeError."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM
